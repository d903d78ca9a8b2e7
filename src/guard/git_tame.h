#ifndef SY_GUARD_GIT_TAME_H
#define SY_GUARD_GIT_TAME_H

#include <stdbool.h>

/*
 * True if the repository that git would find from `cwd` has nothing in its settings that is
 * not known to be harmless (git_config_is_harmless): no driver, filter or include, hence nothing
 * that makes git status, log, diff, show and branch start a program, but for what their
 * environment switches off (command/safe.h). True also where git finds none.
 * False for what is not looked into: linked worktrees, submodules, bare repositories.
 */
bool git_tame_check(const char *cwd);

#endif
