#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "patch/patch_internal.h"

/* One update of one file, as texts. */
struct run {
    struct buf patch_text;
    struct buf result;
    struct buf diff;
    struct buf fault;
    struct fit_report report;
    struct sy_error err;
};

static void
run_fini(struct run *r)
{
    buf_fini(&r->patch_text);
    buf_fini(&r->result);
    buf_fini(&r->diff);
    buf_fini(&r->fault);
    strv_fini(&r->report.notes.list);
}

static enum sy_code
fit_and_write(struct run *r, const struct patch *p, const char *old, size_t len)
{
    const struct diff_file names = {
        .kind = PATCH_UPDATE, .old_path = "f", .new_path = "f", .old_mode = 0100644};
    struct text t;
    struct fit f = {0};
    enum sy_code rc = text_split(&t, old, len);

    if (rc != SY_E_OK) {
        return rc;
    }
    r->report.fault = &r->fault;
    rc = fit_update(&f, &t, p, &p->sections[0], &r->report, &r->err);
    if (rc == SY_E_OK) {
        rc = fit_write(&r->result, &f, &t, p);
    }
    if (rc == SY_E_OK) {
        rc = diff_add(&r->diff, &names, &f, &t, p);
    }
    fit_fini(&f);
    text_fini(&t);
    return rc;
}

static enum sy_code
run_text(struct run *r, const char *old, size_t len)
{
    struct patch p;
    enum sy_code rc = patch_read(&p, buf_view(&r->patch_text), r->patch_text.len, &r->err);

    if (rc == SY_E_OK) {
        rc = fit_and_write(r, &p, old, len);
        patch_fini(&p);
    }
    return rc;
}

static enum sy_code
run(struct run *r, const char *old, const char *chunks)
{
    *r = (struct run){.patch_text = {.max = 1U << 22},
                      .result = {.max = LIMIT_PATCH_FILE},
                      .diff = {.max = 1U << 24},
                      .fault = {.max = 1U << 14}};

    enum sy_code rc =
        buf_addf(&r->patch_text, "*** Begin Patch\n*** Update File: f\n%s*** End Patch\n", chunks);

    return rc == SY_E_OK ? run_text(r, old, strlen(old)) : rc;
}

static void
gives(const char *old, const char *chunks, const char *expected)
{
    struct run r;

    if (run(&r, old, chunks) != SY_E_OK) {
        fail_msg("%s\n%s", r.err.msg, buf_view(&r.fault));
    }
    assert_string_equal(buf_view(&r.result), expected);
    run_fini(&r);
}

static void
fails(const char *old, const char *chunks, const char *words)
{
    struct run r;

    assert_int_equal(run(&r, old, chunks), SY_E_NOTFOUND);
    if (strstr(buf_view(&r.fault), words) == NULL) {
        fail_msg("'%s' is not in: %s", words, buf_view(&r.fault));
    }
    assert_true(strstr(r.err.msg, "Failed to find") != NULL);
    run_fini(&r);
}

static void
notes(const char *old, const char *chunks, const char *words)
{
    struct run r;

    assert_int_equal(run(&r, old, chunks), SY_E_OK);
    if (words == NULL) {
        assert_int_equal(r.report.notes.list.n, 0);
    } else if (r.report.notes.list.n != 1 || strstr(r.report.notes.list.v[0], words) == NULL) {
        fail_msg("'%s' is not in: %s", words,
                 r.report.notes.list.n > 0 ? r.report.notes.list.v[0] : "nothing");
    }
    run_fini(&r);
}

static void
replaces_removes_and_inserts(void **state)
{
    (void)state;
    gives("a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n");
    gives("a\nb\nc\nd\n", "@@\n-b\n+B\n@@\n-d\n+D\n", "a\nB\nc\nD\n");
    gives("line1\nline2\nline3\n", "@@\n line1\n-line2\n line3\n", "line1\nline3\n");
    gives("a\n", "@@\n-a\n", "");
    gives("a\nb\n", "@@\n+x\n a\n+y\n+z\n b\n", "x\na\ny\nz\nb\n");
    gives("a\nb\nc\nd\n", "@@\n-a\n+1\n b\n-c\n+3\n d\n", "1\nb\n3\nd\n");
}

static void
a_chunk_that_only_adds_stands_at_the_end(void **state)
{
    (void)state;
    gives("a\nb\n", "@@\n+x\n+y\n", "a\nb\nx\ny\n");
    gives("", "@@\n+x\n", "x\n");
    gives("a\nb\n", "@@\n+x\n@@\n-a\n+A\n", "A\nb\nx\n");
    gives("a\nb", "@@\n+x\n@@\n+y\n", "a\nb\nx\ny\n");
    notes("a\nb\n", "@@ a\n+x\n", "only adds, so its lines stand at the end");
}

