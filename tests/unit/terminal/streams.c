#include "streams.h"

static uint64_t seed;

unsigned
streams_pick(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % below;
}

/* Weights: how often a kind of stream has each piece. */
struct mix {
    unsigned line;
    unsigned text;
    unsigned colour;
    unsigned edit;
    unsigned move;
    unsigned sticky;
    unsigned odd;
};

static const struct mix mixes[] = {
    {20, 4, 0, 0,  0, 0, 0}, /* a plain log */
    {20, 4, 8, 4,  0, 0, 0}, /* a coloured one */
    {20, 4, 8, 4,  1, 0, 1},
    {20, 4, 4, 4,  1, 1, 1},
    {4,  4, 4, 4,  4, 2, 2}, /* a program that draws */
    {4,  4, 4, 4,  8, 4, 4},
    {60, 4, 2, 10, 0, 0, 1},
};

static const char *const words[] = {
    "a",
    "lorem ipsum ",
    "0123456789012345678901234567890",
    "\xC3\xA4",
    "\xE6\xBC\xA2\xE5\xAD\x97",
    "e\xCC\x81",
    "\xCC\x81",
    "\xF0\x9F\x99\x82",
    "\xE2\x80\x8B",
    "\xFF",
    "\xE2\x82",
    "\xC2\x85",
    " ",
    "\t",
    "\b",
    "x\xCC\x81\xCC\x82\xCC\x83\xCC\x84\xCC\x85\xCC\x86\xCC\x87",
};
static const char *const colours[] = {
    "\x1b[m",        "\x1b[0m",          "\x1b[1m",           "\x1b[7m",
    "\x1b[27m",      "\x1b[31;42m",      "\x1b[49m",          "\x1b[0;7m",
    "\x1b[48;5;12m", "\x1b[38;2;1;2;3m", "\x1b[48:2::1:2:3m", "\x1b[;7m",
};
static const char *const edits[] = {
    "\x1b[K",  "\x1b[1K", "\x1b[2K", "\x1b[3P", "\x1b[2@", "\x1b[4X",
    "\x1b[5C", "\x1b[2D", "\x1b[7G", "\r",      "\x1b[J",  "\x1b[I",
    "\x1b[Z",  "\x1b[9`", "\x1b[a",  "\x1b[j",  "\x1b[3b", "\x1b[99999999999C",
};
static const char *const moves[] = {
    "\x1b[A",  "\x1b[2B", "\x1b[H", "\x1b[3;4H", "\x1b[2J",       "\x1b[1J", "\x1b[L",
    "\x1b[2M", "\x1b[S",  "\x1b[T", "\033D",     "\033E",         "\x1bM",   "\x1b#8",
    "\x1b[d",  "\x1b[4e", "\x1b[E", "\x1b[2F",   "\x1b[999;999H", "\x1b[?J",
};
static const char *const stickies[] = {
    "\0337",       "\0338",     "\x1b[s",    "\x1b[u",      "\x1b[2;4r",   "\x1b[r",
    "\x1b[3;9r",   "\x1b[?6h",  "\x1b[?6l",  "\x1b[?7l",    "\x1b[?7h",    "\x1b[4h",
    "\x1b[4l",     "\x1b[20h",  "\x1b[20l",  "\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h",
    "\x1b[?1047l", "\x1b[?69h", "\x1b[2;5s", "\x1b[?69l",   "\x1bH",       "\x1b[g",
    "\x1b[3g",     "\x0e",      "\x0f",      "\x1b(0",      "\x1b(B",      "\x1b)0",
    "\x1b[1\"q",   "\x1b[\"q",  "\x1b[!p",   "\033c",       "\x1b[?1048h", "\x1b[?1048l",
    "\x1b[2'}",    "\x1b[2'~",
};
static const char *const odds[] = {
    "\x07",
    "\x05",
    "\x1b[6n",
    "\x1b[c",
    "\x1b[?2004h",
    "\x1b[?2004l",
    "\x1b]2;title\x07",
    "\x1b]0;t\x1b\\",
    "\x1b[?1h",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[?2026h",
    "\x1b[?2026l",
    "\x1bP$qm\x1b\\",
    "\x1bP$qr\x1b\\",
    "\x1b]11;?\x07",
    "\x1b[18t",
    "\x1b[21t",
    "\x1b]52;c;?\x07",
    "\x1b[?u",
    "\x1b=",
    "\x1b>",
    "\x1b[?7$p",
    "\x1b[3\r1m",
    "\x1b[1;\x1b[1;2H",
    "\x1b]1\n",
    "\x1b[\x18",
    "\x1b\x1b[A",
    "\x1b_x\x1b\\",
    "\x1b[>4;2m",
    "\x1b[5 q",
    "\x1bP$q q\x1b\\",
};

#define ANY(list) (list)[streams_pick(sizeof(list) / sizeof((list)[0]))]

static const char *
next_piece(const struct mix *m)
{
    unsigned what =
        streams_pick(m->line + m->text + m->colour + m->edit + m->move + m->sticky + m->odd);

    if (what < m->line) {
        return streams_pick(20) == 0 ? "\n" : "\r\n";
    }
    what -= m->line;
    if (what < m->text) {
        return ANY(words);
    }
    what -= m->text;
    if (what < m->colour) {
        return ANY(colours);
    }
    what -= m->colour;
    if (what < m->edit) {
        return ANY(edits);
    }
    what -= m->edit;
    if (what < m->move) {
        return ANY(moves);
    }
    return what - m->move < m->sticky ? ANY(stickies) : ANY(odds);
}

#define STREAM_MAX 60000

static void
add(struct buf *out, const char *piece)
{
    SY_ASSERT(buf_add_str(out, piece) == SY_E_OK);
}

/* A line without an end. */
static void
add_run(struct buf *out)
{
    size_t n = streams_pick(9000);

    for (size_t i = 0; i < n; i++) {
        SY_ASSERT(buf_add_char(out, (char)(' ' + streams_pick(95))) == SY_E_OK);
    }
}

static void
make_stream(struct buf *out, const struct mix *m, size_t n)
{
    struct mix now = *m;

    while (out->len < n) {
        const char *piece = NULL;

        /* Now and then only lines for a while, so that something can be left out. */
        if (streams_pick(400) == 0) {
            now = streams_pick(2) == 0 ? mixes[streams_pick(3)] : *m;
        }
        if (streams_pick(900) == 0) {
            add_run(out);
        }
        piece = next_piece(&now);
        add(out, piece);
        if (streams_pick(3) == 0) {
            add(out, ANY(words));
        }
    }
}

void
streams_make(struct buf *out, uint64_t s)
{
    const struct mix *m = NULL;

    seed = s * 0x9E3779B97F4A7C15U + 1;
    m = &mixes[streams_pick(sizeof(mixes) / sizeof(mixes[0]))];
    make_stream(out, m, 1 + streams_pick(streams_pick(4) == 0 ? STREAM_MAX : STREAM_MAX / 6));
}
