#ifndef SY_TOOLS_TOOLS_H
#define SY_TOOLS_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "config/config.h"
#include "orchestrator/orchestrator.h"

/*
 * The registry of tools (specification, ToolHandler). A tool is one file
 * tool_<name>.c that defines `const struct tool_handler tool_<name>` and one
 * row in tools.def; the build reads the row and compiles the file.
 */
enum tool_kind { TOOL_FUNCTION, TOOL_CUSTOM, TOOL_MCP };
enum payload_kind { PAYLOAD_FUNCTION, PAYLOAD_CUSTOM, PAYLOAD_LOCAL_SHELL, PAYLOAD_MCP };

/* Which front end asks: decides the default size of the model text. */
enum tool_front { FRONT_MCP, FRONT_PROTO };

/* How a front asks the person at its other end (docs/approvals.md). */
struct tool_call;
struct tool_asker {
    uint64_t hold_ms; /* how long a call waits; 0: nobody is there; UINT64_MAX: to the end */
    bool asks_once;   /* a request that was shown can't be shown again: with its comment, or none */
    const char *client; /* the agent's program, for the person; NULL unknown */
    /* The request `id` can be answered, by tool_reply or elsewhere; `question` is its JSON
     * (approval/question.h). Again, unless asks_once, when a comment has come to it. From the loop.
     */
    void (*asked)(void *arg, struct tool_call *call, const char *id, const char *question);
};

/* Specification, ToolInvocation: what the caller sent. Borrowed during `start`. */
struct invocation {
    struct tool_context *context;
    struct session *session; /* of the context's tree; NULL: the context's own */
    const struct turn_context *turn;
    const char *turn_id; /* may be NULL */
    const char *call_id;
    const char *tool_name; /* as called: may be an alias */
    enum payload_kind payload;
    const struct js *arguments; /* FUNCTION, LOCAL_SHELL, MCP: an object */
    const char *input;          /* CUSTOM */
    size_t input_len;
    enum tool_front front;
    const struct tool_asker *asker; /* outlives the call; NULL: nobody is there */
};

/* What a tool answers. The output stands once in each form. */
struct tool_output {
    bool is_aborted;       /* a person ended the turn: nothing else of it should run */
    bool is_error;         /* bad arguments, refusal, machinery; never a non-zero exit */
    bool is_success;       /* the specification's `success`: ran and exit code 0 */
    struct buf text;       /* for people and models: header lines and output */
    struct buf content;    /* function_call_output.output: the output alone when it went well */
    struct buf structured; /* one JSON object that fits output_schema */
};
void tool_output_fini(struct tool_output *o);

/* A started call. */
typedef void tool_done_fn(void *arg, struct tool_call *call, struct tool_output *output);

struct tool_handler {
    const char *name;
    const char *const *aliases; /* callable, never listed; NULL-terminated */
    const char *title;
    const char *description;   /* this and input_schema: texts for tool_add_text */
    const char *input_schema;  /* JSON text, flat object */
    const char *output_schema; /* JSON text */
    bool is_read_only;         /* the four annotations of MCP */
    bool is_destructive;
    bool is_idempotent;
    bool is_open_world;
    bool needs_person;       /* is of no use where nobody may be asked: not listed then */
    const char *shell_types; /* "default|all": values of tools.shell_type that list it */
    enum tool_kind kind;
    bool (*matches_kind)(enum payload_kind payload);
    /* Might it change files? Drives scheduling; unsure means true. */
    bool (*is_mutating)(const struct invocation *inv);
    /*
     * Starts the call: parses arguments into an exec_request and submits it
     * with tool_submit. Bad arguments: SY_E_ARG with a sentence naming the
     * argument, what it got and what would be right.
     */
    enum sy_code (*handle)(const struct invocation *inv, struct tool_call *call,
                           struct sy_error *err);
};

/* All handlers, NULL-terminated, in the order of tools.def. */
const struct tool_handler *const *tool_handlers(void);
/* By name or alias; NULL if unknown. */
const struct tool_handler *tool_find(const char *name);
/* Listed under this configuration: its tools.shell_type, and whether anybody may be asked? */
bool tool_is_listed(const struct tool_handler *t, const struct config *config);

/*
 * What a model is told has to be true under the configuration that holds. In such a text stand
 * `$(timeout_ms)`, `$(login)`, `$(tokens)` and `$(max_tokens)` for the defaults of the arguments
 * and the most of the last; `$(sandbox?YES|NO)`: do commands run in one? `$(escalates?YES|NO)`: may
 * a person be asked to let one run outside of it?
 */
struct told_for {
    const struct config *config;
    enum tool_front front;
};
enum sy_code tool_add_text(struct buf *out, const char *text,
                           const struct told_for *who) SY_NODISCARD;
/* A handler's, as values. */
void tool_write_description(struct jw *w, const struct tool_handler *t, const struct told_for *who);
void tool_write_input_schema(struct jw *w, const struct tool_handler *t,
                             const struct told_for *who);

/*
 * What an engine needs to run tools: configuration, session, loop. Makes turn
 * contexts from configuration.
 */
struct tool_context;

enum sy_code tool_context_new(struct tool_context **ret, const struct config *config,
                              const char *cwd, char *const *environ_list, struct uv_loop_s *loop,
                              struct sy_error *err) SY_NODISCARD;
/* All calls must be over. Closes a timer: run the loop once more afterwards. */
/* Calls are judged (approval/assess.h) and people asked (approval/review.h). Before the first call.
 */
