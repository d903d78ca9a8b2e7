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

/* The scenarios of the format, by their numbers. */

static void
s001_adds_a_file(void **state)
{
    struct yard *y = *state;

    yard_applies(y, "*** Add File: bar.md\n+This is a new file\n", "A bar.md\n");
    assert_string_equal(yard_text(y, "W/bar.md"), "This is a new file\n");
    yard_applies(y, "*** Add File: empty\n", "A empty\n");
    assert_string_equal(yard_text(y, "W/empty"), "");
}

static void
s002_adds_updates_and_deletes_in_one(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/delete.txt", "obsolete\n");
    yard_file(y, "W/modify.txt", "line1\nline2\n");
    yard_applies(y,
                 "*** Add File: nested/new.txt\n+created\n*** Delete File: delete.txt\n*** Update "
                 "File: modify.txt\n@@\n-line2\n+changed\n",
                 "A nested/new.txt\nM modify.txt\nD delete.txt\n");
    assert_string_equal(yard_text(y, "W/nested/new.txt"), "created\n");
    assert_string_equal(yard_text(y, "W/modify.txt"), "line1\nchanged\n");
    assert_false(yard_exists(y, "W/delete.txt"));
}

static void
s003_applies_several_chunks(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/multi.txt", "line1\nline2\nline3\nline4\n");
    yard_applies(y, "*** Update File: multi.txt\n@@\n-line2\n+changed2\n@@\n-line4\n+changed4\n",
                 "M multi.txt\n");
    assert_string_equal(yard_text(y, "W/multi.txt"), "line1\nchanged2\nline3\nchanged4\n");
}

static void
s004_moves_to_a_new_directory(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/old/name.txt", "old content\n");
    yard_file(y, "W/old/other.txt", "unrelated file\n");
    yard_applies(y,
                 "*** Update File: old/name.txt\n*** Move to: renamed/dir/name.txt\n@@\n-old "
                 "content\n+new content\n",
                 "M renamed/dir/name.txt\n");
    assert_string_equal(yard_text(y, "W/renamed/dir/name.txt"), "new content\n");
    assert_string_equal(yard_text(y, "W/old/other.txt"), "unrelated file\n");
    assert_false(yard_exists(y, "W/old/name.txt"));
}

static void
s005_to_009_and_012_and_013_are_refused(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/modify.txt", "line1\nline2\n");
    yard_file(y, "W/dir/file", "x\n");
    yard_refuses(y, "", "the patch is empty");
    yard_refuses(y, "*** Update File: modify.txt\n@@\n-missing\n+changed\n",
                 "Failed to find expected lines in modify.txt:\nmissing");
    yard_refuses(y, "*** Delete File: missing.txt\n",
                 "Failed to delete file missing.txt: No such file");
    yard_refuses(y, "*** Update File: modify.txt\n",
                 "Update file hunk for path 'modify.txt' is empty");
    yard_refuses(y, "*** Update File: missing.txt\n@@\n-old\n+new\n",
                 "Failed to read file to update missing.txt: No such file");
    yard_refuses(y, "*** Delete File: dir\n", "Failed to delete file dir: Is a directory");
    yard_refuses(y, "*** Frobnicate File: foo\n", "is not a valid hunk header");
    yard_refuses(y, "*** Update File: dir\n@@\n-x\n", "Is a directory");
    yard_refuses(y, "*** Add File: dir\n+x\n", "Failed to write file dir: Is a directory");
    yard_refuses(y, "*** Add File: sub/\n+x\n", "Is a directory");
    yard_refuses(y, "*** Add File: modify.txt/x\n+x\n", "Not a directory");
}

