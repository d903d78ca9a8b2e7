#ifndef SY_APPROVAL_REVIEW_H
#define SY_APPROVAL_REVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "approval/question.h"
#include "approval/risk.h"
#include "approval/rules.h"
#include "base/err.h"
#include "store/request.h"

/*
 * A person's answer to a call that needs one. The question goes into the store, where
 * `shellyard approvals` of any terminal finds it; a front that can ask its own person does
 * so besides and hands the answer in. Whoever answers first decides, once; what was
 * approved is taken once, by the call that asked or by the same call made again.
 *
 * No loop inside: review_fd is readable when review_step has something to do.
 */
struct review;
struct review_ticket; /* one call that waits for an answer */

struct review_options {
    const char *state_dir; /* absolute */
    const char *session;
    const char *principal;
    uint64_t ttl_ms; /* how long a request can be answered */
};

/* Opens nothing yet. */
enum sy_code review_new(struct review **ret, const struct review_options *options,
                        struct sy_error *err) SY_NODISCARD;
/* All tickets must have been left. Takes back what nobody answered. Accepts NULL. */
void review_free(struct review *r);

/* For poll(2); -1 while nothing was asked. Never changes once it is there. */
int review_fd(const struct review *r);
/* When to step at the latest; UINT64_MAX: no need. */
uint64_t review_deadline_ns(const struct review *r);
void review_step(struct review *r, uint64_t now_ns);

enum review_outcome {
    REVIEW_APPROVED,
    REVIEW_DENIED,
    REVIEW_ABORTED,   /* denied, and the turn ends */
    REVIEW_TIMED_OUT, /* denied, since nobody answered in time */
    REVIEW_PENDING,   /* nobody has answered yet; the request can still be answered */
    REVIEW_FAILED     /* nobody could be asked: err */
};

struct review_answer {
    enum review_outcome outcome;
    enum store_status status;
    const char *word;   /* static, what became of it: that of the status, or "failed" */
    uint64_t waited_ms; /* from the request to the decision, where a person decided; by the wall
                           clock, so at times 0 */
    bool is_remembered; /* an answer from before; nobody was asked */
    char id[STORE_ID_SIZE];
    char reason[SY_ERR_MSG_MAX]; /* of who denied it; "" none given */
    char decided_by[64];
    struct sy_error err;
};

/*
 * Somebody who may comment on each request (tools/comment.h): true if they will call review_comment
 * for it, later. `text` is the question's, borrowed for the call.
 */
typedef bool review_commenter_fn(void *arg, const char *id, const char *text);
/* Before the first question. */
void review_use_commenter(struct review *r, review_commenter_fn *fn, void *arg);
/* The comment on a request, by that model; `risk` NULL: there is none. Whoever waits for it is
 * asked now, whoever looks later sees it; it decides nothing, and what is decided it changes no
 * more.
 */
void review_comment(struct review *r, const char *id, const struct risk *risk, const char *model);

/* Tells that the ticket has a new answer or a new state: from review_step or review_ask. */
typedef void review_wake_fn(void *arg);

struct review_question {
    const struct question *question; /* borrowed */
    /* The session that asks, then those above it, whose answers for the session, and whose noes,
     * hold for it too; NULL-terminated, borrowed. NULL: the reviewer's own alone. */
    const char *const *sessions;
    uint64_t hold_ms; /* how long the call waits; UINT64_MAX: as long as it can be answered */
    bool asks_once;   /* its front can show the request only once: not before a comment is there */
    review_wake_fn *wake;
    void *arg;
};

struct review_reply {
    enum store_status status; /* STORE_APPROVED to STORE_ABORTED */
    const char *reason;       /* NULL: none */
    const char *decided_by;
};

/* The functions of a reviewer, for those that must not depend on the store. */
struct review_ops {
    enum sy_code (*ask)(struct review *r, struct review_ticket **ret,
                        const struct review_question *q, struct sy_error *err);
    /* NULL: none yet. Lives as long as the ticket. */
    const struct review_answer *(*answer)(const struct review_ticket *t);
    /* The request's id once it can be answered and is to be shown; "" before. */
    const char *(*id)(const struct review_ticket *t);
    /* question_write; lives as long as the ticket. Another pointer once there is a comment in it.
     */
    const char *(*text)(const struct review_ticket *t);
    /* A front's answer. Counts if it is the first. */
    void (*reply)(struct review_ticket *t, const struct review_reply *reply);
    /* The front's person did not answer: no use in waiting for them. Before the request can be
     * answered too. */
    void (*give_up)(struct review_ticket *t);
    /* The call is over. What nobody answered is taken back unless it was told as pending. */
    void (*leave)(struct review_ticket *t);
    /* A session below the reviewer's own is over: what nobody answered is taken back, and what was
     * approved for it. */
    void (*end)(struct review *r, const char *session);
};

extern const struct review_ops review_store_ops;

/* Whom a session asks. */
struct review_by {
    const struct review_ops *ops; /* NULL: nobody */
    struct review *review;
};

/*
 * Decides a request in the store, for whoever has it open: only what its question offers.
 * STORE_APPROVED_WITH_RULE makes the rule with it, or neither.
 */
enum sy_code review_decide(struct store_answer *ret, struct store *st, const char *id,
                           const struct review_reply *reply, struct sy_error *err) SY_NODISCARD;

/* The rules that answers made, for an assessor (assess.h); `arg` is a struct review. */
enum sy_code review_rules_version(void *arg, uint64_t *ret, struct sy_error *err) SY_NODISCARD;
enum sy_code review_rules_read(void *arg, struct rules *into, struct sy_error *err) SY_NODISCARD;

/* What answers let commands do for good: the accesses of that store (store/access.h), changed since
 * `*version` (0: never read), which is brought up to date. *ret_is_new false: not. */
struct store_accesses;
enum sy_code review_access_read(struct review *r, struct store_accesses *ret, bool *ret_is_new,
                                uint64_t *version, struct sy_error *err) SY_NODISCARD;

#endif
