/* The tree of sessions: a subagent has one of its own, below that of whoever started it. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/orchestrator_internal.h"

struct session *
family_new(struct session_engine *engine, const char *id)
{
    unsigned char random[8];
    struct session *s = mem_alloc_zero(1, sizeof(*s));

    if (s == NULL) {
        return NULL;
    }
    s->engine = engine;
    s->refs = 1;
    s->grants = grants_new();
    if (s->grants == NULL) {
        mem_free(s);
        return NULL;
    }
    if (id != NULL) {
        (void)snprintf(s->id, sizeof(s->id), "%s", id);
    } else if (getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random)) {
        for (size_t i = 0; i < sizeof(random); i++) {
            (void)snprintf(s->id + i * 2, 3, "%02x", (unsigned)random[i]);
        }
    }
    return s;
}

static struct session *
first_of(struct session *s)
{
    while (s->parent != NULL) {
        s = s->parent;
    }
    return s;
}

static enum sy_code
check_name(const char *name, struct sy_error *err)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_.:/";
    size_t len = strlen(name);

    if (len == 0 || len > LIMIT_SESSION_NAME || name[strspn(name, known)] != '\0') {
        return sy_err_set(err, SY_E_ARG,
                          "the id of a session must have 1 to %u letters, digits and -_.:/ "
                          "characters",
                          LIMIT_SESSION_NAME);
    }
    return SY_E_OK;
}

static enum sy_code
check_title(const char *title, struct sy_error *err)
{
    if (title != NULL && strlen(title) > LIMIT_SESSION_TITLE) {
        return sy_err_set(err, SY_E_ARG, "the name of a session may have at most %u bytes",
                          LIMIT_SESSION_TITLE);
    }
    return SY_E_OK;
}

static enum sy_code
check_room(struct session *parent, struct sy_error *err)
{
    if (parent->is_closed) {
        return sy_err_set(err, SY_E_ARG, "the session above is closed");
    }
    if (parent->depth >= LIMIT_SESSION_DEPTH) {
        return sy_err_set(err, SY_E_LIMIT, "sessions may lie %u deep at most", LIMIT_SESSION_DEPTH);
    }
    if (first_of(parent)->below >= LIMIT_SESSIONS) {
        return sy_err_set(err, SY_E_LIMIT, "%u sessions are open: close one first", LIMIT_SESSIONS);
    }
    return SY_E_OK;
}

enum sy_code
session_open(struct session **ret, struct session *parent, const char *name, const char *title,
             struct sy_error *err)
{
    enum sy_code rc = check_name(name, err);
    struct session *s = NULL;

    if (rc == SY_E_OK) {
        rc = check_title(title, err);
    }
    if (rc == SY_E_OK) {
        rc = check_room(parent, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    s = family_new(parent->engine, NULL);
    if (s == NULL) {
        return sy_err_nomem(err);
    }
    s->title = title != NULL ? mem_strdup(title) : NULL;
    if (title != NULL && s->title == NULL) {
        session_unref(s);
        return sy_err_nomem(err);
    }
    memcpy(s->name, name, strlen(name) + 1);
    s->depth = parent->depth + 1;
    s->parent = parent;
    session_ref(parent);
    s->next = parent->children;
    parent->children = s;
    first_of(parent)->below++;
    *ret = s;
    return SY_E_OK;
}

static void
unlink_child(struct session *s)
{
    struct session **at = &s->parent->children;

    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    first_of(s)->below--;
}

void
session_close(struct session *s)
{
    const struct review_by *by = session_review(s);

    SY_ASSERT(s->children == NULL && !s->is_closed);
    s->is_closed = true;
    if (s->parent != NULL) {
        if (by->ops != NULL) {
            by->ops->end(by->review, s->id);
        }
        unlink_child(s);
    }
    session_unref(s);
}

void
session_ref(struct session *s)
{
    s->refs++;
}

void
session_unref(struct session *s)
{
    while (s != NULL && --s->refs == 0) {
        struct session *parent = s->parent;

        grants_free(s->grants);
        mem_free(s->title);
        mem_free(s);
        s = parent;
    }
}

const char *
session_id(const struct session *s)
{
    return s->id;
}

struct session *
session_parent(const struct session *s)
{
    return s->parent;
}

const char *
session_name(const struct session *s)
{
    return s->name;
}

const char *
session_title(const struct session *s)
{
    return s->title;
}

bool
session_is_within(const struct session *s, const struct session *above)
{
    while (s != NULL && s != above) {
        s = s->parent;
    }
    return s != NULL;
}

void
session_chain(const char *ret[LIMIT_SESSION_DEPTH + 2], const struct session *s)
{
    size_t n = 0;

    for (; s != NULL; s = s->parent) {
        SY_ASSERT(n <= LIMIT_SESSION_DEPTH);
        ret[n++] = s->id;
    }
    ret[n] = NULL;
}

bool
session_subagent(struct subagent *ret, const char *of[LIMIT_SESSION_DEPTH + 2],
                 const struct session *s)
{
    size_t n = 0;

    *ret = (struct subagent){.id = s->name, .name = s->title, .of = of};
    for (const struct session *up = s->parent; up != NULL && up->parent != NULL; up = up->parent) {
        of[n++] = up->name;
    }
    of[n] = NULL;
    return s->parent != NULL;
}

struct grants *
session_grants(const struct session *s)
{
    return s->grants;
}

struct session_lock *
session_lock(struct session *s)
{
    return &s->lock;
}