static void
s010_a_move_overwrites_and_s011_an_addition_does(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/old/name.txt", "from\n");
    yard_file(y, "W/renamed/dir/name.txt", "existing\n");
    yard_applies(y,
                 "*** Update File: old/name.txt\n*** Move to: renamed/dir/name.txt\n@@\n-from\n"
                 "+new\n",
                 "M renamed/dir/name.txt\n");
    assert_string_equal(yard_text(y, "W/renamed/dir/name.txt"), "new\n");
    assert_false(yard_exists(y, "W/old/name.txt"));
    yard_file(y, "W/duplicate.txt", "old content\n");
    yard_applies(y, "*** Add File: duplicate.txt\n+new content\n", "A duplicate.txt\n");
    assert_string_equal(yard_text(y, "W/duplicate.txt"), "new content\n");
}

static void
s014_a_line_that_is_written_has_its_end(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/f", "no newline at end");
    yard_applies(y, "*** Update File: f\n@@\n-no newline at end\n+first line\n+second line\n",
                 "M f\n");
    assert_string_equal(yard_text(y, "W/f"), "first line\nsecond line\n");
}

static void
s015_nothing_changes_when_a_later_part_fails(void **state)
{
    struct yard *y = *state;

    yard_refuses(
        y, "*** Add File: created.txt\n+hello\n*** Update File: missing.txt\n@@\n-old\n+new\n",
        "Failed to read file to update missing.txt");
    assert_false(yard_exists(y, "W/created.txt"));
}

static void
s016_to_022_apply(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/input.txt", "line1\nline2\n");
    yard_applies(y, "*** Update File: input.txt\n@@\n+added line 1\n+added line 2\n",
                 "M input.txt\n");
    assert_string_equal(yard_text(y, "W/input.txt"), "line1\nline2\nadded line 1\nadded line 2\n");
    yard_file(y, "W/foo.txt", "old\n");
    yard_applies(y, "  *** Update File: foo.txt\n@@\n-old\n+new\n", "M foo.txt\n");
    assert_string_equal(yard_text(y, "W/foo.txt"), "new\n");
    yard_file(y, "W/u.txt", "caf\xc3\xa9 na\xc3\xafve \xe2\x9c\x85\n");
    yard_applies(y,
                 "*** Update File: u.txt\n@@\n-caf\xc3\xa9 na\xc3\xafve \xe2\x9c\x85\n+\xf0\x9f\x9a"
                 "\x80 \xc3\xbc\n",
                 "M u.txt\n");
    assert_string_equal(yard_text(y, "W/u.txt"), "\xf0\x9f\x9a\x80 \xc3\xbc\n");
    yard_applies(y, "*** Delete File: u.txt\n", "D u.txt\n");
    yard_file(y, "W/lines.txt", "line1\nline2\nline3\n");
    yard_applies(y, "*** Update File: lines.txt\n@@\n line1\n-line2\n line3\n", "M lines.txt\n");
    assert_string_equal(yard_text(y, "W/lines.txt"), "line1\nline3\n");
    yard_file(y, "W/tail.txt", "first\nsecond\n");
    yard_applies(y,
                 "*** Update File: tail.txt\n@@\n first\n-second\n+second updated\n*** End of "
                 "File\n",
                 "M tail.txt\n");
    assert_string_equal(yard_text(y, "W/tail.txt"), "first\nsecond updated\n");
}

