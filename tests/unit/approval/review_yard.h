#ifndef SY_TESTS_UNIT_APPROVAL_REVIEW_YARD_H
#define SY_TESTS_UNIT_APPROVAL_REVIEW_YARD_H

#include "approval/question.h"
#include "approval/review.h"
#include "yard.h"

/* What is waited for comes, or the test fails. */
#define YARD_SOON_NS 20000000000ULL

/* The reviewer of session "s"; asserts success. */
struct review *yard_review(const struct yard *y, uint64_t ttl_ms);
/* Of a dangerous command, always the same one. */
struct question yard_question(bool may_remember);
/* Asks it, woken by yard_wake, which counts in yard_woken; the second asserts success. */
enum sy_code yard_ask_as(struct review_ticket **ret, struct review *r, uint64_t hold_ms,
                         bool may_remember, struct sy_error *err);
struct review_ticket *yard_ask(struct review *r, uint64_t hold_ms);
void yard_wake(void *arg);
extern unsigned yard_woken;

/* One turn of a loop: waits for what there is to wait for. */
void yard_turn(struct review *r);
/* Until the request is in the store, its id; until there is an answer. */
const char *yard_until_open(struct review *r, const struct review_ticket *t);
const struct review_answer *yard_until_answered(struct review *r, const struct review_ticket *t);

#endif
