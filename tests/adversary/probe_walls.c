/*
 * Acts on what only some sandboxes hold, or hold by other means: secrets
 * (PROBE_HOME/.ssh/id begins with "secret"), protected names of a repository in
 * PROBE_INSIDE, attributes outside, and what one wall alone gives away. They are
 * tried where PROBE_HOME is given.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <linux/capability.h>

#include "probe.h"

static char path_a[4096];
static char path_b[4096];

static const char *
at(char *to, const char *place, const char *name)
{
    (void)snprintf(to, sizeof(path_a), "%s/%s", probe_env(place), name);
    return to;
}

/* An errno value that says "it is not there, or is another". */
static int
refused_unless(bool is_open)
{
    return is_open ? 0 : EPERM;
}

static int
append(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0755);
    int sys = fd < 0 ? errno : probe_result(write(fd, text, strlen(text)));

    (void)close(fd);
    return sys;
}

static int
read_secret(const char *path)
{
    char bytes[6];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    int sys = errno;

    (void)close(fd);
    if (n < 0) {
        return sys;
    }
    /* An empty file in its place holds as well. */
    return n == (ssize_t)sizeof(bytes) && memcmp(bytes, "secret", sizeof(bytes)) == 0 ? 0 : ENODATA;
}

static int
act_read_secret(void)
{
    return read_secret(at(path_a, "PROBE_HOME", ".ssh/id"));
}

static int
act_read_secret_by_link(void)
{
    return read_secret(at(path_a, "PROBE_INSIDE", "to-secret"));
}

static int
act_read_secret_by_proc(void)
{
    (void)snprintf(path_a, sizeof(path_a), "/proc/self/root%s/.ssh/id", probe_env("PROBE_HOME"));
    return read_secret(path_a);
}

static int
act_read_secret_by_cwd(void)
{
    if (chdir(probe_env("PROBE_INSIDE")) != 0) {
        return errno;
    }
    return read_secret("/proc/self/cwd/../home/.ssh/id");
}

static int
act_link_secret(void)
{
    const char *own = at(path_b, "PROBE_INSIDE", "linked-secret");

    (void)unlink(own);
    if (link(at(path_a, "PROBE_HOME", ".ssh/id"), own) != 0) {
        return errno;
    }
    return read_secret(own);
}

static int
act_move_secret(void)
{
    const char *own = at(path_b, "PROBE_INSIDE", "moved-secrets");
    int sys = rename(at(path_a, "PROBE_HOME", ".ssh"), own) == 0 ? 0 : errno;

    if (sys == 0) {
        (void)rename(own, path_a);
    }
    return sys;
}

static int
act_read_private(void)
{
    return read_secret(at(path_a, "PROBE_OUTSIDE", "private/key"));
}

static int
act_read_own_state(void)
{
    return read_secret(at(path_a, "PROBE_HOME", ".local/state/shellyard/key"));
}

static int
act_chmod_outside(void)
{
    return probe_result(chmod(at(path_a, "PROBE_OUTSIDE", "victim"), 0600));
}

static int
act_chown_outside(void)
{
    return probe_result(chown(at(path_a, "PROBE_OUTSIDE", "victim"), geteuid(), getegid()));
}

static int
act_times_outside(void)
{
    return probe_result(utimensat(AT_FDCWD, at(path_a, "PROBE_OUTSIDE", "victim"), NULL, 0));
}

static int
act_attribute_outside(void)
{
    return probe_result(
        setxattr(at(path_a, "PROBE_OUTSIDE", "victim"), "user.adversary", "x", 1, 0));
}

static int
act_hook(void)
{
    return append(at(path_a, "PROBE_INSIDE", ".git/hooks/post-checkout"), "#!/bin/sh\n");
}

static int
act_git_config(void)
{
    return append(at(path_a, "PROBE_INSIDE", ".git/config"), "[core]\nfsmonitor = evil\n");
}

static int
act_git_config_replaced(void)
{
    int sys = append(at(path_a, "PROBE_INSIDE", "other-config"), "[core]\nfsmonitor = evil\n");

    return sys != 0 ? sys : probe_result(rename(path_a, at(path_b, "PROBE_INSIDE", ".git/config")));
}

static int
act_git_config_linked(void)
{
    const char *own = at(path_b, "PROBE_INSIDE", "linked-config");

    (void)unlink(own);
    if (link(at(path_a, "PROBE_INSIDE", ".git/config"), own) != 0) {
        return errno;
    }
    return append(own, "[core]\nfsmonitor = evil\n");
}

static int
act_git_moved(void)
{
    const char *own = at(path_b, "PROBE_INSIDE", "moved-git");

    if (rename(at(path_a, "PROBE_INSIDE", ".git"), own) != 0) {
        return errno;
    }
    (void)mkdir(path_a, 0755);
    (void)mkdir(at(path_a, "PROBE_INSIDE", ".git/hooks"), 0755);

    int sys = append(at(path_a, "PROBE_INSIDE", ".git/hooks/post-checkout"), "#!/bin/sh\n");

    /* What comes next needs the repository. */
    (void)rename(at(path_a, "PROBE_INSIDE", ".git"), at(path_b, "PROBE_INSIDE", "planted-git"));
    (void)rename(at(path_b, "PROBE_INSIDE", "moved-git"), path_a);
    return sys;
}

