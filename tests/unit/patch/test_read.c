#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "patch/patch.h"

#define BEGIN "*** Begin Patch\n"
#define END   "*** End Patch"

/* The patch as one line a thing, to compare. */
static void
dump(struct buf *b, const struct patch *p)
{
    static const char kinds[] = {'A', 'D', 'U'};
    static const char marks[] = {'@', ' ', '-', '+'};

    for (size_t i = 0; i < p->n_sections; i++) {
        const struct patch_section *s = &p->sections[i];
        size_t n = s->kind == PATCH_UPDATE ? s->n : 0;

        assert_int_equal(buf_addf(b, "%c %s%s%s\n", kinds[s->kind], s->path,
                                  s->move_to != NULL ? " > " : "",
                                  s->move_to != NULL ? s->move_to : ""),
                         SY_E_OK);
        for (size_t k = 0; s->kind == PATCH_ADD && k < s->n; k++) {
            const struct patch_line *l = &p->lines[s->first + k];

            assert_int_equal(buf_addf(b, "%c%.*s\n", marks[l->mark], (int)l->len, l->text),
                             SY_E_OK);
        }
        for (size_t k = 0; k < n; k++) {
            const struct patch_chunk *c = &p->chunks[s->first + k];

            assert_int_equal(buf_addf(b, "#%zu%s\n", c->line, c->is_file_end ? " end" : ""),
                             SY_E_OK);
            for (size_t m = 0; m < c->n; m++) {
                const struct patch_line *l = &p->lines[c->first + m];

                assert_int_equal(l->mark == PATCH_SEEK, m < c->n_seeks);
                assert_int_equal(buf_addf(b, "%c%.*s\n", marks[l->mark], (int)l->len, l->text),
                                 SY_E_OK);
            }
        }
    }
}

static void
reads_as(const char *text, const char *expected)
{
    struct patch p;
    struct buf b = {.max = 1U << 20};
    struct sy_error err = {0};

    if (patch_read(&p, text, strlen(text), &err) != SY_E_OK) {
        fail_msg("%s\n%s", err.msg, text);
    }
    dump(&b, &p);
    assert_string_equal(buf_view(&b), expected);
    buf_fini(&b);
    patch_fini(&p);
}

static void
fails_with(const char *text, size_t len, const char *words)
{
    struct patch p;
    struct sy_error err = {0};
    enum sy_code rc = patch_read(&p, text, len, &err);

    assert_true(rc == SY_E_PARSE || rc == SY_E_LIMIT);
    if (strstr(err.msg, words) == NULL) {
        fail_msg("'%s' is not in: %s", words, err.msg);
    }
    assert_int_equal(p.n_sections, 0);
}

static void
reads_each_kind_of_section(void **state)
{
    (void)state;
    reads_as(BEGIN
             "*** Add File: a b.txt\n+one\n+\n++plus\n*** Delete File: c\n*** Update File: d\n"
             "*** Move to: e/f\n@@ main()\n kept\n-old\n+new\n@@\n-x\n*** End of File\n" END,
             "A a b.txt\n+one\n+\n++plus\nD c\nU d > e/f\n#9\n@main()\n kept\n-old\n+new\n#13 end\n"
             "-x\n");
}

static void
the_first_chunk_needs_no_marker(void **state)
{
    (void)state;
    reads_as(BEGIN "*** Update File: d\n-old\n+new\n" END, "U d\n#3\n-old\n+new\n");
    fails_with(BEGIN "*** Update File: d\n-a\n+b\n*** End of File\n-c\n" END,
               strlen(BEGIN "*** Update File: d\n-a\n+b\n*** End of File\n-c\n" END),
               "line 6, Expected update hunk to start with a @@ context marker, got: '-c'");
}

static void
contexts_may_follow_each_other(void **state)
{
    (void)state;
    reads_as(BEGIN "*** Update File: d\n@@ class A\n@@   def b():\n-c\n" END,
             "U d\n#3\n@class A\n@  def b():\n-c\n");
}

