#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/daemon.h"

/*
 * What verbs ask the daemon: one request a connection, in the hello's arguments. The answer is
 * HELLO_OK and one line of JSON, or HELLO_ERROR. What there is only the hosts know: a question goes
 * to all of them, and what it is for is done once all have answered, or LIMIT_HOSTS_ASKED_MS later.
 */

static void
write_status(struct daemon *d, struct jw *w)
{
    jw_key_int(w, "pid", getpid());
    jw_key_str(w, "version", SY_VERSION);
    jw_key_str(w, "socket", d->socket_path);
    jw_key_int(w, "age_ms", (int64_t)((clock_mono_ns() - d->started_ns) / 1000000));
}

/* The members of an answer's object, out of what the hosts have told. */
typedef enum sy_code question_fill(struct caller *c, const struct js *what, struct jw *w,
                                   struct sy_error *err);
/* Passes the caller on to a host. SY_E_CANCELLED: it can do by itself what it came for. */
typedef enum sy_code question_pass(struct caller *c, const struct js *what, struct sy_error *err);

/* What the hosts are asked for. */
struct question {
    uint64_t number;
    size_t n_pending;
    size_t n_silent; /* gave no answer */
    struct buf clients;
    struct buf sessions;
    struct jw clients_w; /* arrays, open until all is there */
    struct jw sessions_w;
    question_fill *fill; /* the answer; NULL: it is passed on */
    question_pass *pass;
};

void
question_free(struct question *q)
{
    if (q != NULL) {
        buf_fini(&q->clients);
        buf_fini(&q->sessions);
        mem_free(q);
    }
}

/* HELLO_OK stands before the answer, in the same bytes. */
static enum sy_code
begin(struct caller *c)
{
    const struct hello_answer ok = {.kind = HELLO_OK, .number = (unsigned)getpid()};
    char line[HELLO_ANSWER_MAX];

    return buf_add(&c->out, line, hello_answer_write(line, &ok));
}

