#ifndef SY_APPROVAL_INNER_H
#define SY_APPROVAL_INNER_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "command/judge.h"

/*
 * Commands inside of others, as rules look at them (struct rule_script, hidden): behind sudo, env,
 * timeout and other wrappers, in scripts of shells, in eval, find -exec and the like. Zeroed: none.
 */
struct inner {
    struct strv *v;
    size_t n;
};

/* In front of a word that the shell makes: no rule can have such a word, since rules hold none
 * that people would not see. So "$X" is not what a rule allows as '$X'. */
#define INNER_MADE_BY_SHELL "\x1f"

/* `is_script`: of argv that of a shell, the commands of whose script are looked at by themselves.
 * SY_E_LIMIT for one with too many words. */
enum sy_code inner_find(struct inner *ret, const struct judge_world *world, char *const *argv,
                        bool is_script, struct sy_error *err) SY_NODISCARD;
void inner_fini(struct inner *h);

/* A command's words onto a list, those that the shell makes marked. */
enum sy_code inner_add_words(struct strv *ret, const struct script_word *words,
                             size_t n) SY_NODISCARD;

#endif
