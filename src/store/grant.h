#ifndef SY_STORE_GRANT_H
#define SY_STORE_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/request.h"
#include "store/store.h"

/*
 * What a person approved for the rest of a session, by the digests of cache keys. A grant
 * is over as a request is.
 */
struct store_grant {
    const char *session;
    const unsigned char *keys; /* n times STORE_DIGEST_SIZE bytes */
    size_t n;
};

/* `decision` is STORE_APPROVED_FOR_SESSION or STORE_APPROVED_WITH_RULE. All keys or none;
 * replaces what was there. SY_E_LIMIT beyond LIMIT_STORE_GRANTS of the session. */
enum sy_code store_grant_put(struct store *st, const struct store_grant *g,
                             enum store_status decision, uint64_t ttl_ms,
                             struct sy_error *err) SY_NODISCARD;
/* Each key has a grant that is not over; false for no keys. */
enum sy_code store_grant_has(bool *ret, struct store *st, const struct store_grant *g,
                             struct sy_error *err) SY_NODISCARD;
/* The session is over, or its grants are taken back. */
enum sy_code store_grants_end(struct store *st, const char *session,
                              struct sy_error *err) SY_NODISCARD;

#endif
