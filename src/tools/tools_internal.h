#ifndef SY_TOOLS_TOOLS_INTERNAL_H
#define SY_TOOLS_TOOLS_INTERNAL_H

#include "sessions/sessions.h"
#include "tools/live_show.h"
#include "tools/tools.h"

/* A started call: the tool's side of an orchestrator call. */
struct tool_call {
    struct tool_context *context;
    struct session *session;
    const struct tool_handler *handler;
    const struct turn_context *turn; /* during `handle` only */
    char *call_id;
    enum tool_front front;
    const struct tool_asker *asker;
    tool_done_fn *done;
    void *arg;
    uint64_t started_ns;
    size_t max_bytes; /* of the model text */
    uint64_t timeout_ms;
    bool is_mutating;
    struct orch_call *orch;
    struct orch_call *first; /* the attempt before that one (retry.h); NULL: none */
    struct orch_driver *driver;
    const struct patch_call *patch;   /* of a call without a command (patch_call.h); borrowed */
    const struct access_call *access; /* of a call that asks for it (access_call.h); borrowed */
    struct live_call *live;           /* of a call about a session (live_call.h); NULL: of none */
    bool is_cancelled;
    struct buf last_line; /* tool_last_line */
    /* An answer that needs no run (bad arguments), told from the loop. */
    bool has_refusal;
    struct sy_error refusal;
    bool has_answer; /* one that is known at once (tool_call_answer) */
    struct tool_output answer;
    struct tool_call *next;
};

/* What a request needs besides its command: who asks, whether it writes (context.c). */
void tool_call_fill_request(struct tool_call *call, struct exec_request *request);
/* Answers and frees; from the loop. */
void tool_call_complete(struct tool_call *call);
/* The same, a little later, with an error, or with an answer that is there already (taken). */
void tool_call_refuse(struct tool_call *call, const struct sy_error *why);
void tool_call_answer(struct tool_call *call, struct tool_output *answer);

/* Builds what a tool answers out of a finished call (result.c). */
enum sy_code result_build(struct tool_output *ret, const struct tool_call *call,
                          const struct exec_output *output) SY_NODISCARD;
/* How far a session has come that a call had to do with. */
#define RESULT_NEXT 240
struct result_session {
    const char *id;
    bool is_running;
    bool tells_more;    /* where the specification's answer has no place for it */
    const char *reason; /* why the wait is over */
    struct live_shown shown;
    struct buf screen; /* the facts about the screen as JSON; "" where it is not shown */
    struct live_terminal terminal;
    size_t pending_input;   /* bytes that it has not taken yet */
    char next[RESULT_NEXT]; /* the call that goes on; "" none */
};
/* As result_build, for such a call; `output` is of the command as far as it has come. */
enum sy_code result_build_session(struct tool_output *ret, const struct tool_call *call,
                                  const struct exec_output *output,
                                  const struct result_session *session) SY_NODISCARD;
/* Lines of the text form: of a session, why it is answered and how it stands; of any command, who
 * had a say in it. (result_text.c) */
enum sy_code result_text_stand(struct buf *ret, const struct result_session *s) SY_NODISCARD;
enum sy_code result_text_command(struct buf *ret, const struct exec_output *out) SY_NODISCARD;
extern const char result_session_schema[];
/* The output schema of a tool that has answers of all these kinds. */
extern const char result_any_schema[];
/* The same for a call that was refused before it became one. */
enum sy_code result_build_error(struct tool_output *ret, const struct sy_error *err) SY_NODISCARD;
/* The same of what could not be typed: where that was judged as a command, what can be done for a
 * text. */
enum sy_code result_build_untyped(struct tool_output *ret, const struct sy_error *err) SY_NODISCARD;
/* The member "approval" of an answer; nothing where nobody was asked (NULL). */
void result_write_review(struct jw *w, const struct review_answer *a);
/*
 * The frame of an answer of a call that runs no command, whose parts have `max` bytes at most:
 * made, the members that all have (first, and last), and the end, which frees it where `rc` is an
 * error.
 */
void result_begin(struct tool_output *ret, const struct exec_output *output, size_t max);
void result_write_first(struct jw *w, const struct tool_output *ret,
                        const struct exec_output *output);
void result_write_last(struct jw *w, const struct exec_output *output);
enum sy_code result_end(struct tool_output *ret, enum sy_code rc);
/* A line of the answer for each thing that was refused. */
enum sy_code result_add_denials(struct buf *ret, const struct exec_output *out) SY_NODISCARD;
/* The JSON text of the output schema that result_build fills. */
extern const char result_schema[];

/* The arguments that request_fill_common reads, as a list of names knows them. */
#define REQUEST_COMMON_NAMES                                                                       \
    "workdir", "cwd", "working_directory", "timeout_ms", "timeout", "sandbox_permissions",         \
        "justification", "prefix_rule", "max_output_tokens", "env"

/* The properties of an input schema that request_fill_common reads, after "workdir". */
#define REQUEST_COMMON_SCHEMA                                                                      \
    "\"timeout_ms\":{\"type\":\"integer\",\"description\":"                                        \
    "\"Ends all of it after that. Default $(timeout_ms).\"}," REQUEST_MORE_SCHEMA
#define REQUEST_MORE_SCHEMA                                                                        \
    "\"env\":{\"type\":\"object\"},"                                                               \
    "\"max_output_tokens\":{\"type\":\"integer\",\"description\":"                                 \
    "\"Default $(tokens), at most $(max_tokens) (of 4 bytes).\"},"                                 \
    "\"sandbox_permissions\":{\"type\":\"string\",\"enum\":[\"use_default\","                      \
    "\"require_escalated\"],\"description\":\"$(escalates?require_escalated: ask a person to run " \
    "it outside the sandbox.|Of no use here: leave it out.)\"},"                                   \
    "\"justification\":{\"type\":\"string\",\"description\":\"Why; shown to $(escalates?that "     \
    "person|a person who is asked).\"}"

/*
 * Arguments that the process tools share (request.c): working directory,
 * timeout, permissions, justification, output size, env. `ret_max_bytes` is
 * the model text's size. Every error names the argument.
 */
enum sy_code request_fill_common(struct exec_request *ret, size_t *ret_max_bytes,
                                 const struct invocation *inv, struct sy_error *err) SY_NODISCARD;
/* The size of the model text, from max_output_tokens. */
enum sy_code request_fill_budget(size_t *ret, const struct invocation *inv,
                                 struct sy_error *err) SY_NODISCARD;
/* The same where no argument says. */
size_t request_budget(const struct invocation *inv);
/* May a command change something? Unsure means true. */
bool request_is_mutating(const struct invocation *inv);
/* The first of the names that is there; two of them at once are SY_E_ARG. */
enum sy_code request_pick(const struct js **ret, const struct js *args, const char *const *names,
                          struct sy_error *err) SY_NODISCARD;
/* A list of words, the argument `name`, as an argument list. */
enum sy_code request_fill_argv(struct strv *argv, const struct js *v, const char *name,
                               struct sy_error *err) SY_NODISCARD;
/* SY_E_ARG with the nearest known name if `args` has another member than these. */
enum sy_code request_check_names(const struct js *args, const char *const *names,
                                 struct sy_error *err) SY_NODISCARD;
/* SY_E_ARG: the argument is no whole number, but what it is. */
enum sy_code request_no_number(const struct js *v, const char *name, struct sy_error *err);
enum sy_code request_bool(bool *ret, const struct js *v, const char *name,
                          struct sy_error *err) SY_NODISCARD;

#endif
