#include "process/launcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "process/launch_wire.h"
#include "process/template_internal.h"
#include "sandbox/document.h"

#define CONTROL_FD   3
#define NS_PER_MS    1000000ULL
#define POLICY_BYTES ((size_t)1 << 20)

struct launcher {
    pid_t pid;
    pid_t owner; /* who has started it, and not a child forked since */
    int control_fd;
};

/* Nothing of ours but the channel: no environment, no terminal, no blocked signals. */
static int
spawn_it(pid_t *ret, const char *program, int control_fd)
{
    char name[] = "shellyard-launch";
    char option[] = "--control";
    char number[] = {'0' + CONTROL_FD, '\0'};
    char *const argv[] = {name, option, number, NULL};
    char *const envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t signals;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attr);
    if (rc != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return rc;
    }
    sigemptyset(&signals);
    rc = posix_spawnattr_setsigmask(&attr, &signals);
    sigfillset(&signals);
    rc = rc == 0 ? posix_spawnattr_setsigdefault(&attr, &signals) : rc;
    rc = rc == 0 ? posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                       POSIX_SPAWN_SETSID)
                 : rc;
    for (int fd = 0; rc == 0 && fd < CONTROL_FD; fd++) {
        rc = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd == 0 ? 0 : 1, 0);
    }
    rc = rc == 0 ? posix_spawn_file_actions_adddup2(&actions, control_fd, CONTROL_FD) : rc;
    rc = rc == 0 ? posix_spawn(ret, program, &actions, &attr, argv, envp) : rc;
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

enum sy_code
launcher_start(struct launcher **ret, const char *program, struct sy_error *err)
{
    int pair[2];

    if (program == NULL) {
        return sy_err_set(err, SY_E_NOTFOUND,
                          "shellyard-launch was not found beside this program, or a program that "
                          "uses the library did not name it");
    }

    struct launcher *l = mem_alloc_zero(1, sizeof(*l));

    if (l == NULL) {
        return sy_err_nomem(err);
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        int sys = errno;

        mem_free(l);
        return sy_err_sys(err, sys, "making the launcher's channel");
    }
    l->control_fd = pair[0];
    l->owner = getpid();

    int rc = spawn_it(&l->pid, program, pair[1]);

    fd_close(&pair[1]);
    if (rc != 0) {
        l->pid = 0;
        launcher_free(l);
        return sy_err_set(err, SY_E_SANDBOX, "can't run '%.160s': %s", program, sy_errno_text(rc));
    }
    *ret = l;
    return SY_E_OK;
}

void
launcher_free(struct launcher *l)
{
    if (l == NULL) {
        return;
    }
    /* A child that the host program has forked since holds it too. */
    if (l->owner == getpid()) {
        (void)shutdown(l->control_fd, SHUT_RDWR);
    }
    fd_close(&l->control_fd);
    /* ECHILD: the host program waits for all children. */
    while (l->pid > 0 && waitpid(l->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    mem_free(l);
}

static enum sy_code
policy_file(int *ret, const struct sandbox_policy *policy, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = POLICY_BYTES};
    struct jw w = {.out = &text};

    jw_object(&w);
    sandbox_policy_write(&w, policy);
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM
                   ? sy_err_nomem(err)
                   : sy_err_set(err, rc, "the policy has more than %zu bytes", POLICY_BYTES);
    }
    return fd_memory_file(ret, "sy-policy", buf_view(&text), text.len, err);
}

static bool
send_request(const struct launcher *l, const int fds[LAUNCH_TEMPLATE_FDS])
{
    struct launch_request request = {.version = LAUNCH_VERSION, .kind = LAUNCH_TEMPLATE};
    struct iovec part = {.iov_base = &request, .iov_len = sizeof(request)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * LAUNCH_TEMPLATE_FDS)];
    } control = {
        .header = {.cmsg_len = CMSG_LEN(sizeof(int) * LAUNCH_TEMPLATE_FDS),
                   .cmsg_level = SOL_SOCKET,
                   .cmsg_type = SCM_RIGHTS}
    };
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};

    memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * LAUNCH_TEMPLATE_FDS);
    return sendmsg(l->control_fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(request);
}

