#ifndef SY_PROTOCOL_JSONL_INTERNAL_H
#define SY_PROTOCOL_JSONL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "protocol/protocol_internal.h"

struct jsonl;
struct jsonl_call;
struct jsonl_session;

/* A kind of call: its item, its answer, how to make an invocation of it. */
struct jsonl_item_type {
    const char *type;
    const char *output_type;
    enum payload_kind payload;
    /* Fills tool_name and arguments or input. SY_E_ARG, SY_E_NOTFOUND with a
     * sentence for the model. `args` keeps what arguments points to. */
    enum sy_code (*prepare)(struct invocation *ret, const struct js *item, struct json_doc *args,
                            struct sy_error *err);
};

/* By the "type" of an item; NULL: no call. (jsonl_item.c) */
const struct jsonl_item_type *jsonl_item_type_find(const char *type);

/* What a `turn` message set; shared by the calls that came under it. */
struct jsonl_turn {
    size_t refs;
    struct turn_context context;
    char id[LIMIT_MESSAGE_ID + 1]; /* "": none */
};

/* What a message `turn` wants, or one that opens a session; the latter has no turn_id. */
struct jsonl_wish {
    struct turn_wish wish;
    char turn_id[LIMIT_MESSAGE_ID + 1]; /* "": none */
};
/* SY_E_ARG with a sentence when a member is unknown or malformed. (jsonl_turn.c) */
enum sy_code jsonl_wish_read(struct jsonl_wish *ret, const struct js *message, bool opens,
                             struct sy_error *err) SY_NODISCARD;

/*
 * Makes a turn of a session: out of configuration, or of what the session above
 * has now, narrowed by what is wanted. SY_E_ARG with a sentence where that would
 * be wider. (jsonl_turn.c)
 */
enum sy_code jsonl_turn_new(struct jsonl_turn **ret, const struct jsonl_session *s,
                            struct tool_context *context, const struct jsonl_wish *wish,
                            struct sy_error *err) SY_NODISCARD;
void jsonl_turn_ref(struct jsonl_turn *t);
/* Both accept NULL: the turn of configuration. */
void jsonl_turn_unref(struct jsonl_turn *t);

/* The main session, or one below it. In the list parents come before their children. */
struct jsonl_session {
    struct jsonl_session *next;
    struct jsonl_session *parent; /* NULL: the main one */
    struct session *orch;
    struct turn_wish
        opened; /* by which it was opened, for all its turns; the main one's: nothing */
    struct jsonl_wish wished; /* by its last turn */
    struct jsonl_turn *turn;  /* NULL: the main one has configuration's */
    bool is_turn_refused;     /* the last message about it was; one above may be as well */
    bool is_outdated;         /* its turn would be wider than that above by now */
    bool is_closing;
    bool is_ended; /* and so are the commands that it has left running */
    size_t n_groups;
    char id[LIMIT_SESSION_NAME + 1]; /* "": the main one */
};

/* One call, from its message to its answer. */
struct jsonl_call {
    struct jsonl_group *group;
    const struct jsonl_item_type *type;
    const struct js *item;  /* in group->doc; NULL once started */
    struct json_doc args;   /* parsed arguments, until started */
    struct tool_call *tool; /* NULL: not running */
    struct buf content;     /* the answer, once done */
    bool is_done;
    bool may_remember; /* what its request offers besides yes and no */
    bool may_rule;
    char request[STORE_ID_SIZE]; /* for approval, that can be answered; "" none */
    char reason[SY_ERR_MSG_MAX]; /* the answer instead of content, if not "" */
    char call_id[LIMIT_MESSAGE_ID + 1];
};

/* The calls of one message: a batch, or one alone. Answered in order. */
struct jsonl_group {
    struct jsonl_group *next;
    struct jsonl_group *prev;
    struct jsonl *front;
    struct jsonl_session *session;
    struct jsonl_turn *turn;
    struct json_doc doc;
    size_t n;
    size_t n_started;
    size_t n_running;
    size_t n_sent;
    bool is_parallel;
    bool is_refused; /* came after a turn that was refused */
    struct jsonl_call calls[];
};

