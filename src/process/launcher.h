#ifndef SY_PROCESS_LAUNCHER_H
#define SY_PROCESS_LAUNCHER_H

#include "base/err.h"
#include "process/template.h"

/*
 * Our end of shellyard-launch (launch_wire.h), the process in which sandboxes of
 * the full tier stand. One per engine; it ends with it.
 */
struct launcher;

/* Starts that program. Does not wait for it. NULL: there is none, SY_E_NOTFOUND. */
enum sy_code launcher_start(struct launcher **ret, const char *program,
                            struct sy_error *err) SY_NODISCARD;
/* Its templates and their keepers live on. NULL is nothing. */
void launcher_free(struct launcher *l);

/*
 * A template in a process of its own, with the namespaces and the file tree of
 * the policy; its keepers are process 1 of their namespaces. Waits until it is ready
 * (a few milliseconds, at most LIMIT_LAUNCH_MS). SY_E_SANDBOX says what kept it
 * from being; SY_E_NOTFOUND that the launcher is gone: start another.
 */
enum sy_code launcher_make_template(struct launcher *l, struct template **ret,
                                    const struct sandbox_policy *policy,
                                    struct sy_error *err) SY_NODISCARD;

/* Appends one mark; SY_E_LIMIT beyond the buffer's maximum (at most LIMIT_MARKS). */
enum sy_code launcher_mark_add(struct buf *marks, char kind, const char *path) SY_NODISCARD;
/*
 * Adds marks (launch_wire.h says how they are written) to the tree of a template
 * of ours, for its commands that run already too, and waits until they are there.
 * After an error the template is of no use any more. A path that isn't there is
 * left out.
 */
enum sy_code launcher_add_marks(struct template *t, const char *marks, size_t n,
                                struct sy_error *err) SY_NODISCARD;
/*
 * Lets the template's process have the descriptor too, in place of an earlier one. The last
 * close(2) of an inotify waits until the kernel has let go of its watches, 10 ms and more: that
 * process waits then, at its end, not we.
 */
void launcher_share(struct template *t, int fd);

/* What making a template came to, into has_full_tier and full_reason. */
void launcher_tell(struct sandbox_caps *caps, enum sy_code rc, const struct sy_error *why);

/*
 * Whether the full tier can be had: makes it for this policy and throws it away. Fills
 * has_full_tier, or full_reason; sandbox_probe was before. `program` NULL: there is no launcher.
 */
void launcher_probe(struct sandbox_caps *caps, const char *program,
                    const struct sandbox_policy *policy);

#endif
