#include "terminal/key.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/place.h"
#include "base/str.h"
#include "base/utf8.h"

/* Modifiers as xterm counts them: the parameter is their sum plus one. */
#define MOD_SHIFT 1U
#define MOD_META  2U
#define MOD_CTRL  4U

enum kind {
    KEY_CHAR,   /* `code` is its character */
    KEY_CURSOR, /* CSI x, or ESC O x in application mode */
    KEY_SS3,    /* ESC O x: F1 to F4 */
    KEY_TILDE,  /* CSI code ~ */
    KEY_PAD,    /* `code` is its character, `last` its letter in application mode */
};

struct key {
    const char *name;
    enum kind kind;
    uint32_t code;
    char last;
};

/* The first of several names of one key is told in errors. */
static const struct key keys[] = {
    {"Enter",      KEY_CHAR,   '\r', 0  },
    {"Tab",        KEY_CHAR,   '\t', 0  },
    {"BTab",       KEY_CURSOR, 0,    'Z'},
    {"Escape",     KEY_CHAR,   0x1B, 0  },
    {"Space",      KEY_CHAR,   ' ',  0  },
    {"BSpace",     KEY_CHAR,   0x7F, 0  },
    {"Delete",     KEY_TILDE,  3,    0  },
    {"Insert",     KEY_TILDE,  2,    0  },
    {"Home",       KEY_CURSOR, 0,    'H'},
    {"End",        KEY_CURSOR, 0,    'F'},
    {"PageUp",     KEY_TILDE,  5,    0  },
    {"PageDown",   KEY_TILDE,  6,    0  },
    {"Up",         KEY_CURSOR, 0,    'A'},
    {"Down",       KEY_CURSOR, 0,    'B'},
    {"Right",      KEY_CURSOR, 0,    'C'},
    {"Left",       KEY_CURSOR, 0,    'D'},
    {"F1",         KEY_SS3,    0,    'P'},
    {"F2",         KEY_SS3,    0,    'Q'},
    {"F3",         KEY_SS3,    0,    'R'},
    {"F4",         KEY_SS3,    0,    'S'},
    {"F5",         KEY_TILDE,  15,   0  },
    {"F6",         KEY_TILDE,  17,   0  },
    {"F7",         KEY_TILDE,  18,   0  },
    {"F8",         KEY_TILDE,  19,   0  },
    {"F9",         KEY_TILDE,  20,   0  },
    {"F10",        KEY_TILDE,  21,   0  },
    {"F11",        KEY_TILDE,  23,   0  },
    {"F12",        KEY_TILDE,  24,   0  },
    {"KP0",        KEY_PAD,    '0',  'p'},
    {"KP1",        KEY_PAD,    '1',  'q'},
    {"KP2",        KEY_PAD,    '2',  'r'},
    {"KP3",        KEY_PAD,    '3',  's'},
    {"KP4",        KEY_PAD,    '4',  't'},
    {"KP5",        KEY_PAD,    '5',  'u'},
    {"KP6",        KEY_PAD,    '6',  'v'},
    {"KP7",        KEY_PAD,    '7',  'w'},
    {"KP8",        KEY_PAD,    '8',  'x'},
    {"KP9",        KEY_PAD,    '9',  'y'},
    {"KP.",        KEY_PAD,    '.',  'n'},
    {"KP+",        KEY_PAD,    '+',  'k'},
    {"KP-",        KEY_PAD,    '-',  'm'},
    {"KP*",        KEY_PAD,    '*',  'j'},
    {"KP/",        KEY_PAD,    '/',  'o'},
    {"KPEnter",    KEY_PAD,    '\r', 'M'},
 /* Aliases. */
    {"Return",     KEY_CHAR,   '\r', 0  },
    {"CR",         KEY_CHAR,   '\r', 0  },
    {"BackTab",    KEY_CURSOR, 0,    'Z'},
    {"Esc",        KEY_CHAR,   0x1B, 0  },
    {"Spacebar",   KEY_CHAR,   ' ',  0  },
    {"Backspace",  KEY_CHAR,   0x7F, 0  },
    {"BS",         KEY_CHAR,   0x7F, 0  },
    {"DC",         KEY_TILDE,  3,    0  },
    {"Del",        KEY_TILDE,  3,    0  },
    {"IC",         KEY_TILDE,  2,    0  },
    {"Ins",        KEY_TILDE,  2,    0  },
    {"PPage",      KEY_TILDE,  5,    0  },
    {"PgUp",       KEY_TILDE,  5,    0  },
    {"NPage",      KEY_TILDE,  6,    0  },
    {"PgDn",       KEY_TILDE,  6,    0  },
    {"PgDown",     KEY_TILDE,  6,    0  },
    {"Page_Up",    KEY_TILDE,  5,    0  },
    {"Page_Down",  KEY_TILDE,  6,    0  },
    {"ArrowUp",    KEY_CURSOR, 0,    'A'},
    {"ArrowDown",  KEY_CURSOR, 0,    'B'},
    {"ArrowRight", KEY_CURSOR, 0,    'C'},
    {"ArrowLeft",  KEY_CURSOR, 0,    'D'},
    {"Plus",       KEY_CHAR,   '+',  0  },
    {"Minus",      KEY_CHAR,   '-',  0  },
    {"lt",         KEY_CHAR,   '<',  0  },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* What is longer is no name that was mistyped. */
#define NAME_MAX_LEN 32U

static const struct {
    const char *word;
    unsigned mod;
} mods[] = {
    {"C",       MOD_CTRL },
    {"Ctrl",    MOD_CTRL },
    {"Control", MOD_CTRL },
    {"M",       MOD_META },
    {"Meta",    MOD_META },
    {"A",       MOD_META },
    {"Alt",     MOD_META },
    {"Opt",     MOD_META },
    {"Option",  MOD_META },
    {"S",       MOD_SHIFT},
    {"Shift",   MOD_SHIFT},
};

struct parsed {
    const char *name; /* without modifiers; not NUL-terminated */
    size_t n;
    unsigned mod;
};

/* Length of one modifier with its separator at s, 0 if there is none. */
static size_t
mod_len(const char *s, size_t n, unsigned *ret_mod)
{
    for (size_t i = 0; i < sizeof(mods) / sizeof(mods[0]); i++) {
        size_t len = strlen(mods[i].word);

        if (n > len + 1 && strncasecmp(s, mods[i].word, len) == 0 &&
            (s[len] == '-' || s[len] == '+')) {
            *ret_mod = mods[i].mod;
            return len + 1;
        }
    }
    if (n > 1 && s[0] == '^') {
        *ret_mod = MOD_CTRL;
        return 1;
    }
    return 0;
}

static struct parsed
parse(const char *name)
{
    struct parsed p = {.name = name, .n = strlen(name)};
    unsigned mod = 0;

    if (p.n > 2 && p.name[0] == '<' && p.name[p.n - 1] == '>') {
        p.name++;
        p.n -= 2;
    }
    for (size_t len = mod_len(p.name, p.n, &mod); len > 0; len = mod_len(p.name, p.n, &mod)) {
        p.mod |= mod;
        p.name += len;
        p.n -= len;
    }
    return p;
}

static bool
find(struct key *ret, const struct parsed *p)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (strlen(keys[i].name) == p->n && strncasecmp(keys[i].name, p->name, p->n) == 0) {
            *ret = keys[i];
            return true;
        }
    }
    if (p->n > 0 && utf8_decode(&ret->code, p->name, p->n) == p->n && ret->code >= 0x20 &&
        !place_is_deceptive(ret->code)) {
        ret->kind = KEY_CHAR;
        return true;
    }
    return false;
}

