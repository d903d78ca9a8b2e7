#ifndef SY_ORCHESTRATOR_CALL_INTERNAL_H
#define SY_ORCHESTRATOR_CALL_INTERNAL_H

#include "orchestrator/network.h"
#include "orchestrator/orchestrator_internal.h"
#include "process/audit.h"

/* Of the session's lock (lock.c). */
enum lock_place { LOCK_OUTSIDE, LOCK_QUEUED, LOCK_INSIDE };

/* One call. Shared by call.c (the machine) and the files of its states and parts. */
struct orch_call {
    struct session *session; /* borrowed, outlives the call */
    struct turn_context turn;
    struct exec_request request;
    enum orch_state state;
    struct sandbox_policy base;  /* the turn's, before grants widened it; with work.look alone */
    struct sandbox_entry *entry; /* a reference */
    struct sandbox_entry *trial; /* a reference (access.c); NULL: none */
    struct exec_look look;
    const struct shell *shell; /* the session's, once needed */
    /* ORCH_SNAPSHOT */
    bool owns_snapshot;
    bool is_waiting;
    bool has_login_env;
    unsigned snapshot_tries;
    struct orch_call *next_waiter;
    /* ORCH_APPROVAL, ORCH_REVIEW */
    struct review_ticket *ticket;
    char *client;
    struct call_hooks *hooks;     /* ORCH_HOOK, and what came of it (hooked.c); NULL: not so far */
    const char *told;             /* the request's text as it was told; NULL: not yet */
    char asked_id[STORE_ID_SIZE]; /* of that request */
    bool lifts_sandbox;           /* approval means running outside of it */
    const char *const
        *overlay; /* variables that make the command as safe as it was judged; or NULL */
    /* ORCH_LOCK */
    enum lock_place lock_place;
    char reader[32];     /* the shell that what is typed goes to; "": not known which */
    bool lacks_comments; /* that shell may have been told to have none */
    bool is_lock_wanted; /* it need not wait for anything else any more */
    bool is_mutating;
    struct orch_call *next_queued;
    struct orch_call *next_protected; /* of the same entry, while it is protected */
    /* From ORCH_SPAWN on; the process borrows them. Of `env` only PATH is left once the command
     * runs (call_forget_environment). */
    struct strv env;
    struct strv argv;
    struct strv bare_argv; /* executed in place of it; empty: `argv` is */
    unsigned n_steered;    /* how often a rule has put a better command in its place */
    struct buf program;
    struct output_chain *chain;
    uint64_t deltas_left_out; /* by who is told */
    struct process *process;
    struct network_seat *seat; /* NULL: the network is no allow list */
    uint64_t started_ns;
    uint64_t expires_ns;
    bool has_begun;      /* the begin event was told */
    bool is_protected;   /* the guard of its entry was told of it */
    bool was_protected;  /* and is not waiting for its end any more */
    bool watches_hidden; /* between call_hidden_begin and _end */
    uint64_t hidden_since;
    enum sy_code evidence;         /* of looking for what was refused */
    char not_ours[SY_ERR_MSG_MAX]; /* who else refused it, if nothing of ours is found; "" */
    struct audit_run audit;        /* between call_audit_begin and _end */
    int audit_fd;                  /* -1: not needed so far */
    enum exec_status kill_status;  /* EXEC_EXITED: nothing was killed */
    struct exec_output output;
    struct buf tail; /* of orch_tail */
    orch_wake_fn *wake;
    void *wake_arg;
};

/* The environment, from the policy as it is now, and the argument vector (spawn.c). */
enum sy_code call_make_environment(struct orch_call *c, struct sy_error *err) SY_NODISCARD;
/* Gives back what a running command has got of it, but PATH, by which is judged what is typed. It
 * is some 5 KB, and most of what an idle terminal would hold. */
void call_forget_environment(struct orch_call *c);
enum sy_code call_make_argv(struct orch_call *c, struct sy_error *err) SY_NODISCARD;
/* From here on it is as if the caller had asked for that command; nothing that was said of the
 * other one stays. SY_E_NOMEM, and then the call is as it was. */
enum sy_code call_replace_command(struct orch_call *c, const struct strv *command) SY_NODISCARD;

/* ORCH_APPROVAL and ORCH_REVIEW (review.c). The ticket is given back by call_leave_review. */
void call_approve(struct orch_call *c);
void call_review(struct orch_call *c);
void call_leave_review(struct orch_call *c);
/*
 * ORCH_HOOK (hooked.c; hooked_none.c in the small program and the library). Begin: true when the
 * state is another now, since there are hooks that have not been asked about this command, or the
 * call has failed. Judge: what they said, into *a; it is only made stricter. Allow: may what was
 * to be asked run instead? Renew: it is another command now. Leave: ends the one that runs. End:
 * any number of times.
 */
bool call_hooks_begin(struct orch_call *c, enum hook_event event, const struct assessment *a);
void call_hooks_judge(struct orch_call *c, struct assessment *a);
bool call_hooks_allow(struct orch_call *c, const struct assessment *a);
void call_hooks_step(struct orch_call *c, uint64_t now_ns);
size_t call_hooks_watch(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES]);
uint64_t call_hooks_deadline_ns(const struct orch_call *c);
void call_hooks_renew(struct orch_call *c);
void call_hooks_leave(struct orch_call *c);
void call_hooks_end(struct orch_call *c);
/* Does it ask to run outside the sandbox? (review.c) */
bool call_escalates(const struct orch_call *c);

