/*
 * Tries what a hostile command would try and says how it went, one line an
 * act: its name and 0 (it worked), an errno value, or 1000 plus the signal
 * that ended it. Decides nothing: test_syscalls.c knows what should happen,
 * inside a sandbox and outside.
 *
 * Usage: probe_syscalls PROBE_NAME=value..., as test_syscalls.c gives them. Not
 * by the environment, which whatever runs us may cut down. PROBE_ONLY has the
 * names of the acts that are wanted, with a comma around each.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

pid_t probe_parent;

int
probe_result(long r)
{
    return r >= 0 ? 0 : errno;
}

const char *
probe_env(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL) {
        (void)fprintf(stderr, "probe_syscalls: %s is not set\n", name);
        exit(2);
    }
    return value;
}

long
probe_env_number(const char *name)
{
    return (long)strtoll(probe_env(name), NULL, 10);
}

#define TRY(...) return probe_result(syscall(__VA_ARGS__))

static int
act_unshare_user(void)
{
    TRY(SYS_unshare, CLONE_NEWUSER);
}

static int
act_unshare_mount(void)
{
    TRY(SYS_unshare, CLONE_NEWNS);
}

static int
clone_with(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    int status;

    if (pid == 0) {
        _exit(0);
    }
    if (pid > 0 && waitpid((pid_t)pid, &status, 0) != pid) {
        return ECHILD;
    }
    return probe_result(pid);
}

static int
act_clone_user(void)
{
    return clone_with(CLONE_NEWUSER);
}

static int
act_clone_plain(void)
{
    return clone_with(0);
}

static int
act_clone3(void)
{
    TRY(SYS_clone3, NULL, 0);
}

static int
act_setns(void)
{
    TRY(SYS_setns, -1, 0);
}

static int
act_io_uring(void)
{
    TRY(SYS_io_uring_setup, 1, NULL);
}

static int
act_bpf(void)
{
    TRY(SYS_bpf, 9999, NULL, 0);
}

static int
act_perf(void)
{
    TRY(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static int
act_userfaultfd(void)
{
    TRY(SYS_userfaultfd, 1 /* user mode only */);
}

static int
act_keyctl(void)
{
    TRY(SYS_keyctl, 9999);
}

static int
act_add_key(void)
{
    TRY(SYS_add_key, NULL, NULL, NULL, 0, 0);
}

static int
act_request_key(void)
{
    TRY(SYS_request_key, NULL, NULL, NULL, 0);
}

static int
act_mount(void)
{
    TRY(SYS_mount, "none", "/nonexistent", "tmpfs", 0, NULL);
}

static int
act_umount(void)
{
    TRY(SYS_umount2, "/nonexistent", 0);
}

static int
act_pivot_root(void)
{
    TRY(SYS_pivot_root, "/nonexistent", "/nonexistent");
}

static int
act_open_tree(void)
{
    TRY(428, -1, "/nonexistent", 0);
}

static int
act_move_mount(void)
{
    TRY(429, -1, "/nonexistent", -1, "/nonexistent", 0);
}

static int
act_fsopen(void)
{
    TRY(430, "no-such-filesystem", 0);
}

static int
act_fsconfig(void)
{
    TRY(431, -1, 0, NULL, NULL, 0);
}

static int
act_mount_setattr(void)
{
    TRY(442, -1, "", 0, NULL, 0);
}

static int
act_chroot(void)
{
    TRY(SYS_chroot, probe_env("PROBE_INSIDE"));
}

static int
act_handle(void)
{
    char handle[256] = {0};
    int mount_id;

    *(unsigned *)(void *)handle = 128;
    TRY(SYS_name_to_handle_at, AT_FDCWD, "/", handle, &mount_id, 0);
}

static int
act_open_by_handle(void)
{
    TRY(SYS_open_by_handle_at, -1, NULL, 0);
}

static int
act_fanotify(void)
{
    TRY(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY);
}

static int
act_memfd_secret(void)
{
    TRY(447, 0);
}

static int
act_personality(void)
{
    TRY(SYS_personality, 8 /* PER_LINUX32 */);
}

static int
act_personality_query(void)
{
    TRY(SYS_personality, 0xffffffffUL);
}

static int
act_reboot(void)
{
    TRY(SYS_reboot, 0, 0, 0, NULL); /* wrong magic: harmless where it is let through */
}

static int
act_init_module(void)
{
    TRY(SYS_init_module, NULL, 0, NULL);
}

static int
act_swapon(void)
{
    TRY(SYS_swapon, NULL, 0);
}

static int
act_acct(void)
{
    TRY(SYS_acct, "/nonexistent");
}

static int
act_quotactl(void)
{
    TRY(SYS_quotactl, -1, NULL, 0, NULL);
}

static int
act_clock_settime(void)
{
    TRY(SYS_clock_settime, 9999, NULL);
}

static int
act_adjtimex(void)
{
    struct timex read_only = {.modes = 0};

    TRY(SYS_adjtimex, &read_only);
}

static int
act_unknown_call(void)
{
    TRY(9999);
}

static int
act_nested_seccomp(void)
{
    uint32_t action = 0x7fff0000U; /* SECCOMP_RET_ALLOW */

    TRY(SYS_seccomp, 2 /* GET_ACTION_AVAIL */, 0, &action);
}

static int
act_nested_landlock(void)
{
    TRY(444, NULL, 0, 1);
}

static int
act_x32(void)
{
#if defined(__x86_64__)
    TRY(0x40000000L | SYS_getpid);
#else
    return ENOSYS;
#endif
}

