#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard.h"
#include "orchestrator/network.h"
#include "orchestrator/orchestrator_internal.h"
#include "process/template.h"
#include "sandbox/linux/walk.h"

/* What all sessions of a tree share; the first one owns it. */
struct session_engine {
    char *shell_path;
    char shell_from[sizeof(((struct session_options *)NULL)->shell_from)];
    char *home;
    bool login_snapshot;
    bool has_caps;
    bool has_shell;
    bool owns_pool;
    bool has_cgroups; /* were looked for */
    uint64_t snapshot_timeout_ms;
    struct strv environ_list;
    struct event_bus *bus;
    struct sandbox_caps caps;
    struct cgroup_home *cgroups;
    struct full_tier full;
    struct shell shell;
    struct snapshot *snapshot;
    struct orch_call *first_waiter;
    struct assess_by judge;
    struct review_by review;
    struct asked_list asked;
    struct hooks hooks;
    struct sandbox_entry *cache[SANDBOX_CACHE];
    uint64_t cache_clock;
    enum session_spare spare_mode;
    struct process_pool *pool;
    struct session_protection protection;
    bool rests;
    bool reads_audit;
    struct audit_reader *audit; /* NULL: can't be had, or nobody wants it */
};

static enum sy_code
fill_lists(struct session_engine *e, const struct session_options *o)
{
    e->protection =
        (struct session_protection){.is_on = o->protects, .unprotected = {.max = GUARD_NAME_COUNT}};
    e->environ_list.max = LIMIT_ENV;

    enum sy_code rc = strv_add_all(&e->environ_list, o->environ_list);

    if (rc == SY_E_OK && o->unprotected != NULL) {
        rc = strv_add_all(&e->protection.unprotected, o->unprotected);
    }
    return rc;
}

static enum sy_code
fill(struct session_engine *e, const struct session_options *o)
{
    e->spare_mode = o->spare;
    e->rests = o->rests;
    e->reads_audit = o->reads_audit;
    e->login_snapshot = o->login_snapshot;
    e->snapshot_timeout_ms =
        o->snapshot_timeout_ms > 0 ? o->snapshot_timeout_ms : LIMIT_SNAPSHOT_MS;

    enum sy_code rc = fill_lists(e, o);

    if (rc != SY_E_OK) {
        return rc;
    }
    memcpy(e->shell_from, o->shell_from, sizeof(e->shell_from));
    if (o->shell_path != NULL && o->shell_path[0] != '\0') {
        e->shell_path = mem_strdup(o->shell_path);
        if (e->shell_path == NULL) {
            return SY_E_NOMEM;
        }
    }

    const char *home = strv_env_get(&e->environ_list, "HOME");

    if (home != NULL && home[0] == '/') {
        e->home = mem_strdup(home);
        if (e->home == NULL) {
            return SY_E_NOMEM;
        }
    }
    e->bus = event_bus_new();
    e->snapshot = snapshot_new();
    if (e->bus == NULL || e->snapshot == NULL) {
        return SY_E_NOMEM;
    }
    e->pool = o->pool;
    e->owns_pool = o->pool == NULL;
    return e->owns_pool ? process_pool_new(&e->pool, o->spare == SPARE_ALWAYS, NULL) : SY_E_OK;
}

enum sy_code
session_new(struct session **ret, const struct session_options *options, struct sy_error *err)
{
    struct session_engine *e = mem_alloc_zero(1, sizeof(*e));
    struct session *s = e != NULL ? family_new(e, options->session_id) : NULL;

    if (s == NULL) {
        mem_free(e);
        return sy_err_nomem(err);
    }

    enum sy_code rc = fill(e, options);

    if (rc != SY_E_OK) {
        session_free(s);
        return rc == SY_E_NOMEM
                   ? sy_err_nomem(err)
                   : sy_err_set(err, rc, "the environment has more than %u variables", LIMIT_ENV);
    }
    *ret = s;
    return SY_E_OK;
}

