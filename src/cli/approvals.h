#ifndef SY_CLI_APPROVALS_H
#define SY_CLI_APPROVALS_H

#include "approval/review.h"
#include "cli/verbs.h"
#include "store/store.h"

/* What the verbs below `approvals` share (approvals.c). */

/* The store of this user's requests. */
enum sy_code cli_approvals_open(struct store **ret, struct sy_error *err) SY_NODISCARD;
/* SY_E_DENIED inside a command that an agent runs. */
enum sy_code cli_approvals_check(struct sy_error *err) SY_NODISCARD;
/* Who answers here, in ret. */
const char *cli_approvals_decider(char ret[64]);
/* All that a person has to read before they answer. */
enum sy_code cli_approvals_show(struct buf *out, const struct store_request *r,
                                struct sy_error *err) SY_NODISCARD;
/* Answers, and adds a line that says so. SY_E_DENIED: it was answered or over. */
enum sy_code cli_approvals_answer(struct buf *out, struct store *st, const char *id,
                                  const struct review_reply *reply,
                                  struct sy_error *err) SY_NODISCARD;

/* approvals_follow.c */
extern const struct cli_verb verb_approvals_follow;

#endif
