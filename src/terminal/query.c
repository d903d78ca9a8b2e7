#include "terminal/terminal_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/place.h"
#include "base/str.h"
#include "base/utf8.h"

/*
 * Answers in the order of the stream. Those that need the screen draw what waits first.
 * Never answered: what would give a program's own bytes back to it as if they were typed (titles,
 * answerback, the clipboard), and kitty's keyboard, which we do not have: programs that ask for
 * it take the answer to DA1 behind it for a no.
 */

/* No answer is longer. */
#define ANSWER_MAX 128U

#define ST "\x1b\\"

static bool
has_room(struct terminal *t)
{
    enum sy_code rc = buf_reserve(&t->replies, ANSWER_MAX);

    if (rc == SY_E_OK) {
        return true;
    }
    t->state.unanswered++;
    if (rc != SY_E_LIMIT && t->rc == SY_E_OK) {
        t->rc = rc;
    }
    return false;
}

static void SY_PRINTF(2, 3) answer(struct terminal *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (has_room(t)) {
        (void)!buf_addv(&t->replies, fmt, ap);
    }
    va_end(ap);
}

/* By the emulator, of the screen at this point of the stream. */
static void
ask(struct terminal *t, const char *query)
{
    enum sy_code rc = SY_E_OK;

    if (!has_room(t)) {
        return;
    }
    rc = pending_draw(t);
    if (rc == SY_E_OK) {
        rc = vt_ask(t->vt, query, strlen(query), &t->replies);
    }
    /* In origin mode libvterm moves the cursor into the region at each sequence, this one too,
     * which is not there when the screen is drawn again: an answer to nobody is. */
    if ((t->modes & 1U << MODE_ORIGIN) != 0) {
        pending_add(t, "\x1b[0n", 4, PENDING_OTHER);
    }
    if (rc != SY_E_OK && t->rc == SY_E_OK) {
        t->rc = rc;
    }
}

static const struct {
    unsigned number;
    enum mode_bit bit;
} modes[] = {
    {1,    MODE_APP_CURSOR },
    {5,    MODE_REVERSE    },
    {6,    MODE_ORIGIN     },
    {7,    MODE_WRAP       },
    {12,   MODE_BLINK      },
    {25,   MODE_CURSOR     },
    {47,   MODE_ALT_47     },
    {66,   MODE_KEYPAD     },
    {69,   MODE_MARGINS    },
    {1000, MODE_MOUSE_CLICK},
    {1002, MODE_MOUSE_DRAG },
    {1003, MODE_MOUSE_MOVE },
    {1004, MODE_FOCUS      },
    {1005, MODE_MOUSE_UTF8 },
    {1006, MODE_MOUSE_SGR  },
    {1015, MODE_MOUSE_RXVT },
    {1047, MODE_ALT_1047   },
    {1049, MODE_ALT_1049   },
    {2004, MODE_PASTE      },
    {2026, MODE_FRAME      },
};

enum mode_bit
query_mode(unsigned number)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (modes[i].number == number) {
            return modes[i].bit;
        }
    }
    return MODE_COUNT;
}

/* DECRQM: 1 set, 2 reset, 0 not known. */
static void
tell_mode(struct terminal *t, const struct csi *c)
{
    unsigned number = c->params[0];
    enum mode_bit mode = query_mode(number);
    bool is_on = mode != MODE_COUNT && (t->modes & 1U << mode) != 0;

    if (c->leader == '?') {
        answer(t, "\x1b[?%u;%d$y", number, mode == MODE_COUNT ? 0 : is_on ? 1 : 2);
        return;
    }
    is_on = (t->sticky & (number == 4 ? STICKY_INSERT : STICKY_NEWLINE)) != 0;
    answer(t, "\x1b[%u;%d$y", number, number != 4 && number != 20 ? 0 : is_on ? 1 : 2);
}

/* Programs that draw pictures ask how many dots a character has. */
#define CELL_HEIGHT 16U
#define CELL_WIDTH  8U

