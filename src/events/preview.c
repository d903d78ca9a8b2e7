#include "events/events.h"

#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"

/* Bytes of text up to the end of line number LIMIT_PREVIEW_LINES. */
static size_t
lines_cut(const char *text, size_t n)
{
    size_t at = 0;

    for (unsigned line = 0; line < LIMIT_PREVIEW_LINES && at < n; line++) {
        const char *newline = memchr(text + at, '\n', n - at);

        if (newline == NULL) {
            return n;
        }
        at = (size_t)(newline - text) + 1;
    }
    return at;
}

enum sy_code
events_preview(struct buf *out, const char *text, size_t n)
{
    size_t cut = lines_cut(text, utf8_cut(text, n, LIMIT_PREVIEW_BYTES));
    enum sy_code rc = buf_add(out, text, cut);

    if (rc != SY_E_OK || cut == n) {
        return rc;
    }
    if (cut > 0 && text[cut - 1] != '\n') {
        rc = buf_add_char(out, '\n');
    }
    return rc != SY_E_OK ? rc : buf_add_str(out, EVENTS_PREVIEW_NOTICE);
}