static bool
is_readable(int fd)
{
    uint64_t until_ns = clock_mono_ns() + LIMIT_LAUNCH_MS * NS_PER_MS;
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    int ready = 0;

    do {
        uint64_t now_ns = clock_mono_ns();

        ready = poll(&waits, 1, now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) : 0);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

/* The template's answer, with the descriptors that may come along: all -1 before. */
static enum sy_code
await(int channel_fd, int fds[LAUNCH_REPORT_FDS], struct sy_error *err)
{
    struct launch_report r = {0};
    struct iovec part = {.iov_base = &r, .iov_len = sizeof(r)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * LAUNCH_REPORT_FDS)];
    } control = {.header = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};

    if (!is_readable(channel_fd)) {
        return sy_err_set(err, SY_E_SANDBOX, "the launcher did not answer for %d ms",
                          LIMIT_LAUNCH_MS);
    }

    ssize_t got = fd_receive(channel_fd, &message, MSG_CMSG_CLOEXEC);

    if (got <= 0) {
        return sy_err_set(err, SY_E_NOTFOUND, "the launcher ended before it answered");
    }

    fd_take_passed(&message, fds, LAUNCH_REPORT_FDS);
    if (got != (ssize_t)sizeof(r) || r.version != LAUNCH_VERSION) {
        return sy_err_set(err, SY_E_SANDBOX,
                          "shellyard-launch is of another version than this program: install both "
                          "anew");
    }
    if (r.stage == STAGE_NONE) {
        return SY_E_OK;
    }
    r.detail[sizeof(r.detail) - 1] = '\0';
    return sy_err_set(err, SY_E_SANDBOX, "%s failed: %s%s%.120s%s",
                      sandbox_stage_text((enum sandbox_stage)r.stage), sy_errno_text(r.sys),
                      r.detail[0] != '\0' ? " (" : "", r.detail, r.detail[0] != '\0' ? ")" : "");
}

enum sy_code
launcher_make_template(struct launcher *l, struct template **ret,
                       const struct sandbox_policy *policy, struct sy_error *err)
{
    int pair[2];
    SY_FD policy_fd = -1;
    SY_FD engine_fd = -1;
    int back[LAUNCH_REPORT_FDS] = {-1, -1, -1, -1};
    enum sy_code rc = policy_file(&policy_fd, policy, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    engine_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (engine_fd < 0) {
        return sy_err_set(err, SY_E_SANDBOX, "this kernel has no pidfd_open(2): %s",
                          sy_errno_text(errno));
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return sy_err_sys(err, errno, "making a template's channel");
    }

    SY_FD channel_fd = pair[0];
    SY_FD theirs = pair[1];
    const int fds[LAUNCH_TEMPLATE_FDS] = {policy_fd, theirs, engine_fd};

    if (!send_request(l, fds)) {
        return sy_err_set(err, SY_E_NOTFOUND, "the launcher is gone: %s", sy_errno_text(errno));
    }
    fd_close(&theirs);
    rc = await(channel_fd, back, err);
    if (rc == SY_E_OK) {
        rc = template_new_remote(ret, &channel_fd, back, err);
    }
    for (size_t i = 0; i < LAUNCH_REPORT_FDS; i++) {
        fd_close(&back[i]);
    }
    return rc;
}

enum sy_code
launcher_mark_add(struct buf *marks, char kind, const char *path)
{
    enum sy_code rc = buf_addf(marks, "%c%s", kind, path);

    return rc == SY_E_OK ? buf_add_char(marks, '\0') : rc;
}

enum sy_code
launcher_add_marks(struct template *t, const char *marks, size_t n, struct sy_error *err)
{
    SY_FD fd = -1;
    int back[LAUNCH_REPORT_FDS] = {-1, -1, -1, -1};
    enum sy_code rc = fd_memory_file(&fd, "sy-marks", marks, n, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (!template_send_marks(t, fd)) {
        return sy_err_set(err, SY_E_NOTFOUND, "the sandbox's process is gone");
    }
    rc = await(template_channel_fd(t), back, err);
    if (back[0] >= 0) {
        template_set_watch(t, back[0]);
    }
    return rc;
}

void
launcher_share(struct template *t, int fd)
{
    /* One that is gone is found at the next order. */
    (void)template_send_hold(t, fd);
}

void
launcher_tell(struct sandbox_caps *caps, enum sy_code rc, const struct sy_error *why)
{
    caps->has_full_tier = rc == SY_E_OK;
    (void)snprintf(caps->full_reason, sizeof(caps->full_reason), "%.*s", SANDBOX_REASON - 1,
                   rc == SY_E_OK ? "" : why->msg);
}

void
launcher_probe(struct sandbox_caps *caps, const char *program, const struct sandbox_policy *policy)
{
    SY_AUTO(template_unrefp) struct template *t = NULL;
    struct launcher *l = NULL;
    struct sy_error why = {0};
    /* Without Landlock no plan can be made, and that says why. */
    enum sy_code rc = caps->landlock_abi > 0
                          ? launcher_start(&l, program, &why)
                          : sy_err_set(&why, SY_E_SANDBOX, "no tier can be had without Landlock");

    if (rc == SY_E_OK && l != NULL) {
        rc = launcher_make_template(l, &t, policy, &why);
    }
    launcher_tell(caps, rc, &why);
    launcher_free(l);
}
