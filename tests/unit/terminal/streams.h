#ifndef SY_TESTS_UNIT_TERMINAL_STREAMS_H
#define SY_TESTS_UNIT_TERMINAL_STREAMS_H

#include <stdint.h>

#include "base/buf.h"

/*
 * Random streams of a program on a terminal, the same ones for the same seed: logs, colours,
 * editing, programs that draw, and what is odd. Ends the run without memory.
 */

/* Of one stream. */
#define STREAMS_MAX 120000U

void streams_make(struct buf *out, uint64_t seed);
/* A number below, of the sequence that streams_make has begun. */
unsigned streams_pick(unsigned below);

#endif
