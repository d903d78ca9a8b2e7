#ifndef SY_PROCESS_POOL_H
#define SY_PROCESS_POOL_H

#include "process/process.h"

/*
 * Where the commands of one engine get their processes. With templates, each is
 * made under a filter that is there already (template.h). A pool may keep one
 * process ready: the spare. Used by one thread at a time.
 */
struct process_pool;

enum sy_code process_pool_new(struct process_pool **ret, bool uses_templates,
                              struct sy_error *err) SY_NODISCARD;
/* Its processes must be freed before. */
void process_pool_free(struct process_pool *pool);
/*
 * Makes a spare for a sandbox with this base (NULL: not known yet), unless there
 * is one; one that did not know its base gets to know it. It only saves time: where it can't be
 * made, nothing is said, and the start of a command will say it.
 */
void process_pool_make_spare(struct process_pool *pool, const struct sandbox_base *base);
/*
 * For who has more to do before it takes the spare: where the spare has not run yet, it
 * waits behind us on our processor, for not every kernel gives a new task another that is idle
 * (in small virtual machines). Then it gets any other that we may use. The command may use all
 * of ours again.
 */
void process_pool_give_way(struct process_pool *pool);
/* A prepared process: the spare if it fits, else a new one. */
enum sy_code process_pool_take(struct process_pool *pool, struct process **ret,
                               const struct sandbox_base *base, struct sy_error *err) SY_NODISCARD;

#endif
