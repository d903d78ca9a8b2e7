#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"

/* Of a line: what stands around its text, and the mark that it was cut. */
#define LINE_REST 32U

int
cli_out(const struct buf *b, int status)
{
    struct sy_error err = {0};

    if (fd_write_all(STDOUT_FILENO, buf_view(b), b->len, &err) == SY_E_OK) {
        return status;
    }
    if (err.sys == EPIPE) {
        return CLI_STATUS_SIGPIPE;
    }
    return cli_fail(&err);
}

static void
write_line(const char *text)
{
    SY_AUTO(buf_fini) struct buf line = {.max = (size_t)4 * LIMIT_PATH};
    enum sy_code rc = buf_add_str(&line, "shellyard: ");

    /* It quotes words, names of files and what others say: a line of ours is one line, and moves
     * no cursor. */
    if (rc == SY_E_OK) {
        rc = str_add_visible(&line, text, strlen(text), line.max - LINE_REST);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_char(&line, '\n');
    }
    /* One write, so that lines of several processes do not mix. What can't be
     * told on standard error can't be told at all. */
    if (rc == SY_E_OK) {
        (void)!fd_write_all(STDERR_FILENO, line.data, line.len, NULL);
    }
}

int
cli_fail(const struct sy_error *err)
{
    write_line(err->msg[0] != '\0' ? err->msg : sy_code_text(err->code));
    return sy_code_status(err->code);
}

int
cli_fail_judging(const struct sy_error *err)
{
    int status = cli_fail(err);

    return err->code == SY_E_CWD ? sy_code_status(SY_E_ARG) : status;
}

void
cli_note(const char *fmt, ...)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)2 * LIMIT_PATH};
    va_list ap;

    va_start(ap, fmt);

    enum sy_code rc = buf_addv(&text, fmt, ap);

    va_end(ap);
    if (rc == SY_E_OK) {
        write_line(buf_view(&text));
    }
}
