#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/access.h"
#include "store/request.h"
#include "store/rule.h"
#include "store/store_internal.h"

#define NS_PER_MS 1000000

static const char *const status_names[] = {
    "pending",   "approved", "approved_for_session", "approved_with_rule", "denied", "abort",
    "timed_out", "cancelled"};

const char *
store_status_name(enum store_status s)
{
    return status_names[s];
}

void
store_request_fini(struct store_request *r)
{
    mem_free(r->text);
    mem_free(r->session);
    mem_free(r->principal);
    mem_free(r->reason);
    mem_free(r->decided_by);
    *r = (struct store_request){0};
}

void
store_requests_fini(struct store_requests *list)
{
    for (size_t i = 0; i < list->n; i++) {
        store_request_fini(&list->v[i]);
    }
    mem_free(list->v);
    *list = (struct store_requests){0};
}

/* Makes room among those that are over, and refuses when too many wait. */
static enum sy_code
check_room(struct store *st, struct sy_error *err)
{
    size_t expired = 0;
    int64_t n = 0;
    enum sy_code rc = store_requests_expire(&expired, st, err);

    if (rc == SY_E_OK) {
        rc = store_number(&n, st, "SELECT count(*) FROM request WHERE status = 0", err);
    }
    if (rc == SY_E_OK && n >= (int64_t)LIMIT_STORE_PENDING) {
        rc = sy_err_set(err, SY_E_LIMIT,
                        "%u requests wait for an answer already; answer some (shellyard approvals) "
                        "and try again",
                        LIMIT_STORE_PENDING);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    char sql[160];

    (void)snprintf(sql, sizeof(sql),
                   "DELETE FROM request WHERE status <> 0 AND seq <= "
                   "(SELECT max(seq) FROM request) - %u",
                   LIMIT_STORE_ENDED);
    return store_exec(st, sql, err);
}

static enum sy_code
insert(struct store *st, const char *id, const struct store_request_new *r, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_term term;
    enum sy_code rc = store_prepare(
        &s, st,
        "INSERT INTO request (id, digest, text, session, principal, created_ms, expires_ms, boot_id,"
        " deadline_ns) VALUES (:id, :digest, :text, :session, :principal, :created, :expires, :boot,"
        " :deadline)",
        err);

    if (rc != SY_E_OK) {
        return rc;
    }
    store_term_make(&term, r->ttl_ms);

    int bound = store_bind_text(s, ":id", id) | store_bind_digest(s, ":digest", r->digest) |
                store_bind_text(s, ":text", r->text) | store_bind_text(s, ":session", r->session) |
                store_bind_text(s, ":principal", r->principal) |
                store_bind_text(s, ":boot", st->boot_id) |
                store_bind_i64(s, ":created", term.created_ms) |
                store_bind_i64(s, ":expires", term.expires_ms) |
                store_bind_i64(s, ":deadline", term.deadline_ns);

    return store_run(st, s, bound, NULL, err);
}

enum sy_code
store_request_create(char ret_id[STORE_ID_SIZE], struct store *st,
                     const struct store_request_new *r, struct sy_error *err)
{
    struct store_txn txn;
    char id[STORE_ID_SIZE];
    enum sy_code rc = store_check_text("text of a request", r->text, LIMIT_STORE_TEXT, err);

    if (rc == SY_E_OK) {
        rc = store_check_text("session of a request", r->session, LIMIT_STORE_NAME, err);
    }
    if (rc == SY_E_OK) {
        rc = store_check_text("principal of a request", r->principal, LIMIT_STORE_NAME, err);
    }
    if (rc == SY_E_OK && r->ttl_ms > STORE_TTL_MAX_MS) {
        rc = sy_err_set(err, SY_E_ARG, "a request may wait for %llu ms at most",
                        (unsigned long long)STORE_TTL_MAX_MS);
    }
    if (rc == SY_E_OK) {
        rc = store_make_id(id, "a request", err);
    }
    if (rc == SY_E_OK) {
        rc = store_begin(&txn, st, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = check_room(st, err);
    if (rc == SY_E_OK) {
        rc = insert(st, id, r, err);
    }
    rc = store_end(&txn, rc, err);
    if (rc == SY_E_OK) {
        memcpy(ret_id, id, sizeof(id));
    }
    return rc;
}

/* A request whose time is over reads as timed out before anybody has marked it. */
#define COLUMNS                                                                                    \
    "id, digest, session, principal, created_ms, expires_ms, reason, decided_by, decided_ms,"      \
    " is_used, CASE WHEN status = 0 AND " STORE_IS_OVER " THEN 6 ELSE status END,"                 \
    " max(0, CASE WHEN boot_id = :boot AND :boot <> '' THEN (deadline_ns - :mono) / 1000000"       \
    " ELSE expires_ms - :wall END)"

static enum sy_code
read_row(struct store_request *r, struct store *st, sqlite3_stmt *s, struct sy_error *err)
{
    const void *digest = sqlite3_column_blob(s, 1);
    const char *id = (const char *)sqlite3_column_text(s, 0);
    int status = sqlite3_column_int(s, 10);

    if (digest == NULL || sqlite3_column_bytes(s, 1) != (int)STORE_DIGEST_SIZE || id == NULL ||
        strlen(id) != STORE_ID_SIZE - 1 || status < STORE_PENDING || status > STORE_CANCELLED) {
        return store_failed(st, SQLITE_CORRUPT, err);
    }
    memcpy(r->id, id, STORE_ID_SIZE);
    memcpy(r->digest, digest, STORE_DIGEST_SIZE);
    r->session = store_column_text(s, 2);
    r->principal = store_column_text(s, 3);
    r->created_ms = sqlite3_column_int64(s, 4);
    r->expires_ms = sqlite3_column_int64(s, 5);
    r->reason = store_column_text(s, 6);
    r->decided_by = store_column_text(s, 7);
    r->decided_ms = sqlite3_column_int64(s, 8);
    r->is_used = sqlite3_column_int(s, 9) != 0;
    r->status = (enum store_status)status;
    r->left_ms = status == STORE_PENDING ? (uint64_t)sqlite3_column_int64(s, 11) : 0;
    if (r->session == NULL || r->principal == NULL || r->reason == NULL || r->decided_by == NULL) {
        store_request_fini(r);
        return sy_err_nomem(err);
    }
    return SY_E_OK;
}

enum sy_code
store_request_get(struct store_request *ret, struct store *st, const char *id, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_request r = {0};
    bool is_row = false;
    enum sy_code rc =
        store_prepare(&s, st, "SELECT " COLUMNS ", text FROM request WHERE id = :id", err);

    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_term_bind(st, s) | store_bind_text(s, ":id", id), &is_row, err);
    }
    if (rc == SY_E_OK && !is_row) {
        rc = sy_err_set(err, SY_E_NOTFOUND, "there is no such request for approval");
    }
    if (rc == SY_E_OK) {
        rc = read_row(&r, st, s, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    r.text = store_column_text(s, 12);
    if (r.text == NULL) {
        store_request_fini(&r);
        return sy_err_nomem(err);
    }
    *ret = r;
    return SY_E_OK;
}

enum sy_code
store_request_find(struct store_request *ret, struct store *st, const char *session,
                   const unsigned char *digest, struct sy_error *err)
{
    STORE_STMT s = NULL;
    bool is_row = false;
    enum sy_code rc = store_prepare(&s, st,
                                    "SELECT " COLUMNS " FROM request WHERE session = :session AND"
                                    " digest = :digest AND is_used = 0 AND status <= 5 AND"
                                    " NOT " STORE_IS_OVER " ORDER BY seq DESC LIMIT 1",
                                    err);

    if (rc == SY_E_OK) {
        int bound = store_term_bind(st, s) | store_bind_text(s, ":session", session) |
                    store_bind_digest(s, ":digest", digest);

        rc = store_run(st, s, bound, &is_row, err);
    }
    if (rc == SY_E_OK && !is_row) {
        rc = sy_err_set(err, SY_E_NOTFOUND, "there is no such request for approval");
    }
    return rc == SY_E_OK ? read_row(ret, st, s, err) : rc;
}

enum sy_code
store_requests_pending(struct store_requests *ret, struct store *st, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_requests list = {.v = mem_alloc_zero(LIMIT_STORE_PENDING, sizeof(*list.v))};
    bool is_row = false;

    if (list.v == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = store_prepare(&s, st,
                                    "SELECT " COLUMNS " FROM request WHERE status = 0 AND "
                                    "NOT " STORE_IS_OVER " ORDER BY seq",
                                    err);

    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_term_bind(st, s), &is_row, err);
    }
    while (rc == SY_E_OK && is_row && list.n < LIMIT_STORE_PENDING) {
        rc = read_row(&list.v[list.n], st, s, err);
        if (rc == SY_E_OK) {
            list.n++;
            rc = store_step(st, s, &is_row, err);
        }
    }
    if (rc != SY_E_OK) {
        store_requests_fini(&list);
        return rc;
    }
    *ret = list;
    return SY_E_OK;
}

enum sy_code
store_requests_expire(size_t *ret_n, struct store *st, struct sy_error *err)
{
    STORE_STMT look = NULL;
    STORE_STMT s = NULL;
    struct store_txn txn;
    bool is_row = false;
    enum sy_code rc = store_prepare(
        &look, st, "SELECT 1 FROM request WHERE status = 0 AND " STORE_IS_OVER " LIMIT 1", err);

    *ret_n = 0;
    if (rc == SY_E_OK) {
        rc = store_run(st, look, store_term_bind(st, look), &is_row, err);
    }
    store_stmt_fini(&look); /* it holds a snapshot in which nobody may write */
    if (rc != SY_E_OK || !is_row) {
        return rc;
    }
    rc = store_begin(&txn, st, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = store_prepare(&s, st, "UPDATE request SET status = 6 WHERE status = 0 AND " STORE_IS_OVER,
                       err);
    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_term_bind(st, s), NULL, err);
    }

    size_t n = (size_t)sqlite3_changes(st->db);

    store_stmt_fini(&s);
    rc = store_end(&txn, rc, err);
    *ret_n = rc == SY_E_OK ? n : 0;
    return rc;
}

/* What became of a request that was not pending. */
static enum sy_code
tell_status(struct store_answer *ret, struct store *st, const char *id, struct sy_error *err)
{
    STORE_STMT s = NULL;
    bool is_row = false;
    enum sy_code rc = store_prepare(&s, st, "SELECT status FROM request WHERE id = :id", err);

    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_bind_text(s, ":id", id), &is_row, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (!is_row) {
        *ret = (struct store_answer){.verdict = STORE_UNKNOWN};
        return SY_E_OK;
    }

    int status = sqlite3_column_int(s, 0);

    if (status <= STORE_PENDING || status > STORE_CANCELLED) {
        return store_failed(st, SQLITE_CORRUPT, err);
    }

    bool is_ended = status == STORE_TIMED_OUT || status == STORE_CANCELLED;

    *ret = (struct store_answer){.verdict = is_ended ? STORE_ENDED : STORE_ALREADY_DECIDED,
                                 .status = (enum store_status)status};
    return SY_E_OK;
}

/* Compare and set: only what is pending changes. */
static enum sy_code
set_status(struct store_answer *ret, struct store *st, const struct store_decision *d,
           struct sy_error *err)
{
    STORE_STMT s = NULL;
    size_t expired = 0;
    enum sy_code rc = store_requests_expire(&expired, st, err);

    if (rc == SY_E_OK) {
        rc =
            store_prepare(&s, st,
                          "UPDATE request SET status = :status, reason = :reason, decided_by = :by,"
                          " decided_ms = :now WHERE id = :id AND status = 0",
                          err);
    }
    if (rc == SY_E_OK) {
        int bound = store_bind_text(s, ":id", d->id) | store_bind_i64(s, ":status", d->status) |
                    store_bind_text(s, ":reason", d->reason != NULL ? d->reason : "") |
                    store_bind_text(s, ":by", d->decided_by) |
                    store_bind_i64(s, ":now", clock_wall_ns() / NS_PER_MS);

        rc = store_run(st, s, bound, NULL, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (sqlite3_changes(st->db) == 1) {
        *ret = (struct store_answer){.verdict = STORE_TAKEN, .status = d->status};
        return SY_E_OK;
    }
    return tell_status(ret, st, d->id, err);
}

static enum sy_code
change(struct store_answer *ret, struct store *st, const struct store_decision *d,
       struct sy_error *err)
{
    struct store_txn txn;
    struct store_answer answer = {0};
    enum sy_code rc = store_begin(&txn, st, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = set_status(&answer, st, d, err);
    if (rc == SY_E_OK && answer.verdict == STORE_TAKEN && d->rule != NULL) {
        rc = store_rule_put(NULL, st, d->rule, d->rule_lifts_sandbox, d->decided_by, err);
    }
    if (rc == SY_E_OK && answer.verdict == STORE_TAKEN && d->access != NULL) {
        rc = store_access_put(NULL, st, d->access, d->decided_by, err);
    }
    rc = store_end(&txn, rc, err);
    if (rc == SY_E_OK) {
        *ret = answer;
    }
    return rc;
}

enum sy_code
store_request_decide(struct store_answer *ret, struct store *st, const struct store_decision *d,
                     struct sy_error *err)
{
    enum sy_code rc = store_check_text("reason of a request", d->reason != NULL ? d->reason : "",
                                       LIMIT_STORE_NAME, err);

    if (d->status < STORE_APPROVED || d->status > STORE_ABORTED) {
        return sy_err_set(err, SY_E_ARG, "a request cannot be decided as '%s'",
                          store_status_name(d->status));
    }
    if (rc == SY_E_OK) {
        rc = store_check_text("decider of a request", d->decided_by, LIMIT_STORE_NAME, err);
    }
    return rc == SY_E_OK ? change(ret, st, d, err) : rc;
}

enum sy_code
store_request_cancel(struct store_answer *ret, struct store *st, const char *id,
                     struct sy_error *err)
{
    const struct store_decision d = {.id = id, .status = STORE_CANCELLED, .decided_by = ""};

    return change(ret, st, &d, err);
}

enum sy_code
store_requests_cancel(size_t *ret_n, struct store *st, const char *session, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_txn txn;
    size_t n = 0;
    enum sy_code rc = store_begin(&txn, st, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = store_requests_expire(&n, st, err);
    if (rc == SY_E_OK) {
        rc = store_prepare(
            &s, st, "UPDATE request SET status = 7 WHERE session = :session AND status = 0", err);
    }
    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_bind_text(s, ":session", session), NULL, err);
    }
    n = (size_t)sqlite3_changes(st->db);
    store_stmt_fini(&s);
    rc = store_end(&txn, rc, err);
    if (rc == SY_E_OK) {
        *ret_n = n;
    }
    return rc;
}

enum sy_code
store_request_amend(struct store *st, const char *id, const char *text, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_txn txn;
    enum sy_code rc = store_check_text("text of a request", text, LIMIT_STORE_TEXT, err);

    if (rc == SY_E_OK) {
        rc = store_begin(&txn, st, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc =
        store_prepare(&s, st, "UPDATE request SET text = :text WHERE id = :id AND status = 0", err);
    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_bind_text(s, ":text", text) | store_bind_text(s, ":id", id),
                       NULL, err);
    }
    store_stmt_fini(&s);
    return store_end(&txn, rc, err);
}

enum sy_code
store_request_use(bool *ret_may, struct store *st, const char *id, const char *session,
                  const unsigned char *digest, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_txn txn;
    enum sy_code rc = store_begin(&txn, st, err);

    *ret_may = false;
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = store_prepare(&s, st,
                       "UPDATE request SET is_used = 1 WHERE id = :id AND session = :session AND"
                       " digest = :digest AND is_used = 0 AND status BETWEEN 1 AND 3 AND"
                       " NOT " STORE_IS_OVER,
                       err);
    if (rc == SY_E_OK) {
        int bound = store_term_bind(st, s) | store_bind_text(s, ":id", id) |
                    store_bind_text(s, ":session", session) |
                    store_bind_digest(s, ":digest", digest);

        rc = store_run(st, s, bound, NULL, err);
    }

    bool may = rc == SY_E_OK && sqlite3_changes(st->db) == 1;

    store_stmt_fini(&s);
    rc = store_end(&txn, rc, err);
    *ret_may = rc == SY_E_OK && may;
    return rc;
}
