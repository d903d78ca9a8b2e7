#ifndef SY_TOOLS_APPROVALS_H
#define SY_TOOLS_APPROVALS_H

#include "tools/tools.h"

/* The judge and the reviewer of a context, on its loop. */
struct approvals;

/* Borrowed; the session outlives it. */
struct approvals_place {
    struct session *session;
    const struct config *config;
    struct uv_loop_s *loop;
    const char *home;
    const char *rules_path;
    const char *http_path; /* of shellyard-http; NULL: none */
};

/* Gives them to the session. Where no state directory can be had nobody can be asked. */
enum sy_code approvals_new(struct approvals **ret, const struct approvals_place *place,
                           struct sy_error *err) SY_NODISCARD;
/* Before a call: what answers let the session's commands do for good is read again if it has
 * changed. What can't be read is not granted. Accepts NULL. */
void approvals_refresh(struct approvals *a);
/* All calls must be over; the loop has to run once more. Accepts NULL. */
void approvals_free(struct approvals *a);

#endif
