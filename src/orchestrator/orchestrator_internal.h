#ifndef SY_ORCHESTRATOR_ORCHESTRATOR_INTERNAL_H
#define SY_ORCHESTRATOR_ORCHESTRATOR_INTERNAL_H

#include "base/limits.h"
#include "orchestrator/orchestrator.h"

/* What is hidden in a sandbox, and when it was last opened (hidden.c). */
struct hidden_state {
    uint64_t *opened; /* by the number of what is hidden; NULL: no call yet */
    size_t n;
    struct hidden_name *names; /* of what was opened below hidden directories */
    size_t n_names;
    uint64_t clock;   /* one tick a look; 0 is never */
    uint64_t overlap; /* when a call last began beside another */
    uint32_t running;
};

/* Something in a hidden directory. */
struct hidden_name {
    size_t i; /* the number of the directory */
    char *name;
    uint64_t opened;
};

/* The first is for n hidden things, unless it is done already. */
enum sy_code hidden_init(struct hidden_state *h, size_t n) SY_NODISCARD;
void hidden_fini(struct hidden_state *h);
/* A run begins and ends; fd: an inotify(7) (process/template.h), -1: nothing tells. *ret_since is
 * for its end, which tells what was opened meanwhile: `name` is in the i-th hidden thing, NULL: it
 * is that itself. Where another run was on its way `is_alone` is false. fn NULL: nobody asks. */
void hidden_begin(struct hidden_state *h, int fd, uint64_t *ret_since);
typedef void hidden_fn(void *arg, size_t i, const char *name, bool is_alone);
void hidden_end(struct hidden_state *h, int fd, uint64_t since, hidden_fn *fn, void *arg);

/*
 * A sandbox made ready for one policy, shared by the calls that run under it.
 * Owned by the session's cache; a call holds a reference while it runs.
 */
struct sandbox_entry {
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;       /* NULL: the mode is not enforced by us */
    struct network *network;           /* NULL: no call with an allow list yet (network.h) */
    struct template *template;         /* of the full tier; NULL: another one */
    struct guard *guard;               /* of its writable roots; NULL: not needed so far */
    struct orch_call *protected_calls; /* those that the guard was told of; the first one watches */
    struct hidden_state hidden;
    uint64_t rest_ns; /* when that is to rest (session_rest); UINT64_MAX: it does */
    uint32_t refs;
    uint64_t used; /* clock of the cache, for the least recently used */
    /* It has no full tier though this machine can hold one: something was wrong at the moment. */
    bool is_stopgap;
};

/* The full tier of an engine (full_tier.c). */
struct full_tier {
    char *launcher_path;       /* owned; NULL: there is no such program */
    struct launcher *launcher; /* NULL: not started */
    bool is_known;             /* whether this machine can hold one: */
    bool is_there;
};

void full_tier_fini(struct full_tier *f);
/*
 * Makes the entry's template, if its policy may have one, and puts into *caps whether it has and
 * why not. Where it fails on a machine that can hold the tier it is tried once more, and the entry
 * is a stopgap if that fails too. SY_E_NOMEM, or SY_E_OK.
 */
enum sy_code full_tier_try(struct full_tier *f, struct sandbox_entry *e,
                           struct sandbox_caps *caps) SY_NODISCARD;

/* Makes those directories of Shellyard's own that a sandbox with mounts is to hold; and then has
 * its template hold them, and all that must not be renamed (held.c). */
enum sy_code held_make(const struct sandbox_policy *policy, struct sy_error *err) SY_NODISCARD;
enum sy_code held_put_over(const struct sandbox_entry *e, struct sy_error *err) SY_NODISCARD;

/* Has its template lay something empty over what is denied to read (hidden.c). */
enum sy_code hidden_put_over(const struct sandbox_entry *e, struct sy_error *err) SY_NODISCARD;

/* What a process for it is made ready for. */
struct sandbox_base sandbox_entry_base(const struct sandbox_entry *e);

