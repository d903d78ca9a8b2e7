#ifndef SY_TESTS_UNIT_PROCESS_ENV_CHECK_H
#define SY_TESTS_UNIT_PROCESS_ENV_CHECK_H

#include "base/buf.h"

/* The variable has that value; NULL: it is unset. */
void assert_env(const struct strv *env, const char *name, const char *value);

#endif
