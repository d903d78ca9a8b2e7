#ifndef SY_ORCHESTRATOR_ORCHESTRATOR_H
#define SY_ORCHESTRATOR_ORCHESTRATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "approval/approval.h"
#include "approval/assess.h"
#include "approval/review.h"
#include "base/buf.h"
#include "base/err.h"
#include "command/command.h"
#include "command/dialect.h"
#include "command/exec_params.h"
#include "events/events.h"
#include "hook/hook.h"
#include "output/output.h"
#include "process/env.h"
#include "process/pool.h"
#include "process/process.h"
#include "process/resource.h"
#include "sandbox/denial.h"
#include "sandbox/sandbox.h"

/*
 * One call as an explicit state machine (the specification: approval, sandbox
 * selection, execution, retry), and the services that calls share. No event
 * loop inside: orch_watches / orch_deadline_ns / orch_step as in process.h;
 * loop_poll.c drives one call with poll(2), loop_uv.c any number on libuv.
 */

/* Per-turn settings (specification, TurnContext). Owns its strings. */
struct turn_context {
    char *cwd; /* absolute */
    struct sandbox_policy sandbox;
    enum approval_policy approval;
    bool asks_for_all;                 /* APPROVAL_ON_REQUEST: approval.on_request all */
    struct approval_granular granular; /* APPROVAL_GRANULAR */
    struct env_policy env;
    struct resource_limits limits; /* of each command, the clock aside */
    bool sandbox_required; /* false: run without when the kernel can't; user's config only */
};

void turn_context_fini(struct turn_context *t);
enum sy_code turn_context_copy(struct turn_context *ret,
                               const struct turn_context *from) SY_NODISCARD;

/* What somebody wants of a turn; zeroed: what they are allowed. Owns its strings. */
enum wish { WISH_NONE, WISH_YES, WISH_NO };
struct turn_wish {
    char *cwd; /* absolute, normalized */
    bool has_mode;
    enum sandbox_mode mode;
    bool has_roots;
    struct strv roots; /* writable_roots; absolute */
    enum wish network;
    enum wish excludes_tmpdir;
    enum wish excludes_slash_tmp;
    bool has_approval;
    enum approval_policy approval;
};
void turn_wish_fini(struct turn_wish *w);

/*
 * Narrows *t, which is `allowed` or, for another directory, made as that was, to what is wanted
 * (narrow.c). SY_E_ARG with a sentence that says what is allowed for what would be wider; *t is
 * then of no use. `whose` names whoever allows: "configuration".
 */
enum sy_code turn_narrow(struct turn_context *t, const struct turn_context *allowed,
                         const struct turn_wish *w, const char *whose,
                         struct sy_error *err) SY_NODISCARD;
/* The same for a turn inside of another: *t is a copy of `allowed`. Its directory must be that of
 * the other, a writable root of it, or below one of them. */
enum sy_code turn_narrow_inside(struct turn_context *t, const struct turn_context *allowed,
                                const struct turn_wish *w, const char *whose,
                                struct sy_error *err) SY_NODISCARD;

/*
 * What calls share: kernel capabilities, the prepared sandbox of each policy,
 * the user's shell, the login environment, the bus. Sessions form a tree, below.
 */
struct session;

/* Whether a process is made ready before its command is known (process_prepare). */
enum session_spare {
    SPARE_NONE,
    SPARE_FIRST, /* one, while the first command's sandbox and environment are made */
    SPARE_ALWAYS /* and the next one as soon as a command has started */
};

struct session_options {
    enum session_spare spare;
    struct process_pool *pool; /* borrowed; NULL: one of its own */
    const char *session_id;    /* NULL: random */
    const char *shell_path;    /* configured shell, NULL or "": detect */
    char shell_from[160];      /* where that is set, as errors tell it; "": they don't */
    bool login_snapshot;       /* run the login shell once */
    uint64_t snapshot_timeout_ms;
    char *const *environ_list; /* the engine's environment */
    bool protects;             /* protected names below writable roots are guarded */
    char *const *unprotected;  /* those of them that are not; NULL: none */
    bool rests;                /* somebody calls session_rest */
    bool reads_audit;          /* Landlock's records are read from the audit log, if they can be */
};

