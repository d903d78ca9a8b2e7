#include "terminal/terminal_internal.h"

#include <string.h>

#include "base/limits.h"

/*
 * What the emulator gets of the program's sequences: those that change the screen,
 * rewritten into a form that all versions of libvterm understand alike. Modes that change nothing
 * there are kept here. What is not named is left out.
 */

/* libvterm restores the cursor without looking whether it is on the screen; an answer
 * to nobody makes it look. */
#define RESTORE                                                                                    \
    "\x1b"                                                                                         \
    "8\x1b[0n"

static void
other(struct terminal *t, const char *seq)
{
    pending_add(t, seq, strlen(seq), PENDING_OTHER);
}

static void
set_sticky(struct terminal *t, unsigned bit, bool is_on)
{
    t->sticky = is_on ? t->sticky | bit : t->sticky & ~bit;
}

static void
on_text(void *arg, const char *bytes, size_t n)
{
    struct terminal *t = arg;
    char last = bytes[n - 1];

    t->last = '\0';
    if (last >= 0x20 && last < 0x7F) {
        t->last = last;
    }
    pending_add(t, bytes, n, PENDING_PLAIN);
}

static void
on_control(void *arg, unsigned char c)
{
    struct terminal *t = arg;

    switch (c) {
    case 0x07: /* BEL */
        t->state.bells++;
        break;
    case 0x0E: /* SO */
        set_sticky(t, STICKY_CHARSET, true);
        other(t, "\x0e");
        break;
    case 0x0F: /* SI */
        if ((t->sticky & STICKY_CHARSET) != 0) {
            other(t, "\x0f");
        }
        break;
    default: /* ENQ among them: an answerback would be typed to a shell */
        break;
    }
}

void
forward_reset_modes(struct terminal *t)
{
    t->modes = 1U << MODE_WRAP | 1U << MODE_CURSOR | 1U << MODE_BLINK;
    t->shape = 1;
    t->last = 0;
    memset(&t->state.keys, 0, sizeof(t->state.keys));
    t->state.alt_screen = false;
    t->state.cursor_visible = true;
    t->state.is_in_frame = false;
    t->state.wants_mouse = false;
}

/* DECSTR: libvterm's own forgets that the alternate screen is on. */
static void
soft_reset(struct terminal *t)
{
    uint32_t kept = t->modes & (MODE_ALTS | MODE_MOUSE | 1U << MODE_PASTE);
    bool alt = t->state.alt_screen;
    bool mouse = t->state.wants_mouse;
    bool paste = t->state.keys.bracketed_paste;

    other(t, "\0337\x1b[?6l\x1b[?69l\x1b[s\x1b[r" RESTORE "\x1b[4l\x1b[20l\x1b[?7h\x1b[0\"q\x1b[m");
    if ((t->sticky & STICKY_CHARSET) != 0) {
        other(t, "\x1b(B\x1b)B\x1b*B\x1b+B\x0f");
    }
    t->sticky = (t->sticky & (STICKY_ALT | STICKY_TABS)) | STICKY_SAVED;
    forward_reset_modes(t);
    t->modes |= kept;
    t->state.alt_screen = alt;
    t->state.wants_mouse = mouse;
    t->state.keys.bracketed_paste = paste;
}

static void
designate(struct terminal *t, const char *seq)
{
    char text[4] = {'\x1b', seq[0], seq[1], '\0'};

    if (seq[1] == 'B' && (t->sticky & STICKY_CHARSET) == 0) {
        return; /* as it is */
    }
    /* The sets that libvterm has. */
    if (strchr("AB0", seq[1]) != NULL) {
        set_sticky(t, STICKY_CHARSET, true);
        other(t, text);
    }
}

static void
on_escape(void *arg, const char *seq, size_t n)
{
    struct terminal *t = arg;
    char text[3] = {'\x1b', seq[0], '\0'};

    t->last = 0;
    if (n == 2 && strchr("()*+", seq[0]) != NULL) {
        designate(t, seq);
        return;
    }
    if (n == 2 && seq[0] == '#' && seq[1] == '8') { /* DECALN */
        other(t, "\x1b#8");
        return;
    }
    if (n != 1) {
        return;
    }
    switch (seq[0]) {
    case '7':
        set_sticky(t, STICKY_SAVED, true);
        other(t, text);
        break;
    case '8':
        other(t, RESTORE);
        break;
    case 'D': /* IND */
    case 'E': /* NEL */
    case 'M': /* RI */
        other(t, text);
        break;
    case 'H': /* HTS */
        set_sticky(t, STICKY_TABS, true);
        other(t, text);
        break;
    case 'Z':
        query_identify(t);
        break;
    case 'c': /* RIS */
        pending_reset(t);
        forward_reset_modes(t);
        break;
    case '=':
    case '>':
        t->state.keys.app_keypad = seq[0] == '=';
        break;
    default:
        break;
    }
}

