#ifndef SY_TERMINAL_KEY_H
#define SY_TERMINAL_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What a program has told the terminal about the keys that it wants. A terminal
 * (terminal.h) keeps track of it; all false is how one is born.
 */
struct key_modes {
    bool app_cursor;      /* DECCKM: arrows, Home, End as ESC O x */
    bool app_keypad;      /* DECKPAM: KP... as ESC O x */
    bool bracketed_paste; /* 2004 */
    bool other_keys;      /* modifyOtherKeys: keys that had no code have one */
};

/*
 * Appends what the key `name` sends. Names are those of tmux, in any case:
 *
 *     Enter Tab BTab Escape Space BSpace Delete|DC Insert|IC Home End
 *     PageUp|PPage PageDown|NPage Up Down Left Right F1 ... F12
 *     KP0 ... KP9 KP. KP+ KP- KP* KP/ KPEnter
 *
 * and aliases of other programs (Esc, Return, Backspace, ArrowUp, ...), or one
 * character. In front may stand C- M- S- in any combination, also as ^x, Ctrl+x,
 * alt-x, <C-x>. A modified key is encoded as xterm does it.
 *
 * SY_E_ARG for what is no key (the sentence names the nearest), and for one that
 * a terminal can't send, or only as if it were another (C-S-c would be C-c).
 * Nothing is added then: a name is never typed as text.
 */
enum sy_code key_encode(struct buf *out, const char *name, const struct key_modes *modes,
                        struct sy_error *err) SY_NODISCARD;

/*
 * Appends a text as it is pasted. A program that asked for brackets (2004) gets the
 * text as it is between them, but without any that stand in the text, so that it can't leave
 * them. Any other gets the text with newlines as what Enter sends.
 */
enum sy_code key_paste(struct buf *out, const char *text, size_t n,
                       const struct key_modes *modes) SY_NODISCARD;

#endif
