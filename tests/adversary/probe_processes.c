/* Acts on other processes (PROBE_VICTIM is one) and on terminals. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define TRY(...) return probe_result(syscall(__VA_ARGS__))

static int
act_ptrace(void)
{
    TRY(SYS_ptrace, 0x4206 /* SEIZE */, probe_env_number("PROBE_VICTIM"), 0, 0);
}

static int
act_ptrace_me(void)
{
    TRY(SYS_ptrace, 0 /* TRACEME */, 0, 0, 0);
}

static int
act_read_memory(void)
{
    char byte;
    struct iovec to = {&byte, 1};
    long address = probe_env_number("PROBE_ADDRESS");
    struct iovec from = {.iov_len = 1};

    memcpy(&from.iov_base, &address, sizeof(address));

    TRY(SYS_process_vm_readv, probe_env_number("PROBE_VICTIM"), &to, 1, &from, 1, 0);
}

static int
act_kcmp(void)
{
    TRY(SYS_kcmp, getpid(), getpid(), 1, 0, 0);
}

static int
act_take_descriptor(void)
{
    long pidfd = syscall(SYS_pidfd_open, probe_env_number("PROBE_VICTIM"), 0);

    if (pidfd < 0) {
        return errno; /* where it can't even be seen */
    }
    TRY(SYS_pidfd_getfd, pidfd, 0, 0);
}

static int
act_kill(void)
{
    TRY(SYS_kill, probe_env_number("PROBE_VICTIM"), 0);
}

static int
act_tgkill(void)
{
    TRY(SYS_tgkill, probe_env_number("PROBE_VICTIM"), probe_env_number("PROBE_VICTIM"), 0);
}

static int
act_pidfd_signal(void)
{
    long pidfd = syscall(SYS_pidfd_open, probe_env_number("PROBE_VICTIM"), 0);

    TRY(SYS_pidfd_send_signal, pidfd, 0, NULL, 0);
}

static int
act_kill_child(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    if (pid < 0 || kill(pid, SIGKILL) != 0 || waitpid(pid, &status, 0) != pid) {
        return errno;
    }
    return WIFSIGNALED(status) ? 0 : EINVAL;
}

static int
act_limit_other(void)
{
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

    TRY(SYS_prlimit64, probe_env_number("PROBE_VICTIM"), RLIMIT_CPU, &all, NULL);
}

static int
act_limit_self(void)
{
    struct rlimit now;

    return getrlimit(RLIMIT_NOFILE, &now) == 0 ? probe_result(setrlimit(RLIMIT_NOFILE, &now)) : 1;
}

/*
 * A terminal of our own: the act must not depend on who started us. Where nobody opens its other
 * end for us (no namespaces, and no broker), the act is on the end that is there.
 */
static int
on_terminal(unsigned long command, bool is_int)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int zero = 0;
    char key = 'x';

    if (master < 0 || unlockpt(master) != 0) {
        return 2000;
    }
    (void)setsid();

    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (slave < 0 ? errno != EACCES : ioctl(slave, TIOCSCTTY, 0) != 0) {
        return 2001;
    }
    TRY(SYS_ioctl, slave < 0 ? master : slave, command, is_int ? (void *)&zero : (void *)&key);
}

static int
act_tiocsti(void)
{
    return on_terminal(0x5412, false);
}

static int
act_tiocsti_high(void)
{
    return on_terminal(0x100005412UL, false);
}

static int
act_tioclinux(void)
{
    return on_terminal(0x541c, false);
}

static int
act_tiocsetd(void)
{
    return on_terminal(0x5423, true);
}

static int
act_window_size(void)
{
    struct winsize size = {0};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    return probe_result(ioctl(master, TIOCSWINSZ, &size));
}

const struct probe_act probe_process_acts[] = {
    {"ptrace",          act_ptrace         },
    {"ptrace-me",       act_ptrace_me      },
    {"read-memory",     act_read_memory    },
    {"kcmp",            act_kcmp           },
    {"take-descriptor", act_take_descriptor},
    {"kill",            act_kill           },
    {"tgkill",          act_tgkill         },
    {"pidfd-signal",    act_pidfd_signal   },
    {"kill-child",      act_kill_child     },
    {"limit-other",     act_limit_other    },
    {"limit-self",      act_limit_self     },
    {"tiocsti",         act_tiocsti        },
    {"tiocsti-high",    act_tiocsti_high   },
    {"tioclinux",       act_tioclinux      },
    {"tiocsetd",        act_tiocsetd       },
    {"window-size",     act_window_size    },
};

const size_t probe_n_process_acts = sizeof(probe_process_acts) / sizeof(probe_process_acts[0]);
