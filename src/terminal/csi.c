#include "terminal/terminal_internal.h"

#include <string.h>

/* Larger than any screen; a larger number is taken as this. */
#define PARAM_MAX 9999U

static void
add(struct csi *c, char byte)
{
    if (c->len < sizeof(c->text)) {
        c->text[c->len++] = byte;
    }
}

static void
add_number(struct csi *c, unsigned value)
{
    unsigned unit = 1;

    while (value / unit >= 10) {
        unit *= 10;
    }
    for (; unit > 0; unit /= 10) {
        add(c, (char)('0' + value / unit % 10));
    }
}

/* One parameter, which may be empty; returns where it ends. */
static size_t
parse_param(struct csi *c, const char *seq, size_t n, size_t i)
{
    unsigned value = 0;
    size_t start = i;

    for (; i < n && seq[i] >= '0' && seq[i] <= '9'; i++) {
        value = value * 10 + (unsigned)(seq[i] - '0');
        value = value < PARAM_MAX ? value : PARAM_MAX;
    }
    /* One place is left free: libvterm has room for as many. */
    if (c->n < CSI_PARAMS - 1) {
        if (c->n > 0) {
            add(c, seq[start - 1]); /* ';' or ':' */
        }
        if (i > start) {
            add_number(c, value);
        }
        c->params[c->n++] = value;
    }
    return i;
}

void
csi_parse(struct csi *c, const char *seq, size_t n)
{
    size_t i = 0;

    memset(c, 0, sizeof(*c));
    add(c, '\x1b');
    add(c, '[');
    if (n > 1 && strchr("<=>?", seq[0]) != NULL) {
        c->leader = seq[i++];
        add(c, c->leader);
    }
    for (i = parse_param(c, seq, n, i); i < n && (seq[i] == ';' || seq[i] == ':');) {
        i = parse_param(c, seq, n, i + 1);
    }
    for (; i + 1 < n; i++) {
        c->is_odd |= c->inter != 0 || seq[i] < 0x20 || seq[i] > 0x2F;
        c->inter = seq[i];
        add(c, c->inter);
    }
    c->final = seq[n - 1];
    add(c, c->final);
}
