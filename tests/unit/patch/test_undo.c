#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "yard.h"

/* Fails the nth step. */
struct trip {
    unsigned left;
    int errnum;
};

static int
trip(void *arg)
{
    struct trip *t = arg;

    return t->left > 0 && --t->left == 0 ? t->errnum : 0;
}

/* Lets each step fail in turn: how many there are, or 0 when one left a trace. */
static unsigned
fail_each_step(struct yard *y)
{
    struct trip t = {.errnum = ENOSPC};
    char before[1U << 12];

    y->before = trip;
    y->before_arg = &t;
    for (unsigned n = 1;; n++) {
        (void)snprintf(before, sizeof(before), "%s", yard_tree(y));
        t.left = n;
        if (yard_patch(y, yard_all_kinds, NULL, NULL) == SY_E_OK) {
            return n - 1;
        }
        if (strstr(y->err.msg, "No space left on device") == NULL ||
            strcmp(before, yard_tree(y)) != 0) {
            print_error("step %u: %s\n%s", n, y->err.msg, yard_tree(y));
            return 0;
        }
    }
}

static void
all_kinds_are_applied(const struct yard *y)
{
    assert_string_equal(yard_text(y, "W/a"), "A\n");
    assert_string_equal(yard_text(y, "W/d"), "D\n");
    assert_string_equal(yard_text(y, "W/new/dir/one"), "1\n");
    assert_string_equal(yard_text(y, "W/moved/b"), "B\n");
    assert_string_equal(yard_text(y, "W/f"), "E\n");
    assert_false(yard_exists(y, "W/b"));
    assert_false(yard_exists(y, "W/c"));
    assert_false(yard_exists(y, "W/e"));
    assert_false(yard_exists(y, "W/link"));
    assert_null(strstr(yard_tree(y), ".sy-patch"));
}

static unsigned
count_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    }
    return n;
}

static void
nothing_changes_whichever_step_fails(void **state)
{
    struct yard *y = *state;

    yard_make_all_kinds(y);
    unsigned open_before = count_descriptors();

    /* Directories 3, files and contents 12, likenesses 4, exchanges 10: each was met. */
    assert_true(fail_each_step(y) >= 23);
    assert_int_equal(count_descriptors(), open_before);
    all_kinds_are_applied(y);
}

/* As on a disk whose renames know no flags. */
static bool
forbid_rename_flags(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           renameat2(AT_FDCWD, "/", AT_FDCWD, "/", RENAME_EXCHANGE) != 0 && errno == EINVAL;
}