static void
mode_and_line_ends_are_kept(void **state)
{
    struct yard *y = *state;
    struct stat st;

    yard_file(y, "W/run.sh", "#!/bin/sh\r\necho a\r\necho b");
    assert_int_equal(chmod(yard_path(y, "W/run.sh"), 0751), 0);
    yard_applies(y, "*** Update File: run.sh\n@@\n-echo a\n+echo A\n", "M run.sh\n");
    assert_string_equal(yard_text(y, "W/run.sh"), "#!/bin/sh\r\necho A\r\necho b");
    assert_int_equal(stat(yard_path(y, "W/run.sh"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    /* Also where it moves. */
    yard_applies(y, "*** Update File: run.sh\n*** Move to: d/go.sh\n@@\n-echo A\n+x\n",
                 "M d/go.sh\n");
    assert_int_equal(stat(yard_path(y, "W/d/go.sh"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
}

static void
paths_may_be_absolute_or_lead_around(void **state)
{
    struct yard *y = *state;
    char body[512];

    yard_file(y, "W/a", "1\n");
    yard_mkdir(y, "W/sub/deep");
    (void)snprintf(body, sizeof(body), "*** Update File: %s\n@@\n-1\n+2\n", yard_path(y, "W/a"));
    assert_int_equal(yard_patch(y, body, NULL, NULL), SY_E_OK);
    assert_string_equal(yard_text(y, "W/a"), "2\n");
    yard_applies(y, "*** Update File: ./sub/deep/../../a\n@@\n-2\n+3\n", "M ./sub/deep/../../a\n");
    assert_string_equal(yard_text(y, "W/a"), "3\n");
    y->world.cwd = yard_path(y, "W/sub");
    yard_applies(y, "*** Update File: ../a\n*** Move to: moved\n@@\n-3\n+4\n", "M moved\n");
    assert_string_equal(yard_text(y, "W/sub/moved"), "4\n");
}

static void
what_leaves_the_roots_is_refused(void **state)
{
    struct yard *y = *state;
    static const char *const bodies[] = {
        "*** Add File: ../O/p2\n+x\n",
        "*** Add File: sub/../../O/p2\n+x\n",
        "*** Update File: notes.md\n@@\n-secret\n+x\n",
        "*** Add File: notes.md\n+x\n",
        "*** Add File: dangling\n+x\n",
        "*** Add File: link/p3\n+x\n",
        "*** Add File: link/newdir/p3\n+x\n",
        "*** Delete File: link/victim\n",
        "*** Update File: link/victim\n@@\n-secret\n+x\n",
        "*** Update File: fine\n*** Move to: link/victim\n@@\n-fine\n+x\n",
        "*** Update File: fine\n*** Move to: ../O/new\n@@\n-fine\n+x\n",
        "*** Add File: up/O/p2\n+x\n",
    };
    char body[512];

    yard_file(y, "O/victim", "secret\n");
    yard_file(y, "W/fine", "fine\n");
    yard_mkdir(y, "W/sub");
    yard_link(y, yard_path(y, "O/victim"), "W/notes.md");
    yard_link(y, yard_path(y, "O/none"), "W/dangling");
    yard_link(y, yard_path(y, "O"), "W/link");
    yard_link(y, "..", "W/up");
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        yard_refuses(y, bodies[i], "it lies outside");
        /* Nor does anything else of such a patch happen. */
        (void)snprintf(body, sizeof(body), "*** Add File: good\n+x\n%s", bodies[i]);
        yard_refuses(y, body, "it lies outside");
    }
    (void)snprintf(body, sizeof(body), "*** Add File: %s\n+x\n", yard_path(y, "O/p1"));
    yard_refuses(y, body, "it lies outside");
    yard_refuses(y, "*** Delete File: ../W\n", "it lies outside");
    /* The same place by the same ways, with O among the roots. */
    y->world.roots = NULL;
    yard_applies(y, bodies[2], "M notes.md\n");
    assert_string_equal(yard_text(y, "O/victim"), "x\n");
}

static void
links_inside_are_followed_and_stay(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/real/f", "1\n");
    yard_link(y, "real", "W/dir");
    yard_link(y, "real/f", "W/f");
    yard_applies(y, "*** Update File: dir/f\n@@\n-1\n+2\n", "M dir/f\n");
    yard_applies(y, "*** Update File: f\n@@\n-2\n+3\n", "M f\n");
    assert_string_equal(yard_text(y, "W/real/f"), "3\n");
    /* A link that is deleted is the link, not the file. */
    yard_applies(y, "*** Delete File: f\n", "D f\n");
    assert_false(yard_exists(y, "W/f"));
    assert_string_equal(yard_text(y, "W/real/f"), "3\n");
}

static void
what_is_no_file_is_refused(void **state)
{
    struct yard *y = *state;

    assert_int_equal(mkfifo(yard_path(y, "W/pipe"), 0600), 0);
    yard_link(y, "loop", "W/loop");
    assert_int_not_equal(yard_patch(y, "*** Update File: pipe\n@@\n-x\n", NULL, NULL), SY_E_OK);
    assert_non_null(strstr(y->err.msg, "it is no regular file"));
    assert_int_not_equal(yard_patch(y, "*** Add File: pipe\n+x\n", NULL, NULL), SY_E_OK);
    assert_int_not_equal(yard_patch(y, "*** Delete File: pipe\n", NULL, NULL), SY_E_OK);
    assert_int_not_equal(yard_patch(y, "*** Add File: loop\n+x\n", NULL, NULL), SY_E_OK);
    assert_int_equal(unlink(yard_path(y, "W/pipe")), 0);
    yard_applies(y, "*** Delete File: loop\n", "D loop\n");
}

static void
one_file_has_one_section_whatever_it_is_called(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/a", "1\n");
    yard_link(y, "a", "W/b");
    yard_refuses(y, "*** Update File: a\n@@\n-1\n+2\n*** Update File: ./a\n@@\n-1\n+3\n",
                 "two sections of the patch are about the file");
    yard_refuses(y, "*** Update File: a\n@@\n-1\n+2\n*** Add File: b\n+3\n", "two sections");
    yard_refuses(y, "*** Update File: a\n*** Move to: c\n@@\n-1\n+2\n*** Add File: c\n+3\n",
                 "two sections");
    yard_refuses(y, "*** Add File: d\n+x\n*** Add File: d/e\n+x\n",
                 "a file in one section of the patch and a directory in another");
    /* To where it is: that is no move. */
    yard_applies(y, "*** Update File: a\n*** Move to: ./a\n@@\n-1\n+2\n", "M ./a\n");
    assert_string_equal(yard_text(y, "W/a"), "2\n");
}

static void
files_that_cannot_be_written_are_refused_before_anything_happens(void **state)
{
    struct yard *y = *state;

    if (geteuid() == 0) {
        skip();
    }
    yard_file(y, "W/a", "1\n");
    yard_file(y, "W/shut/b", "1\n");
    assert_int_equal(chmod(yard_path(y, "W/a"), 0444), 0);
    assert_int_equal(chmod(yard_path(y, "W/shut"), 0555), 0);
    yard_refuses(y, "*** Add File: new\n+x\n*** Update File: a\n@@\n-1\n+2\n",
                 "Failed to read file to update a: Permission denied");
    yard_refuses(y, "*** Add File: new\n+x\n*** Update File: shut/b\n@@\n-1\n+2\n",
                 "Permission denied");
    yard_refuses(y, "*** Add File: new\n+x\n*** Delete File: shut/b\n", "Permission denied");
    assert_int_equal(chmod(yard_path(y, "W/shut"), 0755), 0);
    yard_applies(y, "*** Update File: shut/b\n@@\n-1\n+2\n", "M shut/b\n");
}

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

static const char all_kinds[] =
    "*** Add File: new/dir/one\n+1\n*** Add File: new/two\n+2\n*** Update File: a\n@@\n-a\n+A\n"
    "*** Update File: b\n*** Move to: moved/b\n@@\n-b\n+B\n*** Delete File: c\n*** Add File: d\n+D\n"
    "*** Update File: e\n*** Move to: f\n@@\n-e\n+E\n*** Delete File: link\n";

static void
make_all_kinds(const struct yard *y)
{
    yard_file(y, "W/a", "a\n");
    yard_file(y, "W/b", "b\n");
    yard_file(y, "W/c", "c\n");
    yard_file(y, "W/d", "d\n");
    yard_file(y, "W/e", "e\n");
    yard_file(y, "W/f", "f\n");
    yard_link(y, "a", "W/link");
    assert_int_equal(chmod(yard_path(y, "W/a"), 0640), 0);
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
        if (yard_patch(y, all_kinds, NULL, NULL) == SY_E_OK) {
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

static void
nothing_changes_whichever_step_fails(void **state)
{
    struct yard *y = *state;

    make_all_kinds(y);
    /* Directories 3, files and contents 12, likenesses 4, exchanges 10: each was met. */
    assert_true(fail_each_step(y) >= 23);
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

    make_all_kinds(y);
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

/* A judge of one name. */
static enum sy_code
no_reading_of_secrets(void *arg, enum sandbox_operation op, const char *path, char *const *all,
                      struct sy_error *err)
{
    unsigned *asked = arg;

    assert_int_equal(path[0], '/');
    assert_non_null(all[0]);
    (*asked)++;
    if (str_ends(path, "/.env") && op == OPERATION_READ) {
        return sy_err_set(err, SY_E_DENIED, "it is a secret");
    }
    return SY_E_OK;
}

static void
the_judge_is_asked_about_each_file(void **state)
{
    struct yard *y = *state;
    unsigned asked = 0;

    yard_file(y, "W/.env", "KEY=1\n");
    yard_file(y, "W/a", "a\n");
    y->world.judge = no_reading_of_secrets;
    y->world.judge_arg = &asked;
    yard_refuses(y, "*** Update File: .env\n@@\n-guess\n+x\n", "it is a secret");
    yard_refuses(y, "*** Delete File: .env\n", "it is a secret");
    yard_refuses(y, "*** Add File: b\n+x\n*** Add File: .env\n+x\n", "it is a secret");
    asked = 0;
    yard_applies(y, "*** Update File: a\n*** Move to: b\n@@\n-a\n+b\n", "M b\n");
    assert_int_equal(asked, 3); /* read and delete one, write the other */
}

static const char keyed[] =
    "*** Begin Patch\n*** Delete File: z\n*** Update File: sub/../a\n*** Move to: link/b\n@@\n-a\n"
    "*** Add File: ./a\n+x\n*** Delete File: link\n*** Add File: loop/../../x\n*** End Patch";

static void
keys_name_each_file_once(void **state)
{
    struct yard *y = *state;
    struct patch p;
    struct strv keys = {.max = 8};
    static const char *const expected[] = {"W/a", "W/link", "W/sub/b", "W/z", "x"};
    char key[128];

    yard_mkdir(y, "W/sub");
    yard_link(y, "sub", "W/link");
    yard_link(y, "loop", "W/loop");
    assert_int_equal(patch_read(&p, keyed, sizeof(keyed) - 1, NULL), SY_E_OK);
    assert_int_equal(patch_keys(&keys, &p, y->world.cwd), SY_E_OK);
    assert_int_equal(keys.n, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < keys.n; i++) {
        (void)snprintf(key, sizeof(key), "patch:%s", yard_path(y, expected[i]));
        assert_string_equal(keys.v[i], key);
    }
    strv_fini(&keys);
    patch_fini(&p);
}

static enum sy_code
keys_body(void *arg)
{
    struct yard *y = arg;
    struct patch p;
    struct strv keys = {.max = 8};
    enum sy_code rc = patch_read(&p, keyed, sizeof(keyed) - 1, NULL);

    if (rc == SY_E_OK) {
        rc = patch_keys(&keys, &p, y->world.cwd);
        patch_fini(&p);
    }
    strv_fini(&keys);
    return rc;
}

static void
the_difference_of_a_plan_is_git_s(void **state)
{
    struct yard *y = *state;
    struct buf diff = {.max = 1U << 20};

    make_all_kinds(y);
    yard_run(y, "cp -a W/. O/copy");
    assert_int_equal(yard_patch(y,
                                "*** Add File: new/dir/one\n+1\n*** Update File: a\n@@\n-a\n+A\n"
                                "*** Update File: b\n*** Move to: moved/b\n@@\n b\n+B\n*** Delete "
                                "File: c\n*** Add File: d\n+D\n",
                                NULL, &diff),
                     SY_E_OK);
    yard_file(y, "O/diff", diff.data);
    yard_run(y, "cd O/copy && git apply --unsafe-paths ../diff && cd ../.. && diff -r W O/copy");
    buf_fini(&diff);
}

static void
files_are_the_owner_s_when_applied_as_somebody_else(void **state)
{
    struct yard *y = *state;
    struct stat st;

    if (geteuid() != 0) {
        skip();
    }
    yard_file(y, "W/a", "a\n");
    yard_file(y, "W/root", "a\n");
    assert_int_equal(chown(yard_path(y, "W"), 12345, 12346), 0);
    assert_int_equal(chown(yard_path(y, "W/a"), 12345, 12346), 0);
    assert_int_equal(chmod(y->base, 0755), 0);
    y->world.changes_identity = true;
    y->world.uid = 12345;
    y->world.gid = 12346;
    yard_applies(y, "*** Update File: a\n@@\n-a\n+A\n*** Add File: n/b\n+b\n", "A n/b\nM a\n");
    assert_int_equal(stat(yard_path(y, "W/a"), &st), 0);
    assert_int_equal(st.st_uid, 12345);
    assert_int_equal(stat(yard_path(y, "W/n"), &st), 0);
    assert_int_equal(st.st_uid, 12345);
    assert_int_equal(stat(yard_path(y, "W/n/b"), &st), 0);
    assert_int_equal(st.st_gid, 12346);
    /* What the owner could not do. */
    yard_refuses(y, "*** Update File: root\n@@\n-a\n+A\n", "Permission denied");
    y->world.changes_identity = false;
    yard_applies(y, "*** Update File: root\n@@\n-a\n+A\n", "M root\n");
    assert_int_equal(stat(yard_path(y, "W/root"), &st), 0);
    assert_int_equal(st.st_uid, 0);
}

static enum sy_code
plan_body(void *arg)
{
    return yard_patch(arg, all_kinds, NULL, NULL);
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
    rc = yard_patch(y, all_kinds, &summary, &diff);
    buf_fini(&summary);
    buf_fini(&diff);
    return rc == SY_E_SYS && t.left == 0 ? SY_E_OK : rc;
}

static void
memory_that_runs_out_changes_nothing(void **state)
{
    struct yard *y = *state;
    char before[1U << 12];

    make_all_kinds(y);
    (void)snprintf(before, sizeof(before), "%s", yard_tree(y));
    buf_fini(&y->fault);
    assert_int_equal(buf_reserve(&y->fault, 1U << 13), SY_E_OK); /* not counted as a leak */
    fault_run(keys_body, y);
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
        YARD_TEST(s001_adds_a_file),
        YARD_TEST(s002_adds_updates_and_deletes_in_one),
        YARD_TEST(s003_applies_several_chunks),
        YARD_TEST(s004_moves_to_a_new_directory),
        YARD_TEST(s005_to_009_and_012_and_013_are_refused),
        YARD_TEST(s010_a_move_overwrites_and_s011_an_addition_does),
        YARD_TEST(s014_a_line_that_is_written_has_its_end),
        YARD_TEST(s015_nothing_changes_when_a_later_part_fails),
        YARD_TEST(s016_to_022_apply),
        YARD_TEST(mode_and_line_ends_are_kept),
        YARD_TEST(paths_may_be_absolute_or_lead_around),
        YARD_TEST(what_leaves_the_roots_is_refused),
        YARD_TEST(links_inside_are_followed_and_stay),
        YARD_TEST(what_is_no_file_is_refused),
        YARD_TEST(one_file_has_one_section_whatever_it_is_called),
        YARD_TEST(files_that_cannot_be_written_are_refused_before_anything_happens),
        YARD_TEST(nothing_changes_whichever_step_fails),
        YARD_TEST(disks_that_exchange_no_names_do_as_well),
        YARD_TEST(what_somebody_else_wrote_meanwhile_is_not_lost),
        YARD_TEST(a_link_that_comes_after_the_look_leads_nowhere),
        YARD_TEST(a_write_that_the_kernel_refuses_is_undone),
        YARD_TEST(the_judge_is_asked_about_each_file),
        YARD_TEST(keys_name_each_file_once),
        YARD_TEST(the_difference_of_a_plan_is_git_s),
        YARD_TEST(files_are_the_owner_s_when_applied_as_somebody_else),
        YARD_TEST(memory_that_runs_out_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
