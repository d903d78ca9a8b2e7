#ifndef SY_TESTS_UNIT_PROTOCOL_TEST_H
#define SY_TESTS_UNIT_PROTOCOL_TEST_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define assert_has(text, part)   assert_non_null(strstr(text, part))
#define assert_lacks(text, part) assert_null(strstr(text, part))

#endif