static void
set_alt(struct terminal *t, bool is_on, const char *on, const char *off)
{
    t->uses_alt |= is_on;
    set_sticky(t, STICKY_ALT, is_on);
    t->state.alt_screen = is_on;
    other(t, is_on ? on : off);
}

/* Modes that change the screen. */
static void
forward_mode(struct terminal *t, enum mode_bit mode, bool is_on)
{
    switch ((int)mode) {
    case MODE_ORIGIN:
        set_sticky(t, STICKY_ORIGIN, is_on);
        other(t, is_on ? "\x1b[?6h" : "\x1b[?6l");
        break;
    case MODE_WRAP:
        set_sticky(t, STICKY_NOWRAP, !is_on);
        other(t, is_on ? "\x1b[?7h" : "\x1b[?7l");
        break;
    case MODE_MARGINS:
        /* Those that are set stay, and count when the mode is on again. */
        set_sticky(t, STICKY_MARGINS, true);
        other(t, is_on ? "\x1b[?69h" : "\x1b[?69l");
        break;
    case MODE_ALT_47:
    case MODE_ALT_1047:
        set_alt(t, is_on, "\x1b[?1047h", "\x1b[?1047l");
        break;
    case MODE_ALT_1049:
        set_sticky(t, STICKY_SAVED, true);
        set_alt(t, is_on, "\x1b[?1049h", "\x1b[?1049l\x1b[0n");
        break;
    default:
        break;
    }
}

/* Modes that are kept here. */
static void
keep_mode(struct terminal *t, enum mode_bit mode, bool is_on)
{
    bool was_on = (t->modes & 1U << mode) != 0;

    t->modes = is_on ? t->modes | 1U << mode : t->modes & ~(1U << mode);
    t->state.keys.app_cursor = (t->modes & 1U << MODE_APP_CURSOR) != 0;
    t->state.keys.bracketed_paste = (t->modes & 1U << MODE_PASTE) != 0;
    t->state.cursor_visible = (t->modes & 1U << MODE_CURSOR) != 0;
    t->state.is_in_frame = (t->modes & 1U << MODE_FRAME) != 0;
    t->state.wants_mouse = (t->modes & MODE_MOUSE) != 0;
    if (mode == MODE_KEYPAD) {
        t->state.keys.app_keypad = is_on;
    }
    if (mode == MODE_FRAME && was_on && !is_on) {
        t->state.frames++;
    }
    if (mode == MODE_PASTE && was_on && !is_on) {
        t->state.pastes++;
    }
    if ((MODE_ALTS & 1U << mode) != 0) {
        t->modes = is_on ? t->modes | MODE_ALTS : t->modes & ~MODE_ALTS;
    }
}

static void
set_dec_mode(struct terminal *t, unsigned number, bool is_on)
{
    enum mode_bit mode = query_mode(number);

    if (number == 1048) {
        set_sticky(t, STICKY_SAVED, true);
        other(t, is_on ? "\0337" : RESTORE);
        return;
    }
    if (mode != MODE_COUNT) {
        keep_mode(t, mode, is_on);
        forward_mode(t, mode, is_on);
    }
}

static void
set_modes(struct terminal *t, const struct csi *c, bool is_on)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->leader == '?') {
            set_dec_mode(t, c->params[i], is_on);
        } else if (c->params[i] == 4) {
            set_sticky(t, STICKY_INSERT, is_on);
            other(t, is_on ? "\x1b[4h" : "\x1b[4l");
        } else if (c->params[i] == 20) {
            set_sticky(t, STICKY_NEWLINE, is_on);
            other(t, is_on ? "\x1b[20h" : "\x1b[20l");
        }
    }
}

static void
forward(struct terminal *t, const struct csi *c, enum pending_kind kind)
{
    pending_add(t, c->text, c->len, kind);
}

static void
repeat(struct terminal *t, char last, unsigned count)
{
    char text[64];

    /* More than a line are no use, and would be much for little. */
    count = count == 0 ? 1 : count;
    count = count < t->opt.cols ? count : t->opt.cols;
    memset(text, last, sizeof(text));
    while (last != 0 && count > 0) {
        unsigned piece = count < sizeof(text) ? count : (unsigned)sizeof(text);

        pending_add(t, text, piece, PENDING_PLAIN);
        count -= piece;
    }
}

