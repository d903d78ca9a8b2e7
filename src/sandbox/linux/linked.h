#ifndef SY_SANDBOX_LINUX_LINKED_H
#define SY_SANDBOX_LINUX_LINKED_H

#include "base/err.h"
#include "sandbox/sandbox.h"

/*
 * Where the policy asks for it (finds_linked) under workspace-write, and where the policy's
 * directory or a configured root is a linked worktree (git-worktree(1)): makes the git directory of
 * its repository a writable root too, the last (n_linked_roots), since git writes objects and refs
 * there. Only where that repository itself says that the worktree is one of its own
 * (worktrees/NAME/gitdir, gitrepository-layout(5)), which nobody can write who could not write
 * there already; and where it all has one owner, no link leads there, and nobody would have to
 * think about it (access.h, ACCESS_PLAIN). Everything else is left as it is. Asked again, it
 * forgets what it found before. Before anything is granted.
 *
 * Costs one lstat(2) a root that is none. Fails for memory alone (SY_E_NOMEM).
 */
enum sy_code sandbox_policy_find_linked(struct sandbox_policy *p) SY_NODISCARD;

#endif