static void
contexts_are_sought_one_after_the_other(void **state)
{
    static const char text[] = "class A\n  def x\n    1\nclass B\n  def x\n    1\n  def y\n    1\n";

    (void)state;
    gives(text, "@@ class B\n@@   def y\n-    1\n+    2\n",
          "class A\n  def x\n    1\nclass B\n  def x\n    1\n  def y\n    2\n");
    gives(text, "@@ class B\n-    1\n+    2\n",
          "class A\n  def x\n    1\nclass B\n  def x\n    2\n  def y\n    1\n");
    fails(text, "@@ class C\n-    1\n", "Failed to find context 'class C' in f");
    fails(text, "@@   def y\n-class A\n", "Failed to find expected lines in f:\nclass A\n");
}

static void
the_end_of_the_file_is_looked_at_alone(void **state)
{
    (void)state;
    gives("x\ny\nx\n", "@@\n-x\n+z\n*** End of File\n", "x\ny\nz\n");
    gives("x\ny\nx\n", "@@\n-x\n+z\n", "z\ny\nx\n");
    fails("x\ny\n", "@@\n-x\n+z\n*** End of File\n", "is to stand at the end of the file");
    gives("first\nsecond\n", "@@\n first\n-second\n+second updated\n*** End of File\n",
          "first\nsecond updated\n");
}

static void
lines_fit_at_four_levels(void **state)
{
    (void)state;
    gives("a  \nb\n", "@@\n-a\n+A\n", "A\nb\n");
    gives("  a\nb\n", "@@\n-a  \n+A\n", "A\nb\n");
    gives("x \xe2\x80\x93 y\xe2\x80\x91z\n", "@@\n-x - y-z\n+A\n", "A\n");
    gives("\xe2\x80\x9cq\xe2\x80\x9d \xe2\x80\x98r\xe2\x80\x99\n", "@@\n-\"q\" 'r'\n+A\n", "A\n");
    gives("a\xc2\xa0\xe3\x80\x80"
          "b\xe2\x80\xaf\n",
          "@@\n-a  b\n+A\n", "A\n");
    /* The better level wins, though it stands further down. */
    gives("a \na\n", "@@\n-a\n+A\n", "a \nA\n");
    gives(" a\na \n", "@@\n-a\n+A\n", " a\nA\n");
    notes("a  \n", "@@\n-a\n", "at line 3 of the patch fits at line 1 but for blanks at the ends");
    notes("  a\n", "@@\n-a\n", "but for blanks around lines");
    notes("\xe2\x80\x94\n", "@@\n-\xe2\x80\x95\n", "but for blanks, and the kinds of dashes");
    notes("a\n", "@@\n-a\n", NULL);
    fails("ab\n", "@@\n-a b\n", "Failed to find expected lines in f:\na b");
}

static void
kept_lines_stay_as_the_file_has_them(void **state)
{
    (void)state;
    gives("a \xe2\x80\x94 b  \nold\n", "@@\n a - b\n-old\n+new\n", "a \xe2\x80\x94 b  \nnew\n");
    gives("\t a\nb\n", "@@\n a\n-b\n+B\n", "\t a\nB\n");
}

static void
bytes_that_are_no_text_are_compared_all_the_same(void **state)
{
    (void)state;
    gives("a\xff\nb \n", "@@\n-b\n+B\n", "a\xff\nB\n");
    fails("a\xff\n", "@@\n-a\xc3\xbf\n", "Failed to find expected lines");
}

static void
an_empty_line_at_the_end_of_a_chunk_may_be_missing(void **state)
{
    (void)state;
    gives("a\nb\n", "@@\n a\n-b\n+B\n\n@@\n+x\n", "a\nB\nx\n");
    gives("a\nb\n", "@@\n-b\n \n+B\n", "a\nB\n");
    gives("a\nb\n\nc\n", "@@\n-b\n+B\n\n", "a\nB\n\nc\n");
    gives("a\nb\n", "@@\n-b\n-\n+B\n", "a\nB\n");
}

static void
what_fits_in_several_places_is_named(void **state)
{
    (void)state;
    notes("a\nb\na\n", "@@\n-a\n",
          "ambiguous: the chunk at line 3 of the patch fits at line 1, "
          "which was used, and at 3;");
    notes("a\na\na\na\na\na\n", "@@\n-a\n", "and at 2, 3, 4 and 2 more;");
    notes("f\na\nf\nb\n", "@@ f\n-a\n", "the context at line 3 of the patch fits at line 1");
    notes("f\na\na\n", "@@ f\n-a\n", NULL);
    notes("a\nb\na\n", "@@\n-a\n*** End of File\n", NULL);
}

