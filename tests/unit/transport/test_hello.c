#include "test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "fault.h"
#include "transport/hello.h"

static char *const no_texts[] = {NULL};

static void
write_frame(struct buf *out, char *const *args, char *const *environ_list)
{
    const struct hello h = {.protocol = "mcp",
                            .build = "1 a:b",
                            .cwd = "/w",
                            .args = args,
                            .environ_list = environ_list};

    *out = (struct buf){.max = LIMIT_HELLO};
    assert_int_equal(hello_write(out, &h, NULL), SY_E_OK);
}

static void
what_is_written_is_read_however_it_arrives(void **state)
{
    char *args[] = {mem_unconst("-c"), mem_unconst("a=b c"), mem_unconst(""), NULL};
    char *vars[] = {mem_unconst("A=1"), mem_unconst("B=\xff\xfe\n"), mem_unconst(""), NULL};
    SY_AUTO(buf_fini) struct buf frame;
    SY_AUTO(buf_fini) struct buf part = {.max = LIMIT_HELLO};
    struct hello h;

    (void)state;
    write_frame(&frame, args, vars);
    for (size_t i = 0; i + 1 < frame.len; i++) {
        assert_int_equal(buf_add(&part, frame.data + i, 1), SY_E_OK);
        assert_int_equal(hello_read(&h, part.data, part.len, NULL), HELLO_MORE);
        assert_null(h.words);
    }
    assert_int_equal(hello_read(&h, frame.data, frame.len, NULL), HELLO_WHOLE);
    assert_string_equal(h.protocol, "mcp");
    assert_string_equal(h.build, "1 a:b");
    assert_string_equal(h.cwd, "/w");
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(h.args[i], args[i]);
        assert_string_equal(h.environ_list[i], vars[i]);
    }
    assert_null(h.args[3]);
    assert_null(h.environ_list[3]);
    hello_fini(&h);
}

static void
a_hello_without_arguments_and_environment_is_one(void **state)
{
    SY_AUTO(buf_fini) struct buf frame;
    struct hello h;

    (void)state;
    write_frame(&frame, no_texts, no_texts);
    assert_int_equal(hello_read(&h, frame.data, frame.len, NULL), HELLO_WHOLE);
    assert_null(h.args[0]);
    assert_null(h.environ_list[0]);
    hello_fini(&h);
}

/* `n` bytes, with the NUL that comes behind what was received. */
static void
expect_bad(const char *bytes, size_t n, enum hello_state want, const char *sentence)
{
    struct sy_error err = {0};
    struct hello h;

    assert_int_equal(hello_read(&h, bytes, n, &err), want);
    assert_null(h.words);
    if (want == HELLO_MORE) {
        return;
    }
    assert_int_equal(err.code, SY_E_PARSE);
    assert_non_null(strstr(err.msg, sentence));
}

#define BAD(text, sentence) expect_bad(text, sizeof(text) - 1, HELLO_BAD, sentence)

static void
what_is_no_hello_is_refused_as_soon_as_it_can_be_told(void **state)
{
    (void)state;
    BAD("G", "the first line is");
    BAD("shellyarD", "the first line is");
    BAD("shellyard 1 1000000000000000000000000", "the first line is");
    BAD("\n", "the first line is");
    BAD("shellyard\0 1 1\n", "the first line is");
    BAD("shellyard 1 \n", "number of bytes");
    BAD("shellyard 1 0\n", "number of bytes");
    BAD("shellyard 1 -1\n", "number of bytes");
    BAD("shellyard 1 1x\n", "number of bytes");
    BAD("shellyard 1 1048545\n", "number of bytes");
    BAD("shellyard 1 3\nabc", "its last text has no end");
    BAD("shellyard 1 3\nab\0d", "longer than it says");
    BAD("shellyard 1 2\na\0", "is missing");
    BAD("shellyard 1 8\nm\0b\0/\0x\0", "fewer arguments");
    BAD("shellyard 1 8\nm\0b\0/\0"
        "1\0",
        "fewer arguments");
    BAD("shellyard 1 8\nm\0b\0w\0"
        "0\0",
        "not absolute");
    expect_bad("shellyard 2 8\n", 14, HELLO_OTHER, "another version than 1");
    expect_bad("shellyard 11 8\n", 15, HELLO_OTHER, "another version than 1");
    expect_bad("shellyard 1 1048544\n", 20, HELLO_MORE, "");
    expect_bad("shell", 5, HELLO_MORE, "");
    expect_bad("", 0, HELLO_MORE, "");
}

static void
more_texts_than_a_process_can_have_are_refused(void **state)
{
    SY_AUTO(buf_fini) struct buf frame = {.max = LIMIT_HELLO};
    struct sy_error err = {0};
    struct hello h;

    (void)state;
    assert_int_equal(buf_addf(&frame, "shellyard 1 %u\n", LIMIT_ENV + LIMIT_HELLO_ARGS + 1),
                     SY_E_OK);
    for (size_t i = 0; i <= LIMIT_ENV + LIMIT_HELLO_ARGS; i++) {
        assert_int_equal(buf_add(&frame, "", 1), SY_E_OK);
    }
    assert_int_equal(hello_read(&h, frame.data, frame.len, &err), HELLO_BAD);
    assert_non_null(strstr(err.msg, "too many texts"));
}