/* What a key sends, given in place of its name. */
static const struct {
    const char *sent;
    const char *shown;
    const char *name;
} sent_keys[] = {
    {"\n",   "\\n",    "Enter" },
    {"\r",   "\\r",    "Enter" },
    {"\r\n", "\\r\\n", "Enter" },
    {"\t",   "\\t",    "Tab"   },
    {"\x1b", "\\x1b",  "Escape"},
    {"\b",   "\\b",    "BSpace"},
    {"\x7f", "\\x7f",  "BSpace"},
};

#define SENT_KEYS (sizeof(sent_keys) / sizeof(sent_keys[0]))

/* SENT_KEYS: none. */
static size_t
find_sent(const struct parsed *p)
{
    size_t i = 0;

    while (i < SENT_KEYS &&
           (strlen(sent_keys[i].sent) != p->n || memcmp(sent_keys[i].sent, p->name, p->n) != 0)) {
        i++;
    }
    return i;
}

/* As names are compared: without case, and without what only parts words. */
static void
squeeze(char ret[NAME_MAX_LEN + 1], const char *name, size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (name[i] != '_' && name[i] != ' ') {
            ret[len++] = name[i];
        }
    }
    ret[len] = '\0';
    for (char *c = ret; *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c | 0x20);
        }
    }
}

