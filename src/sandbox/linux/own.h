#ifndef SY_SANDBOX_LINUX_OWN_H
#define SY_SANDBOX_LINUX_OWN_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Directories of Shellyard's own: its state (requests, rules that answers made) and
 * its configuration. What a command writes there would be believed by later calls,
 * outside of this workspace too. Below a writable root only mounts keep commands
 * from that; so without namespaces such a policy is refused.
 */

/*
 * Those of them that lie below one of `roots` (without links), by their paths
 * without links; they need not exist. SY_E_SANDBOX where the way to one passes a
 * link below a root, which commands could turn elsewhere, and where a root lies in
 * one.
 */
enum sy_code own_find(struct strv *ret, const struct strv *own_dirs, const struct strv *roots,
                      struct sy_error *err) SY_NODISCARD;

/*
 * Adds every directory that lies between a root and the path: who renames one takes the path away
 * from what is held there. None twice.
 */
enum sy_code own_add_above(struct strv *ret, const struct strv *roots,
                           const char *path) SY_NODISCARD;

#endif