struct tool_approval {
    const char *home;       /* of the user, absolute; NULL unknown */
    const char *rules_path; /* of their rules; NULL: none */
    const char *http_path;  /* of shellyard-http, absolute; NULL: there is none */
};
enum sy_code tool_context_use_approval(struct tool_context *c, const struct tool_approval *options,
                                       struct sy_error *err) SY_NODISCARD;
/* As session_use_launcher, for the session of these tools. */
enum sy_code tool_context_use_launcher(struct tool_context *c, const char *path,
                                       struct sy_error *err) SY_NODISCARD;
void tool_context_free(struct tool_context *c);
/* Ends what still runs of sessions. Before tool_context_free; run the loop until it has nothing
 * more. */
void tool_context_end_sessions(struct tool_context *c);
/* Of those, what was begun in this session (orchestrator.h) or below it. */
void tool_context_end_within(struct tool_context *c, const struct session *s);
/* Have those ended that were to, of this session and below? (TOOL_SESSION_SETTLED) */
bool tool_context_has_settled(const struct tool_context *c, const struct session *s);
/* Have they ended? For a loop that has other things to do. */
bool tool_context_is_over(const struct tool_context *c);
/* All of them (sessions/sessions.h), also to keep them or to lend them to another context. */
struct live_store;
struct live_store *tool_context_sessions(struct tool_context *c);
const struct config *tool_context_config(const struct tool_context *c);
struct session *tool_context_session(struct tool_context *c);
/* The turn that configuration and the engine's cwd give. */
const struct turn_context *tool_context_turn(const struct tool_context *c);

/* Fills a turn from configuration for `cwd`; used by front ends, exec and embed. */
enum sy_code turn_from_config(struct turn_context *ret, const struct config *config,
                              const char *cwd, char *const *environ_list,
                              struct sy_error *err) SY_NODISCARD;
/* What granular lets a person be asked about. */
struct approval_granular turn_granular(const struct config *config);
/* Session options from configuration. */
void session_options_from_config(struct session_options *ret, const struct config *config,
                                 char *const *environ_list);

/*
 * Runs a call: `done` comes exactly once, later, from the loop (never from
 * inside tool_start), unless an error is returned. Errors: SY_E_NOTFOUND
 * unknown tool, SY_E_LIMIT too many calls, SY_E_NOMEM. Bad arguments and
 * refusals are outputs with is_error.
 */
enum sy_code tool_start(struct tool_call **ret, const struct invocation *inv, tool_done_fn *done,
                        void *arg, struct sy_error *err) SY_NODISCARD;
/* `done` still comes. */
void tool_cancel(struct tool_call *call);
/* The front's person has answered, or will not; nothing unless the call waits for that. */
void tool_reply(struct tool_call *call, const struct review_reply *reply);
void tool_give_up(struct tool_call *call);
/*
 * For progress: the last line of output so far that says something, without escape sequences (""
 * where there is none; borrowed until the next call), how many bytes there were in all, which tells
 * whether it may be another line by now, and the time since the start.
 */
const char *tool_last_line(struct tool_call *call);
uint64_t tool_output_bytes(const struct tool_call *call);
uint64_t tool_elapsed_ms(const struct tool_call *call);
const char *tool_call_id(const struct tool_call *call);

/*
 * Sessions for whoever shows them without a call: those that the context's own session may see.
 */
#define TOOL_SESSION_STATE (SY_ERR_MSG_MAX + 16)
struct tool_session {
    const char *id; /* borrowed, as is the command, while nothing else happens */
    const char *command;
    bool has_terminal;
    char state[TOOL_SESSION_STATE]; /* "runs", "exited with code 0", ... */
};
enum sy_code tool_session_find(struct tool_session *ret, struct tool_context *c, const char *id,
                               struct sy_error *err) SY_NODISCARD;
/* The one that began after `id` (NULL: the first); false: there is none. */
bool tool_session_next(struct tool_session *ret, struct tool_context *c, const char *id);

/* What its terminal shows, or what it wrote: LIMIT_RESOURCE_LOG bytes of it, head and tail with a
 * marker between. Nothing counts as read by it. SY_E_NOTFOUND: there is no such session, or it has
 * no terminal. */
enum tool_session_part { TOOL_SESSION_SCREEN, TOOL_SESSION_LOG };
enum sy_code tool_session_read(struct buf *out, struct tool_context *c, const char *id,
                               enum tool_session_part part, struct sy_error *err) SY_NODISCARD;

/* What happens to them: as live_watch (sessions.h), from whatever causes it. */
enum tool_session_change {
    TOOL_SESSION_BEGAN,
    TOOL_SESSION_CHANGED, /* screen and output */
    TOOL_SESSION_ENDED,
    TOOL_SESSION_GONE,
    TOOL_SESSION_SETTLED /* one has ended, known or not; `id` is "" */
};
typedef void tool_session_fn(void *arg, const char *id, enum tool_session_change change);
struct tool_watch;
enum sy_code tool_watch_new(struct tool_watch **ret, struct tool_context *c, tool_session_fn *fn,
                            void *arg, struct sy_error *err) SY_NODISCARD;
/* Before the context goes. Accepts NULL. */
void tool_watch_free(struct tool_watch *w);

/* For handlers (tool_<name>.c): takes the request. */
enum sy_code tool_submit(struct tool_call *call, struct exec_request *request, size_t max_bytes,
                         struct sy_error *err) SY_NODISCARD;

#endif
