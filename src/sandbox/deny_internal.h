#ifndef SY_SANDBOX_DENY_INTERNAL_H
#define SY_SANDBOX_DENY_INTERNAL_H

#include "base/json.h"
#include "sandbox/sandbox_internal.h"

/* deny_plan.c: the part of a plan that denies reading. */

/* Copies and checks the policy's patterns. */
enum sy_code deny_plan_fill(struct sandbox_plan *plan, const struct sandbox_policy *policy,
                            struct sy_error *err) SY_NODISCARD;
/* Something is denied, if it exists. */
bool deny_plan_has_any(const struct sandbox_plan *plan);
/* Something that is not Shellyard's own: what the feature deny_read tells of. */
bool deny_plan_has_secrets(const struct sandbox_plan *plan);
/* Is a rule one of Shellyard's own places, which nothing opens? */
bool deny_plan_is_own(const struct sandbox_plan *plan, size_t rule);
/* The text of a rule by its number (deny.h), and whether it is a default. */
enum sy_code deny_plan_rule(struct buf *ret, bool *ret_is_default, const struct sandbox_plan *plan,
                            size_t rule) SY_NODISCARD;
/* "deny_read_unheld" of answers: paths, and how many more; nothing for none. */
void deny_plan_write(struct jw *w, const struct sandbox_plan *plan);
/* "deny_read" of the dump and what belongs to it; nothing where nothing is denied. */
void deny_plan_dump(struct jw *w, const struct sandbox_plan *plan);

#endif
