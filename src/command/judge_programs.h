#ifndef SY_COMMAND_JUDGE_PROGRAMS_H
#define SY_COMMAND_JUDGE_PROGRAMS_H

#include "command/judge_internal.h"

/* Longer paths are not remembered. */
#define PROGRAM_PATH_MAX 128

/* What a bare name was found to be. */
struct program_found {
    char path[PROGRAM_PATH_MAX]; /* "": there is none of that name */
    bool is_trusted;
};

/*
 * What world->programs has for `name`, if nothing has changed since: no directory of PATH up to the
 * place, no such file. NULL: nothing; then PATH's directories were looked at, so that what is found
 * from here on can be remembered. Valid until the next call.
 */
const struct program_found *programs_recall(const struct judge_world *world, const char *name);
/* Remembers what was found after programs_recall() had nothing; path "": nothing. */
void programs_remember(const struct judge_world *world, const char *name, const char *path,
                       bool is_trusted);

#endif
