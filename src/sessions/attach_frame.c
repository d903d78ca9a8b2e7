#include "sessions/attach_frame.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

static const struct {
    enum attach_kind kind;
    bool is_of_person;
    size_t min;
    size_t max;
} kinds[] = {
    {ATTACH_INPUT,  true,  1, LIMIT_ATTACH_FRAME},
    {ATTACH_SIZE,   true,  4, 4                 },
    {ATTACH_DETACH, true,  0, 0                 },
    {ATTACH_OUTPUT, false, 1, LIMIT_ATTACH_FRAME},
    {ATTACH_NOTE,   false, 1, SY_ERR_MSG_MAX    },
    {ATTACH_END,    false, 1, SY_ERR_MSG_MAX    },
};

static enum sy_code
write_one(struct buf *out, enum attach_kind kind, const char *bytes, size_t n)
{
    const char head[ATTACH_FRAME_HEAD] = {(char)kind, (char)(n & 0xFFU), (char)(n >> 8 & 0xFFU),
                                          (char)(n >> 16 & 0xFFU), (char)(n >> 24 & 0xFFU)};
    enum sy_code rc = buf_reserve(out, sizeof(head) + n);

    rc = rc == SY_E_OK ? buf_add(out, head, sizeof(head)) : rc;
    return rc == SY_E_OK && n > 0 ? buf_add(out, bytes, n) : rc;
}

enum sy_code
attach_frame_write(struct buf *out, enum attach_kind kind, const void *bytes, size_t n)
{
    const char *s = bytes;
    enum sy_code rc = SY_E_OK;

    do {
        size_t piece = n < LIMIT_ATTACH_FRAME ? n : LIMIT_ATTACH_FRAME;

        rc = write_one(out, kind, s, piece);
        s += piece;
        n -= piece;
    } while (n > 0 && rc == SY_E_OK);
    return rc;
}

enum sy_code
attach_frame_write_size(struct buf *out, unsigned rows, unsigned cols)
{
    const char bytes[4] = {(char)(rows & 0xFFU), (char)(rows >> 8 & 0xFFU), (char)(cols & 0xFFU),
                           (char)(cols >> 8 & 0xFFU)};

    return write_one(out, ATTACH_SIZE, bytes, sizeof(bytes));
}

enum sy_code
attach_frame_write_end(struct buf *out, unsigned status, const char *sentence)
{
    char bytes[SY_ERR_MSG_MAX];

    bytes[0] = (char)status;
    (void)snprintf(bytes + 1, sizeof(bytes) - 1, "%s", sentence);
    return write_one(out, ATTACH_END, bytes, 1 + strlen(bytes + 1));
}

static unsigned
byte_at(const char *bytes, size_t i)
{
    return (unsigned char)bytes[i];
}

enum attach_frame_state
attach_frame_read(struct attach_frame *ret, const char *bytes, size_t n, bool from_person,
                  struct sy_error *err)
{
    size_t i = 0;
    size_t len = 0;

    if (n == 0) {
        return ATTACH_FRAME_MORE;
    }
    while (i < sizeof(kinds) / sizeof(kinds[0]) &&
           (kinds[i].kind != (enum attach_kind)byte_at(bytes, 0) ||
            kinds[i].is_of_person != from_person)) {
        i++;
    }
    if (i == sizeof(kinds) / sizeof(kinds[0])) {
        (void)sy_err_set(err, SY_E_PARSE, "a frame of the kind 0x%02x, which is none",
                         byte_at(bytes, 0));
        return ATTACH_FRAME_BAD;
    }
    if (n < ATTACH_FRAME_HEAD) {
        return ATTACH_FRAME_MORE;
    }
    len = byte_at(bytes, 1) | byte_at(bytes, 2) << 8 | byte_at(bytes, 3) << 16 |
          (size_t)byte_at(bytes, 4) << 24;
    if (len < kinds[i].min || len > kinds[i].max) {
        (void)sy_err_set(err, SY_E_PARSE, "a frame of the kind '%c' with %zu bytes: %zu to %zu fit",
                         (char)kinds[i].kind, len, kinds[i].min, kinds[i].max);
        return ATTACH_FRAME_BAD;
    }
    if (n - ATTACH_FRAME_HEAD < len) {
        return ATTACH_FRAME_MORE;
    }
    *ret =
        (struct attach_frame){.kind = kinds[i].kind, .bytes = bytes + ATTACH_FRAME_HEAD, .n = len};
    return ATTACH_FRAME_WHOLE;
}

void
attach_frame_size(const struct attach_frame *f, unsigned *ret_rows, unsigned *ret_cols)
{
    *ret_rows = byte_at(f->bytes, 0) | byte_at(f->bytes, 1) << 8;
    *ret_cols = byte_at(f->bytes, 2) | byte_at(f->bytes, 3) << 8;
}
