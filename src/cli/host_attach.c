#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/host.h"
#include "sessions/attach.h"

/*
 * A person who joins a session: `attach ID MODE ROWS COLUMNS`, MODE is "rw" or "ro". Which session
 * ID means has been found out by the daemon, which asked all hosts.
 */

static void
on_ended(void *arg)
{
    struct host_guest *c = arg;

    c->attach = NULL;
    LOG(LOG_INFO, "daemon", "a person has left a session", kv_int("id", c->id));
    host_guest_close(c);
}

static bool
read_args(struct attach_options *ret, char *const *args)
{
    uint64_t rows = 0;
    uint64_t cols = 0;
    size_t n = 0;

    while (n < 5 && args[n] != NULL) {
        n++;
    }
    if (n != 4 || (!str_eq(args[1], "rw") && !str_eq(args[1], "ro")) ||
        !str_to_u64(&rows, args[2], 0, UINT16_MAX) || !str_to_u64(&cols, args[3], 0, UINT16_MAX)) {
        return false;
    }
    ret->is_read_only = str_eq(args[1], "ro");
    ret->rows = (unsigned)rows;
    ret->cols = (unsigned)cols;
    return true;
}

enum sy_code
host_attach_start(struct host_guest *c, const char *id, struct sy_error *err)
{
    struct attach_options options = {.loop = &c->host->loop, .ended = on_ended, .arg = c};

    if (!read_args(&options, c->hello.args)) {
        return sy_err_set(err, SY_E_PARSE, "attach takes a session, rw or ro, rows and columns");
    }
    options.live = host_find_session(c->host, id);
    if (options.live == NULL) {
        return sy_err_set(err, SY_E_NOTFOUND, "session %.80s has just gone", id);
    }
    /* One of its own: the loop knows this one as ours. */
    options.fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
    if (options.fd < 0) {
        return sy_err_sys(err, errno, "taking the connection of a person");
    }

    enum sy_code rc = attach_open(&c->attach, &options, err);

    if (rc != SY_E_OK) {
        /* Nothing that the client could do by itself. */
        err->code = rc == SY_E_CANCELLED ? SY_E_NOTFOUND : rc;
        return err->code;
    }
    c->state = HOST_GUEST_ATTACHED;
    if (!host_say(c->fd, HELLO_OK, (unsigned)getpid(), "")) {
        attach_stop(c->attach, "");
    }
    LOG(LOG_INFO, "daemon", "a person has joined a session", kv_int("id", c->id),
        kv_int("pid", c->pid), kv_str("session", id));
    return SY_E_OK;
}
