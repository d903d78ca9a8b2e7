#ifndef SY_ORCHESTRATOR_AUDITED_H
#define SY_ORCHESTRATOR_AUDITED_H

#include "process/audit.h"
#include "sandbox/denial.h"

/*
 * Records of one call on their way into its denials. A record that is one of those that are known
 * already (inferred, or seen by an observer) makes that one exact, as often as it is
 * counted; any other is told by what it says itself. What is borrowed outlives it.
 */
struct audited {
    struct denial_list *list;
    const struct sandbox_plan *plan; /* to explain them */
    size_t n;                        /* how many denials were known before */
    uint32_t used[DENIALS_MAX];      /* how many records are one of those */
    enum sy_code rc;                 /* SY_E_NOMEM: not all could be told */
};

void audited_begin(struct audited *ret, struct denial_list *list, const struct sandbox_plan *plan);
/* An audit_fn. */
void audited_add(void *arg, const struct audit_record *r);

#endif
