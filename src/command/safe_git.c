/* git, when it only looks. */
#include <string.h>

#include "base/str.h"
#include "command/safe.h"
#include "command/safe_internal.h"

/*
 * What git would start though nobody asked for it, and how each is switched off:
 *   hooks (post-index-change, when status refreshes the index)  GIT_OPTIONAL_LOCKS, core.hooksPath
 *   core.fsmonitor                                            core.fsmonitor=false
 *   core.pager, pager.*                                       GIT_PAGER
 *   fetching what a partial clone lacks (ssh, ext::, helpers)  GIT_NO_LAZY_FETCH,
 * GIT_ALLOW_PROTOCOL gpg.program, through log.showSignature log.showSignature=false What has no
 * switch that is independent of names (diff drivers, textconv, filters, gpg through format.pretty,
 * merge drivers, includes) is for judge_world.git_is_tame to find.
 */
static const char *const environment[] = {
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_PAGER=cat",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_ALLOW_PROTOCOL=none",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_CONFIG_COUNT=3",
    "GIT_CONFIG_KEY_0=core.fsmonitor",
    "GIT_CONFIG_VALUE_0=false",
    "GIT_CONFIG_KEY_1=core.hooksPath",
    "GIT_CONFIG_VALUE_1=/dev/null",
    "GIT_CONFIG_KEY_2=log.showSignature",
    "GIT_CONFIG_VALUE_2=false",
    NULL,
};

const char *const *
safe_git_env(void)
{
    return environment;
}

static struct objection
branch_words(struct words w)
{
    static const char good[] = "--list -l --show-current -a --all -r --remotes -v -vv --verbose";

    for (size_t i = 0; i < w.n; i++) {
        const char *s = w.v[i].text;
        bool is_literal =
            (w.v[i].flags & (WORD_DYNAMIC | WORD_GLOB | WORD_BRACE | WORD_ANSI_C)) == 0;

        if (!is_literal || (!judge_in_list(good, s) && !str_starts(s, "--format="))) {
            return (struct objection){"git.branch", s, "git branch with it may change branches"};
        }
    }
    return (struct objection){NULL, NULL, NULL};
}

struct objection
safe_git_words(struct words w)
{
    /* --remerge-diff and its like run merge drivers. */
    static const struct option_rule rule = {
        "output ext-diff textconv exec show-signature remerge-diff diff-merges", "text", "", ""};
    const char *sub = w.n > 0 ? w.v[0].text : "";

    if (w.n == 0 || (w.v[0].flags & ~(unsigned)WORD_QUOTED) != 0) {
        return (struct objection){"git.subcommand", w.n > 0 ? sub : NULL, "no known subcommand"};
    }
    if (sub[0] == '-') {
        return (struct objection){"git.global-option", sub,
                                  "an option before git's subcommand may choose what it runs"};
    }
    w = words_from(w, 1);
    if (str_eq(sub, "branch")) {
        return branch_words(w);
    }
    if (!judge_in_list("status log diff show", sub)) {
        return (struct objection){"git.subcommand", sub,
                                  "only git status, log, diff, show and branch are known to look"};
    }
    for (size_t i = 0; i < w.n; i++) {
        bool is_literal = (w.v[i].flags & WORD_DYNAMIC) == 0;

        if (is_literal && str_eq(w.v[i].text, "--")) {
            break;
        }
        if (safe_word_may_hide(&w.v[i])) {
            return (struct objection){"safe.hidden-option", w.v[i].text,
                                      "what the shell makes of it may be an option"};
        }
        if (safe_option_is_bad(&rule, w.v[i].text) ||
            (w.v[i].text[0] == '-' && strstr(w.v[i].text, "%G") != NULL)) { /* checks signatures */
            return (struct objection){"git.option", w.v[i].text,
                                      "it makes git write a file or run a program"};
        }
    }
    return (struct objection){NULL, NULL, NULL};
}
