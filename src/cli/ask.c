#include "cli/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "cli/pass.h"

/* What follows HELLO_OK, to the end. */
static enum sy_code
read_answer(struct buf *into, struct pass_client *c, struct sy_error *err)
{
    const struct timeval limit = {.tv_sec = LIMIT_HELLO_WAIT_MS / 1000};
    enum sy_code rc = buf_add(into, c->line, c->n);

    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    while (rc == SY_E_OK) {
        char piece[4096];
        ssize_t n = recv(c->fd, piece, sizeof(piece), 0);

        if (n == 0) {
            return SY_E_OK;
        }
        if (n < 0 && errno != EINTR) {
            return sy_err_sys(err, errno, "reading the daemon's answer");
        }
        rc = n > 0 ? buf_add(into, piece, (size_t)n) : SY_E_OK;
    }
    return sy_err_set(err, rc, "the daemon's answer: %s", sy_code_text(rc));
}

static enum sy_code
parse(struct json_doc *ret, const struct buf *text, struct sy_error *err)
{
    enum sy_code rc = json_parse(ret, buf_view(text), text->len, err);

    if (rc == SY_E_PARSE) {
        sy_err_wrap(err, "the daemon's answer");
    }
    return rc;
}

/* What a refusal is about, by the exit status that comes with it. */
static enum sy_code
code_of(unsigned status)
{
    static const enum sy_code codes[] = {SY_E_NOTFOUND, SY_E_ARG};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (status == (unsigned)sy_code_status(codes[i])) {
            return codes[i];
        }
    }
    return SY_E_DENIED;
}

enum sy_code
cli_ask(struct json_doc *ret, const char *const *words, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_DAEMON_ANSWER};
    struct pass_client c;
    struct hello_answer answer = {0};
    struct stat program;

    if (stat("/proc/self/exe", &program) != 0) {
        return sy_err_sys(err, errno, "looking at this program's file");
    }

    enum sy_code rc = pass_open(&c, "ctl", mem_unconst(words), &program, NULL, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = pass_read(&answer, &c, pass_deadline_ns(), err);
    if (rc == SY_E_OK && answer.kind == HELLO_OK) {
        rc = read_answer(&text, &c, err);
        rc = rc == SY_E_OK ? parse(ret, &text, err) : rc;
    } else if (rc == SY_E_OK) {
        rc = sy_err_set(err, code_of(answer.number), "the daemon refuses: %s", answer.sentence);
    }
    pass_close(&c);
    return rc;
}

void
cli_add_age(char ret[24], int64_t age_ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {
        {86400000, "d"  },
        {3600000,  "h"  },
        {60000,    "min"},
        {1000,     "s"  },
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (age_ms >= units[i].ms) {
            (void)snprintf(ret, 24, "%lld %s", (long long)(age_ms / units[i].ms), units[i].unit);
            return;
        }
    }
    (void)snprintf(ret, 24, "0 s");
}