/*
 * The prepared sandbox of `policy`, made now if it is not there or not fresh.
 * `required` false: what the kernel lacks gives an entry without sandbox and
 * *ret_note filled. Give back with session_release_sandbox.
 */
enum sy_code session_acquire_sandbox(struct session *s, const struct sandbox_policy *policy,
                                     bool required, struct sandbox_entry **ret,
                                     char ret_note[SY_ERR_MSG_MAX],
                                     struct sy_error *err) SY_NODISCARD;
void session_release_sandbox(struct session *s, struct sandbox_entry *entry);

/* What is protected below writable roots. */
struct session_protection {
    bool is_on;
    struct strv unprotected;
};

const struct session_protection *session_protection(const struct session *s);

/* Does somebody call session_rest? */
bool session_rests(const struct session *s);
/* Policies of one engine at a time: one for the engine, a few for turns. NULL: none there. */
#define SANDBOX_CACHE 8
struct sandbox_entry *session_entry(struct session *s, size_t i);

/* A process for the next command is made ready, if the session wants one. */
void session_make_spare(struct session *s, const struct sandbox_base *base);
/* Where its commands get their processes. */
struct process_pool *session_pool(struct session *s);
/* Is the next one to be made as soon as a command has started? */
bool session_keeps_spare(const struct session *s);

/*
 * The login environment (snapshot.c). One call, the owner, drives the login
 * shell's process; others wait until it wakes them.
 */
struct snapshot;

enum snapshot_state {
    SNAPSHOT_NONE,    /* never taken, or stale */
    SNAPSHOT_RUNNING, /* somebody drives it */
    SNAPSHOT_READY,   /* environment there */
    SNAPSHOT_FAILED   /* reason there; the engine's environment serves */
};

struct snapshot *session_snapshot(struct session *s);
bool session_uses_snapshot(const struct session *s);
uint64_t session_snapshot_timeout_ms(const struct session *s);
/* The user's home directory: $HOME of the engine, else the passwd entry. */
const char *session_home(const struct session *s);

struct snapshot *snapshot_new(void);
void snapshot_free(struct snapshot *s);
/* Looks at the profile files first: a change makes SNAPSHOT_NONE. */
enum snapshot_state snapshot_state(struct snapshot *s, const struct shell *shell, const char *home);
/* Starts the login shell; the caller is the owner from then on. */
enum sy_code snapshot_start(struct snapshot *s, struct session *session,
                            const struct turn_context *turn, const struct sandbox_entry *sandbox,
                            struct sy_error *err) SY_NODISCARD;
/* As in process.h; snapshot_step returns true once it is READY or FAILED. */
size_t snapshot_watches(const struct snapshot *s, struct process_watch out[PROCESS_WATCHES]);
uint64_t snapshot_deadline_ns(const struct snapshot *s);
bool snapshot_step(struct snapshot *s, uint64_t now_ns);
/* Ends a running one: back to SNAPSHOT_NONE. */
void snapshot_abandon(struct snapshot *s);
/* READY: the login shell's variables. FAILED: why. */
const struct strv *snapshot_env(const struct snapshot *s);
const char *snapshot_reason(const struct snapshot *s);

/* Where Landlock's refusals are read (process/audit.h), or NULL. Open and close are in audited.c:
 * the small program and the library have nothing of it (audited_none.c). */
struct audit_reader;
struct audit_reader *session_audit(const struct session *s);
enum sy_code session_audit_open(struct audit_reader **ret, const struct sandbox_caps *caps,
                                struct sy_error *why) SY_NODISCARD;
void session_audit_close(struct audit_reader *r);

/* Calls that wait for a snapshot somebody else drives. */
void session_add_waiter(struct session *s, struct orch_call *call);
void session_remove_waiter(struct session *s, struct orch_call *call);
/* Wakes them all; the first to step becomes the owner if need be. */
void session_wake_waiters(struct session *s);

/*
 * Calls of a session share a readers/writer lock (lock.c, docs/adr/0008): those that change
 * nothing run side by side, others alone, in the order in which they came.
 */