enum sy_code session_new(struct session **ret, const struct session_options *options,
                         struct sy_error *err) SY_NODISCARD;
/* The first of its tree; those below it must have been closed, and all calls freed. */
void session_free(struct session *s);

/*
 * A session below another: a subagent's. It shares all of the above with its parent, and the judge
 * and the person as well. Its own are its id, its lock, and what a person lets it do: that goes
 * down to sessions opened below it, and never up. What a person lets its parent do for the rest of
 * the session, or denied it, holds for it too.
 *
 * `name` is the caller's: 1 to LIMIT_SESSION_NAME letters, digits and -_.:/ characters. `title`
 * says what it is for, in at most LIMIT_SESSION_TITLE bytes; NULL: nothing. SY_E_ARG for others;
 * SY_E_LIMIT for one too many or too deep.
 */
enum sy_code session_open(struct session **ret, struct session *parent, const char *name,
                          const char *title, struct sy_error *err) SY_NODISCARD;
/* No call is submitted to it any more, and all below it is closed. What nobody has answered is
 * taken back. Its memory stays for the calls that it still has. */
void session_close(struct session *s);
/* Its memory stays as long as anybody has a reference. */
void session_ref(struct session *s);
void session_unref(struct session *s);
/* NULL: it is the first. */
struct session *session_parent(const struct session *s);
/* As it was opened; "" and NULL for the first. */
const char *session_name(const struct session *s);
const char *session_title(const struct session *s);
/* Is it `above`, or anywhere below that? */
bool session_is_within(const struct session *s, const struct session *above);

/* Who judges and who is asked, before the first call; zeroed: nobody. */
void session_use_approval(struct session *s, const struct assess_by *judge,
                          const struct review_by *review);
/* Whose programs have a say, before the first call. What it points to outlives the session. */
void session_use_hooks(struct session *s, const struct hooks *hooks);
/* Can a person be asked? */
bool session_can_ask(const struct session *s);
/* Where shellyard-launch is, before the first call; NULL: nowhere, and so no sandbox of the full
 * tier. */
enum sy_code session_use_launcher(struct session *s, const char *path,
                                  struct sy_error *err) SY_NODISCARD;
const char *session_launcher_path(const struct session *s);
/*
 * What stands in a workspace for commands alone (guard.h, placeholders) goes when no command
 * has run for LIMIT_PLACEHOLDER_LINGER_MS, so that it is not made anew for each. Returns
 * when to call again, UINT64_MAX: not before a call has ended. A session without `rests`
 * needs none of it: there it goes with the end of each call.
 */
uint64_t session_rest(struct session *s, uint64_t now_ns);
struct event_bus *session_bus(struct session *s);
const char *session_id(const struct session *s);
/* The user's shell, detected at first use. */
enum sy_code session_shell(struct session *s, const struct shell **ret,
                           struct sy_error *err) SY_NODISCARD;
const struct sandbox_caps *session_caps(struct session *s);
/* Where control groups can be made for commands, found at first use; NULL: nowhere. */
struct cgroup_home *session_cgroups(struct session *s);
/* The engine's environment, as given at the start. */
char *const *session_environ(const struct session *s);

enum orch_state {
    ORCH_PREPARE,  /* which shell, and is its environment known */
    ORCH_SNAPSHOT, /* the login shell runs, once per engine */
    ORCH_APPROVAL, /* judged, and the requirement computed */
    ORCH_HOOK,     /* a program of the user's is asked; then judged again */
    ORCH_REVIEW,   /* a person is asked */
    ORCH_LOCK,     /* calls that write run alone: waits for others of the session */
    ORCH_SANDBOX,  /* policy to plan to prepared sandbox */
    ORCH_SPAWN,    /* environment, program, start */
    ORCH_RUN,      /* output collected, clock running */
    ORCH_KILL,     /* timed out or cancelled: the tree is being ended */
    ORCH_SETTLE,   /* it has ended: the kernel still writes down what it refused */
    ORCH_DONE      /* the one exit: result final, end event emitted */
};
const char *orch_state_name(enum orch_state s);

