#ifndef SY_BENCH_PTY_H
#define SY_BENCH_PTY_H

#include "measure.h"

/*
 * Programs on terminals, by a bare loop, by the engine in this process, and by other programs on
 * pipes. All type the same and look for the same answer.
 */
#define PTY_TIMEOUT_MS 20000
#define PTY_TYPED      64U

/* What is on the terminal. `argv` is what is executed. */
struct pty_task {
    char *const *argv;
    bool is_shell;     /* it is typed a command, else a number (pty_program) */
    const char *ready; /* what it has written once it may be typed to */
};
/* What is typed for a number, with the end of the line, and what is looked for. */
size_t pty_typed(char ret[PTY_TYPED], const struct pty_task *task, unsigned number);
size_t pty_wanted(char ret[PTY_TYPED], unsigned number);

/* A bare loop: openpty, posix_spawn, read(2) and write(2) that block. */
struct pty_bare {
    pid_t pid;
    int master;
};
enum sy_code pty_bare_open(struct pty_bare *ret, char *const argv[],
                           struct sy_error *err) SY_NODISCARD;
/* Reads until that text has come, or (NULL) to the end. Adds to *bytes (NULL: nobody counts). */
enum sy_code pty_bare_read(struct pty_bare *b, const char *text, uint64_t *bytes, struct buf *into,
                           struct sy_error *err) SY_NODISCARD;
enum sy_code pty_bare_trip(struct pty_bare *b, const struct pty_task *task, unsigned number,
                           double *ret_us, struct sy_error *err) SY_NODISCARD;
/* Waits for its end. */
void pty_bare_wait(struct pty_bare *b);
/* Kills it. */
void pty_bare_close(struct pty_bare *b);

/* The engine: sessions (sessions/sessions.h) in a sandbox of workspace-write without namespaces,
 * on a loop of its own. */
struct pty_engine;
enum sy_code pty_engine_new(struct pty_engine **ret, struct sy_error *err) SY_NODISCARD;
void pty_engine_free(struct pty_engine *e);
/* Starts its one session, until it is ready (NULL: only until it runs). */
enum sy_code pty_engine_open(struct pty_engine *e, char *const argv[], const char *ready,
                             struct sy_error *err) SY_NODISCARD;
enum sy_code pty_engine_trip(struct pty_engine *e, const struct pty_task *task, unsigned number,
                             double *ret_us, struct sy_error *err) SY_NODISCARD;
/* Until its session has ended: seconds since its first output, and bytes. */
enum sy_code pty_engine_drain(struct pty_engine *e, double *ret_s, uint64_t *ret_bytes,
                              struct sy_error *err) SY_NODISCARD;

/* Another program, on pipes, that has the terminal. */
enum pty_kind {
    PTY_MCP,  /* an MCP server with exec_command and write_stdin */
    PTY_TMUX, /* tmux in control mode: `argv` up to its command */
    PTY_PEER  /* it measures by itself (pty_peer.mjs) */
};
struct pty_other {
    enum pty_kind kind;
    char **argv;
    const struct pty_task *task;
    struct piped_child child;
    struct line_reader reader;
    struct buf request;
    struct buf line; /* the last answer */
    uint64_t next_id;
    char session[64];
};
/* Starts it, with its task if there is one. */
enum sy_code pty_other_open(struct pty_other *o, enum pty_kind kind, char **argv,
                            const struct pty_task *task, struct sy_error *err) SY_NODISCARD;
void pty_other_close(struct pty_other *o);
enum sy_code pty_other_trip(struct pty_other *o, unsigned number, double *ret_us,
                            struct sy_error *err) SY_NODISCARD;
/* PTY_PEER: `count` trips, added to the series. */
enum sy_code pty_other_burst(struct pty_other *o, unsigned first, unsigned count, struct series *us,
                             struct sy_error *err) SY_NODISCARD;
/* PTY_TMUX, PTY_PEER: all that the task writes. */
enum sy_code pty_other_drain(struct pty_other *o, double *ret_s, uint64_t *ret_bytes,
                             struct sy_error *err) SY_NODISCARD;
/* PTY_MCP: exec_command and write_stdin; the answer's line is in o->line. `more`: members of the
 * arguments, after a comma. */
enum sy_code pty_other_exec(struct pty_other *o, char *const argv[], bool tty, const char *more,
                            struct sy_error *err) SY_NODISCARD;
enum sy_code pty_other_type(struct pty_other *o, const char *text, const char *more,
                            struct sy_error *err) SY_NODISCARD;

/* The time "T<digits>;" or "T<digits>.<digits>;" in an answer; false: none. */
bool pty_stamp(const char *text, uint64_t *ret_ns);

/* The suites (bench_pty.c, pty_cause.c). */
void pty_cause(struct variant *servers, size_t n, const char *program, size_t rounds);

#endif
