#ifndef SY_PROCESS_PROCESS_H
#define SY_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "output/output.h"
#include "process/cgroup.h"
#include "process/gate.h"
#include "process/resource.h"
#include "sandbox/denial.h"
#include "sandbox/evidence.h"
#include "sandbox/sandbox.h"

/*
 * A command with its keeper, run by pipes (specification, ProcessHandle). No event
 * loop inside: the owner waits on process_watches and process_deadline and
 * calls process_step; loop drivers are above (orchestrator/).
 *
 * The keeper is a task that shares our memory (clone with CLONE_VM, so its
 * cost does not depend on our heap) and nothing else. It is the subreaper of
 * the command: each descendant, setsid or double fork or not, comes back to it
 * and is ended with the command, also when we die by SIGKILL.
 */
struct process;

/* What to execute: the end of the road from exec_params (specification, ExecEnv). */
struct exec_env {
    const char *program; /* resolved file */
    char *const *argv;   /* argv[0] already overridden if asked */
    char *const *envp;
    const char *cwd;                     /* absolute */
    const struct sandbox_ready *sandbox; /* NULL: none */
    const struct sandbox_plan *plan;     /* what it was made of, to explain refusals; may be NULL */
    evidence_held_fn *held;              /* for report: full; NULL: the plan is all that refuses */
    void *held_arg;                      /* outlives the process */
    const struct process_gate *gate;     /* of an allow list; NULL: no internet address */
    struct template *template;           /* of the full tier; NULL: none. Borrowed */
    struct resource_limits limits;
    struct cgroup_home *cgroups; /* NULL: memory and processes are held by looking at them */
};

enum process_outcome {
    PROCESS_RUNNING,
    PROCESS_EXITED,   /* exit_code */
    PROCESS_SIGNALED, /* signal */
    PROCESS_FAILED    /* never ran: stage and sys in `err` */
};

struct process_result {
    enum process_outcome outcome;
    int exit_code;
    int signal;
    uint32_t ended_background; /* descendants that were ended after the command's exit */
    bool pipe_was_held;        /* one of them still held stdout or stderr */
    bool is_unobserved;        /* report: full was asked for and can't be had here */
    uint64_t duration_ns;      /* start to exit of the command itself */
    struct resource_hit hit;   /* what limit it met */
    struct sy_error err;       /* PROCESS_FAILED: SY_E_NOTFOUND, SY_E_NOEXEC, SY_E_SANDBOX, ... */
};

/*
 * Starts a keeper whose child has done all that does not depend on the command
 * and waits: a command that is given to it later is there sooner, since that
 * work ran beside ours. `base` is of the sandbox that will be asked for; NULL: not
 * known yet, process_set_base or process_go will tell. It costs two tasks without memory of their
 * own and five descriptors until process_go or process_free.
 */
enum sy_code process_prepare(struct process **ret, const struct sandbox_base *base,
                             struct sy_error *err) SY_NODISCARD;
/*
 * As process_prepare, for a command that has these as its standard input, output and error
 * instead of nothing and our pipes: output that goes there is not seen by us. -1: as without.
 */
enum sy_code process_prepare_on(struct process **ret, const struct sandbox_base *base,
                                const int stdio[3], struct sy_error *err) SY_NODISCARD;
/* What a command has as its standard input. */
enum process_input {
    INPUT_NONE, /* the end of a file at once */
    INPUT_PIPE,
    INPUT_TERMINAL /* a pseudo terminal, also as its output and error: pty(7) */
};

struct process_input_way {
    enum process_input kind;
    /* INPUT_TERMINAL */
    unsigned rows; /* 0: LIMIT_TERMINAL_ROWS_DEFAULT */
    unsigned columns;
    struct process_pool *pool; /* whose templates it may use; NULL: none */
};

/*
 * As process_prepare, for a command with an input that process_write feeds. What a terminal shows
 * comes as STREAM_STDOUT: all of it, up to the last byte before the end. Before process_go, a
 * terminal has to be there: process_take_terminal.
 */
enum sy_code process_prepare_input(struct process **ret, const struct sandbox_base *base,
                                   const struct process_input_way *way,
                                   struct sy_error *err) SY_NODISCARD;
/*
 * Queues bytes for the command's input; never blocks. SY_E_LIMIT: more than LIMIT_INPUT_PENDING
 * would wait, and nothing was taken. SY_E_ARG: nobody reads any more (the sentence says why).
 */
enum sy_code process_write(struct process *p, const void *bytes, size_t n,
                           struct sy_error *err) SY_NODISCARD;
/*
 * Before `bytes` are written: if they make a signal (Ctrl-C, as the terminal is set), what the
 * command has not read yet is dropped, as the kernel drops it once the character comes; behind what
 * nobody reads it never would. How many of the queued bytes went.
 */
