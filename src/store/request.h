#ifndef SY_STORE_REQUEST_H
#define SY_STORE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

/*
 * Requests for a person's approval. Each is for exactly what its digest covers, is
 * decided at most once, whoever tries, and is over when its time is: by the monotonic
 * clock while the machine runs, by the wall clock after it was started anew.
 *
 * Functions that write do so by themselves, or in a job of a writer (store/writer.h).
 */

#define STORE_ID_SIZE     33U /* 128 random bits in hex, and NUL */
#define STORE_DIGEST_SIZE 32U

/* The longest that a request or a grant lasts: a year, so that no sum overflows. */
#define STORE_TTL_MAX_MS 31536000000ULL

/* The numbers are on disks. */
enum store_status {
    STORE_PENDING = 0,
    STORE_APPROVED = 1,
    STORE_APPROVED_FOR_SESSION = 2,
    STORE_APPROVED_WITH_RULE = 3,
    STORE_DENIED = 4,
    STORE_ABORTED = 5,   /* denied, and the turn ends */
    STORE_TIMED_OUT = 6, /* counts as denied */
    STORE_CANCELLED = 7  /* the call ended before anybody answered */
};

/* "pending", "approved", "approved_for_session", "approved_with_rule", "denied", "abort",
 * "timed_out", "cancelled". */
const char *store_status_name(enum store_status s);

struct store_request_new {
    const unsigned char *digest; /* STORE_DIGEST_SIZE bytes */
    const char *text;            /* for the person */
    const char *session;
    const char *principal;
    uint64_t ttl_ms; /* from now */
};

struct store_request {
    char id[STORE_ID_SIZE];
    unsigned char digest[STORE_DIGEST_SIZE];
    char *text; /* NULL in lists */
    char *session;
    char *principal;
    int64_t created_ms; /* since 1970, for people */
    int64_t expires_ms;
    uint64_t left_ms; /* until it is over, by the clock that counts; 0 unless pending */
    enum store_status status;
    char *reason; /* "" unless given */
    char *decided_by;
    int64_t decided_ms; /* 0: not */
    bool is_used;
};

struct store_requests {
    struct store_request *v;
    size_t n;
};

void store_request_fini(struct store_request *r);
void store_requests_fini(struct store_requests *list);

/* SY_E_ARG for a text that is too long or no UTF-8; SY_E_LIMIT when LIMIT_STORE_PENDING wait. */
enum sy_code store_request_create(char ret_id[STORE_ID_SIZE], struct store *st,
                                  const struct store_request_new *r,
                                  struct sy_error *err) SY_NODISCARD;

/* SY_E_NOTFOUND for none. */
enum sy_code store_request_get(struct store_request *ret, struct store *st, const char *id,
                               struct sy_error *err) SY_NODISCARD;

/* The latest of that session and digest that waits, or was decided and not used, and is not
 * over; without its text. SY_E_NOTFOUND for none. */
enum sy_code store_request_find(struct store_request *ret, struct store *st, const char *session,
                                const unsigned char *digest, struct sy_error *err) SY_NODISCARD;

/* All that wait, the oldest first, without their texts. */
enum sy_code store_requests_pending(struct store_requests *ret, struct store *st,
                                    struct sy_error *err) SY_NODISCARD;

struct store_access_new;

struct store_decision {
    const char *id;
    enum store_status status; /* STORE_APPROVED to STORE_ABORTED */
    const char *reason;       /* NULL: none; the rule's prefix for STORE_APPROVED_WITH_RULE */
    const char *decided_by;   /* who or what way */
    const struct strv *rule;  /* STORE_APPROVED_WITH_RULE: the prefix, made with it; or NULL */
    bool rule_lifts_sandbox;
    const struct store_access_new *access; /* in place of a rule (access.h); or NULL */
};

enum store_verdict {
    STORE_TAKEN,           /* this decision counts */
    STORE_ALREADY_DECIDED, /* another one does */
    STORE_ENDED,           /* timed out or cancelled: it changes nothing */
    STORE_UNKNOWN          /* no such request */
};

struct store_answer {
    enum store_verdict verdict;
    enum store_status status; /* of the request from now on; not for STORE_UNKNOWN */
};

/* Decides a request that waits. */
enum sy_code store_request_decide(struct store_answer *ret, struct store *st,
                                  const struct store_decision *d,
                                  struct sy_error *err) SY_NODISCARD;

/* The call is over: nobody need answer. STORE_TAKEN when it was pending. */
enum sy_code store_request_cancel(struct store_answer *ret, struct store *st, const char *id,
                                  struct sy_error *err) SY_NODISCARD;
/* The same for all of a session. */
enum sy_code store_requests_cancel(size_t *ret_n, struct store *st, const char *session,
                                   struct sy_error *err) SY_NODISCARD;
/* Marks those whose time is over; to get or list one does not need it. */
enum sy_code store_requests_expire(size_t *ret_n, struct store *st,
                                   struct sy_error *err) SY_NODISCARD;

/* Another text for a request that waits; of what is approved only the digest counts. Nothing where
 * it does not wait. */
enum sy_code store_request_amend(struct store *st, const char *id, const char *text,
                                 struct sy_error *err) SY_NODISCARD;

/*
 * Before what was approved runs: *ret_may once, and only for an approved request of that
 * session and digest whose time is not over.
 */
enum sy_code store_request_use(bool *ret_may, struct store *st, const char *id, const char *session,
                               const unsigned char *digest, struct sy_error *err) SY_NODISCARD;

#endif
