#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "fault.h"
#include "sessions/attach_frame.h"

#define READ(ret, bytes, n, from_person) attach_frame_read(ret, bytes, n, from_person, NULL)

static void
reads_what_was_written_and_never_less_than_all(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct attach_frame f;

    (void)state;
    assert_int_equal(attach_frame_write(&out, ATTACH_INPUT, "ls\r", 3), SY_E_OK);
    assert_int_equal(out.len, ATTACH_FRAME_HEAD + 3);
    for (size_t n = 0; n < out.len; n++) {
        assert_int_equal(READ(&f, out.data, n, true), ATTACH_FRAME_MORE);
    }
    assert_int_equal(READ(&f, out.data, out.len, true), ATTACH_FRAME_WHOLE);
    assert_int_equal(f.kind, ATTACH_INPUT);
    assert_int_equal(f.n, 3);
    assert_memory_equal(f.bytes, "ls\r", 3);
}

static void
carries_sizes_and_ends(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct attach_frame f;
    unsigned rows = 0;
    unsigned cols = 0;
    char longer[2 * SY_ERR_MSG_MAX];

    (void)state;
    assert_int_equal(attach_frame_write_size(&out, 300, 1000), SY_E_OK);
    assert_int_equal(READ(&f, out.data, out.len, true), ATTACH_FRAME_WHOLE);
    attach_frame_size(&f, &rows, &cols);
    assert_int_equal(rows, 300);
    assert_int_equal(cols, 1000);
    buf_reset(&out);
    assert_int_equal(attach_frame_write_end(&out, 125, "over"), SY_E_OK);
    assert_int_equal(READ(&f, out.data, out.len, false), ATTACH_FRAME_WHOLE);
    assert_int_equal(f.n, 5);
    assert_memory_equal(f.bytes, "}over", 5);
    buf_reset(&out);
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(attach_frame_write_end(&out, 0, longer), SY_E_OK);
    assert_int_equal(READ(&f, out.data, out.len, false), ATTACH_FRAME_WHOLE);
}

static void
cuts_what_is_too_much_for_one_frame(void **state)
{
    static char many[LIMIT_ATTACH_FRAME * 2 + 1];
    SY_AUTO(buf_fini) struct buf out = {.max = sizeof(many) + 64};
    struct attach_frame f;
    size_t at = 0;

    (void)state;
    assert_int_equal(attach_frame_write(&out, ATTACH_OUTPUT, many, sizeof(many)), SY_E_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(READ(&f, out.data + at, out.len - at, false), ATTACH_FRAME_WHOLE);
        assert_int_equal(f.n, i < 2 ? LIMIT_ATTACH_FRAME : 1);
        at += ATTACH_FRAME_HEAD + f.n;
    }
    assert_int_equal(at, out.len);
}

static void
refuses_what_is_no_frame_of_that_side(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool from_person;
        const char *sentence;
    } rows[] = {
        {"o",                 1, true,  "a frame of the kind 0x6f, which is none"                 },
        {"i",                 1, false, "a frame of the kind 0x69, which is none"                 },
        {"\0",                1, true,  "a frame of the kind 0x00, which is none"                 },
        {"i\0\0\0\0",         5, true,  "a frame of the kind 'i' with 0 bytes: 1 to 65536 fit"    },
        {"i\1\0\1\0",         5, true,  "a frame of the kind 'i' with 65537 bytes: 1 to 65536 fit"},
        {"i\xff\xff\xff\xff", 5, true,
         "a frame of the kind 'i' with 4294967295 bytes: 1 to 65536 fit"                          },
        {"s\3\0\0\0",         5, true,  "a frame of the kind 's' with 3 bytes: 4 to 4 fit"        },
        {"d\1\0\0\0",         5, true,  "a frame of the kind 'd' with 1 bytes: 0 to 0 fit"        },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct attach_frame f;
        struct sy_error err = {0};

        assert_int_equal(attach_frame_read(&f, rows[i].bytes, rows[i].n, rows[i].from_person, &err),
                         ATTACH_FRAME_BAD);
        assert_int_equal(err.code, SY_E_PARSE);
        assert_string_equal(err.msg, rows[i].sentence);
    }
}

static enum sy_code
write_all(void *arg)
{
    struct buf out = {.max = 4096};
    enum sy_code rc = attach_frame_write(&out, ATTACH_DETACH, "", 0);

    (void)arg;
    rc = rc == SY_E_OK ? attach_frame_write_size(&out, 1, 2) : rc;
    rc = rc == SY_E_OK ? attach_frame_write_end(&out, 0, "x") : rc;
    buf_fini(&out);
    return rc;
}

static void
survives_without_memory(void **state)
{
    (void)state;
    fault_run(write_all, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written_and_never_less_than_all),
        cmocka_unit_test(carries_sizes_and_ends),
        cmocka_unit_test(cuts_what_is_too_much_for_one_frame),
        cmocka_unit_test(refuses_what_is_no_frame_of_that_side),
        cmocka_unit_test(survives_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
