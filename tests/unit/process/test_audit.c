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

#include "auditing.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "fault.h"
#include "process/audit_internal.h"
#include "sandbox/linux/landlock.h"

#define SECOND_NS 1000000000ULL

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

/* Until all records of what has ended are there, by events. */
static void
settle(struct audit_reader *r, struct audit_run *run)
{
    while (!audit_reader_settle(r, run, clock_mono_ns())) {
        struct pollfd fd = {.fd = audit_reader_fd(r), .events = POLLIN};
        uint64_t now = clock_mono_ns();
        int ms = run->again_ns > now ? (int)((run->again_ns - now) / 1000000) + 1 : 0;

        (void)poll(&fd, 1, ms);
    }
}

static void
end_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 100);
}

/* Is the log ours to read? Else that is said in a sentence, which is all that is left to test. */
static bool
opens(struct audit_reader **ret)
{
    struct sy_error why = {0};
    enum sy_code rc = audit_reader_new(ret, (int)landlock_abi(), &why);

    if (rc == SY_E_OK) {
        return true;
    }
    assert_int_equal(rc, SY_E_NOTFOUND);
    assert_true(strlen(why.msg) > 0);
    assert_true(auditing(-1) != 1 || landlock_abi() < LANDLOCK_AUDIT_ABI);
    print_message("%s\n", why.msg);
    return false;
}

static void
refusals_are_told_to_whom_they_belong(void **state)
{
    char dir[] = "/var/tmp/sy-audit-XXXXXX";
    struct audit_reader *r = NULL;
    struct audit_run first;
    struct audit_run second;
    struct found mine = {.n = 0};
    struct found others = {.n = 0};

    (void)state;
    if (!opens(&r)) {
        return;
    }
    assert_non_null(mkdtemp(dir));
    audit_reader_begin(r, &first);
    audit_reader_begin(r, &second);

    pid_t one = start_refused(dir, "echo x > made; exit 3");
    pid_t two = start_refused("/", "mkdir /sy-not-made; exit 4");

    end_of(one);
    end_of(two);
    settle(r, &second);
    assert_true(audit_reader_take(r, &second, two, on_refused, &others));
    assert_int_equal(others.n, 1);
    assert_string_equal(others.first.object, "/");
    settle(r, &first);
    assert_true(audit_reader_take(r, &first, one, on_refused, &mine));
    assert_int_equal(mine.n, 1);
    assert_int_equal(mine.first.operation, OPERATION_CREATE);
    assert_true(mine.first.is_in_directory);
    assert_string_equal(mine.first.object, dir);

    /* Each once. */
    (void)audit_reader_take(r, &first, one, on_refused, &mine);
    assert_int_equal(mine.n, 1);
    audit_reader_end(r, &first);
    audit_reader_end(r, &second);
    audit_reader_free(r);
    assert_int_equal(rmdir(dir), 0);
}

