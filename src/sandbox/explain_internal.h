#ifndef SY_SANDBOX_EXPLAIN_INTERNAL_H
#define SY_SANDBOX_EXPLAIN_INTERNAL_H

#include "sandbox/linux/walk.h"
#include "sandbox/sandbox_internal.h"

#define RULE(ret, ...) (void)snprintf((ret)->rule, sizeof((ret)->rule), __VA_ARGS__)

/* explain.c */

/* The object as the kernel would find it from the plan's cwd. */
enum sy_code explain_resolve(struct walk *ret, const struct sandbox_plan *plan, const char *object,
                             struct sy_error *err) SY_NODISCARD;
/* The rule that grants `right` on the file itself. */
const struct plan_rule *explain_rule_of(const struct sandbox_plan *plan, const char *path,
                                        uint64_t right);

/* Sets fix to the line that puts `value` into the list `key`, with a comment behind ("" or
 * "  # ..."); to "" where no configuration can name the value (it is no UTF-8). */
enum sy_code explain_fix_list(struct sandbox_explanation *ret, const char *key, const char *value,
                              const char *comment, struct sy_error *err) SY_NODISCARD;

/* One of the terminals of everybody, which no rule names. */
bool explain_is_terminal(const char *path);
#define EXPLAIN_TERMINALS                                                                            \
    "without namespaces a command opens its own terminal alone by its name (sandbox.tier: full has " \
    "terminals of its own)"

/* explain_read.c */

/* Under a plan that denies by mounts: what lies over something that is denied to read is read-only,
 * and what holds such a thing in a root can't be renamed or removed (takes_name).
 * Changes an explanation that has allowed ret->resolved. */
enum sy_code explain_covered(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                             bool takes_name, struct sy_error *err) SY_NODISCARD;
/* Changes an explanation that has refused to write ret->resolved: no configuration opens
 * directories of Shellyard's own. */
enum sy_code explain_own(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                         struct sy_error *err) SY_NODISCARD;
/* Changes an explanation about a named socket, which lies where something is hidden: mounts leave
 * none there, and no line of configuration leads to one of Shellyard's own. */
enum sy_code explain_socket(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                            const char *object, struct sy_error *err) SY_NODISCARD;
/* Does one of these lie below a directory (absolute, without links)? */
bool explain_holds_own(const struct sandbox_plan *plan, const char *dir);
enum sy_code explain_read(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                          const char *object, struct sy_error *err) SY_NODISCARD;
/* What is denied and exists, at this moment. */
struct deny_view;
enum sy_code explain_find_denied(struct deny_view *ret, const struct sandbox_plan *plan,
                                 struct sy_error *err) SY_NODISCARD;

/* What would give it the network: of the configuration, or of the turn that has switched it off. */
void explain_fix_network(struct sandbox_explanation *ret, const struct sandbox_plan *plan);

#endif
