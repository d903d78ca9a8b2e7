#ifndef SY_BASE_CLOCK_H
#define SY_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC: all timing. The wall clock is for people to read only. */
uint64_t clock_mono_ns(void);

/* UTC as "2026-11-28T01:02:03.456Z", for logs and events. */
#define CLOCK_WALL_LEN 25
void clock_wall_text(char out[CLOCK_WALL_LEN]);

#endif
