#ifndef SY_TESTS_UNIT_FAULT_H
#define SY_TESTS_UNIT_FAULT_H

#include "base/err.h"

/*
 * Runs `body` again and again, with the first allocation failing, then the
 * second, and so on, until a run succeeds in which none had to fail. The test
 * fails when the body
 *   - returns anything but SY_E_NOMEM although an allocation failed,
 *   - returns anything but SY_E_OK although none failed,
 *   - leaves blocks allocated, in either case.
 *
 * The body frees all that it makes, on each path, and gives back the code of
 * the unit under test. It makes no cmocka assertion before it has freed all:
 * those jump out. It is called at least once, with `arg` handed through.
 */
typedef enum sy_code fault_body(void *arg);

void fault_run(fault_body *body, void *arg);

/* As fault_run, for bodies in which a failed allocation may be survived: the
 * result is then SY_E_OK as well as SY_E_NOMEM. Leaks still fail the test. */
void fault_run_lenient(fault_body *body, void *arg);

#endif