/* Specification, ExecToolCallOutput, and what it became. */
enum exec_status {
    EXEC_EXITED,    /* exit_code */
    EXEC_SIGNALED,  /* exit_code 128+signal */
    EXEC_TIMED_OUT, /* exit_code 124 */
    EXEC_CANCELLED, /* exit_code 130 */
    EXEC_DENIED,    /* refused before it ran: err */
    EXEC_PENDING,   /* not run yet: a person has still to answer, `review` has the id */
    EXEC_FAILED     /* our machinery, or the program can't be run (126, 127): err */
};
const char *exec_status_name(enum exec_status s);
/* "SIGKILL" for 9; "SIGRTMIN+2" and unknown ones by number, "34". Into ret. */
void exec_signal_name(char ret[16], int number);

/* What hooks did to a call; borrowed from it. */
struct exec_hooked {
    const char *rewritten_by;   /* the program; NULL: the command is the caller's own */
    const struct strv *command; /* then: what it became */
    const char *allowed_by;     /* answered instead of a person; NULL: none did */
};

/* Room for three of the longest sentences. */
#define EXEC_NOTE (3 * SY_ERR_MSG_MAX)

struct exec_output {
    enum exec_status status;
    int exit_code;
    int signal;
    bool is_timed_out;
    uint64_t duration_ns;
    uint32_t ended_background; /* what still ran when the command had ended by itself */
    bool pipe_was_held;
    struct resource_hit hit;           /* the limit that it met, if any */
    struct denial_list denials;        /* what the sandbox refused to it; lives as the call */
    struct strv network_hosts;         /* "host:port" reached by an allow list; lives as the call */
    bool is_unobserved;                /* report: full was asked for and can't be had here */
    bool may_escalate;                 /* the caller may ask to run it outside the sandbox */
    const struct output_chain *output; /* NULL if nothing ran; lives as long as the call */
    const struct sandbox_plan *plan;   /* NULL if none was made */
    const struct review_answer *review; /* a person's answer; NULL: none was needed. As the call */
    struct exec_hooked hooked;
    struct sy_error err;  /* EXEC_DENIED, EXEC_PENDING, EXEC_FAILED */
    char note[EXEC_NOTE]; /* what the caller should know, sentences with "; " between, or "" */
};

/* One more sentence of the note. Where the room is short it ends with one of its parts ("; "). */
void exec_add_note(struct exec_output *o, const char *text);
/* As much of a sentence as fits into n bytes, to be printed by "%.*s": up to the end of a part. */
int exec_sentence_room(const char *text, size_t n);

/* The command ran to its end, and that was no success: exit status not 0, or a signal. */
bool exec_has_failed(const struct exec_output *o);

/* A limit that was met, as a sentence's end ("memory ended the command (at most ...)") and
 * as the object that every answer carries under "limit". */
#define EXEC_LIMIT_TEXT 200
void exec_limit_text(char ret[EXEC_LIMIT_TEXT], const struct resource_hit *hit);
void exec_limit_write(struct jw *w, const struct resource_hit *hit);
/* The list "network_hosts" of an answer; nothing where no host was reached by an allow list. */
void exec_hosts_write(struct jw *w, const struct strv *hosts);

/* The object "hooks" of an answer; nothing where none changed anything. */
void exec_hooked_write(struct jw *w, const struct exec_hooked *hooked);

struct orch_call;
/* A person is asked: the request `id` can be answered. `question` is its JSON (question.h). */
typedef void orch_asked_fn(void *arg, struct orch_call *call, const char *id, const char *question);

/* The command runs, from now on. */
typedef void orch_begun_fn(void *arg, struct orch_call *call);

/*
 * What a call does inside of Shellyard instead of running a command: after approval, in its turn,
 * with the sandbox's policy at hand. `run` makes no process and waits for nothing but the disk.
 */