static void
entry_free(struct sandbox_entry *e)
{
    if (e == NULL) {
        return;
    }
    network_free(e->network);
    guard_free(e->guard);
    sandbox_policy_fini(&e->policy);
    template_unref(e->template);
    hidden_fini(&e->hidden);
    sandbox_ready_free(e->ready);
    sandbox_plan_free(e->plan);
    mem_free(e);
}

static void
engine_free(struct session_engine *e)
{
    if (e->owns_pool) {
        process_pool_free(e->pool);
    }
    snapshot_free(e->snapshot);
    cgroup_home_free(e->cgroups);
    for (size_t i = 0; i < SANDBOX_CACHE; i++) {
        entry_free(e->cache[i]);
    }
    full_tier_fini(&e->full);
    session_audit_close(e->audit);
    event_bus_free(e->bus);
    asked_fini(&e->asked);
    shell_fini(&e->shell);
    strv_fini(&e->environ_list);
    strv_fini(&e->protection.unprotected);
    mem_free(e->shell_path);
    mem_free(e->home);
    mem_free(e);
}

void
session_free(struct session *s)
{
    if (s == NULL) {
        return;
    }
    SY_ASSERT(s->parent == NULL);

    struct session_engine *e = s->engine;

    session_close(s);
    engine_free(e);
}

enum sy_code
session_use_launcher(struct session *s, const char *path, struct sy_error *err)
{
    char *copy = path != NULL ? mem_strdup(path) : NULL;

    if (path != NULL && copy == NULL) {
        return sy_err_nomem(err);
    }
    mem_free(s->engine->full.launcher_path);
    s->engine->full.launcher_path = copy;
    return SY_E_OK;
}

const char *
session_launcher_path(const struct session *s)
{
    return s->engine->full.launcher_path;
}

void
session_use_approval(struct session *s, const struct assess_by *judge,
                     const struct review_by *review)
{
    s->engine->judge = *judge;
    s->engine->review = *review;
}

void
session_use_hooks(struct session *s, const struct hooks *hooks)
{
    s->engine->hooks = *hooks;
}

const struct hooks *
session_hooks(const struct session *s)
{
    return &s->engine->hooks;
}

bool
session_can_ask(const struct session *s)
{
    return s->engine->review.ops != NULL;
}

const struct assess_by *
session_judge(const struct session *s)
{
    return &s->engine->judge;
}

struct asked_list *
session_asked(struct session *s)
{
    return &s->engine->asked;
}

const struct review_by *
session_review(const struct session *s)
{
    return &s->engine->review;
}

bool
session_rests(const struct session *s)
{
    return s->engine->rests;
}

struct sandbox_entry *
session_entry(struct session *s, size_t i)
{
    return s->engine->cache[i];
}

struct event_bus *
session_bus(struct session *s)
{
    return s->engine->bus;
}

char *const *
session_environ(const struct session *s)
{
    return strv_view(&s->engine->environ_list);
}

const struct session_protection *
session_protection(const struct session *s)
{
    return &s->engine->protection;
}

struct snapshot *
session_snapshot(struct session *s)
{
    return s->engine->snapshot;
}

bool
session_uses_snapshot(const struct session *s)
{
    return s->engine->login_snapshot;
}

uint64_t
session_snapshot_timeout_ms(const struct session *s)
{
    return s->engine->snapshot_timeout_ms;
}

const char *
session_home(const struct session *s)
{
    return s->engine->home != NULL ? s->engine->home : "/";
}