static int
act_agent_directory(void)
{
    if (mkdir(at(path_a, "PROBE_INSIDE", ".claude"), 0755) != 0 && errno != EEXIST) {
        return errno;
    }
    return append(at(path_a, "PROBE_INSIDE", ".claude/settings.json"), "{}");
}

static int
act_envrc(void)
{
    return append(at(path_a, "PROBE_INSIDE", ".envrc"), "evil\n");
}

/* By the number that it has outside; inside of a namespace it is another, or none. */
static int
act_see_victim(void)
{
    char line[256] = {0};
    int fd;

    (void)snprintf(path_a, sizeof(path_a), "/proc/%s/cmdline", probe_env("PROBE_VICTIM"));
    fd = open(path_a, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? errno : refused_unless(read(fd, line, sizeof(line) - 1) > 0);
}

static int
act_see_tmp(void)
{
    return probe_result(access(probe_env("PROBE_TMP"), F_OK));
}

static int
act_attach_shared(void)
{
    return probe_result(shmget((key_t)probe_env_number("PROBE_SHM"), 0, 0));
}

static int
act_core_dumps(void)
{
    struct rlimit now = {0, 0};

    return getrlimit(RLIMIT_CORE, &now) == 0 ? refused_unless(now.rlim_max > 0) : errno;
}

static int
act_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[2] = {
        {0, 0, 0},
        {0, 0, 0}
    };

    if (syscall(SYS_capget, &header, now) != 0) {
        return errno;
    }
    return refused_unless(
        (now[0].permitted | now[1].permitted | now[0].inheritable | now[1].inheritable) != 0);
}

static int
act_new_privileges(void)
{
    return refused_unless(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
}

static int
act_terminal(void)
{
    return probe_result(open("/dev/tty", O_RDWR | O_CLOEXEC));
}

/* Keys for whoever reads the terminal of our session, or one that was left open. */
static int
act_type(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

    for (int n = 0; fd < 0 && n < 64; n++) {
        fd = isatty(n) ? n : -1;
    }
    return fd < 0 ? ENXIO : probe_result(ioctl(fd, TIOCSTI, "\n"));
}

/* The terminal of somebody else: its device number tells it from one that has the same name in
 * another tree. 0 with a descriptor, or an errno value. */
static int
open_other_terminal(int flags, int *ret_fd)
{
    struct stat st;
    int fd = open(probe_env("PROBE_TERMINAL"), flags | O_CLOEXEC);

    if (fd < 0) {
        return errno;
    }
    if (fstat(fd, &st) != 0 || (long)st.st_dev != probe_env_number("PROBE_TERMINAL_DEVICE")) {
        (void)close(fd);
        return ENODEV;
    }
    *ret_fd = fd;
    return 0;
}

static int
act_other_terminal(void)
{
    int fd = -1;
    int sys = open_other_terminal(O_RDWR | O_NOCTTY, &fd);

    if (sys == 0) {
        sys = probe_result(write(fd, "forged", 6));
        (void)close(fd);
    }
    return sys;
}

/* What its person types next would be ours. */
static int
act_read_terminal(void)
{
    int fd = -1;
    int sys = open_other_terminal(O_RDONLY | O_NONBLOCK, &fd);

    if (sys == 0) {
        (void)close(fd);
    }
    return sys;
}

/* The controlling terminal, where there is one. */
static int
on_own_terminal(unsigned long command)
{
    char key = 'x';
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

    return fd < 0 ? ENXIO : probe_result(ioctl(fd, command, &key));
}

static int
act_own_tiocsti(void)
{
    return on_own_terminal(TIOCSTI);
}

static int
act_own_tioclinux(void)
{
    return on_own_terminal(TIOCLINUX);
}

static int
act_secret_variables(void)
{
    static const char *const names[] = {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "BASH_ENV",
                                        "LD_AUDIT"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (getenv(names[i]) != NULL) {
            return 0;
        }
    }
    return ENOENT;
}

/* The signal that an asynchronous descriptor sends to its owner. */
static int
act_signal_by_owner(void)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0 ||
        fcntl(fds[0], F_SETOWN, (int)probe_env_number("PROBE_VICTIM")) != 0 ||
        fcntl(fds[0], F_SETSIG, SIGKILL) != 0 || fcntl(fds[0], F_SETFL, O_ASYNC) != 0) {
        return errno;
    }
    return probe_result(write(fds[1], "x", 1));
}

/* Whoever started us: the keeper, which nobody may end before the command's tree. */
static int
act_signal_parent(void)
{
    return probe_result(kill(probe_parent, 0));
}

static int
act_proc_write(void)
{
    int fd = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);

    return fd < 0 ? errno : probe_result(write(fd, "x", 1));
}