struct jsonl {
    struct protocol base;
    struct jsonl_session main;
    struct jsonl_group *groups; /* in order of arrival */
    struct jsonl_group *last;
    size_t n_calls;
    uint64_t line;
    bool is_leaving; /* what ends with us has been told to */
    unsigned busy;   /* inside a walk over the groups: none may be freed */
    uint64_t subscription;
    struct tool_watch *watch;
    struct tool_asker asker;
};

/* One line: the message and the document that holds it, which a handler may
 * take (leaving root NULL). */
struct jsonl_line {
    const struct js *message;
    struct json_doc *doc;
};

/* Sessions (jsonl_session.c). The one that a message names, the main one for none; SY_E_NOTFOUND
 * with a sentence where there is no such one. */
enum sy_code jsonl_session_of(struct jsonl_session **ret, struct jsonl *j, const struct js *message,
                              struct sy_error *err) SY_NODISCARD;
/* By the id that events have; NULL: none of this front. */
struct jsonl_session *jsonl_session_by_orch(struct jsonl *j, const char *session_id);
/* Must nothing run in it, since its turn or one above it was refused? */
bool jsonl_session_is_refused(const struct jsonl_session *s);
/* Takes messages "session" and "turn". */
void jsonl_session(struct jsonl *j, const struct jsonl_line *line);
void jsonl_turn(struct jsonl *j, const struct jsonl_line *line);
/* Closes those that were to be closed and whose calls are all answered. */
void jsonl_sessions_reap(struct jsonl *j);
/* All end without a word; the commands that they have left running are told to. */
void jsonl_sessions_leave(struct jsonl *j);
/* All but the main one, which have no calls any more. */
void jsonl_sessions_free(struct jsonl *j);

/* Groups (jsonl_group.c). Unanswered call of this id, or NULL. */
struct jsonl_call *jsonl_call_find(const struct jsonl *j, const struct jsonl_session *s,
                                   const char *call_id);
/* Takes the calls of a message; `items` NULL: the message is the call. */
void jsonl_submit(struct jsonl *j, const struct jsonl_line *line, const struct js *items);
/* Cancels all; the call with this id; all of a session and of those below it; those of a turn
 * (NULL: configuration's), and all of the sessions below. */
void jsonl_interrupt(struct jsonl *j);
void jsonl_interrupt_call(struct jsonl *j, const struct jsonl_session *s, const char *call_id);
void jsonl_interrupt_session(struct jsonl *j, const struct jsonl_session *s);
void jsonl_interrupt_turn(struct jsonl *j, const struct jsonl_session *s,
                          const struct jsonl_turn *turn);
/* Approvals (jsonl_approval.c). Takes a message "exec_approval". */
/* Keeps what the answer to the request needs. */
void jsonl_keep_request(struct jsonl_call *c, const struct event_approval_request *e);
void jsonl_approval(struct jsonl *j, const struct jsonl_line *line);
/* Nobody will send one any more. */
void jsonl_end_approvals(struct jsonl *j);
/* What happens to the commands that go on (tool_watch_new). */
void jsonl_on_session(void *arg, const char *id, enum tool_session_change change);
/* Ends the front if it is to end and no call is unanswered. */
void jsonl_finish_if_over(struct jsonl *j);

/* Out (jsonl_out.c). */
void jsonl_send_output(struct jsonl *j, const struct jsonl_call *c);
void jsonl_send_error(struct jsonl *j, const char *call_id, const char *text);
/* About a session (NULL: the main one), and a call of it if that is known. */
void jsonl_send_session_error(struct jsonl *j, const struct jsonl_session *s, const char *call_id,
                              const char *text);
void jsonl_send_turn(struct jsonl *j, const struct jsonl_session *s);
void jsonl_send_opened(struct jsonl *j, const struct jsonl_session *s);
void jsonl_send_closed(struct jsonl *j, const struct jsonl_session *s);
void jsonl_send_tools(struct jsonl *j);
/* Subscribed to the bus; arg is the front. */
void jsonl_on_event(void *arg, const struct event *e);

#endif
