#include "output/output_internal.h"

#include <string.h>

#include "base/utf8.h"

size_t
output_invalid_len(const char *s, size_t n)
{
    for (size_t m = n < 3 ? n : 3; m > 1; m--) {
        if (utf8_incomplete_tail(s, m) == m) {
            return m;
        }
    }
    return 1;
}

struct joined
joiner_flush(struct joiner *j)
{
    struct joined out = {.prefix_n = j->len};

    memcpy(out.prefix, j->held, j->len);
    j->len = 0;
    return out;
}

/* Adds bytes to the held ones until they are a character, or cannot become
 * one. Returns how many were used. */
static size_t
join_held(struct joiner *j, const char *bytes, size_t n, struct joined *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t c = 0;
        size_t len = j->len + 1;

        j->held[j->len] = bytes[i];
        if (utf8_decode(&c, j->held, len) == len) {
            j->len = len;
            *out = joiner_flush(j);
            return i + 1;
        }
        if (utf8_incomplete_tail(j->held, len) != len) {
            *out = joiner_flush(j);
            return i;
        }
        j->len = len;
    }
    return n;
}

struct joined
joiner_push(struct joiner *j, const char *bytes, size_t n)
{
    struct joined out = {.prefix_n = 0};

    if (n == 0) {
        return out;
    }
    if (j->len > 0) {
        size_t used = join_held(j, bytes, n, &out);

        bytes += used;
        n -= used;
    }
    if (n == 0) {
        return out;
    }

    size_t tail = utf8_incomplete_tail(bytes, n);

    memcpy(j->held, bytes + (n - tail), tail);
    j->len = tail;
    out.body = bytes;
    out.body_n = n - tail;
    return out;
}

/* REPLACEMENT without its NUL. */
static const char replacement[REPLACEMENT_LEN] = {'\xEF', '\xBF', '\xBD'};

size_t
output_clean_some(char *dst, size_t cap, const char *src, size_t n, size_t *ret_used)
{
    size_t written = 0;
    size_t i = 0;

    while (i < n) {
        size_t room = cap - written;
        size_t valid = utf8_valid_prefix(src + i, n - i < room ? n - i : room);
        uint32_t c = 0;

        memcpy(dst + written, src + i, valid);
        written += valid;
        i += valid;
        room -= valid;
        /* Stopped by the end, by the room, or by an invalid byte. */
        if (i == n || room < REPLACEMENT_LEN || utf8_decode(&c, src + i, n - i) > room) {
            break;
        }
        if (utf8_decode(&c, src + i, n - i) == 0) {
            memcpy(dst + written, replacement, sizeof(replacement));
            written += REPLACEMENT_LEN;
            i += output_invalid_len(src + i, n - i);
        }
    }
    *ret_used = i;
    return written;
}

enum sy_code
output_clean_utf8(struct buf *out, const char *bytes, size_t n, bool *ret_replaced)
{
    bool replaced = false;

    for (size_t i = 0; i < n;) {
        size_t valid = utf8_valid_prefix(bytes + i, n - i);
        enum sy_code rc = buf_add(out, bytes + i, valid);

        i += valid;
        if (rc == SY_E_OK && i < n) {
            rc = buf_add(out, REPLACEMENT, REPLACEMENT_LEN);
            i += output_invalid_len(bytes + i, n - i);
            replaced = true;
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    if (ret_replaced != NULL) {
        *ret_replaced = replaced;
    }
    return SY_E_OK;
}

enum sy_code
kept_walk(const struct span *spans, size_t count, bool is_final, kept_fn *fn, void *arg)
{
    struct joiner j = {.len = 0};

    for (size_t i = 0; i <= count; i++) {
        struct joined out = {.prefix_n = 0};

        if (i < count) {
            out = joiner_push(&j, spans[i].p, spans[i].n);
        } else if (is_final) {
            out = joiner_flush(&j);
        }

        enum sy_code rc = out.prefix_n > 0 ? fn(arg, out.prefix, out.prefix_n) : SY_E_OK;

        if (rc == SY_E_OK && out.body_n > 0) {
            rc = fn(arg, out.body, out.body_n);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
stop_at_invalid(void *arg, const char *bytes, size_t n)
{
    bool *has_invalid = arg;

    *has_invalid = !utf8_is_valid(bytes, n);
    return *has_invalid ? SY_E_PARSE : SY_E_OK;
}

bool
kept_has_invalid(const struct kept *k, bool is_final)
{
    bool has_invalid = false;
    size_t first = k->has_gap ? 1 : 3;

    if (kept_walk(k->spans, first, is_final, stop_at_invalid, &has_invalid) != SY_E_OK) {
        return true;
    }
    if (k->has_gap &&
        kept_walk(k->spans + 1, 2, is_final, stop_at_invalid, &has_invalid) != SY_E_OK) {
        return true;
    }
    return has_invalid;
}

static enum sy_code
add_clean(void *arg, const char *bytes, size_t n)
{
    return output_clean_utf8(arg, bytes, n, NULL);
}

enum sy_code
kept_add_text(const struct span *spans, size_t count, bool is_final, struct buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        n += spans[i].n;
    }

    /* One block of the usual size instead of doubling; more only where invalid
     * bytes grow to U+FFFD. The real limit is met while adding. */
    enum sy_code rc = buf_reserve(out, n);

    if (rc != SY_E_OK && rc != SY_E_LIMIT) {
        return rc;
    }
    return kept_walk(spans, count, is_final, add_clean, out);
}
