#ifndef SY_APPROVAL_REVIEW_INTERNAL_H
#define SY_APPROVAL_REVIEW_INTERNAL_H

#include "approval/binding.h"
#include "approval/review.h"
#include "store/rule.h"
#include "store/store.h"
#include "store/watch.h"
#include "store/writer.h"

enum ticket_state {
    TICKET_BUSY, /* a job of the writer goes on */
    TICKET_OPEN, /* it can be answered */
    TICKET_ANSWERED
};

struct review_ticket {
    struct review *review;
    struct review_ticket *next;
    unsigned refs; /* whoever asked, and each job */
    enum ticket_state state;
    bool is_left;
    char *session; /* whose it is */
    /* The question. */
    unsigned char digest[BINDING_SIZE];
    unsigned char *keys; /* of what the session may remember: n_keys times BINDING_SIZE */
    size_t n_keys;       /* 0: nothing */
    char *text;
    char *commented; /* `text` with a model's comment; NULL: none */
    bool asks_once;
    bool is_commenting; /* a comment may come */
    uint64_t hold_ms;
    review_wake_fn *wake;
    void *arg;
    /* The request. */
    char id[STORE_ID_SIZE];
    uint64_t hold_ns; /* when the call goes on without */
    uint64_t expires_ns;
    /* Of the job that goes on: the writer's thread writes them, the loop's reads them after. */
    bool may;
    char made_id[STORE_ID_SIZE];
    enum store_status reply_status;
    char *reply_reason;
    char *reply_by;
    struct review_answer answer;
};

struct review {
    char *state_dir;
    char *session;
    char *principal;
    uint64_t ttl_ms;
    int epoll_fd;
    bool is_ending;
    struct store *reader;
    struct store_writer *writer;
    struct store_watch *watch;
    struct review_ticket *tickets;
    review_commenter_fn *commenter; /* NULL: nobody */
    void *commenter_arg;
};

/* Opens the store for reading, if there is one; false without one, *err set if that is an error. */
bool review_has_reader(struct review *r, struct sy_error *err);

/* review_store.c */

/* The connection that reads, opened if need be; where the files were moved or removed, another
 * one, to those that are there now. */
enum sy_code review_open_reader(struct review *r, struct sy_error *err) SY_NODISCARD;
/* That, the writer and the watch. */
enum sy_code review_open_store(struct review *r, struct sy_error *err) SY_NODISCARD;
void review_close_store(struct review *r);
/* The files are no longer there: who waits for an answer gets none. */
void review_lose_store(struct review *r);

/* review.c */

void review_settle_failed(struct review_ticket *t, const struct sy_error *err);
/* Frees it with its last holder. */
void review_ticket_unref(struct review_ticket *t);
/* The answer is there. */
void review_ticket_settle(struct review_ticket *t, enum review_outcome outcome);
/* Runs one for the ticket, on the writer's thread; `done` drops the ticket's reference. */
void review_ticket_submit(struct review_ticket *t, store_job_fn *run, store_done_fn *done);
/* By what stands in the store. */
void review_ticket_apply(struct review_ticket *t, const struct store_request *q,
                         bool is_remembered);
/* Its request is in the store: it can be answered from now on. */
void review_ticket_open(struct review_ticket *t);
/* Takes its request back, whoever holds the ticket. */
void review_ticket_cancel(struct review_ticket *t);
/* Tells whoever asked, unless they left. */
void review_ticket_wake(struct review_ticket *t);
/* Its call waits from now on. */
void review_ticket_hold(struct review_ticket *t);
/* Has it commented on, if somebody does. (review_comment.c) */
void review_ticket_begin_comment(struct review_ticket *t);
/* What stands in the store of a request that was asked before. */
enum sy_code review_ticket_take_comment(struct review_ticket *t, struct sy_error *err) SY_NODISCARD;

/* review_ask.c */

/* review_ops.ask: a ticket for the question, which goes on with what was asked or granted before
 * where that is the same, and is a new request in the store otherwise. */
enum sy_code review_ask_store(struct review *r, struct review_ticket **ret,
                              const struct review_question *q, struct sy_error *err) SY_NODISCARD;

#endif
