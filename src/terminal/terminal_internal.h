#ifndef SY_TERMINAL_TERMINAL_INTERNAL_H
#define SY_TERMINAL_TERMINAL_INTERNAL_H

#include "terminal/parser.h"
#include "terminal/terminal.h"
#include "terminal/vt.h"

/* States of the emulator that are not how it was born. While one of the first row is on,
 * lines do not scroll off the whole screen. */
#define STICKY_ALT     0x001U
#define STICKY_REGION  0x002U
#define STICKY_MARGINS 0x004U
#define STICKY_ORIGIN  0x008U
#define STICKY_BLOCKS  0x00FU
#define STICKY_SAVED   0x010U /* a cursor was saved */
#define STICKY_TABS    0x020U
#define STICKY_CHARSET 0x040U
#define STICKY_INSERT  0x080U
#define STICKY_NEWLINE 0x100U
#define STICKY_NOWRAP  0x200U
#define STICKY_PROTECT 0x400U

struct seen_row {
    uint64_t hash;
    uint64_t seq;
};

/*
 * The screen is what `log` makes of a new emulator, or if it is not pristine, of `vt`. Of the log,
 * `vt` has drawn the first `fed` bytes; unless pristine, those are not kept.
 */
struct terminal {
    struct terminal_options opt;
    struct terminal_state state;
    struct parser parser;
    struct vt *vt; /* NULL only when pristine */
    bool is_pristine;
    struct buf log;
    size_t fed;
    size_t plain_from; /* behind it only what pending.c calls plain */
    unsigned sticky;
    bool uses_alt;   /* the emulator needs its second screen */
    uint32_t modes;  /* query.c: modes that are told */
    unsigned shape;  /* of the cursor (DECSCUSR) */
    char last;       /* the last character if it is ASCII and nothing came behind it, or 0 */
    enum sy_code rc; /* of this feed */
    struct buf replies;
    struct buf title;
    struct terminal_screen screen; /* at the last look */
    bool last_alt;
    bool last_visible;
    bool is_seen;          /* nothing has come since the last look */
    struct seen_row *seen; /* a row each */
};

/* A parsed CSI sequence. */
#define CSI_PARAMS 16
struct csi {
    char leader; /* < = > ? or 0 */
    char inter;  /* the intermediate byte, or 0 */
    char final;
    bool is_odd; /* more than this holds */
    size_t n;
    unsigned params[CSI_PARAMS];        /* 0 where none was given; at most 9999 */
    char text[PARSER_SEQUENCE_MAX + 8]; /* with ESC [, as the emulator may have it */
    size_t len;
};

/* terminal.c: hashes of rows; that of a row without anything is its start. */
#define TERMINAL_HASH_START 0xCBF29CE484222325U
uint64_t terminal_hash(uint64_t hash, uint64_t value);

/* terminal.c: the character of a cell as terminal_row has it; a blank is a space. */
bool terminal_is_blank(const struct vt_cell *c);
enum sy_code terminal_add_cell(struct buf *out, const struct vt_cell *c) SY_NODISCARD;

/* csi.c */
void csi_parse(struct csi *c, const char *seq, size_t n);

/* pending.c */
enum pending_kind { PENDING_PLAIN, PENDING_OTHER };
/* Adds to what waits. Errors stick in t->rc. */
void pending_add(struct terminal *t, const char *bytes, size_t n, enum pending_kind kind);
/* Draws all that waits, but for a character that is not complete. */
enum sy_code pending_draw(struct terminal *t) SY_NODISCARD;
/* A new emulator, with nothing on it. */
void pending_reset(struct terminal *t);
/* The emulator can't be used any more: what is not in the log is lost. */
void pending_lose(struct terminal *t);
/* All was drawn, and the emulator has got its new size. */
void pending_resized(struct terminal *t);
/* The most that waits, for this size. */
size_t pending_max(const struct terminal *t);

/* forward.c: from the program to the emulator. */
extern const struct parser_sink forward_sink;
void forward_reset_modes(struct terminal *t);

/* query.c: what is answered. */
enum mode_bit {
    MODE_APP_CURSOR,
    MODE_REVERSE,
    MODE_ORIGIN,
    MODE_WRAP,
    MODE_BLINK,
    MODE_CURSOR,
    MODE_ALT_47,
    MODE_KEYPAD,
    MODE_MARGINS,
    MODE_MOUSE_CLICK,
    MODE_MOUSE_DRAG,
    MODE_MOUSE_MOVE,
    MODE_FOCUS,
    MODE_MOUSE_UTF8,
    MODE_MOUSE_SGR,
    MODE_MOUSE_RXVT,
    MODE_ALT_1047,
    MODE_ALT_1049,
    MODE_PASTE,
    MODE_FRAME,
    MODE_COUNT
};

#define MODE_ALTS  (1U << MODE_ALT_47 | 1U << MODE_ALT_1047 | 1U << MODE_ALT_1049)
#define MODE_MOUSE (1U << MODE_MOUSE_CLICK | 1U << MODE_MOUSE_DRAG | 1U << MODE_MOUSE_MOVE)

/* The bit of a DEC mode by its number; MODE_COUNT for one that is not known. */
enum mode_bit query_mode(unsigned number);
/* True: it was a query, answered or not. */
bool query_csi(struct terminal *t, const struct csi *c);
void query_string(struct terminal *t, char kind, const char *body, size_t n);
void query_identify(struct terminal *t);

#endif
