#include "base/clock.h"

#include <stdio.h>
#include <time.h>
#ifdef SY_IS_FRONT
#    include <sys/syscall.h>
#    include <unistd.h>
#endif

/*
 * The program in front asks a few times in its life. To find the kernel's code for it
 * (vdso(7)) would cost three page faults, more than all of these calls.
 */
static void
get_time(clockid_t clock, struct timespec *ret)
{
#ifdef SY_IS_FRONT
    (void)syscall(SYS_clock_gettime, clock, ret);
#else
    (void)clock_gettime(clock, ret);
#endif
}

static int64_t
get_ns(clockid_t clock)
{
    struct timespec ts = {0};

    get_time(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

uint64_t
clock_mono_ns(void)
{
    return (uint64_t)get_ns(CLOCK_MONOTONIC);
}

uint64_t
clock_work_ns(void)
{
    return (uint64_t)get_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t
clock_wall_ns(void)
{
    return get_ns(CLOCK_REALTIME);
}

int64_t
clock_file_ns(void)
{
    return get_ns(CLOCK_REALTIME_COARSE);
}

void
clock_wall_text(char out[CLOCK_WALL_LEN])
{
    struct timespec ts = {0};
    struct tm tm = {0};

    get_time(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    /* The moduli bound each field for the compiler; real values are inside. */
    snprintf(out, CLOCK_WALL_LEN, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
             (unsigned)(tm.tm_year + 1900) % 10000U, (unsigned)(tm.tm_mon + 1) % 100U,
             (unsigned)tm.tm_mday % 100U, (unsigned)tm.tm_hour % 100U, (unsigned)tm.tm_min % 100U,
             (unsigned)tm.tm_sec % 100U, (unsigned)(ts.tv_nsec / 1000000) % 1000U);
}
