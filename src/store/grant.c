#include <string.h>

#include "base/utf8.h"
#include "store/grant.h"
#include "store/store_internal.h"

static enum sy_code
put_keys(struct store *st, const struct store_grant *g, enum store_status decision, uint64_t ttl_ms,
         struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_term term;
    enum sy_code rc = store_prepare(
        &s, st,
        "INSERT OR REPLACE INTO session_grant (session, key, decision, created_ms,"
        " expires_ms, boot_id, deadline_ns) VALUES (:session, :key, ?3, ?4, ?5, ?6, ?7)",
        err);

    store_term_make(&term, ttl_ms);
    for (size_t i = 0; rc == SY_E_OK && i < g->n; i++) {
        (void)sqlite3_reset(s);

        int bound = store_bind_text(s, ":session", g->session) |
                    store_bind_digest(s, ":key", g->keys + i * STORE_DIGEST_SIZE) |
                    sqlite3_bind_int(s, 3, (int)decision) |
                    sqlite3_bind_int64(s, 4, term.created_ms) |
                    sqlite3_bind_int64(s, 5, term.expires_ms) |
                    sqlite3_bind_text(s, 6, st->boot_id, -1, SQLITE_STATIC) |
                    sqlite3_bind_int64(s, 7, term.deadline_ns);

        rc = store_run(st, s, bound, NULL, err);
    }
    return rc;
}

/* Drops what is over, of all sessions: nobody else does. */
static enum sy_code
drop_old(struct store *st, struct sy_error *err)
{
    STORE_STMT s = NULL;
    enum sy_code rc = store_prepare(&s, st, "DELETE FROM session_grant WHERE " STORE_IS_OVER, err);

    return rc == SY_E_OK ? store_run(st, s, store_term_bind(st, s), NULL, err) : rc;
}

static enum sy_code
check_count(struct store *st, const char *session, struct sy_error *err)
{
    STORE_STMT s = NULL;
    enum sy_code rc =
        store_prepare(&s, st, "SELECT count(*) FROM session_grant WHERE session = :session", err);

    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_bind_text(s, ":session", session), NULL, err);
    }
    if (rc == SY_E_OK && sqlite3_column_int64(s, 0) > (int64_t)LIMIT_STORE_GRANTS) {
        rc =
            sy_err_set(err, SY_E_LIMIT, "a session may have %u grants at most; nothing was granted",
                       LIMIT_STORE_GRANTS);
    }
    return rc;
}

enum sy_code
store_grant_put(struct store *st, const struct store_grant *g, enum store_status decision,
                uint64_t ttl_ms, struct sy_error *err)
{
    struct store_txn txn;
    size_t len = strlen(g->session);

    if ((decision != STORE_APPROVED_FOR_SESSION && decision != STORE_APPROVED_WITH_RULE) ||
        ttl_ms > STORE_TTL_MAX_MS || g->n > LIMIT_STORE_KEYS || len > LIMIT_STORE_NAME ||
        !utf8_is_valid(g->session, len)) {
        return sy_err_set(
            err, SY_E_ARG,
            "a grant needs an approval for the session or a rule, %u keys, %u bytes of "
            "session in UTF-8 and %llu ms at most",
            LIMIT_STORE_KEYS, LIMIT_STORE_NAME, (unsigned long long)STORE_TTL_MAX_MS);
    }

    enum sy_code rc = store_begin(&txn, st, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = drop_old(st, err);
    if (rc == SY_E_OK) {
        rc = put_keys(st, g, decision, ttl_ms, err);
    }
    if (rc == SY_E_OK) {
        rc = check_count(st, g->session, err);
    }
    return store_end(&txn, rc, err);
}

enum sy_code
store_grant_has(bool *ret, struct store *st, const struct store_grant *g, struct sy_error *err)
{
    STORE_STMT s = NULL;
    bool has_all = g->n > 0;
    enum sy_code rc = store_prepare(&s, st,
                                    "SELECT 1 FROM session_grant WHERE session = :session AND"
                                    " key = :key AND NOT " STORE_IS_OVER,
                                    err);

    for (size_t i = 0; rc == SY_E_OK && has_all && i < g->n; i++) {
        (void)sqlite3_reset(s);

        int bound = store_term_bind(st, s) | store_bind_text(s, ":session", g->session) |
                    store_bind_digest(s, ":key", g->keys + i * STORE_DIGEST_SIZE);

        rc = store_run(st, s, bound, &has_all, err);
    }
    if (rc == SY_E_OK) {
        *ret = has_all;
    }
    return rc;
}

enum sy_code
store_grants_end(struct store *st, const char *session, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_txn txn;
    enum sy_code rc = store_begin(&txn, st, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = store_prepare(&s, st, "DELETE FROM session_grant WHERE session = :session", err);
    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_bind_text(s, ":session", session), NULL, err);
    }
    store_stmt_fini(&s);
    return store_end(&txn, rc, err);
}
