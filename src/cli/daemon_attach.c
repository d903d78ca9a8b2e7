#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/daemon.h"
#include "sessions/attach.h"

/*
 * A person who joins a session: `attach ID MODE ROWS COLUMNS`, MODE is "rw" or "ro". ID is a
 * session's, or "cN/ID" where several clients have one of that name.
 */

/* Splits "c2/1234": returns the session's id, and the client's number or 0. */
static const char *
split(const char *id, unsigned *ret_number)
{
    const char *slash = strchr(id, '/');
    uint64_t number = 0;
    char digits[16];

    *ret_number = 0;
    if (slash == NULL || id[0] != 'c' || (size_t)(slash - id) > sizeof(digits)) {
        return id;
    }
    memcpy(digits, id + 1, (size_t)(slash - id) - 1);
    digits[slash - id - 1] = '\0';
    if (!str_to_u64(&number, digits, 1, UINT32_MAX)) {
        return id;
    }
    *ret_number = (unsigned)number;
    return slash + 1;
}

static enum sy_code
too_many(const struct buf *owners, const char *id, struct sy_error *err)
{
    return sy_err_set(err, SY_E_ARG, "several clients have a session %.64s: name one of %.100s", id,
                      buf_view(owners));
}

static enum sy_code
find(struct live **ret, struct daemon *d, const char *name, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf owners = {.max = 4096};
    unsigned number = 0;
    const char *id = split(name, &number);
    size_t n = 0;
    struct sy_error gone = {0}; /* what became of it */

    if (!live_id_is_valid(id)) {
        return sy_err_set(err, SY_E_ARG, "'%.64s' is no id of a session", name);
    }
    for (struct guest *c = d->guests; c != NULL; c = c->next) {
        if (c->state != GUEST_SERVING || (number != 0 && c->id != number)) {
            continue;
        }

        struct tool_context *context = c->engine.context;
        struct live *l = NULL;

        if (live_find(&l, tool_context_sessions(context), tool_context_session(context), id,
                      &gone) != SY_E_OK) {
            continue;
        }
        *ret = l;
        n++;
        if (buf_addf(&owners, "%sc%u/%s", n > 1 ? ", " : "", c->id, id) == SY_E_NOMEM) {
            return sy_err_nomem(err);
        }
    }
    if (n == 0) {
        return gone.msg[0] != '\0' ? sy_err_set(err, SY_E_NOTFOUND, "%s", gone.msg)
                                   : sy_err_set(err, SY_E_NOTFOUND,
                                                "there is no session %.64s: no client has one "
                                                "('shellyard list' tells what there is)",
                                                name);
    }
    return n == 1 ? SY_E_OK : too_many(&owners, id, err);
}

static void
on_ended(void *arg)
{
    struct guest *c = arg;

    c->attach = NULL;
    LOG(LOG_INFO, "daemon", "a person has left a session", kv_int("id", c->id));
    guest_end(c, 0);
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
guest_start_attach(struct guest *c, struct sy_error *err)
{
    struct attach_options options = {.loop = &c->daemon->loop, .ended = on_ended, .arg = c};
    enum sy_code rc =
        read_args(&options, c->hello.args)
            ? find(&options.live, c->daemon, c->hello.args[0], err)
            : sy_err_set(err, SY_E_PARSE, "attach takes a session, rw or ro, rows and columns");

    if (rc != SY_E_OK) {
        return rc;
    }
    /* One of its own: the loop knows this one as ours. */
    options.fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
    if (options.fd < 0) {
        return sy_err_sys(err, errno, "taking the connection of a person");
    }
    rc = attach_open(&c->attach, &options, err);
    if (rc != SY_E_OK) {
        /* Nothing that the client could do by itself. */
        err->code = rc == SY_E_CANCELLED ? SY_E_NOTFOUND : rc;
        return err->code;
    }
    uv_poll_stop(&c->poll);
    c->state = GUEST_ATTACHED;
    if (!guest_say(c->fd, HELLO_OK, (unsigned)getpid(), "")) {
        attach_stop(c->attach, "");
    }
    LOG(LOG_INFO, "daemon", "a person has joined a session", kv_int("id", c->id),
        kv_int("pid", c->peer.pid), kv_str("session", c->hello.args[0]));
    return SY_E_OK;
}
