#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "guard/guard.h"
#include "orchestrator/call_internal.h"
#include "process/launch_wire.h"
#include "process/launcher.h"
#include "sandbox/linux/walk.h"

/* Without namespaces a session for one command looks at the top of each root and the repository
 * there, before and after: a walk of a large tree would cost more than the command. Whoever has the
 * full tier made for it has the walk too. */
#define SHORT_DIRS    1U
#define SHORT_WALK_MS 5U

#define NS_PER_MS 1000000ULL

/* Journal and quarantine have no place. */
#define NO_STATE                                                                                   \
    "there is no state directory, since neither XDG_STATE_HOME nor HOME names one that can be "    \
    "made: missing names can be created, and what is found is told but not moved away"

/* What the guard does not know is not held: it goes with each answer. */
static void
tell_state(const struct orch_call *c)
{
    char why[SANDBOX_REASON];
    struct guard_status status;

    guard_status(c->entry->guard, &status);
    if (!session_keeps_spare(c->session) && c->entry->template == NULL) {
        (void)snprintf(why, sizeof(why),
                       "for one command only the top of each writable root and a repository there "
                       "are looked at%s",
                       status.has_state ? "" : "; there is no state directory");
    } else if (!status.is_complete) {
        (void)snprintf(why, sizeof(why), "not all of '%.120s' was looked at: %s",
                       status.incomplete_in, status.why);
    } else if (!status.has_state) {
        (void)snprintf(why, sizeof(why), "%s", NO_STATE);
    } else {
        why[0] = '\0';
    }
    sandbox_plan_tell_unprotected(c->entry->plan, why);
}

static enum sy_code
make_guard(struct orch_call *c, struct sy_error *err)
{
    const struct session_protection *p = session_protection(c->session);
    SY_AUTO(strv_fini) struct strv roots = {.max = LIMIT_ROOTS + 1};
    SY_AUTO(buf_fini) struct buf state = {.max = LIMIT_PATH};
    char *homes[] = {mem_unconst(session_home(c->session)), NULL};
    /* Without links: marks are bound, and files put back, where they are. */
    enum sy_code rc = walk_add_roots(&roots, &c->entry->policy, err);
    struct guard_options o = {
        .homes = homes,
        .unprotected = strv_view(&p->unprotected),
        /* With mounts it watches, for one command too: what a person replaces is bound again. */
        .is_short = !session_keeps_spare(c->session) && c->entry->template == NULL,
        .has_mounts = c->entry->template != NULL,
    };

    if (rc != SY_E_OK) {
        return rc;
    }
    o.roots = strv_view(&roots);
    if (o.is_short) {
        o.dirs_max = SHORT_DIRS;
        o.walk_ms = SHORT_WALK_MS;
    }
    if (guard_state_dir(&state, session_environ(c->session)) == SY_E_OK) {
        o.state_dir = buf_view(&state);
    }
    rc = guard_new(&c->entry->guard, &o, err);
    if (rc == SY_E_SYS && o.state_dir != NULL) {
        /* No quarantine then: what is found is told. */
        o.state_dir = NULL;
        rc = guard_new(&c->entry->guard, &o, err);
    }
    if (rc == SY_E_OK && o.has_mounts && guard_fd(c->entry->guard) >= 0) {
        launcher_share(c->entry->template, guard_fd(c->entry->guard));
    }
    return rc;
}

/* What the guard wants to be held by mounts, into the tree of the entry's sandbox. */
static enum sy_code
bind_marks(const struct orch_call *c, const struct guard_marks *m, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_MARKS};

    for (size_t i = 0; i < m->n; i++) {
        char kind = m->v[i].action == GUARD_PIN ? LAUNCH_MARK_PIN : LAUNCH_MARK_READ_ONLY;
        enum sy_code rc = launcher_mark_add(&text, kind, m->v[i].path);

        if (rc != SY_E_OK) {
            return rc == SY_E_NOMEM
                       ? sy_err_nomem(err)
                       : sy_err_set(err, SY_E_SANDBOX, "too many names to protect below '%.120s'",
                                    c->entry->policy.cwd);
        }
    }
    return text.len > 0 ? launcher_add_marks(c->entry->template, text.data, text.len, err)
                        : SY_E_OK;
}

/* The first of an entry's calls watches for all. The others come behind it, so that it stays that.
 */
static void
join(struct orch_call *c)
{
    struct orch_call **place = &c->entry->protected_calls;

    if (*place != NULL) {
        place = &(*place)->next_protected;
    }
    c->next_protected = *place;
    *place = c;
    c->is_protected = true;
}

static void
leave(struct orch_call *c)
{
    struct orch_call **place = &c->entry->protected_calls;
    const bool was_first = *place == c;

    while (*place != c) {
        place = &(*place)->next_protected;
    }
    *place = c->next_protected;
    c->next_protected = NULL;
    c->is_protected = false;
    if (was_first && *place != NULL) {
        call_wake(*place); /* it watches from now on */
    }
}

