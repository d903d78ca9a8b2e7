#include "protocol/jsonl_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* The sessions of a talk: a subagent has one of its own, below that of its parent. */

static struct jsonl_session *
find(struct jsonl *j, const char *id)
{
    struct jsonl_session *s = j->main.next;

    while (s != NULL && !str_eq(s->id, id)) {
        s = s->next;
    }
    return s;
}

static enum sy_code
find_named(struct jsonl_session **ret, struct jsonl *j, const struct js *message, const char *key,
           struct sy_error *err)
{
    const struct js *v = js_get(message, key);
    const char *id = js_str(v);

    if (js_type(v) == JS_NULL) {
        *ret = &j->main;
        return SY_E_OK;
    }
    if (id == NULL) {
        struct js_shown is;

        return sy_err_set(err, SY_E_ARG, "%s must be a string, the id of an open session, not %s",
                          key, js_not_text(&is, v));
    }
    *ret = find(j, id);
    return *ret != NULL
               ? SY_E_OK
               : sy_err_set(err, SY_E_NOTFOUND,
                            "%s '%.64s' is not open: open it by a message session, or leave %s "
                            "out for the main one",
                            key, id, key);
}

enum sy_code
jsonl_session_of(struct jsonl_session **ret, struct jsonl *j, const struct js *message,
                 struct sy_error *err)
{
    return find_named(ret, j, message, "session", err);
}

struct jsonl_session *
jsonl_session_by_orch(struct jsonl *j, const char *id)
{
    struct jsonl_session *s = &j->main;

    while (s != NULL && !str_eq(session_id(s->orch), id)) {
        s = s->next;
    }
    return s;
}

bool
jsonl_session_is_refused(const struct jsonl_session *s)
{
    while (s != NULL && !s->is_turn_refused && !s->is_outdated) {
        s = s->parent;
    }
    return s != NULL;
}

static void
fini(struct jsonl_session *s)
{
    turn_wish_fini(&s->opened);
    turn_wish_fini(&s->wished.wish);
    jsonl_turn_unref(s->turn);
    s->turn = NULL;
}

/* The commands that it has left running. */
static void
end_commands(struct jsonl *j, struct jsonl_session *s)
{
    if (!s->is_ended) {
        s->is_ended = true;
        tool_context_end_within(j->base.options.context, s->orch);
    }
}

static void
session_end(struct jsonl *j, struct jsonl_session *s)
{
    struct jsonl_session *before = &j->main;

    while (before->next != s) {
        before = before->next;
    }
    before->next = s->next;
    end_commands(j, s);
    session_close(s->orch);
    fini(s);
    mem_free(s);
}

/* The last one, which has none below it. */
static struct jsonl_session *
last_of(struct jsonl *j)
{
    struct jsonl_session *s = &j->main;

    while (s->next != NULL) {
        s = s->next;
    }
    return s;
}

void
jsonl_sessions_free(struct jsonl *j)
{
    while (j->main.next != NULL) {
        session_end(j, last_of(j));
    }
    fini(&j->main);
}

void
jsonl_sessions_leave(struct jsonl *j)
{
    for (struct jsonl_session *s = j->main.next; s != NULL; s = s->next) {
        end_commands(j, s);
    }
}

static bool
has_children(const struct jsonl_session *s)
{
    const struct jsonl_session *c = s->next;

    while (c != NULL && c->parent != s) {
        c = c->next;
    }
    return c != NULL;
}

/* Can it go? Commands that it has left running end first, so that their end is told as its. */
static bool
is_over(struct jsonl *j, struct jsonl_session *s)
{
    if (!s->is_closing || s->n_groups > 0 || has_children(s)) {
        return false;
    }
    end_commands(j, s);
    return tool_context_has_settled(j->base.options.context, s->orch);
}

/* One that can go; those below first. */
static struct jsonl_session *
find_over(struct jsonl *j)
{
    struct jsonl_session *s = j->main.next;

    while (s != NULL && !is_over(j, s)) {
        s = s->next;
    }
    return s;
}

void
jsonl_sessions_reap(struct jsonl *j)
{
    struct jsonl_session *s = find_over(j);

    for (; s != NULL; s = find_over(j)) {
        jsonl_send_closed(j, s);
        session_end(j, s);
    }
}

