#include "transport/lines.h"

#include <string.h>

/* A longer buffer is given back after its line: large messages are rare. */
#define KEEP_BYTES ((size_t)256 * 1024)

void
lines_fini(struct lines *l)
{
    buf_fini(&l->partial);
}

static void
emit(struct lines *l, const char *text, size_t len)
{
    if (len > 0 && text[len - 1] == '\r') {
        len--;
    }
    l->on_line(l->arg, text, len);
}

/* Adds a piece of a line that is not over; true unless it is to be skipped. */
static bool
keep(struct lines *l, const char *bytes, size_t n)
{
    if (l->is_skipping) {
        return false;
    }

    enum sy_code rc = buf_add(&l->partial, bytes, n);

    if (rc != SY_E_OK) {
        buf_fini(&l->partial);
        l->is_skipping = true;
        l->on_dropped(l->arg, rc);
        return false;
    }
    return true;
}

static void
end_partial(struct lines *l)
{
    emit(l, l->partial.data, l->partial.len);
    if (l->partial.cap > KEEP_BYTES) {
        buf_fini(&l->partial);
    } else {
        buf_reset(&l->partial);
    }
}

void
lines_push(struct lines *l, const char *bytes, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);

        if (newline == NULL) {
            (void)keep(l, bytes, n);
            return;
        }

        size_t len = (size_t)(newline - bytes);

        if (!l->is_skipping && l->partial.len == 0 && len <= l->partial.max) {
            emit(l, bytes, len);
        } else if (keep(l, bytes, len)) {
            end_partial(l);
        }
        l->is_skipping = false;
        bytes += len + 1;
        n -= len + 1;
    }
}

void
lines_finish(struct lines *l)
{
    if (!l->is_skipping && l->partial.len > 0) {
        end_partial(l);
    }
    l->is_skipping = false;
}
