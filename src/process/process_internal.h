#ifndef SY_PROCESS_PROCESS_INTERNAL_H
#define SY_PROCESS_PROCESS_INTERNAL_H

#include "process/keeper.h"
#include "process/pool.h"
#include "process/process.h"
#include "process/template.h"

struct process {
    uint64_t id; /* never used twice in one program */
    struct keeper_job job;
    /* That made the keeper, until it has gone, a remote one for good: its network is asked about by
     * a descriptor of that; NULL: we did. Held, so that no other comes to lie where it lay and is
     * taken for it (sandbox_base_equal). */
    struct template *template;
    bool is_of_template;       /* made by one: the listener is for others of it too */
    bool is_remote;            /* its keeper is in a pid namespace of its own (launcher.h) */
    bool knows_base;           /* job.base is set */
    bool has_gone;             /* told to execute its command */
    pid_t keeper_pid;          /* 0: waited for, or (of a template) not known yet */
    uint64_t keeper_ino;       /* of a remote keeper's pidfd: tells it from a later one */
    struct process_pool *pool; /* NULL: of none */
    struct process *next;      /* in the pool */
    char **script_argv;
    void *stack;
    int channel_fd;
    int listener_fd;          /* connect(2) of the tree is judged here; -1: none waits, or free */
    uint64_t rest_ns;         /* when the keeper gets it back; UINT64_MAX: never */
    uint64_t terminal_due_ns; /* until then it is awaited; UINT64_MAX: it is not */
    unsigned rows;            /* of a terminal that is awaited; 0: as by default */
    unsigned columns;
    const struct sandbox_ready *rules; /* what they are made of is open until then, and is ours to
                                          close: */
    uint64_t rules_ns;                 /* UINT64_MAX: it is not */
    int read_fd[STREAM_COUNT];
    bool has_terminal;    /* read_fd[STREAM_STDOUT] is our end of it */
    bool saw_end;         /* a read of the terminal has said that nobody has it any more */
    bool has_input;       /* it was made with one */
    int write_fd;         /* of a pipe to its input; -1: none, or closed */
    bool ends_input;      /* write_fd is closed when all is written */
    int past_listener_fd; /* closed once its owner no longer watches it; -1: none */
    struct buf unwritten;
    size_t n_written; /* of its bytes */
    struct output_chain *chain;
    char *large; /* READ_LARGE bytes once a read has filled READ_SMALL */
    bool grew_pipe[STREAM_COUNT];
    bool has_exited; /* the command, others may live */
    bool has_ended;  /* the keeper's last word is here */
    bool is_killing;
    uint64_t started_ns;
    uint64_t linger_ns; /* when what lingers is ended; UINT64_MAX: never */
    struct resource_limits limits;
    struct cgroup *cgroup; /* NULL: none is needed, or there are none */
    uint64_t look_ns;      /* when the tree is looked at again; UINT64_MAX: never */
    uint64_t output_bytes; /* of both streams, as far as they were passed on */
    struct process_result result;
    const struct sandbox_plan *plan; /* NULL: refusals have no rule */
    evidence_held_fn *held;          /* NULL: nothing else refuses */
    void *held_arg;
    struct denial_list denials;
    struct sandbox_hidden *hidden; /* what is asked about with every open (observe.c) */
    bool knows_hidden;
    uint32_t hidden_reads;           /* that were asked about */
    const struct process_gate *gate; /* NULL: none */
    bool has_template_listener;
    uint64_t template_number; /* of that template */
    bool has_listener;        /* its calls could be asked about */
};

/* How a process is made ready: by a template, or, NULL, by us; with these standard
 * descriptors, or, NULL, with pipes (a template knows no others). */
struct process_way {
    struct template *template;
    const int *stdio;
    bool has_terminal; /* stdio is one: no pipes */
};
/* SY_E_NOTFOUND: the template is gone. */
enum sy_code process_prepare_by(struct process **ret, const struct sandbox_base *base,
                                const struct process_way *way, struct sy_error *err);
/* By the base's template, if it has one, and no other instead; as process_way has the rest. */
enum sy_code process_prepare_in(struct process **ret, const struct sandbox_base *base,
                                const int stdio[3], bool has_terminal, struct sy_error *err);
