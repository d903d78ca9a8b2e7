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

/* The workspace to somebody else, in whose name patches are applied. */
static void
give_away(struct yard *y)
{
    static const char *const names[] = {"W", "W/a", "W/shut", "W/shut/b"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(chown(yard_path(y, names[i]), 12345, 12346), 0);
    }
    assert_int_equal(chmod(y->base, 0755), 0);
    y->world.changes_identity = true;
    y->world.uid = 12345;
    y->world.gid = 12346;
}

static void
files_that_cannot_be_written_are_refused_before_anything_happens(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/a", "1\n");
    yard_file(y, "W/shut/b", "1\n");
    if (geteuid() == 0) {
        give_away(y); /* root could write them */
    }
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
    y->world.arg = &asked;
    yard_refuses(y, "*** Update File: .env\n@@\n-guess\n+x\n", "it is a secret");
    yard_refuses(y, "*** Delete File: .env\n", "it is a secret");
    yard_refuses(y, "*** Add File: b\n+x\n*** Add File: .env\n+x\n", "it is a secret");
    asked = 0;
    yard_applies(y, "*** Update File: a\n*** Move to: b\n@@\n-a\n+b\n", "M b\n");
    assert_int_equal(asked, 3); /* read and delete one, write the other */
}

struct told {
    char words[256];
    bool is_out_of_memory;
};

static enum sy_code
note_refusal(void *arg, enum sandbox_operation op, const char *path, struct sy_error *err)
{
    struct told *t = arg;
    size_t len = strlen(t->words);

    (void)snprintf(t->words + len, sizeof(t->words) - len, "%s %s;", sandbox_operation_name(op),
                   path_base(path));
    return t->is_out_of_memory ? sy_err_nomem(err) : SY_E_OK;
}

static void
all_that_is_refused_is_told_at_once(void **state)
{
    struct yard *y = *state;
    struct told told = {.words = ""};
    static const char body[] =
        "*** Add File: ../O/p1\n+x\n*** Add File: fine\n+x\n*** Delete File: "
        "../O/p2\n*** Update File: a\n*** Move to: ../O/p3\n@@\n-a\n+b\n";

    yard_file(y, "W/a", "a\n");
    y->world.refused = note_refusal;
    y->world.arg = &told;
    yard_refuses(y, body, "../O/p1: it lies outside");
    assert_string_equal(told.words, "write p1;delete p2;write p3;");
    told = (struct told){.is_out_of_memory = true};
    assert_int_equal(yard_patch(y, body, NULL, NULL), SY_E_NOMEM);
    assert_string_equal(told.words, "write p1;");
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
memory_that_runs_out_for_keys_is_told(void **state)
{
    fault_run(keys_body, *state);
}

static void
the_difference_of_a_plan_is_git_s(void **state)
{
    struct yard *y = *state;
    struct buf diff = {.max = 1U << 20};

    yard_make_all_kinds(y);
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
        YARD_TEST(the_judge_is_asked_about_each_file),
        YARD_TEST(all_that_is_refused_is_told_at_once),
        YARD_TEST(keys_name_each_file_once),
        YARD_TEST(the_difference_of_a_plan_is_git_s),
        YARD_TEST(memory_that_runs_out_for_keys_is_told),
    };

    const struct CMUnitTest tests_of_root[] = {
        YARD_TEST(files_are_the_owner_s_when_applied_as_somebody_else),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    if (geteuid() == 0) {
        failed += cmocka_run_group_tests_name("patches of root", tests_of_root, NULL, NULL);
    }
    return failed;
}