/* Of the names; the keypad's have more than one word elsewhere. */
static const char *
nearest_name(const struct parsed *p)
{
    static const char *const pads[] = {"numpad", "keypad", "num"};
    char plain[KEYS][NAME_MAX_LEN + 1];
    const char *names[KEYS];
    char word[NAME_MAX_LEN + 1];
    const char *nearest = NULL;

    if (p->n == 0 || p->n > NAME_MAX_LEN) {
        return NULL;
    }
    for (size_t i = 0; i < KEYS; i++) {
        squeeze(plain[i], keys[i].name, strlen(keys[i].name));
        names[i] = plain[i];
    }
    squeeze(word, p->name, p->n);
    for (size_t i = 0; i < sizeof(pads) / sizeof(pads[0]); i++) {
        size_t len = strlen(pads[i]);

        if (strncmp(word, pads[i], len) == 0 && word[len] != '\0') {
            memcpy(word, "kp", 2);
            memmove(word + 2, word + len, strlen(word + len) + 1);
            break;
        }
    }
    nearest = str_nearest(word, names, KEYS);
    for (size_t i = 0; i < KEYS && nearest != NULL; i++) {
        if (names[i] == nearest) {
            return keys[i].name;
        }
    }
    return NULL;
}

/* A modifier that terminals have not, and the one that does what it does elsewhere; or one of
 * theirs without a key. NULL: neither. */
static const char *
mistaken_modifier(const struct parsed *p, size_t *ret_len)
{
    static const struct {
        const char *word;
        const char *name;
    } others[] = {
        {"Cmd",     "C-"},
        {"Command", "C-"},
        {"Super",   "M-"},
        {"Win",     "M-"},
        {"Hyper",   "M-"},
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        size_t len = strlen(others[i].word);

        if (p->n > len + 1 && strncasecmp(p->name, others[i].word, len) == 0 &&
            (p->name[len] == '-' || p->name[len] == '+')) {
            *ret_len = len + 1;
            return others[i].name;
        }
    }
    return NULL;
}

static bool
is_modifier(const struct parsed *p)
{
    for (size_t i = 0; i < sizeof(mods) / sizeof(mods[0]); i++) {
        size_t len = strlen(mods[i].word);
        bool is_word = p->n >= len && strncasecmp(p->name, mods[i].word, len) == 0;
        bool is_ended = p->n == len + 1 && (p->name[len] == '-' || p->name[len] == '+');

        if (is_word && (is_ended || (p->n == len && len > 1))) {
            return true;
        }
    }
    return false;
}

static enum sy_code
unknown(const struct parsed *p, struct sy_error *err)
{
    struct place_shown room;
    struct place_shown more;
    size_t sent = find_sent(p);
    const char *shown =
        sent < SENT_KEYS ? sent_keys[sent].shown : place_visible(&room, p->name, p->n);
    const char *nearest = sent < SENT_KEYS ? sent_keys[sent].name : nearest_name(p);

    size_t skipped = 0;
    const char *modifier = mistaken_modifier(p, &skipped);

    if (is_modifier(p)) {
        return sy_err_set(err, SY_E_ARG, "no key '%s': a modifier stands before a key, as in 'C-c'",
                          shown);
    }
    if (modifier != NULL) {
        return sy_err_set(err, SY_E_ARG, "no key '%s'; did you mean '%s%s'?", shown, modifier,
                          place_visible(&more, p->name + skipped, p->n - skipped));
    }
    if (nearest != NULL) {
        return sy_err_set(err, SY_E_ARG, "no key '%s'; did you mean '%s'?", shown, nearest);
    }
    return sy_err_set(
        err, SY_E_ARG,
        "no key '%s'; keys are Enter, Tab, Escape, Space, BSpace, Delete, Insert, Home, "
        "End, PageUp, PageDown, Up, Down, Left, Right, F1 to F12 and single characters, "
        "with C- M- S- in front",
        shown);
}