/* getpid by the 32-bit table, where only the table's own ABI has this number. */
static int
act_int80(void)
{
#if defined(__x86_64__)
    long r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return r == getpid() ? 0 : ENOSYS;
#else
    return ENOSYS;
#endif
}

static int
act_setuid_program(void)
{
    const char *program = probe_env("PROBE_SETUID");
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)execl(program, program, "--euid-differs", (char *)NULL);
        _exit(200);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return ECHILD;
    }
    return WEXITSTATUS(status);
}

/* 0: somebody left us more than standard input, output and error. */
static int
act_descriptors(void)
{
    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            return 0;
        }
    }
    return EBADF;
}

static const struct probe_act acts[] = {
    {"unshare-user",      act_unshare_user     },
    {"unshare-mount",     act_unshare_mount    },
    {"clone-user",        act_clone_user       },
    {"clone-plain",       act_clone_plain      },
    {"clone3",            act_clone3           },
    {"setns",             act_setns            },
    {"io-uring",          act_io_uring         },
    {"bpf",               act_bpf              },
    {"perf",              act_perf             },
    {"userfaultfd",       act_userfaultfd      },
    {"keyctl",            act_keyctl           },
    {"add-key",           act_add_key          },
    {"request-key",       act_request_key      },
    {"mount",             act_mount            },
    {"umount",            act_umount           },
    {"pivot-root",        act_pivot_root       },
    {"open-tree",         act_open_tree        },
    {"move-mount",        act_move_mount       },
    {"fsopen",            act_fsopen           },
    {"fsconfig",          act_fsconfig         },
    {"mount-setattr",     act_mount_setattr    },
    {"chroot",            act_chroot           },
    {"handle",            act_handle           },
    {"open-by-handle",    act_open_by_handle   },
    {"fanotify",          act_fanotify         },
    {"memfd-secret",      act_memfd_secret     },
    {"personality",       act_personality      },
    {"personality-query", act_personality_query},
    {"reboot",            act_reboot           },
    {"init-module",       act_init_module      },
    {"swapon",            act_swapon           },
    {"acct",              act_acct             },
    {"quotactl",          act_quotactl         },
    {"clock-settime",     act_clock_settime    },
    {"adjtimex",          act_adjtimex         },
    {"unknown-call",      act_unknown_call     },
    {"nested-seccomp",    act_nested_seccomp   },
    {"nested-landlock",   act_nested_landlock  },
    {"x32",               act_x32              },
    {"int80",             act_int80            },
    {"setuid-program",    act_setuid_program   },
    {"descriptors",       act_descriptors      },
};

static bool
is_wanted(const char *name)
{
    const char *only = getenv("PROBE_ONLY");
    char word[64];

    (void)snprintf(word, sizeof(word), ",%s,", name);
    return only == NULL || strstr(only, word) != NULL;
}

static void
run(const struct probe_act *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int status = 0;

        if (!is_wanted(list[i].name)) {
            continue;
        }

        (void)fflush(stdout);

        /* Each in its own process: some acts change the one that does them. */
        pid_t pid = fork();

        if (pid == 0) {
            struct sigaction stop = {.sa_handler = SIG_DFL};

            (void)sigaction(SIGALRM, &stop, NULL);
            /* A sanitizer would turn the signal of a forbidden call into an exit. */
            (void)sigaction(SIGSEGV, &stop, NULL);
            (void)sigaction(SIGSYS, &stop, NULL);
            (void)alarm(20);

            int outcome = list[i].act();

            (void)printf("%s %d\n", list[i].name, outcome);
            (void)fflush(stdout);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            (void)printf("%s %d\n", list[i].name, 3000);
        } else if (WIFSIGNALED(status)) {
            (void)printf("%s %d\n", list[i].name, 1000 + WTERMSIG(status));
        }
    }
}

/* Whom others are to reach, or not: lives until it is killed or its parent is. */
__attribute__((noreturn)) static void
be_victim(void)
{
    static char byte = 'v';
    char asked = 0;

    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)printf("%lld\n", (long long)(intptr_t)&byte);
    (void)fflush(stdout);
    /* Who is asked answers as long as nobody has ended it. */
    while (read(STDIN_FILENO, &asked, 1) == 1 && write(STDOUT_FILENO, &asked, 1) == 1) {
    }
    for (;;) {
        (void)pause();
    }
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--victim") == 0) {
        be_victim();
    }
    if (argc == 3 && strcmp(argv[1], "--linger") == 0) {
        (void)alarm(60); /* where nobody ends it, time does */
        for (;;) {
            (void)pause();
        }
    }
    if (argc == 2 && strcmp(argv[1], "--euid-differs") == 0) {
        _exit(geteuid() != getuid() ? 0 : EPERM); /* a leak checker fails as another user */
    }
    probe_parent = getppid();
    for (int i = 1; i < argc; i++) {
        if (putenv(argv[i]) != 0) {
            return 2;
        }
    }
    run(acts, sizeof(acts) / sizeof(acts[0]));
    run(probe_process_acts, probe_n_process_acts);
    run(probe_file_acts, probe_n_file_acts);
    run(probe_socket_acts, probe_n_socket_acts);
    if (getenv("PROBE_HOME") != NULL) {
        run(probe_wall_acts, probe_n_wall_acts);
    }
    if (getenv("PROBE_SESSION") != NULL) {
        run(probe_session_acts, probe_n_session_acts);
    }
    (void)fflush(stdout);
    _exit(0); /* a leak checker would want ptrace, which is among the refused */
}
