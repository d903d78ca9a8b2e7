#ifndef SY_TESTS_COMMAND_WORLD_H
#define SY_TESTS_COMMAND_WORLD_H

#include "command/judge.h"

/*
 * A made-up world: /W is the workspace, /home/u the home directory. Programs without a slash
 * and those of /bin, /usr/bin and C:\Program Files are the system's. Below it there is a file
 * where the last part of the path begins with "old". Repositories are tame but in /W/evil.
 */
struct judge_world test_world(struct script_reader *reader);

/* One reader for all tests of a program: set-up and teardown of cmocka's group. */
extern struct script_reader *test_reader;
int test_reader_make(void **state);
int test_reader_free(void **state);

#endif