static void
chunks_go_in_the_order_of_the_file(void **state)
{
    (void)state;
    fails("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A\n",
          "they stand at line 1, before the end of the chunk in front of it");
}

static void
ends_of_lines_are_kept(void **state)
{
    (void)state;
    gives("a\r\nb\r\n", "@@\n a\n-b\n+B\n+C\n", "a\r\nB\r\nC\r\n");
    gives("a\r\nb\r\n", "@@\n+x\n", "a\r\nb\r\nx\r\n");
    gives("a\r\nb\nc\n", "@@\n-b\n+B\n", "a\r\nB\nc\n");
    gives("a\r\nb\nc\n", "@@\n-a\n+A\n", "A\r\nb\nc\n");
    /* As a patch has them that copies the file's. */
    gives("a\r\nb\r\n", "@@\n-b\r\n+B\r\n", "a\r\nB\r\n");
    gives("a\rb\nc\n", "@@\n-c\n+C\n", "a\rb\nC\n");
}

static void
a_file_without_a_final_newline_stays_so_where_its_last_line_does(void **state)
{
    (void)state;
    gives("a\nb", "@@\n-a\n+A\n", "A\nb");
    gives("a\nb", "@@\n-a\n+A\n b\n", "A\nb");
    gives("a\r\nb", "@@\n-a\n+A\n", "A\r\nb");
    /* A line that the patch writes has its end. */
    gives("no newline at end", "@@\n-no newline at end\n+first line\n+second line\n",
          "first line\nsecond line\n");
    gives("a\nb", "@@\n b\n+c\n", "a\nb\nc\n");
    gives("a\r\nb", "@@\n b\n+c\n", "a\r\nb\r\nc\r\n");
    gives("a\nb", "@@\n-b\n", "a\n");
    gives("a\nb", "@@\n-b\n+B\n@@\n+c\n", "a\nB\nc\n");
}

static void
the_difference_is_what_git_would_show(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(run(&r, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12",
                         "@@\n-2\n+two\n@@\n 6\n+six and a half\n@@\n-9\n-10\n@@\n+13\n"),
                     SY_E_OK);
    assert_string_equal(buf_view(&r.diff),
                        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,12 +1,12 @@\n 1\n-2\n+two\n "
                        "3\n 4\n 5\n 6\n+six and a half\n 7\n 8\n-9\n-10\n 11\n-12\n\\ No newline "
                        "at end of file\n+12\n+13\n");
    run_fini(&r);
    assert_int_equal(run(&r, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "@@\n-1\n@@\n-12\n+z\n"),
                     SY_E_OK);
    assert_string_equal(buf_view(&r.diff),
                        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n"
                        "@@ -9,4 +8,4 @@\n 9\n 10\n 11\n-12\n+z\n");
    run_fini(&r);
    assert_int_equal(run(&r, "", "@@\n+z\n"), SY_E_OK);
    assert_string_equal(buf_view(&r.diff),
                        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1,1 @@\n+z\n");
    run_fini(&r);
}

/* 10,000 lines, and 200 chunks over all of them that fit by the last means only. */
static void
make_large(struct buf *old, struct buf *patch, bool is_exact)
{
    assert_int_equal(buf_add_str(patch, "*** Begin Patch\n*** Update File: f\n"), SY_E_OK);
    for (unsigned i = 0; i < 10000; i++) {
        assert_int_equal(buf_addf(old, "  line \xe2\x80\x94 %u\n", i), SY_E_OK);
        if (i % 50 == 25) {
            assert_int_equal(buf_addf(patch,
                                      is_exact ? "@@\n   line \xe2\x80\x94 %u\n-  line "
                                                 "\xe2\x80\x94 %u\n+new %u\n"
                                               : "@@\n line - %u\n-line - %u\n+new %u\n",
                                      i - 1, i, i),
                             SY_E_OK);
        }
    }
    assert_int_equal(buf_add_str(patch, "*** End Patch\n"), SY_E_OK);
}

static void
ten_thousand_lines_and_two_hundred_chunks_cost_few_comparisons(void **state)
{
    (void)state;
    for (int is_exact = 0; is_exact <= 1; is_exact++) {
        struct buf old = {.max = 1U << 20};
        struct run r = {.patch_text = {.max = 1U << 20},
                        .result = {.max = LIMIT_PATCH_FILE},
                        .diff = {.max = 1U << 24},
                        .fault = {.max = 1U << 14}};
        struct timespec from;
        struct timespec to;

        make_large(&old, &r.patch_text, is_exact != 0);
        clock_gettime(CLOCK_MONOTONIC, &from);
        assert_int_equal(run_text(&r, old.data, old.len), SY_E_OK);
        clock_gettime(CLOCK_MONOTONIC, &to);
        /* Each chunk looks at each line behind it once, whatever the level. */
        assert_true(r.report.work <= 200U * 10000U / 2U + 2U * 10000U);
        assert_int_equal(r.result.len,
                         old.len - 200 * strlen("  line \xe2\x80\x94 ") + 200 * strlen("new "));
        print_message("%s: %llu places, %lld us\n", is_exact != 0 ? "exact" : "last level",
                      (unsigned long long)r.report.work,
                      (long long)(to.tv_sec - from.tv_sec) * 1000000 +
                          (to.tv_nsec - from.tv_nsec) / 1000);
        run_fini(&r);
        buf_fini(&old);
    }
}

static void
too_much_searching_is_an_error(void **state)
{
    struct buf old = {.max = LIMIT_PATCH_FILE};
    struct run r = {.patch_text = {.max = 1U << 22},
                    .result = {.max = LIMIT_PATCH_FILE},
                    .diff = {.max = 1U << 24},
                    .fault = {.max = 1U << 14}};

    (void)state;
    assert_int_equal(buf_add_str(&r.patch_text, "*** Begin Patch\n*** Update File: f\n"), SY_E_OK);
    for (unsigned i = 0; i < 9000; i++) {
        assert_int_equal(buf_add_str(&r.patch_text, "@@\n-x\n"), SY_E_OK);
    }
    assert_int_equal(buf_add_str(&r.patch_text, "*** End Patch\n"), SY_E_OK);
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(buf_add_str(&old, " x\n"), SY_E_OK);
    }
    assert_int_equal(run_text(&r, old.data, old.len), SY_E_LIMIT);
    assert_non_null(strstr(r.err.msg, "takes too much searching"));
    run_fini(&r);
    buf_fini(&old);
}