struct orch_call;
struct exec_look;
struct exec_work {
    /* Before anybody is asked, with the sandbox at hand: what is to be asked. SY_E_DENIED: nobody
     * need be. NULL: the command is judged, as those that run are. */
    enum sy_code (*look)(void *arg, struct orch_call *call, struct exec_look *ret,
                         struct sy_error *err);
    enum sy_code (*run)(void *arg, struct orch_call *call, struct sy_error *err); /* NULL: none */
    void (*free)(void *arg);
    void *arg;
};

/* What exec_work.look has found; texts live as its `arg`. */
struct exec_look {
    bool is_done;       /* there is nothing to ask, and nothing to do */
    const char *access; /* question_access.h */
    const char *why;    /* a sentence: why a person is asked */
    bool may_remember;  /* the session may */
    bool may_be_rule;
    enum approval_class class;
};

/* For exec_work.run: may a file be touched as by a command of this call? SY_E_DENIED with a
 * sentence: no, and it stands among the call's denials. `path` is absolute and without links;
 * `all` as in guard_forbids. */
enum sy_code orch_judge_file(struct orch_call *call, enum sandbox_operation op, const char *path,
                             char *const *all, struct sy_error *err) SY_NODISCARD;
/* Could a command of this call read that file, as far as the policy goes? Nothing is told. */
bool orch_may_read(const struct orch_call *call, const char *path);
/*
 * The work itself refuses a file, since it lies in no root of the policy that lasts: puts that
 * among the call's denials. Nothing where no policy is enforced.
 */
enum sy_code orch_refuse_file(struct orch_call *call, enum sandbox_operation op, const char *path,
                              struct sy_error *err) SY_NODISCARD;
const struct turn_context *orch_turn(const struct orch_call *call);

/*
 * What a person lets commands of this session do beyond their policy (access.c). A grant holds for
 * calls that are submitted after it, under the very policy that it was asked under:
 *
 *     once     the next command or patch that begins, whatever it is
 *     session  all, while the session lasts
 *     rule     all of its workspace, in any session, unless their mode is narrower
 *
 * What can't be used any more (a path that is gone or became a link) is left out and widens
 * nothing.
 */
enum grant_scope { GRANT_ONCE, GRANT_SESSION, GRANT_RULE };
struct access;
/* The policy of the call before anything widened it. With a `look` alone. */
const struct sandbox_policy *orch_base_policy(const struct orch_call *call);
/* The sandbox of the call as it is; NULL: none was made. */
const struct sandbox_plan *orch_plan(const struct orch_call *call);
/* The policy that the next call would have, widened by `more` (NULL: nothing). *ret is to be freed.
 */
enum sy_code orch_next_policy(struct orch_call *call, struct sandbox_policy *ret,
                              const struct access *more, struct sy_error *err) SY_NODISCARD;
/* Makes a sandbox ready for it, kept until the next trial or the call's end. */
enum sy_code orch_try_policy(struct orch_call *call, const struct sandbox_policy *policy,
                             const struct sandbox_plan **ret, struct sy_error *err) SY_NODISCARD;
/* Is the path held by the guard, though the policy would let it be written? */
enum sy_code orch_is_protected(bool *ret, struct orch_call *call, const char *path,
                               struct sy_error *err) SY_NODISCARD;
/* Would it hold by a rule as well? Not where the call's turn was narrowed in just that. */
bool orch_may_be_rule(const struct orch_call *call, const struct access *what);
/* From now on. GRANT_RULE is for the session's rules, which session_set_access_rules gives. */
enum sy_code orch_grant(struct orch_call *call, const struct access *what, enum grant_scope scope,
                        struct sy_error *err) SY_NODISCARD;

/* Rules of all workspaces, in place of those before. */
struct access_rule {
    const struct access *access;
    const char *workspace;
    enum sandbox_mode mode;
};
enum sy_code session_set_access_rules(struct session *s, const struct access_rule *rules,
                                      size_t n) SY_NODISCARD;

