/* Acts on another session of the same server: on the terminal of its shell (PROBE_SESSION) and on
 * the shell itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define TRY(...) return probe_result(syscall(__VA_ARGS__))

/* Its device numbers tell it from one that has the same name in another mount of devpts. */
static int
open_terminal(const char *path, int *ret)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return errno;
    }
    if (fstat(fd, &st) != 0 || (long)st.st_dev != probe_env_number("PROBE_SESSION_DEVICE") ||
        (long)st.st_rdev != probe_env_number("PROBE_SESSION_NUMBER")) {
        (void)close(fd);
        return ENODEV;
    }
    *ret = fd;
    return 0;
}

static int
open_by_name(int *ret)
{
    return open_terminal(probe_env("PROBE_SESSION_TERMINAL"), ret);
}

static int
open_by_proc(int *ret)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%s/fd/0", probe_env("PROBE_SESSION"));
    return open_terminal(path, ret);
}

/* By either; the errno of the name if by none. */
static int
open_any(int *ret)
{
    int sys = open_by_name(ret);

    return sys != 0 && open_by_proc(ret) == 0 ? 0 : sys;
}

static int
act_by_name(void)
{
    int fd = -1;

    return open_by_name(&fd);
}

static int
act_by_proc(void)
{
    int fd = -1;

    return open_by_proc(&fd);
}

/* Nothing may have been typed: that there is nothing to read is no refusal. */
static int
act_read(void)
{
    char byte;
    int fd = -1;
    int sys = open_any(&fd);

    if (sys == 0 && read(fd, &byte, 1) < 0 && errno != EAGAIN) {
        sys = errno;
    }
    return sys;
}

static int
act_write(void)
{
    int fd = -1;
    int sys = open_any(&fd);

    return sys != 0 ? sys : probe_result(write(fd, "stolen", 6));
}

static int
act_keys(void)
{
    char key = 'x';
    int fd = -1;
    int sys = open_any(&fd);

    return sys != 0 ? sys : probe_result(ioctl(fd, TIOCSTI, &key));
}

static int
act_trace(void)
{
    TRY(SYS_ptrace, 0x4206 /* SEIZE */, probe_env_number("PROBE_SESSION"), 0, 0);
}

static int
act_descriptor(void)
{
    long pidfd = syscall(SYS_pidfd_open, probe_env_number("PROBE_SESSION"), 0);

    if (pidfd < 0) {
        return errno;
    }
    TRY(SYS_pidfd_getfd, pidfd, 0, 0);
}

static int
act_memory(void)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%s/mem", probe_env("PROBE_SESSION"));
    return probe_result(open(path, O_RDWR | O_CLOEXEC));
}

static int
act_signal(void)
{
    TRY(SYS_kill, probe_env_number("PROBE_SESSION"), 0);
}

const struct probe_act probe_session_acts[] = {
    {"steal-by-name",    act_by_name   },
    {"steal-by-proc",    act_by_proc   },
    {"steal-read",       act_read      },
    {"steal-write",      act_write     },
    {"steal-keys",       act_keys      },
    {"steal-trace",      act_trace     },
    {"steal-descriptor", act_descriptor},
    {"steal-memory",     act_memory    },
    {"steal-signal",     act_signal    },
};

const size_t probe_n_session_acts = sizeof(probe_session_acts) / sizeof(probe_session_acts[0]);
