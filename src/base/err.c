#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct code_row {
    const char *name;
    const char *text;
    int rpc;
    int status;
};

static const struct code_row rows[] = {
#define SY_CODE_ROW(name, text, rpc, status) [name] = {#name, text, rpc, status},
    SY_CODES(SY_CODE_ROW)
#undef SY_CODE_ROW
};

static const struct code_row *
row_of(enum sy_code code)
{
    size_t i = (size_t)code;

    if (i >= sizeof(rows) / sizeof(rows[0])) {
        i = SY_E_INTERNAL;
    }
    return &rows[i];
}

const char *
sy_code_name(enum sy_code code)
{
    return row_of(code)->name;
}

const char *
sy_code_text(enum sy_code code)
{
    return row_of(code)->text;
}

int
sy_code_rpc(enum sy_code code)
{
    return row_of(code)->rpc;
}

int
sy_code_status(enum sy_code code)
{
    return row_of(code)->status;
}

/* Removes a UTF-8 sequence that vsnprintf cut at the end of the buffer. */
static void
trim_utf8(char *s)
{
    size_t n = strlen(s);
    size_t back = 0;

    while (back < 4 && back < n && ((unsigned char)s[n - 1 - back] & 0xC0U) == 0x80U) {
        back++;
    }
    if (back == n || back == 4) {
        return;
    }

    unsigned char lead = (unsigned char)s[n - 1 - back];
    size_t want = 0;

    if (lead >= 0xF0U) {
        want = 3;
    } else if (lead >= 0xE0U) {
        want = 2;
    } else if (lead >= 0xC0U) {
        want = 1;
    }
    if (want > back) {
        s[n - 1 - back] = '\0';
    }
}

static void fill(struct sy_error *err, enum sy_code code, int sys, const char *fmt, va_list ap)
    SY_PRINTF(4, 0);

static void
fill(struct sy_error *err, enum sy_code code, int sys, const char *fmt, va_list ap)
{
    err->code = code;
    err->sys = sys;
    if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) >= (int)sizeof(err->msg)) {
        trim_utf8(err->msg);
    }
}

enum sy_code
sy_err_set(struct sy_error *err, enum sy_code code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;

        va_start(ap, fmt);
        fill(err, code, 0, fmt, ap);
        va_end(ap);
    }
    return code;
}

enum sy_code
sy_err_sys(struct sy_error *err, int errnum, const char *fmt, ...)
{
    enum sy_code code = errnum == ENOMEM ? SY_E_NOMEM : SY_E_SYS;

    if (err != NULL) {
        va_list ap;

        va_start(ap, fmt);
        fill(err, code, errnum, fmt, ap);
        va_end(ap);

        size_t used = strlen(err->msg);

        if (snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", sy_errno_text(errnum)) >=
            (int)(sizeof(err->msg) - used)) {
            trim_utf8(err->msg);
        }
    }
    return code;
}

enum sy_code
sy_err_wrap(struct sy_error *err, const char *fmt, ...)
{
    if (err == NULL) {
        return SY_E_INTERNAL;
    }

    char inner[SY_ERR_MSG_MAX];
    va_list ap;

    memcpy(inner, err->msg, sizeof(inner));
    va_start(ap, fmt);
    fill(err, err->code, err->sys, fmt, ap);
    va_end(ap);

    size_t used = strlen(err->msg);

    if (snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", inner) >=
        (int)(sizeof(err->msg) - used)) {
        trim_utf8(err->msg);
    }
    return err->code;
}

enum sy_code
sy_err_nomem(struct sy_error *err)
{
    return sy_err_set(err, SY_E_NOMEM, "out of memory");
}

void
sy_err_clear(struct sy_error *err)
{
    if (err != NULL) {
        err->code = SY_E_OK;
        err->sys = 0;
        err->msg[0] = '\0';
    }
}

static const struct errno_row {
    const char *name;
    const char *text;
} errno_rows[] = {
#define ERRNO(name, text) [name] = {#name, text},
#include "base/errno.def"
#undef ERRNO
};

static const struct errno_row *
errno_row_of(int errnum)
{
    static const struct errno_row unknown = {"?", "unknown error"};
    size_t i = (size_t)errnum;

    if (errnum <= 0 || i >= sizeof(errno_rows) / sizeof(errno_rows[0]) ||
        errno_rows[i].name == NULL) {
        return &unknown;
    }
    return &errno_rows[i];
}

const char *
sy_errno_text(int errnum)
{
    return errno_row_of(errnum)->text;
}

const char *
sy_errno_name(int errnum)
{
    return errno_row_of(errnum)->name;
}

void
sy_assert_failed(const char *cond, const char *file, int line)
{
    char text[256];
    int n =
        snprintf(text, sizeof(text), "shellyard: broken invariant: %s (%s:%d)\n", cond, file, line);

    if (n > 0) {
        size_t len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

        if (write(STDERR_FILENO, text, len) < 0) {
            /* Nothing is left to tell it to. */
        }
    }
    abort();
}