/* The control code of a character, or -1. As xterm has it, digits included. */
static int
control_code(uint32_t c)
{
    static const char digits[] = "\x00\x1b\x1c\x1d\x1e\x1f\x7f"; /* 2 to 8 */

    if (c >= '2' && c <= '8') {
        return digits[c - '2'];
    }
    if (c == ' ') {
        return 0;
    }
    if (c == '?') {
        return 0x7F;
    }
    if (c == '/' || c == '-') {
        return 0x1F;
    }
    return (c >= '@' && c <= '_') || (c >= 'a' && c <= 'z') ? (int)(c & 0x1FU) : -1;
}

static enum sy_code
add_character(struct buf *out, uint32_t c)
{
    char bytes[UTF8_MAX];

    return buf_add(out, bytes, utf8_put(bytes, c));
}

/* A modified character that has no code of its own, as xterm's modifyOtherKeys. */
static enum sy_code
add_other(struct buf *out, uint32_t c, unsigned mod)
{
    return buf_addf(out, "\x1b[27;%u;%u~", mod + 1, (unsigned)c);
}

static enum sy_code
no_code(const struct parsed *p, const char *why, struct sy_error *err)
{
    struct place_shown shown;

    return sy_err_set(err, SY_E_ARG, "a terminal can't send %s%s%s'%s': %s",
                      (p->mod & MOD_CTRL) != 0 ? "C-" : "", (p->mod & MOD_META) != 0 ? "M-" : "",
                      (p->mod & MOD_SHIFT) != 0 ? "S-" : "", place_visible(&shown, p->name, p->n),
                      why);
}

/* Enter, Tab, Escape, BSpace: a modifier but Meta makes no difference to a terminal. */
static bool
is_bare(uint32_t c)
{
    return c < 0x20 || c == 0x7F;
}

static enum sy_code
other_key(struct buf *out, uint32_t c, const struct parsed *p, const struct key_modes *modes,
          const char *why, struct sy_error *err)
{
    return modes->other_keys ? add_other(out, c, p->mod) : no_code(p, why, err);
}

/* Shift alone, or with Meta: the other letter. 0: there is none. */
static uint32_t
shifted(uint32_t c)
{
    if (c >= 'a' && c <= 'z') {
        return c - ('a' - 'A');
    }
    return c >= 'A' && c <= 'Z' ? c : 0;
}

static enum sy_code
encode_char(struct buf *out, const struct key *k, const struct parsed *p,
            const struct key_modes *modes, struct sy_error *err)
{
    static const char seen_as_other[] = "the program would see another key";
    uint32_t c = k->code;
    bool is_shift = (p->mod & MOD_SHIFT) != 0;
    bool is_ctrl = (p->mod & MOD_CTRL) != 0;

    if (c == '\t' && p->mod == MOD_SHIFT) {
        return buf_add_str(out, "\x1b[Z");
    }
    if ((is_bare(c) && (is_ctrl || is_shift)) || (is_ctrl && is_shift)) {
        return other_key(out, c, p, modes, seen_as_other, err);
    }
    if (is_shift) {
        c = shifted(c);
        if (c == 0) {
            return other_key(out, k->code, p, modes, "name the character itself", err);
        }
    }
    if (is_ctrl) {
        int control = control_code(c);

        if (control < 0) {
            return other_key(out, c, p, modes, "it has no code", err);
        }
        c = (uint32_t)control;
    }

    enum sy_code rc = (p->mod & MOD_META) != 0 ? buf_add_char(out, '\x1b') : SY_E_OK;

    return rc != SY_E_OK ? rc : add_character(out, c);
}