static void
a_file_of_too_many_lines_is_refused(void **state)
{
    struct buf old = {.max = LIMIT_PATCH_FILE};
    struct text t;

    (void)state;
    for (unsigned i = 0; i < LIMIT_PATCH_FILE_LINES / 100 + 1; i++) {
        static const char ends[] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
                                   "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
                                   "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
                                   "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";

        assert_int_equal(buf_add(&old, ends, sizeof(ends) - 1), SY_E_OK);
    }
    assert_int_equal(text_split(&t, old.data, old.len), SY_E_LIMIT);
    buf_fini(&old);
}

static enum sy_code
fit_body(void *arg)
{
    struct run r;
    enum sy_code rc = run(&r, "a \nb\nc\nb", arg);

    run_fini(&r);
    return rc;
}

static enum sy_code
failing_body(void *arg)
{
    struct run r;
    enum sy_code rc = run(&r, "a\nb\nc\n", arg);

    run_fini(&r);
    return rc == SY_E_NOTFOUND ? SY_E_OK : rc;
}

static void
memory_that_runs_out_is_told(void **state)
{
    (void)state;
    fault_run(fit_body, mem_unconst("@@ a\n-b\n+B\n@@\n+x\n"));
    fault_run(fit_body, mem_unconst("@@\n-b\n+B\n"));
    fault_run(failing_body, mem_unconst("@@\n-c\n@@\n-a\n"));
    fault_run(failing_body, mem_unconst("@@ nowhere\n-a\n"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_removes_and_inserts),
        cmocka_unit_test(a_chunk_that_only_adds_stands_at_the_end),
        cmocka_unit_test(contexts_are_sought_one_after_the_other),
        cmocka_unit_test(the_end_of_the_file_is_looked_at_alone),
        cmocka_unit_test(lines_fit_at_four_levels),
        cmocka_unit_test(kept_lines_stay_as_the_file_has_them),
        cmocka_unit_test(bytes_that_are_no_text_are_compared_all_the_same),
        cmocka_unit_test(an_empty_line_at_the_end_of_a_chunk_may_be_missing),
        cmocka_unit_test(what_fits_in_several_places_is_named),
        cmocka_unit_test(chunks_go_in_the_order_of_the_file),
        cmocka_unit_test(ends_of_lines_are_kept),
        cmocka_unit_test(a_file_without_a_final_newline_stays_so_where_its_last_line_does),
        cmocka_unit_test(the_difference_is_what_git_would_show),
        cmocka_unit_test(ten_thousand_lines_and_two_hundred_chunks_cost_few_comparisons),
        cmocka_unit_test(too_much_searching_is_an_error),
        cmocka_unit_test(a_file_of_too_many_lines_is_refused),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
