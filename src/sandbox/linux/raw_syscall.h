#ifndef SY_SANDBOX_LINUX_RAW_SYSCALL_H
#define SY_SANDBOX_LINUX_RAW_SYSCALL_H

#include <stdint.h>

/*
 * System calls without the C library, for code that runs in a child which
 * shares its parent's memory: errno there is the parent's, and the wrappers
 * of setuid-like calls signal the parent's threads. Each returns what the
 * kernel returned: a negative errno value on failure.
 *
 * Always inlined: after a vfork-style clone the child must not return from the
 * frame in which the call was made, or it overwrites the parent's.
 */

/*
 * Such code is marked RAW_CODE, all of it: it runs on the thread-local storage
 * of a thread that runs on at the same time, where a sanitizer keeps its fake
 * stack.
 */
#if defined(__clang__)
#    define RAW_CODE __attribute__((no_sanitize("address", "undefined", "thread"), noinline))
#else
#    define RAW_CODE                                                                               \
        __attribute__((no_sanitize_address, no_sanitize_undefined, no_sanitize_thread, noinline))
#endif

#if defined(__x86_64__)

static inline __attribute__((always_inline)) long
sy_raw6(long nr, long a, long b, long c, long d, long e, // NOLINT(readability-function-size)
        long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return ret;
}

/*
 * A clone-like call whose child begins on a stack of its own: it calls fn(arg)
 * there and exits with what that returns. In the parent as any other call.
 */
static inline __attribute__((always_inline)) long
sy_raw_spawn(long nr, long a, long b, long c, // NOLINT(readability-function-size)
             int (*fn)(void *), void *arg)
{
    register int (*child_fn)(void *) __asm__("r12") = fn;
    register void *child_arg __asm__("r13") = arg;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    long ret;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %[arg], %%rdi\n\t"
                     "call *%[fn]\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov $60, %%eax\n\t" /* exit(2) */
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10),
                       "r"(r8), [fn] "r"(child_fn), [arg] "r"(child_arg)
                     : "rcx", "r11", "memory", "cc");
    return ret;
}

#elif defined(__aarch64__)

static inline __attribute__((always_inline)) long
sy_raw6(long nr, long a, long b, long c, long d, long e, // NOLINT(readability-function-size)
        long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}

static inline __attribute__((always_inline)) long
sy_raw_spawn(long nr, long a, long b, long c, // NOLINT(readability-function-size)
             int (*fn)(void *), void *arg)
{
    register int (*child_fn)(void *) __asm__("x9") = fn;
    register void *child_arg __asm__("x10") = arg;
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;

    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, %[arg]\n\t"
                     "blr %[fn]\n\t"
                     "mov x8, #93\n\t" /* exit(2) */
                     "svc 0\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3),
                       "r"(x4), [fn] "r"(child_fn), [arg] "r"(child_arg)
                     : "memory", "cc");
    return x0;
}

#else
#    error "no raw system calls for this architecture: add them here"
#endif

static inline __attribute__((always_inline)) long
sy_raw5(long nr, long a, long b, long c, long d, long e)
{
    return sy_raw6(nr, a, b, c, d, e, 0);
}

static inline __attribute__((always_inline)) long
sy_raw4(long nr, long a, long b, long c, long d)
{
    return sy_raw6(nr, a, b, c, d, 0, 0);
}

static inline __attribute__((always_inline)) long
sy_raw3(long nr, long a, long b, long c)
{
    return sy_raw6(nr, a, b, c, 0, 0, 0);
}

static inline __attribute__((always_inline)) long
sy_raw2(long nr, long a, long b)
{
    return sy_raw6(nr, a, b, 0, 0, 0, 0);
}

static inline __attribute__((always_inline)) long
sy_raw1(long nr, long a)
{
    return sy_raw6(nr, a, 0, 0, 0, 0, 0);
}

static inline __attribute__((always_inline)) long
sy_raw0(long nr)
{
    return sy_raw6(nr, 0, 0, 0, 0, 0, 0);
}

/* A pointer as an argument of a raw call. */
static inline __attribute__((always_inline)) long
sy_raw_ptr(const void *p)
{
    return (long)(intptr_t)p;
}

#endif