/* Of a call whose sandbox is there: the environment as its command will have it, to add to. */
typedef enum sy_code orch_environment_fn(void *arg, const struct orch_call *call, struct strv *env);

/* What a command reads (process_input_way); it belongs to a session of its own then, with the
 * environment of such ones (env_facts.is_session). */
struct orch_input {
    bool is_session;
    enum process_input kind;
    unsigned rows; /* INPUT_TERMINAL; 0: the default */
    unsigned columns;
    orch_environment_fn *on_environment; /* NULL: nothing is added. From orch_step */
    void *on_environment_arg;
};

/*
 * What a tool asks for: params with `argv` filled, or `script` for a shell to
 * run (then argv is derived in ORCH_SPAWN). Taken by orch_submit.
 */
struct exec_request {
    struct exec_params params;
    struct exec_work work; /* then params.argv only says what is done */
    struct strv keys;      /* under which an approval is remembered; empty: those of a command */
    char *script;          /* NULL: params.argv is the command */
    bool is_derived;  /* which shell_derive made: its shell reads no file of the user's first */
    bool login;       /* script: with the login environment */
    char *failed;     /* what a first attempt in the sandbox printed and was refused: this is the
                         second, outside of it, and only if a person says so; NULL: it is none */
    bool is_mutating; /* may change something: runs alone in its session (docs/adr/0008) */
    char *call_id;
    char *turn_id;           /* may be NULL */
    const char *tool;        /* static: "shell", "shell_command", "exec" */
    const char *keep_by;     /* static: how the caller keeps what would end with the command, behind
                                "to keep one, "; NULL: by a call of its own */
    const int *stdio;        /* static, three descriptors for it: nothing is captured; or NULL */
    struct orch_input input; /* what it reads; zeroed: nothing */
    orch_begun_fn *on_begun; /* may be NULL; from orch_step */
    void *on_begun_arg;
    size_t keep_bytes;  /* per stream; 0: default */
    struct strv prefix; /* of the rule that the caller proposes; empty: none */
    const char *client; /* who asks, for a person; NULL unknown. Borrowed during orch_submit */
    uint64_t hold_ms;   /* how long to wait for a person; UINT64_MAX: until the request is over */
    bool asks_once;     /* on_asked can't show a request again: not before a comment is there */
    orch_asked_fn *on_asked; /* may be NULL */
    void *on_asked_arg;
    output_raw_fn *on_raw; /* stream-through front ends; may be NULL */
    void *on_raw_arg;
};

void exec_request_fini(struct exec_request *r);

/*
 * Takes *request (left empty). `turn` is copied. Emits the begin event once
 * the command is about to run, deltas, and exactly one end event. The only
 * error is memory; everything else is in the result.
 */
enum sy_code orch_submit(struct orch_call **ret, struct session *session,
                         const struct turn_context *turn, struct exec_request *request,
                         struct sy_error *err) SY_NODISCARD;

size_t orch_watches(const struct orch_call *call, struct process_watch out[PROCESS_WATCHES]);
uint64_t orch_deadline_ns(const struct orch_call *call);
/* One turn of the machine; true once ORCH_DONE is reached. */
bool orch_step(struct orch_call *call, uint64_t now_ns);
/* For an owner that can't take output now: as process_serve. Of use in ORCH_RUN,
 * nothing in other states. */
void orch_serve(struct orch_call *call, uint64_t now_ns);
/* In ORCH_REVIEW: an answer of the front's own person. The first answer of all counts; nothing in
 * other states. */
void orch_reply(struct orch_call *call, const struct review_reply *reply);
/* The front's person will not give one: what is asked, now or later, is pending at once. */
void orch_give_up(struct orch_call *call);
/* At any state; the result is EXEC_CANCELLED unless it was final already. */
void orch_cancel(struct orch_call *call);
/* `signal` to the command's group, or the one in its terminal's foreground, now (Ctrl-C), without
 * ending the call. False: nothing runs. */