static enum sy_code
begin_with_marks(struct orch_call *c, struct sy_error *err)
{
    struct guard_marks marks = {0};
    enum sy_code rc = guard_begin(c->entry->guard, &marks, err);

    if (rc == SY_E_OK) {
        join(c);
        rc = bind_marks(c, &marks, err);
    }
    guard_marks_fini(&marks);
    return rc;
}

/* Is anything protected under its policy? */
static bool
is_guarded(const struct orch_call *c)
{
    return session_protection(c->session)->is_on &&
           c->entry->policy.mode == SANDBOX_WORKSPACE_WRITE && c->entry->ready != NULL;
}

enum sy_code
call_protect_look(struct orch_call *c, struct sy_error *err)
{
    struct guard_marks marks = {0};
    bool has_mounts = c->entry->template != NULL;
    enum sy_code rc = SY_E_OK;

    if (!is_guarded(c)) {
        return SY_E_OK;
    }
    if (c->entry->guard == NULL) {
        rc = make_guard(c, err);
    }
    if (rc == SY_E_OK) {
        rc = guard_refresh(c->entry->guard, has_mounts ? &marks : NULL, err);
    }
    if (rc == SY_E_OK && has_mounts) {
        rc = bind_marks(c, &marks, err); /* they are told once */
    }
    if (rc == SY_E_OK) {
        tell_state(c);
    }
    guard_marks_fini(&marks);
    return rc;
}

int
call_protect_fd(const struct orch_call *c)
{
    return c->entry != NULL && c->entry->protected_calls == c && c->entry->template != NULL
               ? guard_fd(c->entry->guard)
               : -1;
}

/* What a person replaced meanwhile would be open to every command of the sandbox. */
static void
fail_all(struct sandbox_entry *e, const struct sy_error *why)
{
    for (struct orch_call *c = e->protected_calls; c != NULL; c = c->next_protected) {
        if (c->state == ORCH_RUN) {
            call_kill(c, EXEC_FAILED);
            c->output.err = *why;
            call_wake(c);
        }
    }
}

void
call_protect_refresh(struct orch_call *c)
{
    struct guard_marks marks = {0};
    struct sy_error err = {0};

    if (call_protect_fd(c) < 0) {
        return;
    }
    if (guard_refresh(c->entry->guard, &marks, &err) != SY_E_OK ||
        bind_marks(c, &marks, &err) != SY_E_OK) {
        fail_all(c->entry, &err);
    }
    guard_marks_fini(&marks);
}

enum sy_code
call_protect_begin(struct orch_call *c, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (!is_guarded(c)) {
        return SY_E_OK;
    }
    if (c->entry->guard == NULL) {
        rc = make_guard(c, err);
    }
    if (rc == SY_E_OK && c->entry->template != NULL) {
        rc = begin_with_marks(c, err);
    } else if (rc == SY_E_OK) {
        rc = guard_begin(c->entry->guard, NULL, err);
        if (rc == SY_E_OK) {
            join(c);
        }
    }
    if (rc == SY_E_OK) {
        tell_state(c);
    }
    return rc;
}

static void
tell(struct orch_call *c, const struct guard_findings *f)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_PATH * 4};
    uint32_t more = f->more;
    bool has_told = false;

    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].verdict == GUARD_HARMLESS) {
            continue;
        }
        if (guard_finding_denial(&c->output.denials, &f->v[i]) != SY_E_OK) {
            c->output.denials.more++;
        }
        if (has_told) {
            more++;
        } else if (guard_finding_sentence(&text, &f->v[i]) == SY_E_OK) {
            has_told = true;
        }
    }
    if (more > 0 && buf_addf(&text, "; and %u more", more) != SY_E_OK) {
        return;
    }
    if (text.len > 0) {
        call_add_note(c, buf_view(&text));
    }
}

void
call_protect_end(struct orch_call *c)
{
    struct guard_findings findings = {0};
    struct sy_error err = {0};

    if (!c->is_protected) {
        return;
    }
    leave(c);
    c->was_protected = true;
    if (guard_after(c->entry->guard, &findings, &err) != SY_E_OK) {
        call_add_note(c, "protected files were not looked at after the command: out of memory");
    }
    tell(c, &findings);
    guard_findings_fini(&findings);
    if (session_rests(c->session)) {
        c->entry->rest_ns = clock_mono_ns() + LIMIT_PLACEHOLDER_LINGER_MS * NS_PER_MS;
    } else {
        guard_rest(c->entry->guard);
    }
}

uint64_t
session_rest(struct session *s, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < SANDBOX_CACHE; i++) {
        struct sandbox_entry *e = session_entry(s, i);

        /* The end of a call that runs puts it off again. */
        if (e == NULL || e->refs > 0) {
            continue;
        }
        if (e->rest_ns <= now_ns) {
            guard_rest(e->guard);
            e->rest_ns = UINT64_MAX;
        }
        next = e->rest_ns < next ? e->rest_ns : next;
    }
    return next;
}
