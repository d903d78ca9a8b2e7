/*
 * What a sandboxed command may not do, and what it must be able to do, by one
 * run of probe_syscalls inside and one outside. Each act that is refused
 * inside is the positive control of itself outside: there it works, or fails
 * for another reason.
 *
 * Usage: test_syscalls PROBE [[--full] RUNNER WORD...]
 * Without a runner the sandbox is applied by this test in a child. With one,
 * the words come before the probe, "@W" in them being the workspace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "expectations.h"
#include "sandbox/sandbox.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *probe;
static char *const *runner;
static int n_runner;
static bool is_full; /* the runner makes a sandbox of the full tier */

static char byte_of_victim = 'v';

struct world {
    char base[200];
    pid_t victim;
    int tcp;
    int tcp6;
    int udp;
    int named;
    int abstract;
    uint16_t port;
    struct sandbox_caps caps;
    struct strv args; /* of the probe */
    bool is_privileged;
};

static const char *
place(const struct world *w, const char *name)
{
    static char paths[16][400];
    static size_t next;
    char *path = paths[next++ % 16];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", w->base, name);
    return path;
}

static void
make_file(const char *path)
{
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_true(fd >= 0 && write(fd, "precious", 8) == 8);
}

static void
make_tree(struct world *w)
{
    const char *tmp = getenv("TMPDIR");
    char template[120];
    char *real = NULL;

    (void)snprintf(template, sizeof(template), "%.80s/adversary-XXXXXX",
                   tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    assert_non_null(mkdtemp(template));
    real = realpath(template, NULL);
    assert_non_null(real);
    (void)snprintf(w->base, sizeof(w->base), "%.199s", real);
    free(real); /* realpath(3) allocates by itself */
    assert_int_equal(chmod(w->base, 0755), 0);
    assert_int_equal(mkdir(place(w, "W"), 0755) | mkdir(place(w, "O"), 0755), 0);
    assert_int_equal(mkdir(place(w, "O/empty"), 0755), 0);
    make_file(place(w, "O/victim"));
    make_file(place(w, "O/removable"));
    make_file(place(w, "O/movable"));
    make_file(place(w, "W/movable"));
    assert_int_equal(symlink("../O", place(w, "W/to-outside")), 0);
}

/* A program that runs as somebody else, if we may make one. */
static void
make_setuid(struct world *w)
{
    SY_AUTO(buf_fini) struct buf program = {.max = 64U << 20};
    const char *path = place(w, "setuid");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

    assert_int_equal(fd_read_file(probe, &program, NULL), SY_E_OK);
    assert_int_equal(fd_write_all(fd, program.data, program.len, NULL), SY_E_OK);
    fd_close(&fd);
    if (w->is_privileged) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(chmod(path, 04755), 0);
    }
}

static pid_t
start_victim(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        /* Where Yama would keep even the control from tracing. */
        (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        for (;;) {
            (void)pause();
        }
    }
    return pid;
}

static const struct sockaddr *
as_address(const void *address)
{
    return address;
}

static void
start_listeners(struct world *w)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_un named = {.sun_family = AF_UNIX};
    struct sockaddr_un abstract = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(at);
    char name[64];

    w->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->tcp, as_address(&at), sizeof(at)), 0);
    assert_int_equal(listen(w->tcp, 16), 0);
    assert_int_equal(getsockname(w->tcp, (struct sockaddr *)(void *)&at, &len), 0);
    w->port = ntohs(at.sin_port);
    w->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->udp, as_address(&at), sizeof(at)), 0);
    w->tcp6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at6.sin6_port = at.sin_port;
    if (w->tcp6 >= 0 && bind(w->tcp6, as_address(&at6), sizeof(at6)) == 0) {
        assert_int_equal(listen(w->tcp6, 16), 0);
    }

    w->named = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(named.sun_path, sizeof(named.sun_path), "%.90s", place(w, "O.sock"));
    assert_int_equal(bind(w->named, as_address(&named), sizeof(named)), 0);
    assert_int_equal(listen(w->named, 16), 0);
    w->abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(name, sizeof(name), "adversary-%d", (int)getpid());
    (void)snprintf(abstract.sun_path + 1, sizeof(abstract.sun_path) - 1, "%s", name);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    assert_int_equal(bind(w->abstract, as_address(&abstract), len), 0);
    assert_int_equal(listen(w->abstract, 16), 0);
    assert_int_equal(strv_addf(&w->args, "PROBE_PORT=%u", (unsigned)w->port), SY_E_OK);
    assert_int_equal(strv_addf(&w->args, "PROBE_ABSTRACT=%s", name), SY_E_OK);
    assert_int_equal(strv_addf(&w->args, "PROBE_SOCKET=%s", named.sun_path), SY_E_OK);
}

static bool
has_admin(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];

    return syscall(SYS_capget, &header, caps) == 0 && geteuid() == 0 &&
           (caps[0].effective & (1U << CAP_SYS_ADMIN)) != 0;
}