/* Nothing is in flight when it says so: of many refusals of one run each is there. */
static void
what_has_settled_is_complete(void **state)
{
    struct audit_reader *r = NULL;
    struct audit_run run;

    (void)state;
    if (!opens(&r)) {
        return;
    }
    for (int round = 0; round < 20; round++) {
        struct found f = {.n = 0};

        audit_reader_begin(r, &run);

        pid_t pid = start_refused(
            "/", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo > /sy-not-made-$i; done; exit 3");

        end_of(pid);
        settle(r, &run);
        assert_true(audit_reader_take(r, &run, pid, on_refused, &f));
        audit_reader_end(r, &run);
        assert_int_equal(f.n, 12);
    }
    audit_reader_free(r);
}

static void
a_run_that_is_refused_nothing_has_no_record(void **state)
{
    struct audit_reader *r = NULL;
    struct audit_run run;
    struct found f = {.n = 0};

    (void)state;
    if (!opens(&r)) {
        return;
    }
    audit_reader_begin(r, &run);

    pid_t pid = start_refused("/", "exit 3");

    end_of(pid);
    settle(r, &run);
    assert_true(audit_reader_take(r, &run, pid, on_refused, &f));
    assert_int_equal(f.n, 0);
    audit_reader_end(r, &run);
    audit_reader_free(r);
}

static void
a_kernel_that_writes_nothing_is_said(void **state)
{
    struct audit_reader *r = NULL;
    struct sy_error why = {0};

    (void)state;
    assert_int_equal(audit_reader_new(&r, LANDLOCK_AUDIT_ABI - 1, &why), SY_E_NOTFOUND);
    assert_non_null(strstr(why.msg, "ABI 6"));
    assert_null(r);
}

static void
without_a_reader_nothing_is_left(void **state)
{
    size_t live = mem_live();
    struct audit_reader *r = NULL;
    struct audit_run none = {.is_open = false};

    (void)state;
    if (audit_reader_new(&r, LANDLOCK_AUDIT_ABI, NULL) == SY_E_OK) {
        audit_reader_end(r, &none);
        audit_reader_free(r);
    }
    audit_reader_free(NULL);
    assert_int_equal(mem_live(), live);
}

/* A reader whose kernel is the test. */
struct wire {
    struct audit_reader *reader;
    struct audit_run run;
    int kernel;
    uint64_t now_ms;
};

static enum sy_code
wire_new(struct wire *w)
{
    int fds[2];

    *w = (struct wire){.kernel = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);

    enum sy_code rc = audit_reader_on(&w->reader, &fds[0]);

    w->kernel = fds[1];
    if (rc != SY_E_OK) {
        fd_close(&fds[0]);
        fd_close(&w->kernel);
        return rc;
    }
    audit_reader_begin(w->reader, &w->run);
    w->now_ms = w->run.since_ms;
    return SY_E_OK;
}

static void
wire_free(struct wire *w)
{
    audit_reader_end(w->reader, &w->run);
    audit_reader_free(w->reader);
    fd_close(&w->kernel);
}

static void
send_bytes(const struct wire *w, unsigned type, uint32_t number, const void *bytes, size_t n)
{
    struct {
        struct nlmsghdr head;
        char text[9000];
    } message = {
        .head = {.nlmsg_type = (unsigned short)type, .nlmsg_seq = number}
    };

    assert_true(n <= sizeof(message.text));
    memcpy(message.text, bytes, n);
    assert_true(send(w->kernel, &message, NLMSG_HDRLEN + n, 0) > 0);
}

/* A record, `age_ms` before now. */
static void
send_record(const struct wire *w, unsigned type, uint64_t age_ms, const char *rest)
{
    char text[8000];
    uint64_t ms = w->now_ms - age_ms;
    int n = snprintf(text, sizeof(text), "audit(%llu.%03llu:7): %s", (unsigned long long)ms / 1000,
                     (unsigned long long)ms % 1000, rest);

    send_bytes(w, type, 0, text, (size_t)n);
}

static int
taken(struct wire *w, pid_t pid)
{
    struct found f = {.n = 0};

    (void)audit_reader_take(w->reader, &w->run, pid, on_refused, &f);
    return f.n;
}

#define REFUSED(id)   "domain=" #id " blockers=fs.make_reg path=\"/d\" dev=\"x\" ino=1"
#define MADE(id, pid) "domain=" #id " status=allocated mode=enforcing pid=" #pid " uid=0 exe=\"/x\""

static void
records_of_others_are_nobody_s(void **state)
{
    struct wire w;

    (void)state;
    assert_int_equal(wire_new(&w), SY_E_OK);
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(a));
    send_record(&w, AUDIT_RECORD_DOMAIN, 0, MADE(a, 100));
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(b)); /* whose maker is not told */
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(0));
    send_record(&w, AUDIT_RECORD_DOMAIN, 0, MADE(0, 100));
    assert_int_equal(taken(&w, 99), 0);
    assert_int_equal(taken(&w, 0), 0);
    assert_int_equal(taken(&w, 100), 1);
    assert_int_equal(taken(&w, 100), 0);
    wire_free(&w);
}