static void
tell_size(struct terminal *t, unsigned what)
{
    unsigned rows = t->opt.rows;
    unsigned cols = t->opt.cols;

    switch (what) {
    case 14:
        answer(t, "\x1b[4;%u;%ut", rows * CELL_HEIGHT, cols * CELL_WIDTH);
        break;
    case 16:
        answer(t, "\x1b[6;%u;%ut", CELL_HEIGHT, CELL_WIDTH);
        break;
    case 18:
        answer(t, "\x1b[8;%u;%ut", rows, cols);
        break;
    default: /* titles among them */
        break;
    }
}

/* A VT220 with colours; the numbers that libvterm gives for itself. */
void
query_identify(struct terminal *t)
{
    answer(t, "\x1b[?62;22c");
}

static bool
query_plain(struct terminal *t, const struct csi *c)
{
    switch (c->final) {
    case 'c':
        if (c->params[0] == 0) {
            query_identify(t);
        }
        return true;
    case 'n':
        if (c->params[0] == 5) {
            answer(t, "\x1b[0n");
        } else if (c->params[0] == 6) {
            ask(t, "\x1b[6n");
        }
        return true;
    case 't':
        tell_size(t, c->params[0]);
        return true;
    default:
        return false;
    }
}

static bool
query_private(struct terminal *t, const struct csi *c)
{
    if (c->leader == '>' && c->final == 'c') {
        if (c->params[0] == 0) {
            answer(t, "\x1b[>0;100;0c");
        }
        return true;
    }
    if (c->leader == '>' && c->final == 'q') {
        if (c->params[0] == 0) {
            answer(t, "\x1bP>|shellyard(" SY_VERSION ")" ST);
        }
        return true;
    }
    if (c->leader == '?' && c->final == 'n') {
        if (c->params[0] == 6) {
            ask(t, "\x1b[?6n");
        }
        return true;
    }
    return false;
}

bool
query_csi(struct terminal *t, const struct csi *c)
{
    if (c->inter == '$' && c->final == 'p' && (c->leader == '?' || c->leader == 0)) {
        tell_mode(t, c);
        return true;
    }
    if (c->inter != 0) {
        return false;
    }
    return c->leader == 0 ? query_plain(t, c) : query_private(t, c);
}

/* DECRQSS. The name of what is asked for is never given back, but for those known. */
static void
tell_setting(struct terminal *t, const char *name)
{
    if (str_eq(name, "m")) {
        ask(t, "\x1bP$qm" ST);
    } else if (str_eq(name, "r")) {
        ask(t, "\x1bP$qr" ST);
    } else if (str_eq(name, "\"q")) {
        ask(t, "\x1bP$q\"q" ST);
    } else if (str_eq(name, " q")) {
        answer(t, "\x1bP1$r%u q" ST, t->shape);
    } else {
        answer(t, "\x1bP0$r" ST);
    }
}

/* xterm's colours: 16 by name, a cube of 216, and 24 greys; as 0xRRGGBB. */
static uint32_t
palette(unsigned index)
{
    static const uint32_t named[16] = {
        0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5,
        0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF,
    };
    static const uint32_t cube[6] = {0x00, 0x5F, 0x87, 0xAF, 0xD7, 0xFF};

    if (index < 16) {
        return named[index];
    }
    if (index < 232) {
        index -= 16;
        return cube[index / 36] << 16 | cube[index / 6 % 6] << 8 | cube[index % 6];
    }
    return (8 + (index - 232) * 10) * 0x010101U;
}

static void
tell_colour(struct terminal *t, const char *name, uint32_t rgb)
{
    unsigned red = rgb >> 16;
    unsigned green = rgb >> 8 & 0xFFU;
    unsigned blue = rgb & 0xFFU;

    /* Ended as the question was. */
    answer(t, "\x1b]%s;rgb:%02x%02x/%02x%02x/%02x%02x%s", name, red, red, green, green, blue, blue,
           t->parser.is_bell ? "\a" : ST);
}

#define WHITE 0xE5E5E5U
#define BLACK 0x000000U

/* OSC 10 is the text, 11 the background, 12 the cursor; more questions are about the next. */
static void
dynamic_colour(struct terminal *t, unsigned which, const char *s)
{
    for (; which <= 12 && s[0] == '?'; which++) {
        char name[4];

        (void)snprintf(name, sizeof(name), "%u", which);
        tell_colour(t, name, which == 11 ? BLACK : WHITE);
        s += s[1] == ';' ? 2 : 1;
    }
}

