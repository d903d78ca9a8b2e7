#include "fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

/* A unit that allocates more often than this in one call is either broken or
 * to be tested with a smaller input: the runs are quadratic. */
#define FAULT_RUNS_MAX 20000U

static void
check_run(size_t nth, enum sy_code rc, bool has_fired, bool may_survive)
{
    if (has_fired && rc != SY_E_NOMEM && !(may_survive && rc == SY_E_OK)) {
        fail_msg("allocation %zu failed, yet the result is %s", nth, sy_code_name(rc));
    }
    if (!has_fired && rc != SY_E_OK) {
        fail_msg("no allocation failed (of %zu), yet the result is %s", nth - 1, sy_code_name(rc));
    }
}

static void
run(fault_body *body, void *arg, bool may_survive)
{
    for (size_t nth = 1; nth <= FAULT_RUNS_MAX; nth++) {
        size_t live_before = mem_live();

        mem_fault_set(nth);

        enum sy_code rc = body(arg);
        bool has_fired = mem_fault_fired();
        size_t live_after = mem_live();

        mem_fault_set(0);
        check_run(nth, rc, has_fired, may_survive);
        if (live_after != live_before) {
            fail_msg("%zu blocks before, %zu after a run with %s %zu", live_before, live_after,
                     has_fired ? "a failed allocation" : "no failed allocation before number", nth);
        }
        if (!has_fired) {
            return;
        }
    }
    fail_msg("more than %u allocations in one run", FAULT_RUNS_MAX);
}

void
fault_run(fault_body *body, void *arg)
{
    run(body, arg, false);
}

void
fault_run_lenient(fault_body *body, void *arg)
{
    run(body, arg, true);
}
