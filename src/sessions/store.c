/* All sessions of an engine: their ids, how many there may be, which one goes. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "sessions/sessions_internal.h"

/* As Codex numbers them: models know the form. */
#define ID_FIRST 1000U
#define ID_COUNT 99000U

enum sy_code
live_store_new(struct live_store **ret, const struct live_store_options *options,
               struct sy_error *err)
{
    struct live_store *s = mem_alloc_zero(1, sizeof(*s));

    if (s == NULL) {
        return sy_err_nomem(err);
    }
    s->options = *options;
    *ret = s;
    return SY_E_OK;
}

void
live_store_end(struct live_store *s)
{
    if (s == NULL) {
        return;
    }
    s->is_ending = true;
    while (s->first != NULL) {
        live_remove(s->first, NULL);
    }
}

bool
live_store_is_over(const struct live_store *s)
{
    return s == NULL || (s->first == NULL && s->leaving == NULL && s->lent == 0);
}

void
live_store_free(struct live_store *s)
{
    if (s == NULL) {
        return;
    }
    SY_ASSERT(live_store_is_over(s));
    mem_free(s->memories);
    mem_free(s);
}

size_t
live_store_running(const struct live_store *s)
{
    size_t ret = s->running;

    /* One that makes room for another ends a moment later. */
    for (const struct live *l = s->leaving; l != NULL; l = l->next) {
        ret -= l->has_begun && !l->is_over ? 1 : 0;
    }
    return ret;
}

size_t
live_store_max(const struct live_store *s)
{
    return s->options.max;
}

bool
live_id_is_valid(const char *id)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(id);

    /* The two that mean a directory vanish from addresses. */
    return n > 0 && n <= LIMIT_SESSION_ID && strspn(id, allowed) == n && !str_eq(id, ".") &&
           !str_eq(id, "..");
}

struct live *
live_store_find(const struct live_store *s, const char *id)
{
    for (struct live *l = s->first; l != NULL; l = l->next) {
        if (str_eq(l->id, id)) {
            return l;
        }
    }
    return NULL;
}

/* The latest that is remembered of an id. */
static const char *
recall(const struct live_store *s, const char *id)
{
    for (size_t i = 1; s->memories != NULL && i <= LIMIT_SESSION_MEMORIES; i++) {
        size_t at = (s->next_memory + LIMIT_SESSION_MEMORIES - i) % LIMIT_SESSION_MEMORIES;

        if (str_eq(s->memories[at].id, id)) {
            return s->memories[at].text;
        }
    }
    return NULL;
}

bool
live_is_of(const struct live *l, const struct session *who)
{
    const struct session *owner = l->heir != NULL ? l->heir : l->session;

    return owner != NULL && session_is_within(owner, who);
}

enum sy_code
live_find(struct live **ret, struct live_store *s, const struct session *who, const char *id,
          struct sy_error *err)
{
    struct live *l = live_store_find(s, id);
    const char *why = l == NULL ? recall(s, id) : NULL;

    l = l != NULL && live_is_of(l, who) ? l : NULL;

    if (l != NULL && l->has_begun) {
        *ret = l;
        return SY_E_OK;
    }
    if (l != NULL) {
        return sy_err_set(err, SY_E_NOTFOUND,
                          "session %.64s has not begun yet: a person may have "
                          "to approve its command first",
                          id);
    }
    if (why != NULL) {
        return sy_err_set(err, SY_E_NOTFOUND, "session %.64s %s", id, why);
    }
    return sy_err_set(err, SY_E_NOTFOUND,
                      "there is no session %.64s; list_sessions tells which there are", id);
}

struct live *
live_next(struct live_store *s, const struct session *who, const struct live *l)
{
    struct live *next = l == NULL ? s->first : l->next;

    while (next != NULL && !(next->has_begun && live_is_of(next, who))) {
        next = next->next;
    }
    return next;
}

void
live_end_within(struct live_store *s, const struct session *who)
{
    struct live *next = NULL;

    for (struct live *l = s->first; l != NULL; l = next) {
        next = l->next;
        if (live_is_of(l, who)) {
            live_remove(l, NULL);
        }
    }
}

void
live_store_remember(struct live_store *s, const char *id, const char *why)
{
    if (s->memories == NULL) {
        s->memories = mem_alloc_zero(LIMIT_SESSION_MEMORIES, sizeof(*s->memories));
    }
    if (s->memories == NULL) {
        return; /* its id is unknown then, which is true as well */
    }

    struct live_memory *m = &s->memories[s->next_memory];

    s->next_memory = (s->next_memory + 1) % LIMIT_SESSION_MEMORIES;
    (void)snprintf(m->id, sizeof(m->id), "%s", id);
    (void)snprintf(m->text, sizeof(m->text), "%s", why);
}

static void
unlink_from(struct live **list, struct live *l)
{
    while (*list != NULL && *list != l) {
        list = &(*list)->next;
    }
    if (*list != NULL) {
        *list = l->next;
        l->next = NULL;
    }
}