static void
records_of_who_had_the_number_before_are_nobody_s(void **state)
{
    struct wire w;

    (void)state;
    assert_int_equal(wire_new(&w), SY_E_OK);
    send_record(&w, AUDIT_RECORD_ACCESS, 1000, REFUSED(a));
    send_record(&w, AUDIT_RECORD_DOMAIN, 1000, MADE(a, 100));
    assert_int_equal(taken(&w, 100), 0);
    /* Its maker was told before the run: it is another's, whatever it is refused now. */
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(a));
    assert_int_equal(taken(&w, 100), 0);
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(b));
    send_record(&w, AUDIT_RECORD_DOMAIN, 0, MADE(b, 100));
    assert_int_equal(taken(&w, 100), 1);
    wire_free(&w);
}

static void
what_came_while_no_run_was_open_is_nobody_s(void **state)
{
    struct wire w;

    (void)state;
    assert_int_equal(wire_new(&w), SY_E_OK);
    send_record(&w, AUDIT_RECORD_DOMAIN, 0, MADE(a, 100));
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(a));
    audit_reader_end(w.reader, &w.run);
    audit_reader_begin(w.reader, &w.run);
    assert_int_equal(taken(&w, 100), 0);
    wire_free(&w);
}

static void
garbage_is_nothing(void **state)
{
    struct wire w;
    unsigned char bytes[600];
    uint32_t seed = 1;

    (void)state;
    assert_int_equal(wire_new(&w), SY_E_OK);
    for (int i = 0; i < 300; i++) {
        for (size_t k = 0; k < sizeof(bytes); k++) {
            seed = seed * 1664525 + 1013904223;
            bytes[k] = (unsigned char)(seed >> 24);
        }
        send_bytes(&w, i % 2 == 0 ? AUDIT_RECORD_ACCESS : AUDIT_RECORD_DOMAIN, seed, bytes,
                   seed % sizeof(bytes));
        assert_int_equal(taken(&w, 100), 0);
    }
    /* Less than a header, an answer that is cut, and one to a question that nobody asked. */
    assert_true(send(w.kernel, bytes, NLMSG_HDRLEN - 1, 0) > 0);
    send_bytes(&w, AUDIT_GET, 77, bytes, 8);
    assert_int_equal(taken(&w, 100), 0);
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(a));
    send_record(&w, AUDIT_RECORD_DOMAIN, 0, MADE(a, 100));
    assert_int_equal(taken(&w, 100), 1);
    wire_free(&w);
}

static void
what_is_lost_is_said(void **state)
{
    struct wire w;
    struct found f = {.n = 0};

    (void)state;
    assert_int_equal(wire_new(&w), SY_E_OK);
    assert_true(audit_reader_take(w.reader, &w.run, 100, on_refused, &f));
    for (int i = 0; i <= AUDIT_KEPT; i++) {
        send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(a));
        (void)taken(&w, 99);
    }
    send_record(&w, AUDIT_RECORD_DOMAIN, 0, MADE(a, 100));
    assert_false(audit_reader_take(w.reader, &w.run, 100, on_refused, &f));
    assert_int_equal(f.n, AUDIT_KEPT);

    /* More makers than can be known. */
    struct audit_run later;

    audit_reader_begin(w.reader, &later);
    for (int i = 1; i <= 65; i++) {
        char text[200];

        (void)snprintf(text, sizeof(text), "domain=%x status=allocated mode=enforcing pid=5 uid=0",
                       1000 + i);
        send_record(&w, AUDIT_RECORD_DOMAIN, 0, text);
        (void)taken(&w, 99);
    }
    assert_false(audit_reader_take(w.reader, &later, 100, on_refused, &f));
    audit_reader_end(w.reader, &later);
    wire_free(&w);
}

/* The number of the question that came, 0: none did. */
static uint32_t
question(const struct wire *w)
{
    struct nlmsghdr head = {0};
    ssize_t got = recv(w->kernel, &head, sizeof(head), 0);

    return got == (ssize_t)sizeof(head) && head.nlmsg_type == AUDIT_GET ? head.nlmsg_seq : 0;
}

static void
answer(const struct wire *w, uint32_t number, uint32_t backlog)
{
    const struct audit_status status = {.enabled = 1, .backlog = backlog};

    send_bytes(w, AUDIT_GET, number, &status, sizeof(status));
}