/* OSC 4: pairs of a number and a question. */
static void
palette_colours(struct terminal *t, const char *s)
{
    while (*s >= '0' && *s <= '9') {
        unsigned index = 0;
        char name[8];

        for (; *s >= '0' && *s <= '9'; s++) {
            index = index < 256 ? index * 10 + (unsigned)(*s - '0') : 256;
        }
        if (index > 255 || s[0] != ';' || s[1] != '?') {
            return;
        }
        (void)snprintf(name, sizeof(name), "4;%u", index);
        tell_colour(t, name, palette(index));
        s += s[2] == ';' ? 3 : 2;
    }
}

static void
set_title(struct terminal *t, const char *s, size_t n)
{
    enum sy_code rc = SY_E_OK;

    buf_reset(&t->title);
    t->title.max = LIMIT_TERMINAL_TITLE;
    while (n > 0 && rc == SY_E_OK) {
        uint32_t c = 0;
        size_t len = utf8_decode(&c, s, n);

        if (len > 0 && !place_is_deceptive(c)) {
            rc = buf_add(&t->title, s, len);
        }
        len = len > 0 ? len : 1;
        s += len;
        n -= len;
    }
    if (rc == SY_E_NOMEM && t->rc == SY_E_OK) {
        t->rc = rc;
    }
}

/* Takes as long as it would for any other of that length. */
static bool
is_same(const char *a, const char *b, size_t n)
{
    unsigned char differs = 0;

    for (size_t i = 0; i < n; i++) {
        differs |= (unsigned char)(a[i] ^ b[i]);
    }
    return differs == 0;
}

static bool
has_nonce(const struct terminal *t, const char *params)
{
    size_t n = t->opt.nonce != NULL ? strlen(t->opt.nonce) : 0;

    for (const char *s = strchr(params, ';'); n > 0 && s != NULL; s = strchr(s, ';')) {
        s++;
        if (strncmp(s, "sy=", 3) == 0 && strcspn(s + 3, ";") == n &&
            is_same(s + 3, t->opt.nonce, n)) {
            return true;
        }
    }
    return false;
}

static int
exit_code(const char *s)
{
    int code = 0;

    if (*s < '0' || *s > '9') {
        return -1;
    }
    for (; *s >= '0' && *s <= '9'; s++) {
        code = code * 10 + (*s - '0');
        if (code > 255) {
            return -1;
        }
    }
    return *s == ';' ? code : -1;
}

static void
take_mark(struct terminal *t, const char *params)
{
    static const char letters[] = "ABCD";
    const char *letter = strchr(letters, params[0]);

    if (t->opt.on_mark == NULL || params[0] == '\0' || letter == NULL || params[1] != ';' ||
        !has_nonce(t, params)) {
        return;
    }

    enum terminal_mark mark = (enum terminal_mark)(letter - letters);

    t->opt.on_mark(t->opt.arg, mark, mark == TERMINAL_DONE ? exit_code(params + 2) : -1);
}

static void
operating_system(struct terminal *t, const char *body, size_t n)
{
    unsigned command = 0;
    const char *s = body;

    for (; *s >= '0' && *s <= '9' && command < 10000; s++) {
        command = command * 10 + (unsigned)(*s - '0');
    }
    if (s == body || *s != ';') {
        return;
    }
    s++;
    switch (command) {
    case 0:
    case 2:
        set_title(t, s, n - (size_t)(s - body));
        break;
    case 4:
        palette_colours(t, s);
        break;
    case 10:
    case 11:
    case 12:
        dynamic_colour(t, command, s);
        break;
    case 133:
    case 633:
        take_mark(t, s);
        break;
    default: /* the clipboard (52) among them */
        break;
    }
}

void
query_string(struct terminal *t, char kind, const char *body, size_t n)
{
    if (kind == ']') {
        operating_system(t, body, n);
    } else if (kind == 'P' && strncmp(body, "$q", 2) == 0) {
        tell_setting(t, body + 2);
    } else if (kind == 'P' && strncmp(body, "+q", 2) == 0) {
        answer(t, "\x1bP0+r" ST); /* XTGETTCAP: there is no such capability */
    }
}