size_t process_interrupt(struct process *p, const void *bytes, size_t n);
/* Bytes that the command has not taken yet. */
size_t process_unwritten(const struct process *p);
/* The end of a pipe's input, behind what is queued. A terminal has none: it is a character. */
void process_close_input(struct process *p);
/* SIGWINCH comes of it. False: there is no terminal, or it is gone. */
bool process_resize(struct process *p, unsigned rows, unsigned columns);
/* Our end of the terminal, for its state (tcgetattr(3), TIOCGPGRP); -1: none. Borrowed. */
int process_terminal_fd(const struct process *p);

/*
 * Is the terminal there, or is there none to come? A run of the full tier makes its own, in its own
 * tree: until then process_watches and process_deadline_ns tell when to ask again. SY_E_LIMIT: no
 * pseudo terminal is free; SY_E_SANDBOX: it can't be made, or was not within 5 s. Never blocks.
 */
enum sy_code process_take_terminal(struct process *p, uint64_t now_ns, bool *ret_is_there,
                                   struct sy_error *err) SY_NODISCARD;

/* The base, if it was not known before. */
void process_set_base(struct process *p, const struct sandbox_base *base);
/* process_pool_give_way for one prepared process. */
void process_give_way(struct process *p);
/* Does it still wait, and can it still get a sandbox with this base (NULL: any)? */
bool process_is_prepared(struct process *p, const struct sandbox_base *base);
/*
 * How a limit of that resource would be held with these control groups (NULL: none)
 * for a command of this user.
 */
enum resource_means process_limit_means(enum resource r, const struct cgroup_home *cgroups);
/*
 * For a program that serves many: raises its own limit of descriptors to `want`, or as far as it
 * may. Commands still begin with the limit that was there before. Before the first process.
 */
void process_raise_open_files(uint64_t want);
/*
 * Gives a prepared process its command. Output goes to `chain`; it, the plan, the gate and the
 * strings of `env` are borrowed and must outlive the process. Never blocks on the
 * child; a failure of its set-up comes as PROCESS_FAILED later. After an error
 * the process is only good for process_free.
 */
enum sy_code process_go(struct process *p, const struct exec_env *env, struct output_chain *chain,
                        struct sy_error *err) SY_NODISCARD;
/* What a process must have been prepared for to get this command. */
struct sandbox_base process_base(const struct exec_env *env);
/* Both at once. */
enum sy_code process_start(struct process **ret, const struct exec_env *env,
                           struct output_chain *chain, struct sy_error *err) SY_NODISCARD;

/* The last two are not of a process: whoever drives one may have things of its own to wait on. */
#define PROCESS_WATCHES 7
struct process_watch {
    int fd;
    short events;   /* of poll(2) */
    bool is_output; /* of no use to process_serve */
    uint64_t id;    /* of the process: the same number may come again as another descriptor */
};
/* Descriptors to wait on now; ask again after each step. The set shrinks but
 * for one, the listener of the first connect(2). Returns how many. */
size_t process_watches(const struct process *p, struct process_watch out[PROCESS_WATCHES]);
/* Monotonic time at which process_step must be called anyway; UINT64_MAX: none. */
uint64_t process_deadline_ns(const struct process *p);
/*
 * Does what can be done without blocking: reads output (bounded per call, so
 * that one chatty command can't starve others), takes the keeper's reports,
 * ends what lingers. Returns true once everything has ended and the result is
 * final. An error is one of our machinery (out of memory): the owner kills.
 */
enum sy_code process_step(struct process *p, uint64_t now_ns, bool *ret_is_done,
                          struct sy_error *err) SY_NODISCARD;
/*
 * What process_step does, but for the output: for an owner that can't take any
 * now. The command may ask us something (connect(2), broker.h), and the reader
 * who keeps us from reading may be waiting for what it does then. Nothing
 * lingers out of time meanwhile.
 */
enum sy_code process_serve(struct process *p, uint64_t now_ns, struct sy_error *err) SY_NODISCARD;
/* SIGKILL to the whole tree; output up to now is still read. Idempotent. */
void process_kill(struct process *p);
/* A signal to the command's process group, or to the one in the terminal's foreground where it has
 * a terminal (graceful end); false if it is over. */
bool process_signal(struct process *p, int signal);
/* Final once process_step said so. */
const struct process_result *process_result(const struct process *p);
/* Moves out what was refused to the tree up to now, as far as we saw it ourselves. *ret must be
 * empty. */
void process_take_denials(struct process *p, struct denial_list *ret);
/* Does somebody answer for its connect(2)? False where an outer sandbox has the tree's one
 * listener: each is refused then, those to the gate too. Known once it has ended. */
bool process_has_broker(const struct process *p);
/* Forgets the gate of its exec_env, which may go then: its tree reaches no internet address more.
 */
void process_close_gate(struct process *p);
/* The command's process id, 0 before it runs. For logs and events. */
int process_pid(const struct process *p);
/* Its parent, by our own namespace's number; 0: not known, or gone. */
int process_keeper_pid(const struct process *p);
/* Nobody reads the argv and envp of its exec_env any more: the command has been executed, or could
 * not be. False for a moment after process_go, while a keeper that shares our memory is at it. */
bool process_has_executed(const struct process *p);
/* Ends what still runs (blocking for at most the kernel's kill) and frees. */
void process_free(struct process *p);

#endif