/* With what it wished for now; takes it. */
static enum sy_code
take_turn(struct jsonl *j, struct jsonl_session *s, struct jsonl_wish *wish, struct sy_error *err)
{
    struct jsonl_turn *t = NULL;
    enum sy_code rc = jsonl_turn_new(&t, s, j->base.options.context, wish, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    jsonl_turn_unref(s->turn);
    s->turn = t;
    s->is_outdated = false;
    if (wish != &s->wished) {
        turn_wish_fini(&s->wished.wish);
        s->wished = *wish;
        wish->wish = (struct turn_wish){0};
    }
    return rc;
}

/* The turn above is another now: what lies below is inside of the new one, or does not run. */
static void
renew_below(struct jsonl *j, const struct jsonl_session *above)
{
    for (struct jsonl_session *s = above->next; s != NULL; s = s->next) {
        struct sy_error err = {0};

        if (!session_is_within(s->orch, above->orch) || jsonl_session_is_refused(s->parent)) {
            continue; /* of a refused one nothing runs; once it has a turn this comes again */
        }
        if (take_turn(j, s, &s->wished, &err) != SY_E_OK) {
            s->is_outdated = true;
            sy_err_wrap(&err, "its turn holds no more");
            jsonl_send_session_error(j, s, NULL, err.msg);
        }
    }
}

void
jsonl_turn(struct jsonl *j, const struct jsonl_line *line)
{
    struct jsonl_session *s = NULL;
    struct jsonl_wish wish = {0};
    struct sy_error err = {0};

    if (jsonl_session_of(&s, j, line->message, &err) != SY_E_OK) {
        /* Nobody knows for whom it was meant, but no turn of theirs runs: they are not open. */
        sy_err_wrap(&err, "turn refused");
        jsonl_send_error(j, NULL, err.msg);
        return;
    }

    SY_ASSERT(s != NULL);

    enum sy_code rc = jsonl_wish_read(&wish, line->message, false, &err);

    if (rc == SY_E_OK && jsonl_session_is_refused(s->parent)) {
        rc = sy_err_set(&err, SY_E_DENIED, "the turn of a session above it was refused");
    }
    if (rc == SY_E_OK) {
        rc = take_turn(j, s, &wish, &err);
    }
    turn_wish_fini(&wish.wish);
    if (rc != SY_E_OK) {
        /* The old turn may be wider than what was meant: nothing runs. */
        s->is_turn_refused = true;
        sy_err_wrap(&err, "turn refused");
        jsonl_send_session_error(j, s, NULL, err.msg);
        return;
    }
    s->is_turn_refused = false;
    jsonl_send_turn(j, s);
    renew_below(j, s);
}

/* Reads it and what it may do; the tree has it once all is well. */
static enum sy_code
fill(struct jsonl *j, struct jsonl_session *s, const struct js *message, struct sy_error *err)
{
    const char *id = js_str(js_get(message, "id"));
    const struct js *name = js_get(message, "name");
    struct jsonl_wish opening = {0};
    struct jsonl_wish nothing = {0};
    enum sy_code rc = find_named(&s->parent, j, message, "parent", err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (id == NULL || (js_type(name) != JS_NULL && js_str(name) == NULL)) {
        return sy_err_set(err, SY_E_ARG, "session needs id, a string; name, if given, is one too");
    }
    if (find(j, id) != NULL) {
        return sy_err_set(err, SY_E_ARG, "session '%.64s' is open already", id);
    }
    if (s->parent->is_closing) {
        return sy_err_set(err, SY_E_ARG, "parent '%s' is being closed", s->parent->id);
    }
    if (jsonl_session_is_refused(s->parent)) {
        return sy_err_set(err, SY_E_DENIED, "the turn of its parent was refused: send a valid one");
    }
    rc = jsonl_wish_read(&opening, message, true, err);
    if (rc == SY_E_OK) {
        rc = session_open(&s->orch, s->parent->orch, id, js_str(name), err);
    }
    if (rc == SY_E_OK) {
        memcpy(s->id, id, strlen(id) + 1);
        s->opened = opening.wish;
        opening.wish = (struct turn_wish){0};
        rc = take_turn(j, s, &nothing, err);
    }
    turn_wish_fini(&opening.wish);
    return rc;
}

static void
open_session(struct jsonl *j, const struct js *message)
{
    struct jsonl_session *s = mem_alloc_zero(1, sizeof(*s));
    struct sy_error err = {0};
    enum sy_code rc = s != NULL ? fill(j, s, message, &err) : sy_err_nomem(&err);

    if (rc != SY_E_OK) {
        sy_err_wrap(&err, "session not opened");
        jsonl_send_error(j, NULL, err.msg);
        if (s != NULL && s->orch != NULL) {
            session_close(s->orch);
        }
        if (s != NULL) {
            fini(s);
        }
        mem_free(s);
        return;
    }
    last_of(j)->next = s;
    jsonl_send_opened(j, s);
}

static void
close_session(struct jsonl *j, const struct js *message)
{
    const char *id = js_str(js_get(message, "id"));
    struct jsonl_session *s = id != NULL ? find(j, id) : NULL;
    char text[LIMIT_SESSION_NAME + 60];

    if (js_count(message) != 3 || s == NULL) {
        (void)snprintf(text, sizeof(text), "session '%.64s' can't be closed: %s",
                       id != NULL ? id : "", s == NULL ? "it is not open" : "that takes id alone");
        jsonl_send_error(j, NULL, text);
        return;
    }
    for (struct jsonl_session *c = s; c != NULL; c = c->next) {
        c->is_closing = c->is_closing || session_is_within(c->orch, s->orch);
    }
    jsonl_interrupt_session(j, s);
    jsonl_sessions_reap(j);
}

void
jsonl_session(struct jsonl *j, const struct jsonl_line *line)
{
    const char *action = js_str(js_get(line->message, "action"));

    if (action != NULL && str_eq(action, "open")) {
        open_session(j, line->message);
    } else if (action != NULL && str_eq(action, "close")) {
        close_session(j, line->message);
    } else {
        jsonl_send_error(j, NULL, "action of session must be open or close");
    }
}
