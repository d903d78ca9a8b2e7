#ifndef SY_COMMAND_DANGER_H
#define SY_COMMAND_DANGER_H

#include "command/judge.h"

/*
 * Commands that destroy. In order of weight:
 *   DANGER_NONE     nothing known against it, which is no praise
 *   DANGER_NOTED    overwrites a file of the workspace: worth telling, not worth asking
 *   DANGER_UNKNOWN  a script that could not be read, or is to come from the network: it may hold
 *                   anything
 *   DANGER_DANGEROUS     destroys without asking: a person should be asked
 *   DANGER_CATASTROPHIC  and what it destroys is a disk, the system, a home, the workspace, or
 *                        something that only the shell will know: ask even where nothing else asks
 */
enum danger_level {
    DANGER_NONE,
    DANGER_NOTED,
    DANGER_UNKNOWN,
    DANGER_DANGEROUS,
    DANGER_CATASTROPHIC
};

/* "none", "noted", "unknown", "dangerous", "catastrophic". */
const char *danger_level_name(enum danger_level level);

struct danger_verdict {
    enum danger_level level;
    struct verdict verdict; /* of the worst finding; the first of equals */
};

/* Told of each finding, in order. */
typedef void danger_fn(void *arg, enum danger_level level, const struct verdict *v);

/*
 * Judges an argument list: the program, programs that it starts (sudo, env, xargs, find -exec,
 * ...), and scripts of shells, eval and trap, to LIMIT_SCRIPT_LAYERS. Errors are those of
 * memory alone. `fn` may be NULL.
 */
enum sy_code danger_judge(struct danger_verdict *ret, const struct judge_world *world,
                          char *const *argv, danger_fn *fn, void *arg,
                          struct sy_error *err) SY_NODISCARD;

/*
 * Told of each command that another one starts, as far as words tell: behind wrappers (sudo, env,
 * timeout), in scripts of shells, in eval, find -exec and the like, to LIMIT_SCRIPT_LAYERS. The
 * depth is 1 for what the argument list itself starts, the commands of its script included.
 * `words` are borrowed.
 */
typedef void danger_seen_fn(void *arg, unsigned depth, const struct script_word *words, size_t n);
enum sy_code danger_walk(const struct judge_world *world, char *const *argv, danger_seen_fn *seen,
                         void *arg, struct sy_error *err) SY_NODISCARD;

/*
 * Adds the directories, beside the world's cwd, where what the argument list runs may be at work,
 * as far as its words tell (cd, pushd, `git -C` and the like): absolute, and the last comes first.
 * None where a script can't be read. Errors are those of memory alone.
 */
enum sy_code danger_places(struct strv *ret, const struct judge_world *world, char *const *argv,
                           struct sy_error *err) SY_NODISCARD;

#endif
