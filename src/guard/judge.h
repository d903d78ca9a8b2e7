#ifndef SY_GUARD_JUDGE_H
#define SY_GUARD_JUDGE_H

#include "guard/guard_internal.h"

/*
 * Could what stands there now make somebody else's program run something? `why`
 * (empty, LIMIT_PATH at most) gets a few words if so, and *ret_harmful true. What can't be
 * read is harmful. Only memory is an error.
 */
enum sy_code judge_file(const struct guard *g, const struct guard_node *n,
                        const struct guard_file *f, int dir_fd, bool *ret_harmful,
                        struct buf *why) SY_NODISCARD;
/* Same content, mode and owner as at the baseline? false where no copy was kept. */
enum sy_code judge_is_same(const struct guard_file *f, int dir_fd, bool *ret) SY_NODISCARD;

#endif
