#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "output/output_internal.h"

static struct output_chain *
new_chain(size_t keep)
{
    struct output_options opt = {.keep_bytes = keep};
    struct output_chain *c = output_new(&opt);

    assert_non_null(c);
    return c;
}

static void
push(struct output_chain *c, enum output_stream s, const void *bytes, size_t n)
{
    assert_int_equal(output_push(c, s, bytes, n), SY_E_OK);
}

/* The text for the model; checks what holds for each. */
static bool
model(struct output_chain *c, size_t max, struct buf *out)
{
    bool is_truncated = false;

    assert_int_equal(output_finish(c), SY_E_OK);
    buf_reset(out);
    assert_int_equal(output_text_model(c, max, out, &is_truncated), SY_E_OK);
    assert_true(out->len <= max);
    assert_true(utf8_is_valid(buf_view(out), out->len));
    return is_truncated;
}

static void
assert_model(const char *bytes, size_t n, const char *want)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct output_chain *c = new_chain(0);

    push(c, STREAM_STDOUT, bytes, n);
    assert_false(model(c, LIMIT_MODEL_BYTES_MCP, &out));
    assert_string_equal(buf_view(&out), want);
    output_free(c);
}

static void
plain_text_is_as_it_was_written(void **state)
{
    (void)state;
    assert_model("", 0, "");
    assert_model("src/main.rs:42:    // TODO\n", 27, "src/main.rs:42:    // TODO\n");
    assert_model("no newline", 10, "no newline");
}

/* A11 (a), (b); A12 */
static void
odd_bytes_and_progress_are_readable(void **state)
{
    (void)state;
    assert_model("a\377\376b\n", 5, "a" REPLACEMENT REPLACEMENT "b\n");
    assert_model("\0hello\n", 7, "\\x00hello\n");
    assert_model("start\rone\rtwo\n", 14, "twort\n");
    assert_model("\x1b[32mok\x1b[0m\r\n", 13, "ok\n");
}

/* A11 (c): like `cat /bin/true`. */
static void
binary_output_is_bounded_and_noted(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct output_chain *c = new_chain(0);
    static const unsigned char magic[] = {0x7F, 'E', 'L', 'F', 2, 1, 1};
    static unsigned char bytes[35664];
    struct output_stats stats;

    (void)state;
    memcpy(bytes, magic, sizeof(magic));
    for (size_t i = 64; i < sizeof(bytes); i += 1 + i % 3) {
        bytes[i] = (unsigned char)(i * 37);
    }
    push(c, STREAM_STDOUT, bytes, sizeof(bytes));
    assert_true(model(c, LIMIT_MODEL_BYTES_MCP, &out));
    assert_int_equal(strncmp(out.data, "[binary output, 35664 bytes]\n\\x7fELF\\x02\\x01\\x01", 46),
                     0);
    assert_true(out.len < 1200);
    output_stats_all(c, &stats);
    assert_true(stats.is_binary);
    for (size_t max = 0; max < 300; max++) {
        assert_true(model(c, max, &out));
    }
    output_free(c);
}

static void
the_text_of_the_other_stream_survives_binary_output(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct output_chain *c = new_chain(0);
    static unsigned char bytes[100000];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 77 % 251);
    }
    push(c, STREAM_STDOUT, bytes, 50000);
    push(c, STREAM_STDERR, "cat: x: No such file\n", 21);
    push(c, STREAM_STDOUT, bytes, 50000);
    assert_true(model(c, LIMIT_MODEL_BYTES_MCP, &out));
    assert_int_equal(strncmp(out.data, "[binary output, 100000 bytes]\n", 30), 0);
    assert_non_null(strstr(out.data, "\ncat: x: No such file\n"));
    output_free(c);
}

/* "1\n2\n...N\n" in chunks of about 256 KiB. */
static void
push_seq(struct output_chain *c, unsigned last)
{
    SY_AUTO(buf_fini) struct buf chunk = {.max = (size_t)512 * 1024};

    for (unsigned i = 1; i <= last; i++) {
        char line[16];
        size_t at = sizeof(line) - 1;

        line[at] = '\n';
        for (unsigned v = i; v > 0; v /= 10) {
            line[--at] = (char)('0' + v % 10);
        }
        assert_int_equal(buf_add(&chunk, line + at, sizeof(line) - at), SY_E_OK);
        if (chunk.len > (size_t)256 * 1024 || i == last) {
            push(c, STREAM_STDOUT, chunk.data, chunk.len);
            buf_reset(&chunk);
        }
    }
}

