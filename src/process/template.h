#ifndef SY_PROCESS_TEMPLATE_H
#define SY_PROCESS_TEMPLATE_H

#include "base/err.h"
#include "process/keeper.h"
#include "sandbox/sandbox.h"

/*
 * A template: a task (keeper.h) that is under a sandbox's base already and makes
 * keepers, which inherit it. The kernel compiles and frees a seccomp filter for
 * each process that loads one; commands of a template share one. It runs no
 * command and no code but ours; it dies with us, as a keeper does.
 *
 * One filter means one listener for the connect(2) of all its commands.
 */
struct template;

/* Starts one. Does not wait for it. */
enum sy_code template_start(struct template **ret, const struct sandbox_base *base,
                            struct sy_error *err) SY_NODISCARD;
/*
 * Has it make a keeper for `job` on `stack_top`; the job's three descriptors are
 * copied; a terminal is its input too. The keeper's number appears in job->keeper_pid; where it
 * can't be made, job->stage and job->sys tell why. Either way the other end of job->channel_fd ends
 * when there is nothing more to come. False if the template is gone: nothing has been done, start
 * another.
 */
bool template_make_keeper(struct template *t, struct keeper_job *job, void *stack_top) SY_NODISCARD;
/*
 * Waits until the template is under its filter. *ret_fd is the listener (owned by
 * the template), -1 if there is none: network on, or it can't be had here, and then
 * every connect(2) is refused. False if it never came there: *ret_stage and *ret_sys
 * tell where it failed.
 */
bool template_await(struct template *t, int *ret_fd, enum sandbox_stage *ret_stage,
                    int *ret_sys) SY_NODISCARD;
/* Is it a process of its own (launcher.h)? Its keepers share no memory with us. */
bool template_is_remote(const struct template *t);
/* A remote one: does its process live? */
bool template_is_there(const struct template *t);
/* Borrowed; O_PATH: the top of its commands' file tree, but for /proc, which each of them has for
 * itself. For openat2(2) with RESOLVE_IN_ROOT. -1: it is not remote, its tree is ours. */
int template_top_fd(const struct template *t);
/* Borrowed; a socket for sock_diag(7) in the network of its commands; -1: ours. */
int template_diag_fd(const struct template *t);
/*
 * Borrowed, not blocking: an inotify(7) whose n-th watch (1 and up) tells that what the n-th
 * LAUNCH_MARK_HIDE (or _NAMED) hides was opened; -1: nothing tells.
 */
int template_watch_fd(const struct template *t);
/* Of a remote one with an allow list: the sockets in its network namespace on which the proxy has
 * to listen (LAUNCH_HTTP_PORT, LAUNCH_SOCKS_PORT). The caller's from then on; -1: there are none
 * (any more). */
void template_take_proxy(struct template *t, int *ret_http_fd, int *ret_socks_fd);
const struct sandbox_base *template_base(const struct template *t);
/* Of one that is not remote: no other ever had it. */
uint64_t template_number(const struct template *t);
/* One more owner; the same pointer. */
struct template *template_ref(struct template *t);
/* The last owner ends it. Keepers that it made live on. NULL is nothing. */
void template_unref(struct template *t);

static inline void
template_unrefp(struct template **t)
{
    template_unref(*t);
}

#endif