/* The members of the answer's object come from `fill`, which may say no. */
static enum sy_code
answer(struct caller *c, const struct js *what, question_fill *fill, struct sy_error *err)
{
    struct jw w = {.out = &c->out};
    enum sy_code rc = begin(c);

    c->state = CALLER_ANSWERING; /* the request may end all others */
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    jw_object(&w);
    rc = fill(c, what, &w, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    jw_end_object(&w);
    rc = jw_done(&w);
    rc = rc == SY_E_OK ? buf_add_char(&c->out, '\n') : rc;
    if (rc != SY_E_OK) {
        return sy_err_set(err, rc, "the answer: %s", sy_code_text(rc));
    }
    caller_answer(c);
    return SY_E_OK;
}

static enum sy_code
fill_status(struct caller *c, const struct js *what, struct jw *w, struct sy_error *err)
{
    (void)what;
    (void)err;
    write_status(c->daemon, w);
    return SY_E_OK;
}

static enum sy_code
fill_stop(struct caller *c, const struct js *what, struct jw *w, struct sy_error *err)
{
    (void)what;
    (void)err;
    write_status(c->daemon, w);
    daemon_stop(c->daemon);
    return SY_E_OK;
}

struct row {
    const struct js *item;
    int64_t age_ms;
};

static int
by_age(const void *a, const void *b)
{
    const struct row *rows[2] = {a, b};

    return rows[0]->age_ms > rows[1]->age_ms ? -1 : rows[0]->age_ms < rows[1]->age_ms ? 1 : 0;
}

/* Hosts answer in any order: the oldest first. */
static enum sy_code
add_sorted(struct jw *w, const char *name, const struct js *list)
{
    size_t n = js_count(list);
    struct row *rows = mem_alloc_zero(n + 1, sizeof(*rows));

    if (rows == NULL) {
        return SY_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        rows[i].item = js_at(list, i);
        if (!js_int(&rows[i].age_ms, js_get(rows[i].item, "age_ms"))) {
            rows[i].age_ms = 0;
        }
    }
    qsort(rows, n, sizeof(*rows), by_age);
    jw_key(w, name);
    jw_array(w);
    for (size_t i = 0; i < n; i++) {
        jw_value(w, rows[i].item);
    }
    jw_end_array(w);
    mem_free(rows);
    return SY_E_OK;
}

static enum sy_code
fill_list(struct caller *c, const struct js *what, struct jw *w, struct sy_error *err)
{
    enum sy_code rc = add_sorted(w, "clients", js_get(what, "clients"));

    rc = rc == SY_E_OK ? add_sorted(w, "sessions", js_get(what, "sessions")) : rc;
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (c->question->n_silent > 0) {
        jw_key_int(w, "silent_hosts", (int64_t)c->question->n_silent);
    }
    return SY_E_OK;
}

/* "1234" or "c2/1234". */
static bool
names_session(const char *id, const struct js *session)
{
    const char *owner = js_str(js_get(session, "owner"));
    const char *own = js_str(js_get(session, "id"));
    char full[HOST_ID];

    if (owner == NULL || own == NULL) {
        return false;
    }
    (void)snprintf(full, sizeof(full), "%s/%s", owner, own);
    return str_eq(id, own) || str_eq(id, full);
}

/* What a silent host has nobody knows. */
static enum sy_code
not_found(const char *id, size_t n_silent, struct sy_error *err)
{
    if (n_silent > 0) {
        return sy_err_set(err, SY_E_SYS,
                          "'%.64s' is not among what answers, and %zu %s not answered within "
                          "%u s: it may be there",
                          id, n_silent, n_silent == 1 ? "host has" : "hosts have",
                          LIMIT_HOSTS_ASKED_MS / 1000U);
    }
    return sy_err_set(err, SY_E_NOTFOUND,
                      "there is no session %.64s ('shellyard list' tells what there is)", id);
}

static enum sy_code
find_one(const struct js **ret, const struct js *what, const char *id, size_t n_silent,
         struct sy_error *err)
{
    const struct js *clients = js_get(what, "clients");
    const struct js *sessions = js_get(what, "sessions");
    SY_AUTO(buf_fini) struct buf owners = {.max = 4096};
    size_t n = 0;

    *ret = NULL;
    for (size_t i = 0; i < js_count(clients); i++) {
        const char *own = js_str(js_get(js_at(clients, i), "id"));

        if (own != NULL && str_eq(own, id)) {
            *ret = js_at(clients, i);
            return SY_E_OK;
        }
    }
    for (size_t i = 0; i < js_count(sessions); i++) {
        if (!names_session(id, js_at(sessions, i))) {
            continue;
        }
        *ret = js_at(sessions, i);
        /* What does not fit is left out. */
        if (buf_addf(&owners, "%s%s/%s", n > 0 ? ", " : "", js_str(js_get(*ret, "owner")),
                     js_str(js_get(*ret, "id"))) == SY_E_NOMEM) {
            return sy_err_nomem(err);
        }
        n++;
    }
    if (n == 0) {
        return not_found(id, n_silent, err);
    }
    return n == 1 ? SY_E_OK
                  : sy_err_set(err, SY_E_ARG,
                               "several clients have a session %.64s: name one of %.100s", id,
                               buf_view(&owners));
}

/* Where it is, and its whole id there. NULL: that host is gone. */
static struct host_link *
place_of(char ret_id[HOST_ID], struct daemon *d, const struct js *it)
{
    const char *owner = js_str(js_get(it, "owner"));
    int64_t pid = 0;

    (void)snprintf(ret_id, HOST_ID, "%s%s%s", owner != NULL ? owner : "", owner != NULL ? "/" : "",
                   js_str(js_get(it, "id")));
    return js_int(&pid, js_get(it, "host")) ? daemon_host(d, (pid_t)pid) : NULL;
}

static enum sy_code
fill_kill(struct caller *c, const struct js *what, struct jw *w, struct sy_error *err)
{
    const char *id = c->hello.args[1];
    struct host_message m = {.kind = HOST_KILL};
    const struct js *it = NULL;
    enum sy_code rc = find_one(&it, what, id, c->question->n_silent, err);

    if (rc == SY_E_NOTFOUND) {
        return sy_err_set(err, rc, "there is no '%.40s' ('shellyard list' tells what there is)",
                          id);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    struct host_link *l = place_of(m.id, c->daemon, it);

    if (l == NULL || !host_send(l->fd, &m, NULL, 0)) {
        return sy_err_set(err, SY_E_SYS, "the host of '%.40s' does not answer", id);
    }
    jw_key_str(w, "ended", id);
    return SY_E_OK;
}

/* The person is with that host then, and this is no more than a connection to close. */
static enum sy_code
join(struct caller *c, const struct js *what, struct sy_error *err)
{
    char id[HOST_ID];
    const struct js *it = NULL;
    enum sy_code rc = find_one(&it, what, c->hello.args[0], c->question->n_silent, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (js_get(it, "owner") == NULL) {
        return sy_err_set(err, SY_E_ARG, "'%.40s' is a client and no session", c->hello.args[0]);
    }

    struct host_link *l = place_of(id, c->daemon, it);

    rc = l != NULL ? daemon_pass(l, c, id, err)
                   : sy_err_set(err, SY_E_SYS, "the host of '%.40s' is gone", id);
    if (rc == SY_E_OK) {
        caller_close(c);
    } else if (rc == SY_E_CANCELLED) {
        rc = SY_E_SYS; /* nothing that the client could do by itself */
        err->code = rc;
    }
    return rc;
}

/* All have answered, or won't. */
static void
conclude(struct caller *c)
{
    struct question *q = c->question;
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_DAEMON_ANSWER};
    struct json_doc doc = {0};
    struct sy_error err = {0};
    enum sy_code rc = SY_E_OK;

    uv_timer_stop(&c->timer);
    jw_end_array(&q->clients_w);
    jw_end_array(&q->sessions_w);
    rc = jw_done(&q->clients_w);
    rc = rc == SY_E_OK ? jw_done(&q->sessions_w) : rc;
    rc = rc == SY_E_OK ? buf_addf(&text, "{\"clients\":%s,\"sessions\":%s}", buf_view(&q->clients),
                                  buf_view(&q->sessions))
                       : rc;
    rc = rc == SY_E_OK ? json_parse(&doc, buf_view(&text), text.len, &err)
                       : sy_err_set(&err, rc, "the answer: %s", sy_code_text(rc));
    if (rc == SY_E_OK) {
        rc = q->fill != NULL ? answer(c, doc.root, q->fill, &err) : q->pass(c, doc.root, &err);
    }
    json_doc_fini(&doc);
    if (rc != SY_E_OK) {
        buf_reset(&c->out);
        caller_refuse(c, rc == SY_E_CANCELLED ? HELLO_OWN : HELLO_ERROR, &err);
    }
}

static void
add_all(struct jw *w, const struct js *list)
{
    for (size_t i = 0; i < js_count(list); i++) {
        jw_value(w, js_at(list, i));
    }
}

void
caller_heard(struct daemon *d, uint64_t number, const struct js *what)
{
    struct caller *c = d->callers;

    while (c != NULL && (c->state != CALLER_ASKING || c->question->number != number)) {
        c = c->next;
    }
    if (c == NULL) {
        return; /* it came too late */
    }
    add_all(&c->question->clients_w, js_get(what, "clients"));
    add_all(&c->question->sessions_w, js_get(what, "sessions"));
    c->question->n_silent += what == NULL ? 1 : 0;
    if (--c->question->n_pending == 0) {
        conclude(c);
    }
}

void
caller_stop_asking(struct caller *c)
{
    c->question->n_silent += c->question->n_pending;
    conclude(c);
}

/* Hosts of clients with that key (0: all), and then either. */
static enum sy_code
ask(struct caller *c, uint64_t key, question_fill *fill, question_pass *pass, struct sy_error *err)
{
    struct question *q = mem_alloc_zero(1, sizeof(*q));

    if (q == NULL) {
        return sy_err_nomem(err);
    }
    c->question = q;
    q->fill = fill;
    q->pass = pass;
    q->number = ++c->daemon->last_ask;
    q->clients.max = LIMIT_DAEMON_ANSWER;
    q->sessions.max = LIMIT_DAEMON_ANSWER;
    q->clients_w.out = &q->clients;
    q->sessions_w.out = &q->sessions;
    jw_array(&q->clients_w);
    jw_array(&q->sessions_w);
    c->state = CALLER_ASKING;
    q->n_pending = daemon_ask(c->daemon, q->number, key);
    if (q->n_pending == 0) {
        conclude(c);
        return SY_E_OK;
    }
    SY_ASSERT(uv_timer_start(&c->timer, c->timer.timer_cb, LIMIT_HOSTS_ASKED_MS, 0) == 0);
    return SY_E_OK;
}

enum sy_code
caller_start_attach(struct caller *c, struct sy_error *err)
{
    return c->hello.args[0] != NULL ? ask(c, 0, NULL, join, err)
                                    : sy_err_set(err, SY_E_ARG, "attach takes a session's id");
}

/* A host serves it from now on. */
static enum sy_code
route(struct caller *c, const struct js *what, struct sy_error *err)
{
    enum sy_code rc = daemon_route(c, err);

    (void)what;
    if (rc == SY_E_OK) {
        caller_close(c);
    }
    return rc;
}

enum sy_code
caller_start_client(struct caller *c, struct sy_error *err)
{
    uint64_t key = host_key(&c->hello);

    if (!daemon_must_ask(c->daemon, key)) {
        return route(c, NULL, err);
    }
    LOG(LOG_DEBUG, "daemon", "hosts of clients like it are asked", kv_int("pid", c->peer.pid));
    return ask(c, key, NULL, route, err);
}

static const struct {
    const char *name;
    bool has_id;
    bool asks; /* the hosts first */
    question_fill *fill;
} requests[] = {
    {"status", false, false, fill_status},
    {"list",   false, true,  fill_list  },
    {"kill",   true,  true,  fill_kill  },
    {"stop",   false, false, fill_stop  },
};

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
caller_start_ctl(struct caller *c, struct sy_error *err)
{
    char *const *args = c->hello.args;
    size_t n = count(args);

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]) && n > 0; i++) {
        if (str_eq(requests[i].name, args[0]) && n == (requests[i].has_id ? 2U : 1U)) {
            return requests[i].asks ? ask(c, 0, requests[i].fill, NULL, err)
                                    : answer(c, NULL, requests[i].fill, err);
        }
    }
    return sy_err_set(err, SY_E_ARG, "the daemon takes status, list, kill ID and stop");
}