/* A13: seq 1 20000000 */
static void
much_output_needs_little_memory_and_keeps_its_true_size(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct output_chain *c = new_chain(0);
    struct output_stats stats;
    size_t kept = 0;

    (void)state;
    push_seq(c, 20000000);
    for (int s = 0; s < STREAM_COUNT; s++) {
        kept += c->streams[s].kept.head_cap + c->streams[s].kept.tail_cap;
    }
    kept += c->all.head_cap + c->all.tail_cap + sizeof(*c);
    assert_true(kept < (size_t)4 * 1024 * 1024);
    assert_true(model(c, LIMIT_MODEL_BYTES_MCP, &out));
    output_stats_all(c, &stats);
    assert_int_equal(stats.total_bytes, 168888897);
    assert_int_equal(stats.total_lines, 20000000);
    assert_int_equal(stats.omitted_bytes, 168888897 - LIMIT_STREAM_KEEP);
    assert_int_equal(strncmp(out.data, "1\n2\n", 4), 0);
    assert_string_equal(out.data + out.len - 10, "\n20000000\n");
    assert_non_null(strstr(out.data, "omitted of 168888897 bytes, 20000000 lines ...]\n"));
    /* Most of the budget is used. */
    assert_true(out.len > LIMIT_MODEL_BYTES_MCP - 500);
    output_free(c);
}

static void
what_the_kept_buffer_lost_is_said_even_if_the_text_is_small(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct output_chain *c = new_chain(100);

    (void)state;
    push_seq(c, 100); /* 292 bytes */
    assert_true(model(c, LIMIT_MODEL_BYTES_MCP, &out));
    assert_non_null(
        strstr(out.data, "\n[... 192 bytes (64 lines) omitted of 292 bytes, 100 lines ...]\n"));
    output_free(c);
}

static void
progress_that_filled_the_buffer_folds_on_both_sides_of_the_gap(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct output_chain *c = new_chain(1000);

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        char text[16];
        int n = snprintf(text, sizeof(text), "%5u/1000\r", i);

        push(c, STREAM_STDERR, text, (size_t)n);
    }
    push(c, STREAM_STDERR, "done     \n", 10);
    assert_true(model(c, LIMIT_MODEL_BYTES_MCP, &out));
    assert_true(out.len < 200);
    assert_non_null(strstr(out.data, "done"));
    assert_non_null(strstr(out.data, "omitted of 11010 bytes, 1 lines ...]\n"));
    output_free(c);
}

static void
every_budget_is_kept(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct output_chain *c = new_chain(0);

    (void)state;
    push_seq(c, 400);
    for (size_t max = 0; max < 1600; max++) {
        bool is_truncated = model(c, max, &out);

        assert_int_equal(is_truncated, max < 1492);
    }
    output_free(c);
}

static void
a_running_command_can_be_asked_for_its_text(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 1000};
    struct output_chain *c = new_chain(0);
    bool is_truncated = true;

    (void)state;
    push(c, STREAM_STDOUT, "so far \xF0\x9F", 9);
    assert_int_equal(output_text_model(c, 100, &out, &is_truncated), SY_E_OK);
    assert_string_equal(out.data, "so far ");
    assert_false(is_truncated);
    output_free(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_as_it_was_written),
        cmocka_unit_test(odd_bytes_and_progress_are_readable),
        cmocka_unit_test(binary_output_is_bounded_and_noted),
        cmocka_unit_test(the_text_of_the_other_stream_survives_binary_output),
        cmocka_unit_test(much_output_needs_little_memory_and_keeps_its_true_size),
        cmocka_unit_test(what_the_kept_buffer_lost_is_said_even_if_the_text_is_small),
        cmocka_unit_test(progress_that_filled_the_buffer_folds_on_both_sides_of_the_gap),
        cmocka_unit_test(every_budget_is_kept),
        cmocka_unit_test(a_running_command_can_be_asked_for_its_text),
    };

    return cmocka_run_group_tests_name("output_model", tests, NULL, NULL);
}
