#ifndef SY_PROTOCOL_JSONL_INTERNAL_H
#define SY_PROTOCOL_JSONL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "protocol/protocol_internal.h"

struct jsonl;
struct jsonl_call;

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

/*
 * Makes a turn out of configuration, narrowed by the message. SY_E_ARG with a
 * sentence when a member is unknown, malformed or wider than configuration.
 * (jsonl_turn.c)
 */
enum sy_code jsonl_turn_new(struct jsonl_turn **ret, struct tool_context *context,
                            const struct js *message, struct sy_error *err) SY_NODISCARD;
void jsonl_turn_ref(struct jsonl_turn *t);
/* Both accept NULL: the turn of configuration. */
void jsonl_turn_unref(struct jsonl_turn *t);

/* One call, from its message to its answer. */
struct jsonl_call {
    struct jsonl_group *group;
    const struct jsonl_item_type *type;
    const struct js *item;   /* in group->doc; NULL once started */
    struct json_doc args;    /* parsed arguments, until started */
    struct tool_call *tool;  /* NULL: not running */
    struct buf content;      /* the answer, once done */
    uint64_t deltas_dropped; /* for a reader that is too slow */
    bool is_done;
    char request[STORE_ID_SIZE]; /* for approval, that can be answered; "" none */
    char reason[SY_ERR_MSG_MAX]; /* the answer instead of content, if not "" */
    char call_id[LIMIT_MESSAGE_ID + 1];
};

/* The calls of one message: a batch, or one alone. Answered in order. */
struct jsonl_group {
    struct jsonl_group *next;
    struct jsonl_group *prev;
    struct jsonl *front;
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
    struct jsonl_turn *turn; /* NULL: configuration's */
    bool is_turn_refused;
    struct jsonl_group *groups; /* in order of arrival */
    struct jsonl_group *last;
    size_t n_calls;
    uint64_t line;
    unsigned busy; /* inside a walk over the groups: none may be freed */
    uint64_t subscription;
    struct tool_asker asker;
};

/* One line: the message and the document that holds it, which a handler may
 * take (leaving root NULL). */
struct jsonl_line {
    const struct js *message;
    struct json_doc *doc;
};

/* Groups (jsonl_group.c). Unanswered call of this id, or NULL. */
struct jsonl_call *jsonl_call_find(const struct jsonl *j, const char *call_id);
/* Takes the calls of a message; `items` NULL: the message is the call. */
void jsonl_submit(struct jsonl *j, const struct jsonl_line *line, const struct js *items);
/* Cancels the call with this id, or all if NULL. */
void jsonl_interrupt(struct jsonl *j, const char *call_id);
/* Cancels the calls of a turn (NULL: configuration's). */
void jsonl_interrupt_turn(struct jsonl *j, const struct jsonl_turn *turn);
/* Approvals (jsonl_approval.c). Takes a message "exec_approval". */
void jsonl_approval(struct jsonl *j, const struct jsonl_line *line);
/* Nobody will send one any more. */
void jsonl_end_approvals(struct jsonl *j);
/* Ends the front if it is to end and no call is unanswered. */
void jsonl_finish_if_over(struct jsonl *j);

/* Out (jsonl_out.c). */
void jsonl_send_output(struct jsonl *j, const struct jsonl_call *c);
void jsonl_send_error(struct jsonl *j, const char *call_id, const char *text);
void jsonl_send_turn(struct jsonl *j, const struct jsonl_turn *t);
void jsonl_send_tools(struct jsonl *j);
/* Subscribed to the bus; arg is the front. */
void jsonl_on_event(void *arg, const struct event *e);

#endif