static void
an_empty_line_in_a_chunk_is_a_kept_empty_line(void **state)
{
    (void)state;
    reads_as(BEGIN "*** Update File: d\n@@\n a\n\n-b\n" END, "U d\n#3\n a\n \n-b\n");
}

static void
blanks_around_markers_are_of_no_account(void **state)
{
    (void)state;
    reads_as("\n  *** Begin Patch  \n  *** Update File: d \n@@\n-a\n \t*** End Patch\t\n\n",
             "U d\n#4\n-a\n");
    reads_as(BEGIN "\n*** Add File: a\n+x\n\n\n*** Delete File: b\n\n" END, "A a\n+x\nD b\n");
    reads_as(BEGIN "*** Environment ID: local\n*** Delete File: b\n" END, "D b\n");
}

static void
a_here_document_around_it_is_taken_off(void **state)
{
    (void)state;
    reads_as("<<EOF\n" BEGIN "*** Delete File: b\n" END "\nEOF\n", "D b\n");
    reads_as("<<'EOF'\n" BEGIN "*** Delete File: b\n" END "\nEOF", "D b\n");
    reads_as("<<\"PATCH-1\"\n" BEGIN "*** Delete File: b\n" END "\nPATCH-1", "D b\n");
    reads_as("<<-EOF\n" BEGIN "*** Delete File: b\n" END "EOF", "D b\n");
    fails_with("<<EOF\n" BEGIN "*** Delete File: b\n" END "\nEND",
               strlen("<<EOF\n" BEGIN "*** Delete File: b\n" END "\nEND"),
               "first line of the patch must be '*** Begin Patch', not '<<EOF'");
    fails_with("<<'EOF\"\n" BEGIN "*** Delete File: b\n" END "\nEOF",
               strlen("<<'EOF\"\n" BEGIN "*** Delete File: b\n" END "\nEOF"), "first line");
}

static void
lines_may_end_in_crlf(void **state)
{
    (void)state;
    reads_as("*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** Update File: d\r\n@@ c\r\n-a\r\n\r\n"
             "*** End Patch\r\n",
             "A a\n+x\nU d\n#5\n@c\n-a\n \n");
    /* In a patch of plain lines it belongs to the line. */
    reads_as(BEGIN "*** Add File: a\n+x\r\n" END, "A a\n+x\r\n");
}

static void
errors_name_the_line_and_what_would_be_right(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"",                                                                 "The first line of the patch must be '*** Begin Patch'"        },
        {"<<",                                                               "The first line"                                               },
        {"bad",                                                              "first line of the patch must be '*** Begin Patch', not 'bad'" },
        {BEGIN "bad",                                                        "The last line of the patch must be '*** End Patch', not 'bad'"},
        {BEGIN END,                                                          "the patch is empty"                                           },
        {BEGIN "\n\n" END,                                                   "the patch is empty"                                           },
        {BEGIN "*** Frobnicate File: foo\n" END,
         "invalid hunk at line 2, '*** Frobnicate File: foo' is not a valid hunk header. Valid "
         "hunk headers: '*** Add File: {path}'"                                                                                             },
        {BEGIN "*** Add File:\n+x\n" END,                                    "line 2, '*** Add File:' names no file"                        },
        {BEGIN "*** Add File: a\n+x\ny\n" END,                               "line 4, 'y' is not a valid hunk header"                       },
        {BEGIN "*** Update File: test.py\n" END,
         "line 2, Update file hunk for path 'test.py' is empty"                                                                             },
        {BEGIN "*** Update File: test.py\n*** Move to: x\n" END,
         "line 2, Update file hunk for path 'test.py' is empty"                                                                             },
        {BEGIN "*** Update File: a\n@@\n" END,                               "line 3, Update hunk does not contain any lines"               },
        {BEGIN "*** Update File: a\n@@ x\n*** End of File\n" END,            "does not contain any lines"                                   },
        {BEGIN "*** Update File: a\n@@\nbad\n" END,
         "line 4, Unexpected line found in update hunk: 'bad'"                                                                              },
        {BEGIN "*** Update File: a\n-x\n" END "\n*** Add File: b\n+y\n" END,
         "line 4, '*** End Patch' is not a valid hunk header"                                                                               },
        {BEGIN "*** Delete File: a\n*** Add File: a\n+y\n" END,
         "line 3, 'a' has a section at line 2 already"                                                                                      },
        {BEGIN "*** Delete File: a\nx\n" END,                                "line 3, 'x' is not a valid hunk header"                       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fails_with(rows[i].text, strlen(rows[i].text), rows[i].words);
    }
}

