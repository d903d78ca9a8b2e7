#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t
clock_mono_ns(void)
{
    struct timespec ts = {0};

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void
clock_wall_text(char out[CLOCK_WALL_LEN])
{
    struct timespec ts = {0};
    struct tm tm = {0};

    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    /* The moduli bound each field for the compiler; real values are inside. */
    snprintf(out, CLOCK_WALL_LEN, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
             (unsigned)(tm.tm_year + 1900) % 10000U, (unsigned)(tm.tm_mon + 1) % 100U,
             (unsigned)tm.tm_mday % 100U, (unsigned)tm.tm_hour % 100U, (unsigned)tm.tm_min % 100U,
             (unsigned)tm.tm_sec % 100U, (unsigned)(ts.tv_nsec / 1000000) % 1000U);
}
