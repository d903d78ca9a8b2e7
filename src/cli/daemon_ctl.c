#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/daemon.h"

/*
 * What verbs ask the daemon: one request a connection, in the hello's arguments. The answer is
 * HELLO_OK and one line of JSON, or HELLO_ERROR.
 */

static void
write_status(struct daemon *d, struct jw *w)
{
    jw_key_int(w, "pid", getpid());
    jw_key_str(w, "version", SY_VERSION);
    jw_key_str(w, "socket", d->socket_path);
    jw_key_int(w, "age_ms", (int64_t)((clock_mono_ns() - d->started_ns) / 1000000));
}

static enum sy_code
on_status(struct daemon *d, const char *id, struct jw *w, struct sy_error *err)
{
    (void)id;
    (void)err;
    write_status(d, w);
    return SY_E_OK;
}

static enum sy_code
on_list(struct daemon *d, const char *id, struct jw *w, struct sy_error *err)
{
    (void)id;
    (void)err;
    for (size_t i = 0; i < daemon_kinds_n; i++) {
        jw_key(w, daemon_kinds[i].name);
        jw_array(w);
        daemon_kinds[i].list(d, w);
        jw_end_array(w);
    }
    return SY_E_OK;
}

static enum sy_code
on_kill(struct daemon *d, const char *id, struct jw *w, struct sy_error *err)
{
    uint64_t number = 0;

    for (size_t i = 0; i < daemon_kinds_n; i++) {
        if (id[0] == daemon_kinds[i].letter && str_to_u64(&number, id + 1, 0, UINT32_MAX) &&
            daemon_kinds[i].kill(d, (unsigned)number)) {
            jw_key_str(w, "ended", id);
            return SY_E_OK;
        }
    }
    return sy_err_set(err, SY_E_NOTFOUND,
                      "there is no '%.40s' ('shellyard list' tells what there is)", id);
}

static enum sy_code
on_stop(struct daemon *d, const char *id, struct jw *w, struct sy_error *err)
{
    (void)id;
    (void)err;
    write_status(d, w);
    daemon_stop(d);
    return SY_E_OK;
}

static const struct {
    const char *name;
    bool has_id;
    enum sy_code (*run)(struct daemon *d, const char *id, struct jw *w, struct sy_error *err);
} requests[] = {
    {"status", false, on_status},
    {"list",   false, on_list  },
    {"kill",   true,  on_kill  },
    {"stop",   false, on_stop  },
};

/* HELLO_OK stands before the answer, in the same bytes. */
static enum sy_code
begin(struct guest *c)
{
    const struct hello_answer ok = {.kind = HELLO_OK, .number = (unsigned)getpid()};
    char line[HELLO_ANSWER_MAX];

    return buf_add(&c->out, line, hello_answer_write(line, &ok));
}

static size_t
count(char *const *list)
{
    size_t n = 0;

    while (list[n] != NULL) {
        n++;
    }
    return n;
}

enum sy_code
guest_start_ctl(struct guest *c, struct sy_error *err)
{
    char *const *args = c->hello.args;
    size_t n = count(args);

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]) && n > 0; i++) {
        if (!str_eq(requests[i].name, args[0]) || n != (requests[i].has_id ? 2 : 1)) {
            continue;
        }

        struct jw w = {.out = &c->out};
        enum sy_code rc = begin(c);

        c->state = GUEST_ANSWERING; /* the request may end all others */
        if (rc != SY_E_OK) {
            return sy_err_nomem(err);
        }
        jw_object(&w);
        rc = requests[i].run(c->daemon, args[1], &w, err);
        if (rc != SY_E_OK) {
            return rc;
        }
        jw_end_object(&w);
        rc = jw_done(&w);
        rc = rc == SY_E_OK ? buf_add_char(&c->out, '\n') : rc;
        if (rc != SY_E_OK) {
            return sy_err_set(err, rc, "the answer: %s", sy_code_text(rc));
        }
        guest_answer(c);
        return SY_E_OK;
    }
    return sy_err_set(err, SY_E_ARG, "the daemon takes status, list, kill ID and stop");
}