/* The sandbox of the call's policy, once needed; false: the call has failed (call.c). */
bool call_has_entry(struct orch_call *c);

/* ORCH_SNAPSHOT (call_snapshot.c). Step: leaves it towards the approval. Leave: gives the snapshot
 * up, and whoever waits for it takes over; any number of times. */
void call_snapshot_step(struct orch_call *c, uint64_t now_ns);
void call_leave_snapshot(struct orch_call *c);

/*
 * What became of a call (call_end.c). Conclude: all but what the kernel still writes down. End: the
 * one exit; the result is final, everything given back, the end event told. Finish: both at once.
 * Fail: the same for one that never ran.
 */
void call_conclude(struct orch_call *c, enum exec_status status);
void call_end(struct orch_call *c);
void call_finish(struct orch_call *c, enum exec_status status);
void call_fail(struct orch_call *c, enum exec_status status, const struct sy_error *why);
/* What it took of the session's grants is used up if its command has begun, else free again. Any
 * number of times. */
void call_settle_grants(struct orch_call *c);
/* One more sentence of output.note. */
void call_add_note(struct orch_call *c, const char *text);

/* Environment, argument vector, program, output chain, start (spawn.c). Once more while it has not
 * begun, since its terminal is not there yet: c->process is, and tells when (process.h). */
enum sy_code call_spawn(struct orch_call *c, uint64_t now_ns, bool *ret_has_begun,
                        struct sy_error *err) SY_NODISCARD;
/* To ORCH_KILL; `status` is what the call ends as. */
void call_kill(struct orch_call *c, enum exec_status status);

/* Fills output.hit for a call that ends as `status` (limit.c). */
void call_judge_limits(struct orch_call *c, enum exec_status status);

/* Adds the directories, beside its own, where the command may have been at work, as far as its
 * words tell (places.c; places_none.c in the small program and the library). */
enum sy_code call_find_places(const struct orch_call *c, struct strv *ret) SY_NODISCARD;

/* What was refused to a call that has ended (evidence.c). First what its process saw, into
 * output.denials, which is empty before; then what else was seen and what can be inferred.
 * Tell: with what the audit log says, and the notes. */
void call_take_denials(struct orch_call *c);
void call_gather_denials(struct orch_call *c);
void call_tell_denials(struct orch_call *c);

/* An allow list (call_network.c). Join: before the environment is made; no seat where the list has
 * no effect, which is noted. Leave: what it did goes into the output, its connections end. */
enum sy_code call_join_network(struct orch_call *c, struct sy_error *err) SY_NODISCARD;
void call_leave_network(struct orch_call *c);
/* Adds to the n watches of the process. Returns how many there are. */
size_t call_network_watch(const struct orch_call *c, struct process_watch *out, size_t n);
uint64_t call_network_deadline_ns(const struct orch_call *c);
void call_network_step(struct orch_call *c);

/* Protected paths: before the command starts, after the last of it ended (protect.c). The
 * second may be called any number of times. */
enum sy_code call_protect_begin(struct orch_call *c, struct sy_error *err) SY_NODISCARD;
void call_protect_end(struct orch_call *c);
/* For a call without a command: no run begins, and no names are held; what is protected is known
 * then (guard_forbids). */
enum sy_code call_protect_look(struct orch_call *c, struct sy_error *err) SY_NODISCARD;
/* While it runs, where mounts hold them: readable when call_protect_refresh has something to do. A
 * file that a person replaces is held again at once. -1: never, or another call of the entry has
 * it: a loop watches a descriptor once. */
int call_protect_fd(const struct orch_call *c);
void call_protect_refresh(struct orch_call *c);

/* What is hidden by mounts: from the look before the command to the one after it, whose finds
 * go into output.denials if it `tells`; that one may be called any number of times (hidden.c). */
enum sy_code call_hidden_begin(struct orch_call *c) SY_NODISCARD;
void call_hidden_end(struct orch_call *c, bool tells);

/*
 * What Landlock says itself, in the audit log, of a call whose plan has it written there
 * (audited.c). Begin: before the command starts. Ask: when it has ended. Settle: true when its
 * records are there or not waited for; call again by call_audit_watch and call_audit_again_ns.
 * Take: into output.denials. End: any number of times.
 */
void call_audit_begin(struct orch_call *c);
void call_audit_ask(struct orch_call *c, uint64_t now_ns);
bool call_audit_settle(struct orch_call *c, uint64_t now_ns);
size_t call_audit_watch(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES]);
uint64_t call_audit_again_ns(const struct orch_call *c);
enum sy_code call_audit_take(struct orch_call *c) SY_NODISCARD;
void call_audit_end(struct orch_call *c);

/* Events (emit.c). */
void call_emit_begin(struct orch_call *c);
void call_emit_end(struct orch_call *c);
/* About a request for approval; each tells nothing where it was told already. */
void call_emit_asked(struct orch_call *c, const char *id, const char *text);
void call_emit_commented(struct orch_call *c, const char *id, const char *text);
void call_emit_decided(struct orch_call *c, const struct review_answer *a);
void call_on_delta(void *arg, enum output_stream s, uint64_t seq, const char *text, size_t n);

#endif
