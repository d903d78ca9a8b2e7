/* What Landlock refuses, out of the kernel's audit log. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/audit.h>
#include <linux/netlink.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "process/audit.h"
#include "sandbox/linux/landlock.h"

#define SECOND_NS 1000000000ULL

/* The machine's switch; -1: not ours to read. With `to` >= 0 it is set. */
static int
auditing(int to)
{
    struct {
        struct nlmsghdr head;
        struct audit_status status;
    } message = {
        .head = {.nlmsg_len = NLMSG_LENGTH(to >= 0 ? sizeof(message.status) : 0),
                 .nlmsg_type = to >= 0 ? AUDIT_SET : AUDIT_GET,
                 .nlmsg_flags = NLM_F_REQUEST | (to >= 0 ? NLM_F_ACK : 0)},
        .status = {.mask = AUDIT_STATUS_ENABLED,                                                               .enabled = to > 0 ? 1 : 0               }
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
    int ret = -1;

    struct pollfd answer = {.fd = fd, .events = POLLIN};

    if (fd >= 0 && send(fd, &message, message.head.nlmsg_len, 0) > 0 &&
        poll(&answer, 1, 5000) > 0 && recv(fd, &message, sizeof(message), 0) > 0 &&
        message.head.nlmsg_type == AUDIT_GET) {
        ret = message.status.enabled != 0 ? 1 : 0;
    }
    fd_close(&fd);
    return ret;
}

static int
switch_on(void **state)
{
    static int before;

    before = auditing(-1);
    *state = &before;
    if (before == 0) {
        (void)auditing(1);
    }
    return 0;
}

static int
switch_back(void **state)
{
    if (*(int *)*state == 0) {
        (void)auditing(0);
    }
    return 0;
}

/* A process under a domain that lets nothing be written, in which a shell runs. */
static pid_t
start_refused(const char *dir, const char *script)
{
    pid_t pid = fork();

    if (pid != 0) {
        assert_true(pid > 0);
        return pid;
    }

    const struct landlock_ruleset attr = {.handled_fs =
                                              landlock_known(LANDLOCK_SET_FS, 1) & ~LL_FS_READS};
    long fd = landlock_create(&attr);

    (void)close(STDERR_FILENO); /* their complaints */

    if (fd < 0 || chdir(dir) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        landlock_restrict_logged((int)fd) < 0) {
        _exit(100);
    }
    execl("/bin/sh", "sh", "-c", script, (char *)NULL);
    _exit(101);
}

struct found {
    struct audit_record first;
    int n;
};

static void
on_refused(void *arg, const struct audit_record *r)
{
    struct found *f = arg;

    if (f->n++ == 0) {
        f->first = *r;
    }
}

/* Until something is told of that process. */
static void
await(struct audit_reader *r, pid_t pid, struct found *f)
{
    uint64_t give_up_ns = clock_mono_ns() + 20 * SECOND_NS;

    while (f->n == 0) {
        struct pollfd fd = {.fd = audit_reader_fd(r), .events = POLLIN};

        (void)audit_reader_take(r, pid, on_refused, f);
        assert_true(clock_mono_ns() < give_up_ns);
        if (f->n == 0) {
            poll(&fd, 1, 1000);
        }
    }
}

static void
refusals_are_told_to_whom_they_belong(void **state)
{
    char dir[] = "/var/tmp/sy-audit-XXXXXX";
    struct audit_reader *r = NULL;
    struct sy_error why = {0};
    struct found mine = {.n = 0};
    struct found others = {.n = 0};

    (void)state;
    if (auditing(-1) != 1) {
        /* Off, and not ours to switch on: a sentence, and nothing else. */
        assert_int_equal(audit_reader_new(&r, &why), SY_E_NOTFOUND);
        assert_true(strlen(why.msg) > 0);
        print_message("%s\n", why.msg);
        return;
    }
    if (landlock_abi() < LANDLOCK_AUDIT_ABI) {
        print_message("this kernel writes nothing of Landlock into its log\n");
        return;
    }
    assert_int_equal(audit_reader_new(&r, &why), SY_E_OK);
    assert_non_null(mkdtemp(dir));

    pid_t one = start_refused(dir, "echo x > made; exit 3");
    pid_t two = start_refused("/", "mkdir /sy-not-made; exit 4");
    int status = 0;

    assert_int_equal(waitpid(one, &status, 0), one);
    assert_int_equal(waitpid(two, &status, 0), two);
    await(r, two, &others);
    assert_string_equal(others.first.object, "/");
    await(r, one, &mine);
    assert_int_equal(mine.first.operation, OPERATION_CREATE);
    assert_true(mine.first.is_in_directory);
    assert_string_equal(mine.first.object, dir);

    /* Each once; nothing under a number that is forgotten. */
    mine.n = 0;
    audit_reader_forget(r, one);
    (void)audit_reader_take(r, one, on_refused, &mine);
    assert_int_equal(mine.n, 0);
    audit_reader_free(r);
    assert_int_equal(rmdir(dir), 0);
}

static void
without_a_reader_nothing_is_left(void **state)
{
    size_t live = mem_live();
    struct audit_reader *r = NULL;
    struct sy_error why = {0};

    (void)state;
    if (audit_reader_new(&r, &why) == SY_E_OK) {
        audit_reader_free(r);
    }
    audit_reader_free(NULL);
    assert_int_equal(mem_live(), live);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_told_to_whom_they_belong),
        cmocka_unit_test(without_a_reader_nothing_is_left),
    };

    return cmocka_run_group_tests(tests, switch_on, switch_back);
}
