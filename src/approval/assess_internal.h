#ifndef SY_APPROVAL_ASSESS_INTERNAL_H
#define SY_APPROVAL_ASSESS_INTERNAL_H

#include <limits.h>

#include "approval/assess.h"
#include "approval/inner.h"

/* What the rules look at. */
struct assess_commands {
    struct strv *v;
    bool *is_trusted;
    bool *is_allowed;
    size_t n;
    struct inner hidden; /* what they start in their turn */
    bool is_whole;
    bool is_script;
    bool is_literal;    /* no word of them is made by the shell */
    bool has_braces;    /* of some the shell makes other words */
    char cwd[PATH_MAX]; /* "" when it is not known */
};

/*
 * The commands of in->argv, those of its script where it runs one (assess_commands.c), and which of
 * them are programs that can be trusted. `script` is room for reading, and holds what was read.
 * What they start, what is allowed and the directory are left to the caller.
 */
enum sy_code assess_commands_find(struct assess_commands *c, struct script *script,
                                  const struct assess_input *in, const struct judge_world *world,
                                  struct sy_error *err) SY_NODISCARD;
void assess_commands_fini(struct assess_commands *c);

#endif