/* Itself again as what stays; `ready` is closed by that. */
static void
be_daemon(int ready)
{
    struct sigaction deaf = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGTERM, &deaf, NULL);
    (void)sigaction(SIGHUP, &deaf, NULL);
    for (int fd = 0; fd < 64; fd++) {
        if (fd != ready) {
            (void)close(fd);
        }
    }
    (void)execl("/proc/self/exe", "probe", "--linger", probe_env("PROBE_MARK"), NULL);
    _exit(0);
}

/* A daemon that has left session and parent, and does not listen to signals. It is there when this
 * returns. */
static int
act_daemon(void)
{
    int ready[2];
    char byte = 0;
    pid_t pid = -1;

    if (pipe2(ready, O_CLOEXEC) != 0) {
        return errno;
    }
    pid = fork();
    if (pid == 0) {
        (void)setsid();
        if (fork() == 0) {
            be_daemon(ready[1]);
        }
        _exit(0);
    }
    (void)close(ready[1]);
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR) {
    }
    (void)close(ready[0]);
    return waitpid(pid, NULL, 0) == pid ? 0 : errno;
}

/* Work that must go on whatever is configured. */
static int
act_move_directories(void)
{
    const char *a = at(path_a, "PROBE_INSIDE", "from");
    const char *b = at(path_b, "PROBE_INSIDE", "to");
    char inner[4200];
    char moved[4200];

    (void)mkdir(a, 0755);
    (void)mkdir(b, 0755);
    (void)snprintf(inner, sizeof(inner), "%s/x", a);
    (void)snprintf(moved, sizeof(moved), "%s/x", b);
    if (append(inner, "1") != 0 || rename(inner, moved) != 0) {
        return errno;
    }
    (void)snprintf(inner, sizeof(inner), "%s/y", a);
    (void)unlink(inner);
    if (link(moved, inner) != 0) {
        return errno;
    }
    (void)snprintf(inner, sizeof(inner), "%s/b-%d", a, (int)getpid());
    return probe_result(rename(b, inner));
}

static void *
spawn_true(void *failures)
{
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        int status = 1;

        if (pid == 0) {
            (void)execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            __atomic_fetch_add((int *)failures, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

static int
act_threads_spawn(void)
{
    pthread_t threads[8];
    int failures = 0;

    for (size_t i = 0; i < 8; i++) {
        if (pthread_create(&threads[i], NULL, spawn_true, &failures) != 0) {
            return EAGAIN;
        }
    }
    for (size_t i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return failures == 0 ? 0 : ECHILD;
}

/* One end waits for the other in open(2). */
static int
act_fifo_inside(void)
{
    const char *path = at(path_a, "PROBE_INSIDE", "queue");
    char bytes[2];
    pid_t pid;
    int fd;

    if (mkfifo(path, 0600) != 0 && errno != EEXIST) {
        return errno;
    }
    pid = fork();
    if (pid == 0) {
        _exit(append(path, "hi"));
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, bytes, 2) != 2 || waitpid(pid, NULL, 0) != pid) {
        return errno != 0 ? errno : EIO;
    }
    return 0;
}

const struct probe_act probe_wall_acts[] = {
    {"read-secret",         act_read_secret        },
    {"read-secret-by-link", act_read_secret_by_link},
    {"read-secret-by-proc", act_read_secret_by_proc},
    {"read-secret-by-cwd",  act_read_secret_by_cwd },
    {"link-secret",         act_link_secret        },
    {"move-secret",         act_move_secret        },
    {"read-private",        act_read_private       },
    {"read-own-state",      act_read_own_state     },
    {"chmod-outside",       act_chmod_outside      },
    {"chown-outside",       act_chown_outside      },
    {"times-outside",       act_times_outside      },
    {"attribute-outside",   act_attribute_outside  },
    {"hook",                act_hook               },
    {"git-moved",           act_git_moved          },
    {"git-config-linked",   act_git_config_linked  },
    {"git-config",          act_git_config         },
    {"git-config-replaced", act_git_config_replaced},
    {"agent-directory",     act_agent_directory    },
    {"envrc",               act_envrc              },
    {"see-victim",          act_see_victim         },
    {"see-tmp",             act_see_tmp            },
    {"attach-shared",       act_attach_shared      },
    {"core-dumps",          act_core_dumps         },
    {"capabilities",        act_capabilities       },
    {"new-privileges",      act_new_privileges     },
    {"terminal",            act_terminal           },
    {"type",                act_type               },
    {"own-tiocsti",         act_own_tiocsti        },
    {"own-tioclinux",       act_own_tioclinux      },
    {"other-terminal",      act_other_terminal     },
    {"read-terminal",       act_read_terminal      },
    {"secret-variables",    act_secret_variables   },
    {"signal-by-owner",     act_signal_by_owner    },
    {"signal-parent",       act_signal_parent      },
    {"proc-write",          act_proc_write         },
    {"daemon",              act_daemon             },
    {"move-directories",    act_move_directories   },
    {"threads-spawn",       act_threads_spawn      },
    {"fifo-inside",         act_fifo_inside        },
};

const size_t probe_n_wall_acts = sizeof(probe_wall_acts) / sizeof(probe_wall_acts[0]);
