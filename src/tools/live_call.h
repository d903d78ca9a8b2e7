#ifndef SY_TOOLS_LIVE_CALL_H
#define SY_TOOLS_LIVE_CALL_H

#include "sessions/sessions.h"
#include "tools/tools_internal.h"

/*
 * A call about a session: it starts one, writes to one, or only waits for what one does. It is
 * answered when its wait is over; the session goes on (docs/tools.md).
 */
struct live_call;

/* What is shown: the stream of what it wrote, the screen as a person would see it, the rows of it
 * that changed since the last answer, or (auto) the screen of one that draws and else the stream.
 */
enum live_view { LIVE_VIEW_AUTO, LIVE_VIEW_STREAM, LIVE_VIEW_SCREEN, LIVE_VIEW_DIFF };

/* What such a call asks for. Texts are borrowed while it is started. */
struct live_order {
    const char *id; /* of a new session, NULL: a number; of the one that is meant */
    uint64_t yield_ms;
    uint64_t idle_ms; /* 0: never */
    size_t max_bytes; /* of the model text */
    bool until_prompt;
    bool until_input;
    bool until_stable;
    bool has_until;      /* it names anything at all */
    const char *pattern; /* NULL: none */
    enum live_view view;
    bool has_since;
    uint64_t since_seq; /* then: from there on, whatever was read before */
    /* What the session is given when it is this call's turn. */
    const char *input;
    size_t input_len;
    bool pastes;           /* the input is a paste */
    const struct js *keys; /* names, behind the input; NULL: none. As the arguments */
    bool presses_enter;    /* behind both */
    bool ends_input;
    int signal;    /* at once; 0: none */
    bool kills;    /* at once */
    unsigned rows; /* 0: stays as it is */
    unsigned columns;
};

/* A new session that runs the request; taken. */
enum sy_code live_call_start(struct tool_call *call, struct exec_request *request,
                             const struct live_order *order, struct sy_error *err) SY_NODISCARD;
/* The session that the order names. */
enum sy_code live_call_drive(struct tool_call *call, const struct live_order *order,
                             struct sy_error *err) SY_NODISCARD;
/* The session; NULL: it is not known any more. */
struct live *live_call_session(const struct live_call *lc);
/* Ends the wait, or what has not begun to run; a session that runs goes on. */
void live_call_cancel(struct live_call *lc);
/* Is its command on its way to run? */
bool live_call_may_ask(const struct live_call *lc);
enum sy_code live_call_result(struct tool_output *ret, struct tool_call *call);
/* How the command of any call has ended, or stands. Borrows from it. */
void live_call_output(struct exec_output *ret, const struct tool_call *call);
void live_call_free(struct live_call *lc);

/*
 * Arguments of these tools (live_args.c). The names of a session's id, and of what is waited for,
 * are the same everywhere.
 */
#define LIVE_ID_NAMES "session_id", "process_id"
#define LIVE_WAIT_NAMES                                                                            \
    "yield_time_ms", "idle_ms", "until", "pattern", "view", "max_output_tokens", "since_seq"
/* What is typed to one. */
#define LIVE_INPUT_NAMES "chars", "input", "text", "paste", "keys", "enter", "eof", "signal"
/* What starts one. */
#define LIVE_START_NAMES                                                                           \
    "cmd", "command", "shell", "login", "tty", "pty", "stdin", "term", "rows", "cols", "workdir",  \
        "cwd", "working_directory", "timeout_ms", "timeout", "sandbox_permissions",                \
        "justification", "prefix_rule", "env", LIVE_ID_NAMES, LIVE_WAIT_NAMES
/* As properties of an input schema; the short ones are for a tool that is listed with another. */
#define LIVE_WAIT_SCHEMA                                                                           \
    "\"idle_ms\":{\"type\":\"integer\",\"description\":\"Answer once silent so long.\"},"          \
    "\"pattern\":{\"type\":\"string\",\"description\":\"Answer once output matches.\"},"           \
    "\"until\":{\"type\":\"string\",\"description\":"                                              \
    "\"Answer at any of prompt,input (a read),stable (a still screen).\"}," LIVE_VIEW_SCHEMA
#define LIVE_WAIT_SCHEMA_SHORT                                                                     \
    "\"idle_ms\":{\"type\":\"integer\"},\"pattern\":{\"type\":\"string\"},"                        \
    "\"until\":{\"type\":\"string\",\"description\":\"prompt,input,stable\"}," LIVE_VIEW_SCHEMA
#define LIVE_VIEW_SCHEMA                                                                           \
    "\"view\":{\"type\":\"string\",\"enum\":[\"auto\",\"stream\",\"screen\",\"diff\"]},"

/*
 * The bytes that a session is given (live_input.c). Make: of a text in *input, and keys and the
 * like, as its program wants them now. Lines: how many are ended; CR LF ends one.
 */
enum sy_code live_input_make(struct buf *input, struct live *l, const struct strv *keys,
                             const struct live_order *o, struct sy_error *err) SY_NODISCARD;
size_t live_input_lines(const struct buf *input);
/*
 * The first of Ctrl-C, Ctrl-D, Ctrl-Z and Ctrl-\ that stands behind the end of a line; 0: none
 * does. A terminal has taken it before that line is read: all but Ctrl-D drop the line then, and a
 * line editor loses Ctrl-D, or has it as a byte. `has_lines`: the terminal reads lines for one
 * program alone, which loses no Ctrl-D.
 */
char live_input_control(const struct buf *input, bool has_lines);

#define LIVE_ID_ROOM 24
/* The session's id as text, also where it is given as a number; NULL: none is. Into `room`. */
enum sy_code live_args_id(const char **ret, char room[LIVE_ID_ROOM], const struct invocation *inv,
                          struct sy_error *err) SY_NODISCARD;
/* The same; that there is none is an error. */
enum sy_code live_args_need_id(const char **ret, char room[LIVE_ID_ROOM],
                               const struct invocation *inv, struct sy_error *err) SY_NODISCARD;
/* The wait; `fallback_ms` where yield_time_ms is not there, between min and max. */
struct live_yield {
    int64_t fallback_ms;
    int64_t min_ms;
    int64_t max_ms;
};
enum sy_code live_args_wait(struct live_order *ret, const struct invocation *inv,
                            const struct live_yield *yield, struct sy_error *err) SY_NODISCARD;
/* "INT", "SIGINT" or "int", one of those that docs/tools.md lists. */
enum sy_code live_args_signal(int *ret, const struct js *v, struct sy_error *err) SY_NODISCARD;
/* "rows" and "cols"; each stays as it is where the argument is absent. */
enum sy_code live_args_size(unsigned *ret_rows, unsigned *ret_cols, const struct js *args,
                            struct sy_error *err) SY_NODISCARD;

/*
 * What the tools for sessions do, once the names of the arguments are known to be theirs: for
 * `shell` (tool_shell.c), whose actions they are. `poll`: the wait of a call that gives nothing.
 */
enum sy_code tool_live_start(const struct invocation *inv, struct tool_call *call,
                             const struct live_yield *yield, struct sy_error *err) SY_NODISCARD;
enum sy_code tool_live_write(const struct invocation *inv, struct tool_call *call,
                             const struct live_yield *poll, struct sy_error *err) SY_NODISCARD;
enum sy_code tool_live_end(const struct invocation *inv, struct tool_call *call,
                           struct sy_error *err) SY_NODISCARD;
enum sy_code tool_live_list(const struct invocation *inv, struct tool_call *call,
                            struct sy_error *err) SY_NODISCARD;

#endif
