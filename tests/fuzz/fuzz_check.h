#ifndef FUZZ_CHECK_H
#define FUZZ_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Aborts with the broken property, which libFuzzer and replay take for a finding. A function, so
 * that many of them in a row count as the straight line that they are. */
#define CHECK(cond) fuzz_check((cond), #cond, __FILE__, __LINE__)

static inline void
fuzz_check(bool is_true, const char *cond, const char *file, int line)
{
    if (!is_true) {
        sy_assert_failed(cond, file, line);
    }
}

/* https://llvm.org/docs/LibFuzzer.html */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
