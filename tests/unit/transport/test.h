#ifndef SY_TESTS_UNIT_TRANSPORT_TEST_H
#define SY_TESTS_UNIT_TRANSPORT_TEST_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#endif