static int
world_setup(void **state)
{
    struct world *w = mem_alloc_zero(1, sizeof(*w));

    assert_non_null(w);
    w->args.max = 32;
    w->is_privileged = has_admin();
    sandbox_probe_deep(&w->caps);
    make_tree(w);
    make_setuid(w);
    w->victim = start_victim();
    assert_int_equal(strv_add(&w->args, probe), SY_E_OK);
    assert_int_equal(strv_addf(&w->args, "PROBE_INSIDE=%s", place(w, "W")), SY_E_OK);
    assert_int_equal(strv_addf(&w->args, "PROBE_OUTSIDE=%s", place(w, "O")), SY_E_OK);
    assert_int_equal(strv_addf(&w->args, "PROBE_SETUID=%s", place(w, "setuid")), SY_E_OK);
    assert_int_equal(strv_addf(&w->args, "PROBE_VICTIM=%d", (int)w->victim), SY_E_OK);
    assert_int_equal(
        strv_addf(&w->args, "PROBE_ADDRESS=%lld", (long long)(intptr_t)&byte_of_victim), SY_E_OK);
    start_listeners(w);
    *state = w;
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int
world_teardown(void **state)
{
    struct world *w = *state;

    (void)kill(w->victim, SIGKILL);
    (void)waitpid(w->victim, NULL, 0);
    fd_close(&w->tcp);
    fd_close(&w->tcp6);
    fd_close(&w->udp);
    fd_close(&w->named);
    fd_close(&w->abstract);
    strv_fini(&w->args);
    (void)nftw(w->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(w);
    return 0;
}

/* The sandbox of this test itself, where no runner makes one. */
static void
confine(const struct world *w)
{
    char cwd[256];
    const struct sandbox_policy policy = {
        .mode = SANDBOX_WORKSPACE_WRITE,
        .cwd = cwd,
        .excludes_slash_tmp = true,
        .excludes_tmpdir = true,
    };
    struct sandbox_plan *plan = NULL;
    struct sandbox_ready *ready = NULL;
    struct sy_error err = {0};
    enum sandbox_stage stage = STAGE_NONE;

    (void)snprintf(cwd, sizeof(cwd), "%s/W", w->base);
    if (sandbox_plan_new(&plan, &policy, &w->caps, &err) != SY_E_OK ||
        sandbox_ready_new(&ready, plan, &err) != SY_E_OK || sandbox_apply(ready, &stage) != 0) {
        (void)fprintf(stderr, "no sandbox: %s (%s)\n", err.msg, sandbox_stage_text(stage));
        _exit(99);
    }
}

static void
execute(const struct world *w, bool is_inside)
{
    SY_AUTO(strv_fini) struct strv argv = {.max = 128};
    enum sy_code rc = SY_E_OK;

    for (int i = 0; is_inside && i < n_runner && rc == SY_E_OK; i++) {
        rc = strv_add(&argv, str_eq(runner[i], "@W") ? place(w, "W") : runner[i]);
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&argv, strv_view(&w->args));
    }
    /* One descriptor that is left open by mistake; a runner must not pass it on. */
    if (rc != SY_E_OK || chdir(place(w, "W")) != 0 || dup(STDERR_FILENO) < 0) {
        _exit(98);
    }
    if (is_inside && n_runner == 0) {
        confine(w);
    }
    (void)execvp(argv.v[0], argv.v);
    _exit(97);
}

/* The probe's lines into `out`. */
static void
run_probe(const struct world *w, bool is_inside, struct buf *out)
{
    SY_FD from = -1;
    SY_FD to = -1;
    int status = 0;

    assert_int_equal(fd_pipe(&from, &to, NULL), SY_E_OK);

    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(to, STDOUT_FILENO);
        execute(w, is_inside);
    }
    fd_close(&to);
    assert_int_equal(fd_read_all(from, out, NULL), SY_E_OK);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The outcome in the line of an act; fails if the probe did not say. */
static int
outcome_of(const struct buf *lines, const char *name)
{
    char key[64];
    const char *found = buf_view(lines);
    size_t n = (size_t)snprintf(key, sizeof(key), "%s ", name);
    int64_t value = -1;

    while (found != NULL && strncmp(found, key, n) != 0) {
        found = strchr(found, '\n');
        found = found != NULL ? found + 1 : NULL;
    }
    if (found != NULL) {
        char number[16];

        (void)snprintf(number, sizeof(number), "%.*s", (int)strcspn(found + n, "\n"), found + n);
        if (!str_to_i64(&value, number, 0, 5000)) {
            value = -1;
        }
    }
    if (value < 0 || value >= 2000) {
        fail_msg("the probe could not try '%s' (%d)", name, (int)value);
    }
    return (int)value;
}

static bool
is_as_expected(int outcome, int expected)
{
    return expected == ANY ? outcome != 0 : outcome == expected;
}

/* What the acts left behind on the host, whatever they said. */
static void
judge_host(const struct world *w)
{
    SY_AUTO(buf_fini) struct buf victim = {.max = 100};
    static const char *const made[] = {"O/made",   "O/dir",          "O/link",         "O/fifo",
                                       "O/moved",  "O/made-by-link", "O/made-by-proc", "W/taken",
                                       "W/linked", "W/device"};
    static const char *const kept[] = {"O/removable", "O/empty", "O/movable", "W/movable"};
    struct pollfd heard[] = {
        {.fd = w->tcp,                                       .events = POLLIN},
        {.fd = w->tcp6,                                      .events = POLLIN},
        {.fd = w->udp,                                       .events = POLLIN},
        {.fd = w->caps.landlock_abi >= 6 ? w->abstract : -1, .events = POLLIN},
        {.fd = w->caps.landlock_abi >= 9 ? w->named : -1,    .events = POLLIN},
    };
    struct stat st;

    for (size_t i = 0; i < COUNT(made); i++) {
        if (lstat(place(w, made[i]), &st) == 0) {
            fail_msg("%s was made", made[i]);
        }
    }
    for (size_t i = 0; i < COUNT(kept); i++) {
        if (lstat(place(w, kept[i]), &st) != 0) {
            fail_msg("%s is gone", kept[i]);
        }
    }
    if (w->caps.landlock_abi >= 3) {
        assert_int_equal(fd_read_file(place(w, "O/victim"), &victim, NULL), SY_E_OK);
        assert_string_equal(buf_view(&victim), "precious");
    }
    assert_int_equal(poll(heard, COUNT(heard), 0), 0);
    assert_int_equal(kill(w->victim, 0), 0);
}

static int
expected_inside(const struct expectation *e)
{
    bool connects = str_starts(e->name, "unix-") && !str_eq(e->name, "unix-datagram");

    for (size_t i = 0; is_full && i < COUNT(full_expectations); i++) {
        if (str_eq(full_expectations[i].name, e->name)) {
            return full_expectations[i].inside;
        }
    }
    /* Without an engine nobody answers for connect(2): all is refused. */
    return connects && n_runner == 0 ? EPERM : e->inside;
}

static void
check_inside(const struct world *w, const struct buf *lines)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < COUNT(expectations); i++) {
        const struct expectation *e = &expectations[i];
        int outcome = outcome_of(lines, e->name);
        bool is_promised = is_full || w->caps.landlock_abi >= e->since_abi;

        if (is_promised && !is_as_expected(outcome, expected_inside(e))) {
            print_message("inside, %s: %d (%s)\n", e->name, outcome, sy_errno_name(outcome));
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    if (n_runner > 0) {
        assert_int_equal(outcome_of(lines, "descriptors"), EBADF);
    }
}

static void
check_control(const struct world *w, const struct buf *lines)
{
    unsigned wrong = 0;
    unsigned controls = 0;

    for (size_t i = 0; i < COUNT(expectations); i++) {
        const struct expectation *e = &expectations[i];
        int outcome = outcome_of(lines, e->name);
        bool is_lacking = outcome == ENOSYS || outcome == EAFNOSUPPORT;
        bool is_right = true;

        switch (e->control) {
        case WORKS:
            is_right = outcome == 0;
            break;
        case NAMESPACES:
            is_right = outcome == 0 || !w->caps.has_user_namespaces;
            break;
        case PRIVILEGED:
            is_right = !w->is_privileged || is_lacking || !is_as_expected(outcome, e->inside);
            break;
        case DIFFERS:
            is_right = is_lacking || !is_as_expected(outcome, e->inside);
            break;
        case NONE:
            continue;
        }
        controls += is_lacking ? 0 : 1;
        if (!is_right) {
            print_message("outside, %s: %d (%s)\n", e->name, outcome, sy_errno_name(outcome));
            wrong++;
        }
    }
    assert_int_equal(outcome_of(lines, "descriptors"), 0);
    print_message("%u acts with a control\n", controls);
    assert_int_equal(wrong, 0);
}

static void
hostile_acts_fail_inside_and_ordinary_ones_work(void **state)
{
    SY_AUTO(buf_fini) struct buf lines = {.max = 1U << 16};
    const struct world *w = *state;

    run_probe(w, true, &lines);
    judge_host(w);
    check_inside(w, &lines);
}

static void
the_same_acts_succeed_or_fail_otherwise_outside(void **state)
{
    SY_AUTO(buf_fini) struct buf lines = {.max = 1U << 16};
    const struct world *w = *state;

    run_probe(w, false, &lines);
    check_control(w, &lines);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hostile_acts_fail_inside_and_ordinary_ones_work,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(the_same_acts_succeed_or_fail_otherwise_outside,
                                        world_setup, world_teardown),
    };

    if (argc < 2) {
        (void)fprintf(stderr, "usage: test_syscalls PROBE [RUNNER WORD...]\n");
        return 2;
    }

    static char absolute[4096];

    probe = realpath(argv[1], absolute); /* the probe starts in the workspace */
    if (probe == NULL) {
        (void)fprintf(stderr, "test_syscalls: no probe '%s'\n", argv[1]);
        return 2;
    }
    is_full = argc > 2 && str_eq(argv[2], "--full");
    if (is_full) {
        argv++;
        argc--;
    }
    if (argc > 2 && strchr(argv[2], '/') != NULL) {
        static char absolute_runner[4096];

        argv[2] = realpath(argv[2], absolute_runner) != NULL ? absolute_runner : argv[2];
    }
    runner = argv + 2;
    n_runner = argc - 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
