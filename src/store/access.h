#ifndef SY_STORE_ACCESS_H
#define SY_STORE_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/request.h"
#include "store/store.h"

/*
 * What a person let commands do for good by an answer to request_access: in one workspace, under
 * the sandbox mode it was asked in. Words only; what they mean is sandbox/access.h.
 */
struct store_access_new {
    const char *kind;
    const char *object;
    const char *workspace;
    const char *mode;
};

struct store_access {
    char id[STORE_ID_SIZE];
    char *kind;
    char *object;
    char *workspace;
    char *mode;
    char *decided_by;
    int64_t created_ms; /* since 1970 */
};

struct store_accesses {
    struct store_access *v;
    size_t n;
};

void store_accesses_fini(struct store_accesses *list);

/* `ret_id` may be NULL. The same again replaces the first. SY_E_LIMIT beyond LIMIT_STORE_RULES. */
enum sy_code store_access_put(char ret_id[STORE_ID_SIZE], struct store *st,
                              const struct store_access_new *a, const char *decided_by,
                              struct sy_error *err) SY_NODISCARD;
/* SY_E_NOTFOUND for none. */
enum sy_code store_access_remove(struct store *st, const char *id,
                                 struct sy_error *err) SY_NODISCARD;
/* The oldest first. */
enum sy_code store_accesses_get(struct store_accesses *ret, struct store *st,
                                struct sy_error *err) SY_NODISCARD;

#endif