bool orch_signal(struct orch_call *call, int signal);
/* The command goes on, and others of the session need not wait for it any more. */
void orch_let_others(struct orch_call *call);
/* As process_write and the like (process.h), while the command runs; SY_E_ARG and false
 * otherwise. Wake the driver afterwards (orch_wake): there may be more to wait for. */
enum sy_code orch_write(struct orch_call *call, const void *bytes, size_t n,
                        struct sy_error *err) SY_NODISCARD;
size_t orch_interrupt(struct orch_call *call, const void *bytes, size_t n);
/*
 * Whether a line may be typed to the command, as if it were one of its own for a shell: SY_E_DENIED
 * with a sentence where it would be refused, or a person be asked for what it is (a rule, or
 * dangerous). Whatever the policy asks about anyway was asked when the command began. *ret_is_open:
 * it is no whole command, so that the next line may belong to it.
 */
enum sy_code orch_judge_typed(struct orch_call *call, const char *line, bool *ret_is_open,
                              struct sy_error *err) SY_NODISCARD;
/* The same of what may be commands in a text that is no whole script. */
enum sy_code orch_judge_pieces(struct orch_call *call, const char *text, size_t n,
                               enum dialect_cut cut, bool *ret_is_open,
                               struct sy_error *err) SY_NODISCARD;
/* The shell that reads what is typed next, by its name; "": not known, as at the beginning. Shells
 * read a line in different ways. */
void orch_set_reader(struct orch_call *call, const char *shell);
/* Tells that this was typed (EVENT_EXEC_INPUT); `is_hidden`: the terminal does not show it. By a
 * person, else by the caller. Refusal: why it was not; NULL: it was. */
void orch_tell_typed(struct orch_call *call, const char *text, size_t n, bool is_hidden,
                     bool is_person, const char *refusal);
/* Another call has to do with the command: as many deltas are told as for the first. */
void orch_renew_deltas(struct orch_call *call);
size_t orch_unwritten(const struct orch_call *call);
void orch_close_input(struct orch_call *call);
bool orch_resize(struct orch_call *call, unsigned rows, unsigned columns);
int orch_terminal_fd(const struct orch_call *call);
/* Reads n bytes of a process's memory (state_peek_fn), in no more than a few milliseconds. */
int orch_peek(int pid, uintptr_t there, void *ret, size_t n);
/* The process that all of it comes from; 0: not known. */
int orch_root_pid(const struct orch_call *call);
enum orch_state orch_state(const struct orch_call *call);
const struct exec_output *orch_output(const struct orch_call *call);
/* Once it is over: its request back, for a second attempt. */
void orch_take_request(struct orch_call *call, struct exec_request *ret);
const char *orch_call_id(const struct orch_call *call);
/* For progress: the end of its output so far as text, at most `max` bytes of it, and how many bytes
 * there were in all. Borrowed until the next call. */
const char *orch_tail(struct orch_call *call, size_t max, size_t *ret_len);
uint64_t orch_total(const struct orch_call *call);
/* `wake` is called when something outside the call's own descriptors lets it
 * go on (another call's login snapshot is there): step it soon. For drivers. */
typedef void orch_wake_fn(void *arg);
void orch_set_waker(struct orch_call *call, orch_wake_fn *wake, void *arg);
void orch_call_free(struct orch_call *call);

/* Drives one call to its end on poll(2). `stop_fd` (or -1): readable = cancel. */
void orch_run(struct orch_call *call, int stop_fd);

/* Drives a call on a libuv loop; `done` is called once, from the loop, and may
 * free the call. The loop runs until then. (loop_uv.c) */
struct uv_loop_s;
struct orch_driver;
typedef void orch_done_fn(void *arg, struct orch_call *call);
enum sy_code orch_attach(struct orch_driver **ret, struct orch_call *call, struct uv_loop_s *loop,
                         orch_done_fn *done, void *arg, struct sy_error *err) SY_NODISCARD;
/* After orch_cancel or orch_signal from outside the driver: steps soon. */
void orch_wake(struct orch_driver *driver);

#endif
