#include "base/colon_record.h"

#include <string.h>

#include "base/str.h"

/* Cuts off what is before the next `end`, or all. *ret_is_last: there was none. */
static struct colon_text
cut(struct colon_text *rest, char end, bool *ret_is_last)
{
    const char *at = memchr(rest->s, end, rest->n);
    struct colon_text ret = {rest->s, at != NULL ? (size_t)(at - rest->s) : rest->n};
    size_t used = at != NULL ? ret.n + 1 : ret.n;

    *ret_is_last = at == NULL;
    rest->s += used;
    rest->n -= used;
    return ret;
}

size_t
colon_record_next(struct colon_text *rest, struct colon_text *fields, size_t max)
{
    bool is_last = false;
    size_t n = 0;

    if (rest->n == 0) {
        return 0;
    }

    struct colon_text line = cut(rest, '\n', &is_last);

    do {
        struct colon_text field = cut(&line, ':', &is_last);

        if (n < max) {
            fields[n] = field;
        }
        n++;
    } while (!is_last);
    for (size_t i = n; i < max; i++) {
        fields[i] = line; /* its end */
    }
    return n;
}

bool
colon_text_is(struct colon_text text, uint32_t wanted)
{
    char digits[16];
    uint64_t value = 0;

    if (text.n >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, text.s, text.n);
    digits[text.n] = '\0';
    return str_to_u64(&value, digits, 0, UINT32_MAX) && value == wanted;
}