enum sy_code
session_shell(struct session *s, const struct shell **ret, struct sy_error *err)
{
    if (!s->engine->has_shell) {
        SY_AUTO(mem_free_charp) char *passwd_shell = NULL;
        SY_AUTO(mem_free_charp) char *passwd_home = NULL;
        enum sy_code rc = passwd_lookup(getuid(), &passwd_shell, &passwd_home, err);

        if (rc == SY_E_OK) {
            rc = shell_detect(&s->engine->shell, s->engine->shell_path, passwd_shell, err);
        }
        if (rc == SY_E_CONFIG && s->engine->shell_from[0] != '\0') {
            sy_err_wrap(err, "%s", s->engine->shell_from);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
        if (s->engine->home == NULL) {
            s->engine->home = passwd_home;
            passwd_home = NULL;
        }
        s->engine->has_shell = true;
    }
    *ret = &s->engine->shell;
    return SY_E_OK;
}

const struct sandbox_caps *
session_caps(struct session *s)
{
    if (!s->engine->has_caps) {
        sandbox_probe(&s->engine->caps);
        s->engine->has_caps = true;
        s->engine->caps.reads_audit =
            s->engine->reads_audit &&
            session_audit_open(&s->engine->audit, &s->engine->caps, NULL) == SY_E_OK;
    }
    return &s->engine->caps;
}

struct audit_reader *
session_audit(const struct session *s)
{
    return s->engine->audit;
}

struct cgroup_home *
session_cgroups(struct session *s)
{
    if (!s->engine->has_cgroups) {
        struct cgroup_home *home = NULL;
        enum sy_code rc = cgroup_home_new(&home, NULL, NULL, NULL);

        s->engine->cgroups = rc == SY_E_OK ? home : NULL;
        /* Memory may be there again next time. */
        s->engine->has_cgroups = rc != SY_E_NOMEM;
    }
    return s->engine->cgroups;
}

void
session_make_spare(struct session *s, const struct sandbox_base *base)
{
    if (s->engine->spare_mode != SPARE_NONE) {
        process_pool_make_spare(s->engine->pool, base);
    }
}

struct process_pool *
session_pool(struct session *s)
{
    return s->engine->pool;
}

bool
session_keeps_spare(const struct session *s)
{
    return s->engine->spare_mode == SPARE_ALWAYS;
}

struct sandbox_base
sandbox_entry_base(const struct sandbox_entry *e)
{
    struct sandbox_base base = sandbox_plan_base(e->plan);

    base.template = e->template;
    return base;
}

/* *ret_lacks: it fails since this machine can't hold such a policy. */
static enum sy_code
make_ready(struct session *s, struct sandbox_entry *e, bool *ret_lacks, struct sy_error *err)
{
    struct sandbox_caps caps = *session_caps(s);
    enum sy_code rc =
        sandbox_mode_is_enforced(e->policy.mode) ? walk_check_cwd(&e->policy, err) : SY_E_OK;

    if (rc != SY_E_OK) {
        return rc;
    }
    /* A policy that can't be had in any tier says so in its own words. */
    if (full_tier_try(&s->engine->full, e, &caps) != SY_E_OK) {
        return sy_err_nomem(err);
    }

    rc = sandbox_plan_new(&e->plan, &e->policy, &caps, err);

    *ret_lacks = rc == SY_E_SANDBOX && !e->is_stopgap;
    if (rc != SY_E_OK) {
        return rc;
    }

    const struct sandbox_base base = sandbox_entry_base(e);

    /* Roots take about as long to open as a process to get ready. */
    session_make_spare(s, &base);
    if (!sandbox_mode_is_enforced(e->policy.mode)) {
        return SY_E_OK;
    }
    if (e->template != NULL) {
        rc = held_make(&e->policy, err);
    }
    if (rc == SY_E_OK) {
        rc = sandbox_ready_new(&e->ready, e->plan, err);
    }
    if (rc == SY_E_OK && e->template != NULL) {
        rc = held_put_over(e, err);
    }
    if (rc == SY_E_OK) {
        rc = hidden_put_over(e, err);
    }
    return rc == SY_E_OK ? sandbox_plan_adopt(e->plan, e->ready, err) : rc;
}

static enum sy_code
entry_new(struct session *s, const struct sandbox_policy *policy, bool required,
          struct sandbox_entry **ret, char ret_note[SY_ERR_MSG_MAX], struct sy_error *err)
{
    struct sandbox_entry *e = mem_alloc_zero(1, sizeof(*e));

    if (e == NULL || sandbox_policy_copy(&e->policy, policy) != SY_E_OK) {
        entry_free(e);
        return sy_err_nomem(err);
    }

    struct sy_error why = {0};
    bool lacks = false;
    enum sy_code rc = make_ready(s, e, &lacks, &why);

    if (lacks && !required) {
        /* The user's own configuration says sandbox.required: false. It is about machines: what is
         * wrong with a directory a command may have done, to be rid of the sandbox. */
        static const char begin[] = "run WITHOUT a sandbox (sandbox.required is false): ";

        /* What is wrong and what mends it come first in these sentences. */
        snprintf(ret_note, SY_ERR_MSG_MAX, "%s%.*s", begin,
                 exec_sentence_room(why.msg, SY_ERR_MSG_MAX - sizeof(begin)), why.msg);
        sandbox_plan_free(e->plan);
        e->plan = NULL;
        rc = SY_E_OK;
    }
    if (rc != SY_E_OK) {
        entry_free(e);
        if (err != NULL) {
            *err = why;
        }
        return rc;
    }
    *ret = e;
    return SY_E_OK;
}

/* A place for a new entry: a free one, else the least recently used that
 * nobody holds, else none (then the entry lives outside the cache). */
static size_t
cache_place(const struct session *s)
{
    size_t best = SANDBOX_CACHE;

    for (size_t i = 0; i < SANDBOX_CACHE; i++) {
        const struct sandbox_entry *e = s->engine->cache[i];

        if (e == NULL) {
            return i;
        }
        if (e->refs == 0 && (best == SANDBOX_CACHE || e->used < s->engine->cache[best]->used)) {
            best = i;
        }
    }
    return best;
}

enum sy_code
session_acquire_sandbox(struct session *s, const struct sandbox_policy *policy, bool required,
                        struct sandbox_entry **ret, char ret_note[SY_ERR_MSG_MAX],
                        struct sy_error *err)
{
    for (size_t i = 0; i < SANDBOX_CACHE; i++) {
        struct sandbox_entry *e = s->engine->cache[i];

        if (e == NULL || !sandbox_policy_equal(&e->policy, policy) || e->plan == NULL) {
            continue;
        }
        if ((e->ready == NULL || sandbox_ready_renew(e->ready, e->plan)) &&
            (e->template == NULL || template_is_there(e->template))) {
            e->refs++;
            e->used = ++s->engine->cache_clock;
            *ret = e;
            return SY_E_OK;
        }
        /* A root was replaced: its rules speak of a directory that is gone. */
        s->engine->cache[i] = NULL;
        if (e->refs == 0) {
            entry_free(e);
        }
    }

    struct sandbox_entry *made = NULL;
    enum sy_code rc = entry_new(s, policy, required, &made, ret_note, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    size_t place = cache_place(s);

    /* A stopgap serves one call: the next may have the full tier again. */
    if (place < SANDBOX_CACHE && !made->is_stopgap) {
        entry_free(s->engine->cache[place]);
        s->engine->cache[place] = made;
    }
    made->rest_ns = UINT64_MAX;
    made->refs = 1;
    made->used = ++s->engine->cache_clock;
    *ret = made;
    return SY_E_OK;
}

void
session_release_sandbox(struct session *s, struct sandbox_entry *entry)
{
    if (entry == NULL) {
        return;
    }
    SY_ASSERT(entry->refs > 0);
    entry->refs--;
    for (size_t i = 0; i < SANDBOX_CACHE; i++) {
        if (s->engine->cache[i] == entry) {
            return;
        }
    }
    if (entry->refs == 0) {
        entry_free(entry);
    }
}

void
session_add_waiter(struct session *s, struct orch_call *call)
{
    call_set_next_waiter(call, s->engine->first_waiter);
    s->engine->first_waiter = call;
}

void
session_remove_waiter(struct session *s, struct orch_call *call)
{
    struct orch_call *before = NULL;

    for (struct orch_call *c = s->engine->first_waiter; c != NULL; c = call_next_waiter(c)) {
        if (c != call) {
            before = c;
            continue;
        }
        if (before == NULL) {
            s->engine->first_waiter = call_next_waiter(call);
        } else {
            call_set_next_waiter(before, call_next_waiter(call));
        }
        call_set_next_waiter(call, NULL);
        return;
    }
}

void
session_wake_waiters(struct session *s)
{
    while (s->engine->first_waiter != NULL) {
        struct orch_call *c = s->engine->first_waiter;

        s->engine->first_waiter = call_next_waiter(c);
        call_set_next_waiter(c, NULL);
        call_wake(c);
    }
}
