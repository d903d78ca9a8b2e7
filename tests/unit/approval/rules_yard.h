#ifndef SY_TESTS_UNIT_APPROVAL_RULES_YARD_H
#define SY_TESTS_UNIT_APPROVAL_RULES_YARD_H

#include "approval/rules.h"

/* Words with one blank between them, into an empty list; asserts success. */
void yard_words(struct strv *ret, const char *line);

/* A rule for "program word|other ..." behind the others; asserts success. It
 * can be changed until the next one is added. */
struct rule *yard_rule(struct rules *r, enum rule_decision decision, const char *prefix);

/* Commands with " ; " between them, judged as a whole, trusted script in /work. */
struct rule_verdict yard_decide(const struct rules *r, const char *script);
/* The same with the members of `as`, `commands` and `n` aside. */
struct rule_verdict yard_decide_as(const struct rules *r, const char *script,
                                   const struct rule_script *as);

#endif
