#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "env_check.h"

void
assert_env(const struct strv *env, const char *name, const char *value)
{
    const char *got = strv_env_get(env, name);

    if (value == NULL && got != NULL) {
        fail_msg("%s is '%s', not unset", name, got);
    }
    if (value != NULL && (got == NULL || strcmp(got, value) != 0)) {
        fail_msg("%s is '%s', not '%s'", name, got != NULL ? got : "(unset)", value);
    }
}