/* What is told where that template is gone: SY_E_SANDBOX. */
enum sy_code process_was_killed(struct sy_error *err);
/*
 * Output (process_read.c). Read: what is there, but only so much that a flood keeps nobody waiting.
 * Drain: once the whole tree is gone a pipe holds only what is in it; to its bottom, then it is
 * closed, also if somebody outside was handed the other end.
 */
enum sy_code process_read(struct process *p, enum output_stream s,
                          struct sy_error *err) SY_NODISCARD;
enum sy_code process_drain(struct process *p, enum output_stream s,
                           struct sy_error *err) SY_NODISCARD;
/* Input (input.c). What waits is written as far as it is taken. */
void process_feed(struct process *p);
/* Adds to the n watches. Returns how many there are. */
size_t process_watch_input(const struct process *p, struct process_watch *out, size_t n);
void process_end_input(struct process *p);
/* To the group in the terminal's foreground; false: there is none. */
bool process_signal_foreground(const struct process *p, int signal);

/* Takes what a remote keeper's maker says of it, if it is there. */
void process_take_birth(struct process *p);
/* How a terminal is from its beginning. False: errno tells why it is not. */
bool process_set_up_terminal(int master, unsigned rows, unsigned columns);
/* Why none could be had. */
enum sy_code process_no_terminal(struct sy_error *err, int sys);
/* The number of its keeper, 0 if there is none. */
pid_t process_keeper(const struct process *p);
/* Takes no more calls for now: the keeper is to tell of the next one. False: it could not be told,
 * and the listener must stay. */
bool process_return_listener(struct process *p);
/* It is closed with the next step only: others have it too, so that an epoll that still watches our
 * descriptor of it would tell of it for ever (epoll(7), Q6). */
void process_leave_listener(struct process *p);
/* Its owner is to look at what it waits for once more: its channel has something to read soon.
 * False: its keeper is gone, which its owner sees as well, or takes nothing. */
bool process_rouse(struct process *p);
/* A process on a terminal, by the pool's template if that may be. It is in the pool afterwards. */
enum sy_code process_pool_make_terminal(struct process_pool *pool, struct process **ret,
                                        const struct sandbox_base *base, const int stdio[3],
                                        struct sy_error *err);
/*
 * Terminals go on for hours, and one descriptor of a template's listener will do for all of them:
 * has another terminal of p's pool and template one? And: p, which has one, needs it no more, and
 * another gets it.
 */
bool process_pool_listens(const struct process *p);
void process_pool_hand_on(struct process *p);
/* Takes it out of its pool. */
void process_pool_forget(struct process *p);
/* Whose tree does a caller of the shared listener belong to? Its keeper, or 0. */
pid_t process_pool_owner(const struct process_pool *pool, pid_t caller);
/* The process with that keeper, or NULL. */
struct process *process_pool_find(struct process_pool *pool, pid_t keeper);

/*
 * What was refused (witness.c). One of ours refused `operation` on `object` to the
 * tree: rule and fix are those of the plan. Where memory is out, it is only counted.
 */
void process_witness(struct process *p, enum denial_layer layer, enum sandbox_operation operation,
                     const char *object);
/* The same with what was found out already. */
void process_tell_denial(struct process *p, enum denial_layer layer, const char *operation,
                         const char *object, struct sandbox_explanation *why);
/* Answers what waits on the listener. One that was not needed for a while goes back to the keeper
 * (process.c), which sends it again. */
void process_answer_calls(struct process *p);

/* Limits (command_limits.c). What is needed before KEEPER_GO; rlimits go into the job. */
enum sy_code process_limits_begin(struct process *p, const struct exec_env *env,
                                  struct sy_error *err) SY_NODISCARD;
/* Looks at the tree if it is time, and ends it if it is over. */
void process_limits_look(struct process *p, uint64_t now_ns);
/* How many of n bytes of output are passed on; ends the tree when not all. */
size_t process_limits_output(struct process *p, size_t n);
/* The tree is gone: what did it meet? */
void process_limits_end(struct process *p);

/* Gives a keeper's stack back once it has been waited for. */
void process_stack_put(void *stack);

#endif