struct session_lock {
    struct orch_call *first; /* who waits */
    size_t readers;
    bool has_writer;
};

/* Requests for approval that were told by an event and are not decided (asked.c). */
struct asked;
struct asked_list {
    struct asked *v; /* NULL: none so far */
    size_t n;
};

void asked_fini(struct asked_list *list);
/* False: it is there already. The oldest of LIMIT_ASKED makes room. */
bool asked_add(struct asked_list *list, const char *id, uint64_t now_ns);
/* False: it is not there, or was lost for want of memory or room. */
bool asked_take(struct asked_list *list, const char *id, uint64_t *ret_since_ns);

struct asked_list *session_asked(struct session *s);

/*
 * A session of a tree (family.c): what is its own. A parent lists its children until they are
 * closed.
 */
struct session_engine;
struct session {
    char id[17];
    struct session_engine *engine;
    struct session_lock lock;
    struct grants *grants;
    struct session *parent; /* a reference; NULL: the first. Open longer than this one */
    struct session *children;
    struct session *next;
    unsigned depth; /* 0: the first */
    size_t below;   /* of the first: sessions open below it */
    size_t refs;    /* whoever opened it, its children and each of its calls */
    bool is_closed;
    char name[LIMIT_SESSION_NAME + 1];
    char *title; /* what it is for; NULL: nothing is said */
};

/* The first of a tree; `id` NULL: random. NULL when memory is out. */
struct session *family_new(struct session_engine *engine, const char *id);
/* It and those above it, by their ids, the nearest first; NULL behind the last. */
void session_chain(const char *ret[LIMIT_SESSION_DEPTH + 2], const struct session *s);
/* As a person is told of it; `of` keeps what *ret points to. False: it is the first one. */
bool session_subagent(struct subagent *ret, const char *of[LIMIT_SESSION_DEPTH + 2],
                      const struct session *s);

/* The grants of a session (grants.c). Take: widens `policy`, that of a call that is being
 * submitted, by what holds for it; what holds once is its own from then on, if `taker` is not NULL,
 * until the call begins (it is used up) or ends (it is free again). Inherit: by what holds for
 * sessions below it too, of what was granted under `base`. */
struct grants;
struct grants *grants_new(void);
void grants_free(struct grants *g);
enum sy_code grants_add(struct grants *g, const struct access *what, enum grant_scope scope,
                        const struct sandbox_policy *under) SY_NODISCARD;
/* Would a rule for that directory hold under this policy? */
bool grants_rule_holds(const struct sandbox_policy *base, const struct access *what);
enum sy_code grants_set_rules(struct grants *g, const struct access_rule *rules,
                              size_t n) SY_NODISCARD;
enum sy_code grants_take(struct grants *g, struct sandbox_policy *policy,
                         const struct orch_call *taker) SY_NODISCARD;
enum sy_code grants_inherit(const struct grants *g, struct sandbox_policy *policy,
                            const struct sandbox_policy *base) SY_NODISCARD;
void grants_settle(struct grants *g, const struct orch_call *taker, bool has_begun);
struct grants *session_grants(const struct session *s);
enum sy_code session_widen(struct session *s, struct sandbox_policy *policy,
                           const struct orch_call *taker) SY_NODISCARD;

const struct assess_by *session_judge(const struct session *s);
const struct review_by *session_review(const struct session *s);
const struct hooks *session_hooks(const struct session *s);

struct session_lock *session_lock(struct session *s);
/* Keeps a place for the call, which those behind it wait for. */
void lock_queue(struct session_lock *lock, struct orch_call *call);
/* True: the call is inside. Else it waits, and is woken when it is. */
bool lock_enter(struct session_lock *lock, struct orch_call *call);
/* From inside or from among those that wait; nothing for others. */
void lock_leave(struct session_lock *lock, struct orch_call *call);

/* For the list of waiters, which runs through the calls themselves. */
struct orch_call *call_next_waiter(struct orch_call *call);
void call_set_next_waiter(struct orch_call *call, struct orch_call *next);
void call_wake(struct orch_call *call);

#endif
