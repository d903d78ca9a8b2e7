#ifndef SY_TESTS_COMMAND_DANGER_YARD_H
#define SY_TESTS_COMMAND_DANGER_YARD_H

#include "command/danger.h"
#include "world.h"

/* Judges an argument list; asserts success. */
struct danger_verdict danger_of(const struct judge_world *world, char *const *argv);
/* Asserts the level, and the rule unless it is NULL; `what` was judged. */
void expect_verdict(struct danger_verdict v, const char *what, enum danger_level level,
                    const char *rule);
/* The same of a line whose words stand between blanks, as an argument list, and of a script of
 * bash in the made-up world. */
void expect_words(const struct judge_world *world, const char *line, enum danger_level level,
                  const char *rule);
void expect(const char *script, enum danger_level level, const char *rule);

#endif
