#ifndef SY_PROCESS_KEEPER_H
#define SY_PROCESS_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/cgroup.h"
#include "sandbox/sandbox.h"

/*
 * The keeper: a task that shares our memory and stands between us and one
 * command. It is started with clone(CLONE_VM) on a stack of its own, so its
 * cost does not grow with our heap, and it runs raw system calls only (it
 * shares our thread's TLS, so errno and most of libc are forbidden).
 *
 * It is the subreaper of the command (prctl(2) PR_SET_CHILD_SUBREAPER): what
 * leaves by setsid or double fork becomes its child, and is ended with the
 * rest. It dies with us: it watches our pidfd and the channel.
 *
 * A keeper is started before there is a command: it makes a child, which makes
 * itself ready (session, capabilities, seccomp) and sleeps until KEEPER_GO. So a
 * command that comes later finds all done that does not depend on it.
 *
 * Channel (SOCK_SEQPACKET): we send struct keeper_order, first KEEPER_GO with the
 * descriptor of the Landlock ruleset and those of the control groups, as far as
 * there are any, or before it KEEPER_BASE,
 * when the sandbox's base is known sooner than the command; the end of the channel
 * before KEEPER_GO ends both. It sends struct keeper_report: KEEPER_LISTENER with the listener's
 * descriptor once something in the tree has called connect(2) for the first time (a command that
 * never does costs nothing), and again at the next call after KEEPER_LISTEN, by which we say that
 * we have closed ours; at most one KEEPER_EXITED (the command is over but others of its tree
 * are not) and exactly one of KEEPER_DONE or KEEPER_FAILED as last.
 */
#define KEEPER_RLIMITS 4
#define KEEPER_GO_FDS  (1 + CGROUP_PLACES)

/* For prlimit64(2): lowered to these, never raised. */
struct keeper_rlimit {
    int resource;
    uint64_t soft;
    uint64_t hard;
};

/* Where there are more, a keeper stays where the kernel has put it. */
#define KEEPER_CPUS 1024

struct keeper_job {
    /* Set before the start, only read by the keeper and its child. */
    bool starts_with_base; /* `base` is set already */
    bool has_base;         /* the keeper is under it already: made by a template */
    bool is_init;          /* it is process 1 of a pid namespace of its own */
    /* The engine shares no memory with it: what KEEPER_GO is about comes along in
     * a file (keeper_spec.h), as the first descriptor, and not with the job. */
    bool is_remote;
    int engine_fd; /* a pidfd of the engine; -1: by engine_pid */
    int in_fd;     /* -1: /dev/null */
    int out_fd;
    int err_fd;
    int channel_fd;
    pid_t engine_pid;
    /* Set before KEEPER_BASE, which may come before KEEPER_GO, only read by the child. */
    struct sandbox_base base;
    /* Set before KEEPER_GO, only read by the child. */
    const char *program;
    char *const *argv;
    char **script_argv; /* [sh, program, argv[1]...] for a file without "#!"; empty: it is none */
    char *const *envp;
    const char *cwd;
    struct keeper_rlimit rlimits[KEEPER_RLIMITS];
    size_t n_rlimits;
    bool has_terminal; /* standard input is one, which the command gets as its controlling one */
    bool has_ruleset;  /* the first descriptor of KEEPER_GO; a remote one has ruleset_fd from its
                          birth */
    /* Directories of the control groups, which the keeper removes where the engine
     * is gone and won't. */
    const char *cgroups[CGROUP_PLACES];
    /* The processors that the command may use, as sched_getaffinity(2) gave them;
     * cpus_bytes 0: those of the keeper. Set before KEEPER_GO, only read. */
    unsigned long cpus[KEEPER_CPUS / 64];
    volatile size_t cpus_bytes;
    /* Set by the keeper when it runs for the first time. */
    volatile bool has_begun;
    /* Of Landlock, in the keeper's table; received by the child, -1: none. */
    volatile int ruleset_fd;
    /* Set by the child before it dies, read by the keeper after. */
    volatile enum sandbox_stage stage;
    volatile int sys;
    /* Written by the kernel when a template makes the keeper; 0: not yet, or not by one. */
    volatile pid_t keeper_pid;
    /* The command's process id; written by the keeper. */
    volatile pid_t pid;
    /* Set by the child: there is somebody to ask about its calls. */
    volatile bool has_listener;
    /* Of seccomp_unotify(2), in the keeper's table; set by the child, -1: none. */
    volatile int listener_fd;
};

/* KEEPER_ECHO: once the command runs, it answers KEEPER_ECHOED, and does nothing else. */
enum keeper_order_kind {
    KEEPER_BASE = 1,
    KEEPER_GO,
    KEEPER_KILL,
    KEEPER_SIGNAL,
    KEEPER_LISTEN,
    KEEPER_ECHO
};

struct keeper_order {
    int32_t kind;
    int32_t signal;
};

/* KEEPER_TERMINAL: of a remote keeper, before it has a command: our end of the terminal that was
 * made for it comes along.
 * KEEPER_BORN: of a remote keeper, from who made it: `status` is its process id as the engine
 * sees it, and its pidfd comes along. It may come after other reports. */
enum keeper_report_kind {
    KEEPER_EXITED = 1,
    KEEPER_DONE,
    KEEPER_FAILED,
    KEEPER_LISTENER,
    KEEPER_BORN,
    KEEPER_TERMINAL,
    KEEPER_ECHOED
};

struct keeper_report {
    int32_t kind;
    int32_t status; /* wait status of the command */
    int32_t ended;  /* other descendants that were killed */
    int32_t stage;  /* KEEPER_FAILED */
    int32_t sys;
    int32_t has_listener; /* KEEPER_EXITED, KEEPER_DONE: somebody could be asked about its calls */
};

/* Bytes of a stack for any task here; a keeper's child uses it too. Its deepest
 * frame holds about 2 KiB. */
#define KEEPER_STACK ((size_t)32 * 1024)

/*
 * Starts a keeper on `stack` (its highest address) that does `job`; the job
 * and the stack must stay until it has been waited for (waitpid with __WALL;
 * it sends no SIGCHLD). Returns its process id, or -1 with errno.
 */
pid_t keeper_start(struct keeper_job *job, void *stack_top);

/*
 * Starts any task of this kind: fn(arg) on that stack with our memory and a
 * copy of the rest, all signals blocked. Signals that we ignore stay ignored, and where
 * clone3(2) can't be had our handlers stay too: they are reset before a command is
 * executed. Returns its process id, or -1 with
 * errno.
 */
pid_t keeper_start_task(int (*fn)(void *), void *arg, void *stack_top);

/* What a keeper runs, in the task that it will be; `arg` is its job. Returns when
 * all is over. */
int keeper_main(void *arg);
/* Tells the engine, over a keeper's channel, that there will be no command. */
void keeper_tell_failure(int channel_fd, enum sandbox_stage stage, int sys);

#endif
