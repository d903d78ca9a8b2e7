#ifndef SY_COMMAND_SAFE_H
#define SY_COMMAND_SAFE_H

#include "command/judge.h"

/*
 * Commands that are known to change nothing, whatever they are applied to: nobody need be
 * asked for them. What is not known is not safe; that is no judgement on it.
 */
struct safe_verdict {
    bool is_safe;
    /* Variables that must be laid over the command's environment, or it is not safe: what
     * keeps a repository from making git start programs. NULL: none. Static. */
    const char *const *env;
    struct verdict verdict; /* of the first command that is not safe, else of the last */
};

/* Told of each command of a script, in order, those inside other commands before these. */
typedef void safe_fn(void *arg, bool is_safe, const struct verdict *v);

/*
 * Judges an argument list: a program, or a shell with -c or -lc and one script, each command of
 * which must be safe. Never SY_E_OK with is_safe when anything could not be read: errors are
 * those of memory alone. `fn` may be NULL.
 */
enum sy_code safe_judge(struct safe_verdict *ret, const struct judge_world *world,
                        char *const *argv, safe_fn *fn, void *arg,
                        struct sy_error *err) SY_NODISCARD;

/*
 * With these in its environment git status, log, diff, show and branch start no hook, file
 * system monitor or pager, write no index, fetch nothing and check no signature. NULL-terminated.
 */
const char *const *safe_git_env(void);

#endif