void
live_store_add(struct live_store *s, struct live *l)
{
    struct live **last = &s->first;

    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = l;
    s->n++;
}

void
live_store_forget(struct live_store *s, struct live *l)
{
    unlink_from(&s->first, l);
    s->n--;
}

void
live_store_drop(struct live_store *s, struct live *l)
{
    live_store_forget(s, l);
    l->next = s->leaving;
    s->leaving = l;
}

void
live_store_gone(struct live_store *s, struct live *l)
{
    unlink_from(&s->leaving, l);
    if (l->home != NULL) {
        l->home->lent--;
        live_tell_settled(l->home);
        l->home = NULL;
    }
    live_tell_settled(s);
}

/* Those used before this are not among the LIMIT_SESSIONS_PROTECTED used last; 0: all are. Found in
 * one walk: a store may hold thousands, and each call that makes room asks. */
static uint64_t
protected_since(const struct live_store *s)
{
    uint64_t latest[LIMIT_SESSIONS_PROTECTED] = {0}; /* the latest first */

    for (const struct live *l = s->first; l != NULL; l = l->next) {
        uint64_t used_ns = l->used_ns;

        for (size_t i = 0; i < LIMIT_SESSIONS_PROTECTED; i++) {
            if (used_ns > latest[i]) {
                uint64_t moved = latest[i];

                latest[i] = used_ns;
                used_ns = moved;
            }
        }
    }
    return latest[LIMIT_SESSIONS_PROTECTED - 1];
}

/* Is a the better one to go? */
static bool
goes_before(const struct live *a, const struct live *b)
{
    if (b == NULL || a->is_over != b->is_over) {
        return b == NULL || a->is_over;
    }
    return a->used_ns < b->used_ns;
}

static enum sy_code
prune(struct live_store *s, struct sy_error *err)
{
    const uint64_t since_ns = protected_since(s);
    struct live *victim = NULL;
    char state[LIVE_STATE_TEXT];
    char why[SY_ERR_MSG_MAX];

    for (struct live *l = s->first; l != NULL; l = l->next) {
        /* Whom somebody waits for, or who is being judged, is in use. */
        if (l->waits == NULL && l->has_begun && l->used_ns < since_ns && goes_before(l, victim)) {
            victim = l;
        }
    }
    if (victim == NULL) {
        return sy_err_set(err, SY_E_LIMIT,
                          "there are %zu sessions, the most that sessions.max allows, and all are "
                          "in use: end one with kill_session",
                          s->n);
    }
    live_state_text(state, victim);
    (void)snprintf(why, sizeof(why),
                   "%.150s%s made room for a new one: at most %zu sessions are kept (sessions.max)",
                   victim->is_over ? state : "was ended, since it was used least recently,",
                   victim->is_over ? ", and" : " and", s->options.max);
    live_remove(victim, why);
    return SY_E_OK;
}

static enum sy_code
make_id(const struct live_store *s, char ret[LIMIT_SESSION_ID + 1], struct sy_error *err)
{
    for (;;) {
        uint32_t number = 0;

        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
            return sy_err_set(err, SY_E_INTERNAL, "no random number for a session's id");
        }
        (void)snprintf(ret, LIMIT_SESSION_ID + 1, "%u", ID_FIRST + number % ID_COUNT);
        if (live_store_find(s, ret) == NULL && recall(s, ret) == NULL) {
            return SY_E_OK;
        }
    }
}

static enum sy_code
choose_id(struct live_store *s, char ret[LIMIT_SESSION_ID + 1], const char *wanted,
          struct sy_error *err)
{
    if (wanted == NULL) {
        return make_id(s, ret, err);
    }
    if (!live_id_is_valid(wanted)) {
        return sy_err_set(err, SY_E_ARG,
                          "a session's id has 1 to %u letters, digits, '.', '_' and '-', and "
                          "is neither '.' nor '..'",
                          LIMIT_SESSION_ID);
    }

    struct live *l = live_store_find(s, wanted);

    if (l != NULL && !l->is_over) {
        return sy_err_set(err, SY_E_ARG,
                          "session %s runs already: write to it with write_stdin, or choose "
                          "another id",
                          wanted);
    }
    if (l != NULL) {
        live_remove(l, NULL);
    }
    (void)snprintf(ret, LIMIT_SESSION_ID + 1, "%s", wanted);
    return SY_E_OK;
}

enum sy_code
live_store_place(struct live_store *s, char ret[LIMIT_SESSION_ID + 1], const char *wanted,
                 struct sy_error *err)
{
    enum sy_code rc = s->is_ending ? sy_err_set(err, SY_E_CANCELLED, "all sessions are being ended")
                                   : choose_id(s, ret, wanted, err);

    return rc == SY_E_OK && s->n >= s->options.max ? prune(s, err) : rc;
}
