#ifndef SY_PROTOCOL_MCP_INTERNAL_H
#define SY_PROTOCOL_MCP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/notice.h"
#include "protocol/protocol_internal.h"
#include "protocol/resource_uri.h"
#include "protocol/rpc.h"

/* What a version of the protocol has. */
struct mcp_version {
    const char *name;
    bool has_annotations; /* and the message of a progress notification */
    bool has_batches;
    bool has_structured; /* structuredContent, outputSchema, title */
};

/* The replies to an array of requests (2025-03-26 only), sent as one array
 * once the last is there. */
struct mcp_batch {
    struct buf out;
    size_t holds; /* calls that may still answer, and the reader of the array */
};

/* A tools/call that was started and is not over. */
struct mcp_call {
    struct mcp_call *next;
    struct mcp_call *prev;
    struct mcp *mcp;
    struct tool_call *tool;
    struct mcp_batch *batch; /* NULL: answered by itself */
    struct rpc_id id;
    struct rpc_id token; /* RPC_ID_NONE: no progress wanted */
    uint64_t due_ms;     /* next look for progress, time of the loop */
    uint64_t beat_ms;    /* progress then, whether something has come or not */
    uint64_t told_bytes; /* output of which progress was told */
    int64_t progress_ms; /* last value sent */
    bool is_cancelled;   /* must not be answered */
    uint64_t elicit;     /* number of the question that its person was asked; 0: none is open */
    uint64_t elicited_ns;
    bool is_prompt;    /* asked by the client's own prompt for approvals, not by a form */
    uint64_t read_ns;  /* its client has answered the ping behind the prompt; 0: not yet */
    bool may_remember; /* what was offered besides yes and no */
    bool may_rule;
    char text[]; /* the strings of id and token */
};

struct mcp {
    struct protocol base;
    const struct mcp_version *version; /* NULL: not initialized */
    struct json_doc no_arguments;      /* {} */
    struct mcp_call *calls;
    size_t n_calls;
    uint64_t n_started;
    uint64_t n_elicited;
    char client[128]; /* its name; "" unknown */
    bool has_prompt;  /* it has a prompt of its own for approvals */
    struct tool_asker asker;
    bool is_ready; /* may be sent what it did not ask for */
    struct tool_watch *watch;
    struct notice list; /* of resources */
    struct mcp_subscription *subscriptions;
    size_t n_subscriptions;
};

struct mcp_request {
    const char *method;
    struct rpc_id id; /* RPC_ID_NONE: a notification */
    const struct js *params;
    struct mcp_batch *batch;
};

/* Replies: open, add the members of the result, close. */
void mcp_reply_open(struct mcp *m, struct jw *w, const struct rpc_id *id);
void mcp_reply_close(struct mcp *m, struct jw *w, const struct rpc_id *id, struct mcp_batch *batch);
/* A result that says nothing. */
void mcp_reply_empty(struct mcp *m, const struct mcp_request *r);
/* Of a list that has one page; answers where another one is asked for. */
bool mcp_is_first_page(struct mcp *m, const struct mcp_request *r);
void mcp_error(struct mcp *m, const struct rpc_id *id, struct mcp_batch *batch, int code,
               const char *fmt, ...) SY_PRINTF(5, 6);
/* Sends the reply in base.out, or puts it with the others of its array (NULL: none). */
void mcp_deliver(struct mcp *m, struct mcp_batch *batch);
/* One hold less; the last one sends and frees. Accepts NULL. */
void mcp_batch_release(struct mcp *m, struct mcp_batch *batch);

/* mcp_version.c */
const struct mcp_version *mcp_version_newest(void);
/* The one that is asked for, or the newest if there is none of that name. */
const struct mcp_version *mcp_version_offer(const char *asked);
/*
 * A request that names in its _meta a version without initialize, or looks for one: is it
 * refused? The answer names the versions that are served.
 */
bool mcp_refuse_modern(struct mcp *m, const struct mcp_request *r);

/* mcp_elicit.c */
/* From the parameters of initialize: can a person there be asked? */
void mcp_elicit_setup(struct mcp *m, const struct js *params);
/* The `asked` of a tool_asker; `arg` is a struct mcp_call. */
void mcp_elicit(void *arg, struct tool_call *tool, const char *id, const char *question);
/* A reply to one of our requests. */
void mcp_elicited(struct mcp *m, const struct js *message);
/* The call is over: takes a form back that nobody has answered. */
void mcp_elicit_end(struct mcp_call *c);

/* mcp_call.c */
/* Does a call run that has this id? */
bool mcp_id_is_used(const struct mcp *m, const struct rpc_id *id);
void mcp_tools_call(struct mcp *m, const struct mcp_request *r);
void mcp_cancelled(struct mcp *m, const struct mcp_request *r);
void mcp_cancel_all(struct mcp *m);
/* Sets the timer to what is due first: progress, notices. */
void mcp_arm(struct mcp *m);
/* So much waits for the peer that what can be left out is. */
bool mcp_is_slow(const struct mcp *m);

/* mcp_resources.c */
void mcp_resources_list(struct mcp *m, const struct mcp_request *r);
void mcp_resource_templates(struct mcp *m, const struct mcp_request *r);
void mcp_resources_read(struct mcp *m, const struct mcp_request *r);
void mcp_subscribe(struct mcp *m, const struct mcp_request *r);
void mcp_unsubscribe(struct mcp *m, const struct mcp_request *r);
enum sy_code mcp_watch_sessions(struct mcp *m, struct sy_error *err) SY_NODISCARD;
/* Forgets the subscriptions, too. */
void mcp_unwatch_sessions(struct mcp *m);
/* When there is something to tell, time of the loop; UINT64_MAX: nothing. */
uint64_t mcp_notices_when(const struct mcp *m);
/* Tells what is due. */
void mcp_send_notices(struct mcp *m, uint64_t now);

#endif