static void
disks_that_exchange_no_names_do_as_well(void **state)
{
    struct yard *y = *state;
    int status = 0;
    pid_t pid = 0;

    yard_make_all_kinds(y);
    pid = fork();
    if (pid == 0) {
        _exit(forbid_rename_flags() && fail_each_step(y) >= 23 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    all_kinds_are_applied(y);
}

/* Changes a file when the step comes at which it counts. */
struct meddler {
    const struct yard *y;
    const char *name;
    unsigned left;
    bool replaces;
};

static int
meddle(void *arg)
{
    struct meddler *m = arg;

    if (m->left > 0 && --m->left == 0) {
        if (m->replaces) {
            assert_int_equal(unlink(yard_path(m->y, m->name)), 0);
        }
        yard_file(m->y, m->name, "theirs, and longer\n");
    }
    return 0;
}

static void
what_somebody_else_wrote_meanwhile_is_not_lost(void **state)
{
    struct yard *y = *state;
    struct meddler m = {.y = y, .name = "W/a"};

    y->before = meddle;
    y->before_arg = &m;
    for (unsigned n = 1; n <= 4; n++) {
        for (int replaces = 0; replaces <= 1; replaces++) {
            yard_file(y, "W/a", "a\n");
            yard_file(y, "W/z", "z\n");
            m.left = n;
            m.replaces = replaces != 0;
            assert_int_equal(yard_patch(y,
                                        "*** Update File: a\n@@\n-a\n+A\n*** Add File: new\n+x\n",
                                        NULL, NULL),
                             SY_E_DENIED);
            assert_non_null(strstr(y->err.msg, "a was changed by somebody else"));
            assert_string_equal(yard_text(y, "W/a"), "theirs, and longer\n");
            assert_false(yard_exists(y, "W/new"));
            assert_null(strstr(yard_tree(y), ".sy-patch"));
        }
    }
    /* A name that was free, and is not any more. */
    m = (struct meddler){.y = y, .name = "W/new", .left = 2};
    yard_file(y, "W/a", "a\n");
    assert_int_equal(
        yard_patch(y, "*** Update File: a\n@@\n-a\n+A\n*** Add File: new\n+x\n", NULL, NULL),
        SY_E_SYS);
    assert_string_equal(yard_text(y, "W/a"), "a\n");
    assert_string_equal(yard_text(y, "W/new"), "theirs, and longer\n");
}

static void
a_link_that_comes_after_the_look_leads_nowhere(void **state)
{
    struct yard *y = *state;
    struct patch p;
    struct patch_plan *plan = NULL;
    static const char text[] = "*** Begin Patch\n*** Add File: d/f\n+x\n*** Add File: n/f\n+x\n"
                               "*** End Patch";

    yard_mkdir(y, "W/d");
    assert_int_equal(patch_read(&p, text, sizeof(text) - 1, NULL), SY_E_OK);
    assert_int_equal(patch_plan_new(&plan, &p, &y->world, &y->fault, &y->err), SY_E_OK);
    assert_int_equal(rename(yard_path(y, "W/d"), yard_path(y, "W/gone")), 0);
    yard_link(y, yard_path(y, "O"), "W/d");
    yard_link(y, yard_path(y, "O"), "W/n");

    const char *before = yard_tree(y);

    assert_int_equal(patch_apply(plan, NULL, NULL, &y->err), SY_E_SYS);
    assert_string_equal(yard_tree(y), before);
    patch_plan_free(plan);
    patch_fini(&p);
}

static void
a_write_that_the_kernel_refuses_is_undone(void **state)
{
    struct yard *y = *state;
    SY_AUTO(buf_fini) struct buf body = {.max = 1U << 20};
    const char *before = NULL;
    int status = 0;

    yard_file(y, "W/a", "a\n");
    before = yard_tree(y);
    assert_int_equal(buf_add_str(&body, "*** Update File: a\n@@\n-a\n+A\n*** Add File: n/big\n"),
                     SY_E_OK);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf_add_str(&body, "+0123456789012345678901234567890123456789\n"),
                         SY_E_OK);
    }

    pid_t pid = fork();

    if (pid == 0) {
        const struct rlimit size = {4096, 4096};
        const struct sigaction ignore = {.sa_handler = SIG_IGN};

        (void)sigaction(SIGXFSZ, &ignore, NULL);
        (void)setrlimit(RLIMIT_FSIZE, &size);
        _exit(yard_patch(y, buf_view(&body), NULL, NULL) == SY_E_SYS &&
                      strstr(y->err.msg, "Failed to write file n/big: ") != NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(yard_tree(y), before);
    assert_int_equal(yard_patch(y, buf_view(&body), NULL, NULL), SY_E_OK);
}

static enum sy_code
plan_body(void *arg)
{
    return yard_patch(arg, yard_all_kinds, NULL, NULL);
}

static enum sy_code
undone_body(void *arg)
{
    struct yard *y = arg;
    struct buf summary = {.max = 1U << 16};
    struct buf diff = {.max = 1U << 20};
    struct trip t = {.left = 20, .errnum = ENOSPC};
    enum sy_code rc = SY_E_OK;

    y->before = trip;
    y->before_arg = &t;
    rc = yard_patch(y, yard_all_kinds, &summary, &diff);
    buf_fini(&summary);
    buf_fini(&diff);
    return rc == SY_E_SYS && t.left == 0 ? SY_E_OK : rc;
}

static void
memory_that_runs_out_changes_nothing(void **state)
{
    struct yard *y = *state;
    char before[1U << 12];

    yard_make_all_kinds(y);
    (void)snprintf(before, sizeof(before), "%s", yard_tree(y));
    buf_fini(&y->fault);
    assert_int_equal(buf_reserve(&y->fault, 1U << 13), SY_E_OK); /* not counted as a leak */
    fault_run(undone_body, y);
    assert_string_equal(yard_tree(y), before);
    y->before = NULL;
    assert_int_equal(plan_body(y), SY_E_OK);
}

#define YARD_TEST(f) cmocka_unit_test_setup_teardown(f, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        YARD_TEST(nothing_changes_whichever_step_fails),
        YARD_TEST(disks_that_exchange_no_names_do_as_well),
        YARD_TEST(what_somebody_else_wrote_meanwhile_is_not_lost),
        YARD_TEST(a_link_that_comes_after_the_look_leads_nowhere),
        YARD_TEST(a_write_that_the_kernel_refuses_is_undone),
        YARD_TEST(memory_that_runs_out_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