static enum sy_code
encode(struct buf *out, const struct key *k, const struct parsed *p, const struct key_modes *modes,
       struct sy_error *err)
{
    unsigned m = p->mod + 1;

    switch (k->kind) {
    case KEY_CHAR:
        return encode_char(out, k, p, modes, err);
    case KEY_CURSOR:
        if (p->mod == 0 || k->last == 'Z') {
            return buf_addf(out, "\x1b%c%c", modes->app_cursor && k->last != 'Z' ? 'O' : '[',
                            k->last);
        }
        return buf_addf(out, "\x1b[1;%u%c", m, k->last);
    case KEY_SS3:
        return p->mod == 0 ? buf_addf(out, "\x1bO%c", k->last)
                           : buf_addf(out, "\x1b[1;%u%c", m, k->last);
    case KEY_TILDE:
        return p->mod == 0 ? buf_addf(out, "\x1b[%u~", (unsigned)k->code)
                           : buf_addf(out, "\x1b[%u;%u~", (unsigned)k->code, m);
    case KEY_PAD:
        if (p->mod != 0) {
            return no_code(p, "keys of the keypad take no modifier", err);
        }
        return modes->app_keypad ? buf_addf(out, "\x1bO%c", k->last) : add_character(out, k->code);
    }
    return SY_E_INTERNAL;
}

enum sy_code
key_encode(struct buf *out, const char *name, const struct key_modes *modes, struct sy_error *err)
{
    struct parsed p = parse(name);
    struct key k = {.name = NULL};
    size_t len = out->len;
    enum sy_code rc = SY_E_OK;

    if (!find(&k, &p)) {
        return unknown(&p, err);
    }
    rc = encode(out, &k, &p, modes, err);
    if (rc != SY_E_OK) {
        if (out->data != NULL) {
            out->len = len;
            out->data[len] = '\0';
        }
        if (rc != SY_E_ARG) {
            return sy_err_set(err, rc, "key '%s'", k.name != NULL ? k.name : name);
        }
    }
    return rc;
}

#define PASTE_OPEN  "\x1b[200~"
#define PASTE_CLOSE "\x1b[201~"
#define PASTE_LEN   (sizeof(PASTE_CLOSE) - 1)

/*
 * Appends without what closes the brackets. Taking one out may join the bytes around it
 * to another, hence the look back at what was written.
 */
static enum sy_code
paste_inside(struct buf *out, const char *text, size_t n)
{
    size_t start = out->len;

    for (size_t i = 0; i < n; i++) {
        enum sy_code rc = buf_add_char(out, text[i]);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (out->len - start >= PASTE_LEN &&
            memcmp(out->data + out->len - PASTE_LEN, PASTE_CLOSE, PASTE_LEN) == 0) {
            out->len -= PASTE_LEN;
            out->data[out->len] = '\0';
        }
    }
    return SY_E_OK;
}

static enum sy_code
paste_plain(struct buf *out, const char *text, size_t n)
{
    enum sy_code rc = buf_reserve(out, n);

    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        if (text[i] == '\n' && i > 0 && text[i - 1] == '\r') {
            continue;
        }
        char c = text[i];

        if (c == '\n') {
            c = '\r';
        }
        rc = buf_add_char(out, c);
    }
    return rc;
}

enum sy_code
key_paste(struct buf *out, const char *text, size_t n, const struct key_modes *modes)
{
    size_t len = out->len;
    enum sy_code rc = SY_E_OK;

    if (!modes->bracketed_paste) {
        rc = paste_plain(out, text, n);
    } else {
        rc = buf_add_str(out, PASTE_OPEN);
        if (rc == SY_E_OK) {
            rc = paste_inside(out, text, n);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, PASTE_CLOSE);
        }
    }
    if (rc != SY_E_OK && out->data != NULL) {
        out->len = len;
        out->data[len] = '\0';
    }
    return rc;
}
