#ifndef SY_BASE_CLOCK_H
#define SY_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC: all timing. The wall clock is for people to read only. */
uint64_t clock_mono_ns(void);
/* CLOCK_THREAD_CPUTIME_ID: how long the processor has worked for this thread. */
uint64_t clock_work_ns(void);

/*
 * Nanoseconds since 1970 of the wall clock, to compare with times of files. They are
 * stamped by a clock that ticks (clock_getres(2) of CLOCK_REALTIME_COARSE): what is made
 * from now on is stamped with clock_file_ns() or later, what has been made with
 * clock_wall_ns() or earlier.
 */
int64_t clock_wall_ns(void);
int64_t clock_file_ns(void);

/* UTC as "2026-11-28T01:02:03.456Z", for logs and events. */
#define CLOCK_WALL_LEN 25
void clock_wall_text(char out[CLOCK_WALL_LEN]);

#endif
