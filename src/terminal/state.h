#ifndef SY_TERMINAL_STATE_H
#define SY_TERMINAL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * What a program on a PTY is doing, as the kernel knows it: how its terminal is set, and who is
 * in the foreground.
 */
enum state_kind {
    STATE_RUNNING,  /* nothing says that it waits */
    STATE_PROMPT,   /* a shell or another reader of lines (readline) waits at its prompt */
    STATE_PASSWORD, /* what is typed is not shown, and a line is read */
    STATE_SCREEN,   /* a program that reads keys: an editor, a pager, a menu */
    STATE_LINE,     /* a program waits for a line */
};

enum state_answer { STATE_NO, STATE_YES, STATE_UNKNOWN };

struct state_facts {
    bool echo;                        /* of the terminal's local modes */
    bool canonical;                   /* lines, not keys */
    pid_t foreground;                 /* process group; 0: unknown */
    pid_t shell;                      /* process group of the session's first program */
    enum state_answer reads;          /* is the foreground in a read of the terminal, */
    bool reads_alone;                 /* and waits for nothing else (state_reads_terminal)? */
    enum state_answer reads_commands; /* state_reads_commands of the foreground */
    bool asks_password;               /* state_asks_password of the last line */
    bool is_shell_line; /* a shell is in the foreground: what stands there may have been typed */
};

/*
 * Pure. With echo off and lines on a password is read: readline and programs that draw have both
 * off. A text that asks for one counts where keys are read by another program than a
 * shell (sudo that shows stars), and where a line is read by one. A shell in the foreground that
 * reads keys is at its prompt whoever started it.
 */
enum state_kind state_of(const struct state_facts *facts);
/* "running", "prompt", "password", "screen", "line". */
const char *state_name(enum state_kind kind);

/* The last line of the screen asks for a password or the like: it has a word for one, and ends
 * with a colon (and stars). A fallback: a text can say anything. */
bool state_asks_password(const char *line, size_t n);

/* Fills echo, canonical and foreground from the PTY's master; two system calls. SY_E_SYS when
 * it is none, or nobody has the other end open any more. */
enum sy_code state_read(int master, struct state_facts *facts, struct sy_error *err) SY_NODISCARD;

/* Reads n bytes (at most 4,096) of a process's memory, and comes back whatever that one does. 0, or
 * an errno. */
typedef int state_peek_fn(pid_t pid, uintptr_t there, void *ret, size_t n);

/*
 * Is this process in a read of the terminal `name` (/dev/pts/N)? Best effort, by
 * /proc/PID/syscall and the descriptor that it names: STATE_UNKNOWN where the kernel does not
 * tell (another user's process, one that may not be traced, a kernel without that file), and for
 * one that waits for several descriptors by poll or select where `peek` is NULL or fails. It waits
 * for the terminal if that is one of them. Each thread is looked at, up to LIMIT_STATE_THREADS;
 * with more it is STATE_UNKNOWN, not no. What it saw may be over when it returns. Alone: it is its
 * first thread, and waits for nothing else, so that what comes from it comes by what is typed
 * (NULL: not asked).
 */
enum state_answer state_reads_terminal(pid_t pid, const char *name, state_peek_fn *peek,
                                       bool *ret_alone);
/* The same of a process group's leader, of those beside it in the group, as in a pipeline, and of
 * all that they have started, up to LIMIT_STATE_PROCESSES, the nearest first: a shell that runs a
 * script waits for the one that reads. Who is in the background is in no read of a terminal. */
enum state_answer state_group_reads(pid_t leader, const char *name, state_peek_fn *peek,
                                    bool *ret_alone);
/*
 * Does this process, a shell without a line editor, wait for a command on the terminal `name`?
 * STATE_NO: what it reads is for its own `read` and the like. The kernel tells them apart by how
 * much is asked for: dash reads commands by as much as there is, and what its `read` is for byte by
 * byte; bash has a buffer of its own size for each. STATE_UNKNOWN: it is neither, reads nothing, or
 * has sizes that are not known, or a descriptor of its own. Best effort, as above.
 */
enum state_answer state_reads_commands(pid_t pid, const char *name);
/*
 * Is this process's first thread at work, whatever its terminal is set to: it runs, wants to (state
 * R of proc(5)), or waits for a disk (D)? False where the kernel does not tell, and when it is
 * stopped or gone.
 */
bool state_works(pid_t pid);
/* The same of those in a pipeline with a group's leader, and of what they have started. True where
 * there are too many to look at. */
bool state_group_works(pid_t leader);
/* Does this process, the leader of its group, wait for one in its group that it has started itself?
 * A shell with job control gives each command that is typed a group of its own: what is in its own
 * works out its prompt. False where the kernel does not tell. */
bool state_has_helper(pid_t leader);
/* Has the process the name of a shell, or its executable (/proc/PID/comm, exe)? */
bool state_is_shell(pid_t pid);
/* That name; "" when it has none, or not room enough. */
void state_shell_name(char *ret, size_t size, pid_t pid);
/* Is the name of a shell among the words of that text, bash apart, or of what leads to one? */
bool state_names_shell(const char *text, size_t n);
/* Is it a shell that was started to run a script (a file, `-c`), and so one that takes what is
 * typed for no command? False in doubt. */
bool state_runs_script(pid_t pid);
/*
 * May one read commands for a shell, of this process and all that it has started? It is a shell
 * that runs no script, or one that comes by a terminal or a pipe; hands on to shells elsewhere; or
 * is one of too many; or a script runs, which may start such a shell yet, and nobody is in a read
 * of its input. Foreground: the group of those that may read the terminal `name`; 0: there is none.
 * A job in the background with that as its input counts for nothing. True in doubt. A shell that is
 * known by neither its name nor its executable's, and what runs a line that it has read (awk,
 * eval), is not seen.
 */
bool state_may_read_commands(pid_t root, pid_t foreground, const char *name);
/* Is a cat(1) among this process and what it has started, and is its output a regular file? */
bool state_copies_to_file(pid_t root);

#endif
