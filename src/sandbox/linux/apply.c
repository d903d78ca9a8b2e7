/*
 * The child's side. Shares memory with its parent: raw system calls only, no
 * errno, no heap, nothing written but the stack and *ret_stage.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

#include "sandbox/linux/raw_syscall.h"
#include "sandbox/linux/ready.h"

RAW_CODE static long
no_core_dumps(void)
{
    const struct {
        uint64_t soft;
        uint64_t hard;
    } none = {0, 0};

    return sy_raw4(SYS_prlimit64, 0, RLIMIT_CORE, sy_raw_ptr(&none), 0);
}

RAW_CODE static long
control(int option, long a, long b)
{
    return sy_raw5(SYS_prctl, option, a, b, 0, 0);
}

/*
 * Clears what a later exec could bring back. All of it needs CAP_SETPCAP;
 * where that is missing, no_new_privs alone keeps exec from adding any.
 */
RAW_CODE static long
bound_capabilities(void)
{
    static const long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                             SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                             SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    long r = control(PR_SET_SECUREBITS, bits, 0);

    /* EPERM: an outer sandbox has locked some of them already. */
    if (r < 0 && r != -EPERM) {
        return r;
    }
    for (long cap = 0; cap < 64; cap++) {
        r = control(PR_CAPBSET_DROP, cap, 0);
        if (r == -EINVAL) {
            break; /* beyond the kernel's last */
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

RAW_CODE static long
drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {{0}};
    static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    long r = sy_raw2(SYS_capget, sy_raw_ptr(&header), sy_raw_ptr(now));

    if (r < 0) {
        return r;
    }
    if ((now[0].permitted | now[1].permitted | now[0].inheritable | now[1].inheritable) == 0) {
        return 0; /* an ordinary user: nothing to drop, one call spent */
    }
    if ((now[0].effective & (1U << CAP_SETPCAP)) != 0) {
        r = bound_capabilities();
        if (r < 0) {
            return r;
        }
    }
    r = control(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
    if (r < 0) {
        return r;
    }
    return sy_raw2(SYS_capset, sy_raw_ptr(&header), sy_raw_ptr(none));
}

RAW_CODE static long
load_filter(const struct seccomp_program *program, unsigned long flags)
{
    const struct {
        unsigned short len;
        const struct sock_filter *filter;
    } fprog = {program->n, program->insns};

    return sy_raw3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, (long)flags, sy_raw_ptr(&fprog));
}

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#    define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

RAW_CODE static int
failed(enum sandbox_stage *ret_stage, enum sandbox_stage stage, long r)
{
    *ret_stage = stage;
    return (int)-r;
}

/*
 * The filter with a listener if that can be had. It can't where an outer filter
 * has one already (EBUSY: a process tree has one listener) or an outer sandbox
 * forbids it: then connect(2) is refused, which needs no broker.
 */
RAW_CODE static long
load_filters(const struct sandbox_base *base, volatile int *ret_listener)
{
    if (ret_listener != NULL && base->broker_program != NULL) {
        /* A signal must not end a call that is being answered (5.19): begun
         * again, it would find its socket connected. */
        long fd = load_filter(base->broker_program, SECCOMP_FILTER_FLAG_NEW_LISTENER |
                                                        SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

        if (fd == -EINVAL) {
            fd = load_filter(base->broker_program, SECCOMP_FILTER_FLAG_NEW_LISTENER);
        }
        if (fd >= 0) {
            *ret_listener = (int)fd;
            return 0;
        }
    }
    return load_filter(base->program, 0);
}

RAW_CODE int
sandbox_apply_privileges(enum sandbox_stage *ret_stage)
{
    long r = drop_capabilities();

    if (r < 0) {
        return failed(ret_stage, STAGE_CAPABILITIES, r);
    }
    r = control(PR_SET_NO_NEW_PRIVS, 1, 0);
    return r < 0 ? failed(ret_stage, STAGE_NO_NEW_PRIVS, r) : 0;
}

RAW_CODE int
sandbox_apply_base(const struct sandbox_base *base, volatile int *ret_listener,
                   enum sandbox_stage *ret_stage)
{
    long r = no_core_dumps();

    if (r < 0) {
        return failed(ret_stage, STAGE_RLIMITS, r);
    }
    if (base->program == NULL) {
        return 0;
    }
    int sys = sandbox_apply_privileges(ret_stage);

    if (sys != 0) {
        return sys;
    }
    r = load_filters(base, ret_listener);
    if (r < 0) {
        return failed(ret_stage, STAGE_SECCOMP, r);
    }
    return 0;
}

RAW_CODE int
sandbox_apply_paths(const struct sandbox_base *base, int ruleset_fd, enum sandbox_stage *ret_stage)
{
    if (base->program == NULL) {
        return 0;
    }

    long r = base->is_logged ? landlock_restrict_logged(ruleset_fd) : landlock_restrict(ruleset_fd);

    return r < 0 ? failed(ret_stage, STAGE_LANDLOCK, r) : 0;
}

RAW_CODE int
sandbox_apply(const struct sandbox_ready *ready, enum sandbox_stage *ret_stage)
{
    static const struct sandbox_base none;
    const struct sandbox_base *base = ready != NULL ? &ready->base : &none;
    int sys = sandbox_apply_base(base, NULL, ret_stage);

    return sys != 0 ? sys
                    : sandbox_apply_paths(base, ready != NULL ? ready->ruleset_fd : -1, ret_stage);
}