static void
a_large_environment_is_an_error_of_the_client(void **state)
{
    SY_AUTO(buf_fini) struct buf frame = {.max = LIMIT_HELLO};
    char *big = mem_alloc((size_t)LIMIT_HELLO + 1);
    char *vars[] = {big, NULL};
    const struct hello h = {
        .protocol = "mcp", .build = "b", .cwd = "/", .args = no_texts, .environ_list = vars};
    struct sy_error err = {0};

    (void)state;
    assert_non_null(big);
    memset(big, 'x', LIMIT_HELLO);
    big[LIMIT_HELLO] = '\0';
    assert_int_equal(hello_write(&frame, &h, &err), SY_E_LIMIT);
    assert_non_null(strstr(err.msg, "larger than 1048576 bytes"));
    mem_free(big);
}

static enum sy_code
write_and_read(void *arg)
{
    char *vars[] = {mem_unconst("A=1"), NULL};
    const struct hello h = {
        .protocol = "mcp", .build = "b", .cwd = "/", .args = no_texts, .environ_list = vars};
    struct buf frame = {.max = LIMIT_HELLO};
    struct sy_error err = {0};
    struct hello got = {0};
    enum sy_code rc = hello_write(&frame, &h, &err);

    (void)arg;
    if (rc == SY_E_OK && hello_read(&got, frame.data, frame.len, &err) != HELLO_WHOLE) {
        rc = err.code;
    }
    hello_fini(&got);
    buf_fini(&frame);
    return rc;
}

static void
each_failing_allocation_is_an_error(void **state)
{
    (void)state;
    fault_run(write_and_read, NULL);
}

static void
answers_are_one_line_each(void **state)
{
    static const struct hello_answer all[] = {
        {HELLO_OK,    4711,       ""                   },
        {HELLO_NOTE,  0,          "a note with  spaces"},
        {HELLO_OWN,   0,          "\xc3\xa4"           },
        {HELLO_ERROR, 4294967295, "x"                  },
        {HELLO_END,   2,          "the end"            },
    };
    char line[HELLO_ANSWER_MAX];
    struct hello_answer got;

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        size_t n = hello_answer_write(line, &all[i]);

        assert_int_equal(line[n - 1], '\n');
        assert_int_equal(n, strlen(line));
        assert_true(hello_answer_read(&got, line, n - 1));
        assert_int_equal(got.kind, all[i].kind);
        assert_int_equal(got.number, all[i].number);
        assert_string_equal(got.sentence, all[i].sentence);
    }
}

static void
the_longest_sentence_fits_and_line_ends_in_it_are_no_line_ends(void **state)
{
    struct hello_answer a = {.kind = HELLO_ERROR, .number = 4294967295};
    struct hello_answer got;
    char line[HELLO_ANSWER_MAX];

    (void)state;
    memset(a.sentence, '\n', sizeof(a.sentence) - 1);

    size_t n = hello_answer_write(line, &a);

    assert_true(n <= sizeof(line));
    assert_ptr_equal(memchr(line, '\n', n), line + n - 1);
    assert_true(hello_answer_read(&got, line, n - 1));
    assert_int_equal(strlen(got.sentence), sizeof(a.sentence) - 1);
}

static void
other_lines_are_no_answers(void **state)
{
    static const char *const lines[] = {"",      "ok",       "ok 1",           "OK 1 ",
                                        "ok x ", "ok -1 x",  "ok 1x ",         "ok  1 ",
                                        "no 1 ", "okay 1 x", "ok 4294967296 x"};
    char long_line[HELLO_ANSWER_MAX + 10] = "ok 1 ";
    struct hello_answer got;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_false(hello_answer_read(&got, lines[i], strlen(lines[i])));
    }
    assert_false(hello_answer_read(&got, "ok 1 a\0b", 8));
    memset(long_line + 5, 'x', sizeof(long_line) - 5);
    assert_false(hello_answer_read(&got, long_line, sizeof(long_line)));
    assert_false(hello_answer_read(&got, long_line, SY_ERR_MSG_MAX + 5));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_however_it_arrives),
        cmocka_unit_test(a_hello_without_arguments_and_environment_is_one),
        cmocka_unit_test(what_is_no_hello_is_refused_as_soon_as_it_can_be_told),
        cmocka_unit_test(more_texts_than_a_process_can_have_are_refused),
        cmocka_unit_test(a_large_environment_is_an_error_of_the_client),
        cmocka_unit_test(each_failing_allocation_is_an_error),
        cmocka_unit_test(answers_are_one_line_each),
        cmocka_unit_test(the_longest_sentence_fits_and_line_ends_in_it_are_no_line_ends),
        cmocka_unit_test(other_lines_are_no_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
