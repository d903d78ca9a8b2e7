#ifndef SY_STORE_RULE_H
#define SY_STORE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/request.h"
#include "store/store.h"

/*
 * Rules that a person made by an answer: commands that begin with these words need not be
 * asked about again. What a person writes by hand stands in rules.yaml (approval/rules_read.h).
 */
struct store_rule {
    char id[STORE_ID_SIZE];
    struct strv prefix;
    bool lifts_sandbox;
    int64_t created_ms; /* since 1970 */
    char *decided_by;
};

struct store_rules {
    struct store_rule *v;
    size_t n;
};

void store_rules_fini(struct store_rules *list);

/* `ret_id` may be NULL. The same prefix again replaces the first. SY_E_LIMIT beyond
 * LIMIT_STORE_RULES. */
enum sy_code store_rule_put(char ret_id[STORE_ID_SIZE], struct store *st, const struct strv *prefix,
                            bool lifts_sandbox, const char *decided_by,
                            struct sy_error *err) SY_NODISCARD;
/* SY_E_NOTFOUND for none. */
enum sy_code store_rule_remove(struct store *st, const char *id, struct sy_error *err) SY_NODISCARD;
/* The oldest first. */
enum sy_code store_rules_get(struct store_rules *ret, struct store *st,
                             struct sy_error *err) SY_NODISCARD;

#endif