static void
a_run_has_settled_when_the_queue_is_empty(void **state)
{
    struct wire w;
    uint64_t now = SECOND_NS;

    (void)state;
    assert_int_equal(wire_new(&w), SY_E_OK);
    assert_false(audit_reader_settle(w.reader, &w.run, now));

    uint32_t number = question(&w);

    assert_true(number != 0);
    assert_false(audit_reader_settle(w.reader, &w.run, now));
    assert_int_equal(question(&w), 0); /* one at a time */

    /* Records wait: again, but not at once. */
    answer(&w, number, 3);
    assert_false(audit_reader_settle(w.reader, &w.run, now));
    assert_int_equal(question(&w), 0);
    assert_true(w.run.again_ns > now && w.run.again_ns < now + SECOND_NS / 100);
    now = w.run.again_ns;
    assert_false(audit_reader_settle(w.reader, &w.run, now));
    number = question(&w);
    assert_true(number != 0);
    answer(&w, number, 0);

    struct audit_run other = w.run;

    assert_true(audit_reader_settle(w.reader, &w.run, now));

    /* Something was refused: one of its kind may be on its way. */
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(a));
    answer(&w, number, 0);
    assert_false(audit_reader_settle(w.reader, &other, now));
    number = question(&w);
    assert_true(number != 0);
    answer(&w, number, 0);
    assert_true(audit_reader_settle(w.reader, &other, now));
    wire_free(&w);
}

static void
a_kernel_that_does_not_answer_is_not_waited_for(void **state)
{
    struct wire w;

    (void)state;
    assert_int_equal(wire_new(&w), SY_E_OK);
    assert_false(audit_reader_settle(w.reader, &w.run, SECOND_NS));
    assert_true(w.run.again_ns == SECOND_NS + AUDIT_SETTLE_MS * (SECOND_NS / 1000));
    assert_false(audit_reader_settle(w.reader, &w.run, w.run.again_ns - 1));
    assert_true(audit_reader_settle(w.reader, &w.run, w.run.again_ns));
    wire_free(&w);

    /* Nor one that is gone. */
    assert_int_equal(wire_new(&w), SY_E_OK);
    fd_close(&w.kernel);
    assert_true(audit_reader_settle(w.reader, &w.run, SECOND_NS));
    assert_true(audit_reader_settle(w.reader, &w.run, SECOND_NS));
    wire_free(&w);
}

/* A record that finds no memory is lost, and that is said. */
static enum sy_code
take_one(void *arg)
{
    struct wire w;
    struct found f = {.n = 0};
    enum sy_code rc = wire_new(&w);

    (void)arg;
    if (rc != SY_E_OK) {
        return rc;
    }
    send_record(&w, AUDIT_RECORD_ACCESS, 0, REFUSED(a));
    send_record(&w, AUDIT_RECORD_DOMAIN, 0, MADE(a, 100));

    bool is_whole = audit_reader_take(w.reader, &w.run, 100, on_refused, &f);

    rc = is_whole ? SY_E_OK : SY_E_NOMEM;
    if (is_whole != (f.n == 1)) {
        rc = SY_E_INTERNAL;
    }
    wire_free(&w);
    return rc;
}

static void
memory_may_run_out_anywhere(void **state)
{
    (void)state;
    fault_run(take_one, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_told_to_whom_they_belong),
        cmocka_unit_test(what_has_settled_is_complete),
        cmocka_unit_test(a_run_that_is_refused_nothing_has_no_record),
        cmocka_unit_test(a_kernel_that_writes_nothing_is_said),
        cmocka_unit_test(without_a_reader_nothing_is_left),
        cmocka_unit_test(records_of_others_are_nobody_s),
        cmocka_unit_test(records_of_who_had_the_number_before_are_nobody_s),
        cmocka_unit_test(what_came_while_no_run_was_open_is_nobody_s),
        cmocka_unit_test(garbage_is_nothing),
        cmocka_unit_test(what_is_lost_is_said),
        cmocka_unit_test(a_run_has_settled_when_the_queue_is_empty),
        cmocka_unit_test(a_kernel_that_does_not_answer_is_not_waited_for),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };

    return cmocka_run_group_tests(tests, switch_on, switch_back);
}