static void
what_is_no_text_is_refused(void **state)
{
    static const char nul[] = BEGIN "*** Add File: a\n+x\0y\n" END;
    static const char bad[] = BEGIN "*** Add File: a\n+\xff\n" END;

    (void)state;
    fails_with(nul, sizeof(nul) - 1, "line 3, there is a NUL byte");
    fails_with(bad, sizeof(bad) - 1, "line 3, there is invalid UTF-8");
}

static void
add_to(struct buf *b, const char *text)
{
    assert_int_equal(buf_add_str(b, text), SY_E_OK);
}

static void
large_patches_are_read_up_to_the_limits(void **state)
{
    struct buf b = {.max = 1U << 24};
    struct patch p;

    (void)state;
    /* A line of 1 MB. */
    add_to(&b, BEGIN "*** Add File: a\n+");
    for (size_t i = 0; i < 100000; i++) {
        add_to(&b, "0123456789");
    }
    add_to(&b, "\n" END);
    assert_int_equal(patch_read(&p, b.data, b.len, NULL), SY_E_OK);
    assert_int_equal(p.lines[0].len, 1000000);
    patch_fini(&p);

    /* As many chunks as may be, and one more. */
    buf_reset(&b);
    add_to(&b, BEGIN "*** Update File: a\n");
    for (size_t i = 0; i < LIMIT_PATCH_CHUNKS; i++) {
        add_to(&b, "@@\n-x\n");
    }

    size_t len = b.len;

    add_to(&b, END);
    assert_int_equal(patch_read(&p, b.data, b.len, NULL), SY_E_OK);
    assert_int_equal(p.n_chunks, LIMIT_PATCH_CHUNKS);
    patch_fini(&p);
    b.len = len;
    add_to(&b, "@@\n-x\n" END);
    fails_with(b.data, b.len, "at most 256 files, 10000 chunks");

    buf_reset(&b);
    while (b.len <= LIMIT_PATCH) {
        add_to(&b, BEGIN);
    }
    fails_with(b.data, b.len, "at most 4194304 are taken");
    buf_fini(&b);
}

static enum sy_code
read_body(void *arg)
{
    const char *text = arg;
    struct patch p;
    enum sy_code rc = patch_read(&p, text, strlen(text), NULL);

    patch_fini(&p);
    return rc;
}

static void
memory_that_runs_out_is_told(void **state)
{
    (void)state;
    fault_run(read_body,
              mem_unconst(BEGIN "*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n@@ d\n"
                                "-e\n+f\n*** Delete File: g\n" END));
}

static void
a_patch_is_known_by_its_first_line(void **state)
{
    (void)state;
    assert_true(patch_looks_like(BEGIN, strlen(BEGIN)));
    assert_true(patch_looks_like("\n *** Begin Patch \nx", 20));
    assert_false(patch_looks_like("", 0));
    assert_false(patch_looks_like("x\n" BEGIN, 18));
    assert_false(patch_looks_like("*** Begin Patches", 17));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_kind_of_section),
        cmocka_unit_test(the_first_chunk_needs_no_marker),
        cmocka_unit_test(contexts_may_follow_each_other),
        cmocka_unit_test(an_empty_line_in_a_chunk_is_a_kept_empty_line),
        cmocka_unit_test(blanks_around_markers_are_of_no_account),
        cmocka_unit_test(a_here_document_around_it_is_taken_off),
        cmocka_unit_test(lines_may_end_in_crlf),
        cmocka_unit_test(errors_name_the_line_and_what_would_be_right),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(large_patches_are_read_up_to_the_limits),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(a_patch_is_known_by_its_first_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