/* Top and bottom of the region in which lines scroll. */
static void
set_region(struct terminal *t, const struct csi *c)
{
    unsigned bottom = c->n > 1 ? c->params[1] : 0;
    bool is_whole = c->params[0] <= 1 && (bottom == 0 || bottom >= t->opt.rows);

    set_sticky(t, STICKY_REGION, !is_whole);
    if (is_whole) {
        other(t, "\x1b[r");
    } else {
        forward(t, c, PENDING_OTHER);
    }
}

static void
plain_csi(struct terminal *t, const struct csi *c)
{
    switch (c->final) {
    case 'm':
    case 'K':
    case 'P':
    case 'X':
    case '@':
    case 'C':
    case 'D':
    case 'G':
    case 'I':
    case 'Z':
    case '`':
    case 'a':
    case 'j':
        forward(t, c, PENDING_PLAIN);
        break;
    case 'J':
        forward(t, c, c->params[0] == 0 ? PENDING_PLAIN : PENDING_OTHER);
        break;
    case 'A':
    case 'B':
    case 'E':
    case 'F':
    case 'H':
    case 'L':
    case 'M':
    case 'S':
    case 'd':
    case 'e':
    case 'f':
    case 'k':
        forward(t, c, PENDING_OTHER);
        break;
    case 'T':
        if (c->n == 1) { /* with more it is about the mouse */
            forward(t, c, PENDING_OTHER);
        }
        break;
    case 'g':
        set_sticky(t, STICKY_TABS, true);
        forward(t, c, PENDING_OTHER);
        break;
    case 'h':
    case 'l':
        set_modes(t, c, c->final == 'h');
        break;
    case 'r':
        set_region(t, c);
        break;
    case 's':
        /* Margins, or what SCO made of it. */
        if ((t->modes & 1U << MODE_MARGINS) != 0) {
            forward(t, c, PENDING_OTHER);
        } else {
            set_sticky(t, STICKY_SAVED, true);
            other(t, "\0337");
        }
        break;
    case 'u':
        other(t, RESTORE);
        break;
    default:
        break;
    }
}

static void
private_csi(struct terminal *t, const struct csi *c)
{
    if (c->leader == '?' && (c->final == 'h' || c->final == 'l')) {
        set_modes(t, c, c->final == 'h');
    } else if (c->leader == '?' && (c->final == 'J' || c->final == 'K')) {
        forward(t, c, PENDING_OTHER);
    } else if (c->leader == '>' && c->final == 'm' && c->params[0] == 4) {
        /* modifyOtherKeys; without a value it is off. */
        t->state.keys.other_keys = c->n > 1 && c->params[1] > 0;
    }
}

static void
intermediate_csi(struct terminal *t, const struct csi *c)
{
    if (c->inter == ' ' && c->final == 'q') {
        t->shape = c->params[0] <= 6 ? c->params[0] : t->shape;
    } else if (c->inter == '!' && c->final == 'p') {
        soft_reset(t);
    } else if (c->inter == '"' && c->final == 'q') {
        set_sticky(t, STICKY_PROTECT, c->params[0] == 1);
        forward(t, c, PENDING_OTHER);
    } else if (c->inter == '\'' && (c->final == '}' || c->final == '~')) {
        forward(t, c, PENDING_OTHER);
    }
}

/* A colour as most are: nothing about it has to be rewritten. */
static bool
is_short_sgr(const char *seq, size_t n)
{
    size_t i = 0;

    if (n > 9 || seq[n - 1] != 'm') {
        return false;
    }
    while (seq[i] == ';' || (seq[i] >= '0' && seq[i] <= '9')) {
        i++;
    }
    return i == n - 1;
}

static void
on_csi(void *arg, const char *seq, size_t n)
{
    struct terminal *t = arg;
    struct csi c;
    char last = t->last;

    if (is_short_sgr(seq, n)) {
        char text[12] = {'\x1b', '['};

        memcpy(text + 2, seq, n);
        t->last = 0;
        pending_add(t, text, n + 2, PENDING_PLAIN);
        return;
    }
    csi_parse(&c, seq, n);
    t->last = 0;
    if (c.is_odd || query_csi(t, &c)) {
        return;
    }
    if (c.inter != 0) {
        if (c.leader == 0) {
            intermediate_csi(t, &c);
        }
    } else if (c.leader != 0) {
        private_csi(t, &c);
    } else if (c.final == 'b') {
        repeat(t, last, c.params[0]);
    } else {
        plain_csi(t, &c);
    }
}

static void
on_string(void *arg, char kind, const char *body, size_t n)
{
    struct terminal *t = arg;

    t->last = 0;
    query_string(t, kind, body, n);
}

const struct parser_sink forward_sink = {
    .text = on_text,
    .control = on_control,
    .escape = on_escape,
    .csi = on_csi,
    .string = on_string,
};
