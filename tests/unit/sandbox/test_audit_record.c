/* What the kernel's audit log says about Landlock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox/audit_record.h"

#define STAMP "audit(1795883735.832:2): "

static struct audit_record
parsed(int type, const char *text)
{
    struct audit_record r;

    memset(&r, 0xA5, sizeof(r));
    audit_record_parse(&r, type, text, strlen(text));
    return r;
}

/* Records of Linux 6.18, as they came. */
static void
a_refused_name_is_told_by_its_directory(void **state)
{
    struct audit_record r =
        parsed(AUDIT_RECORD_ACCESS, STAMP "domain=1aa134d04 blockers=fs.make_reg path=\"/tmp/me\" "
                                          "dev=\"vda\" ino=10977758");

    (void)state;
    assert_int_equal(r.kind, AUDIT_REFUSED);
    assert_true(r.domain == 0x1aa134d04);
    assert_true(r.stamp_ms == 1795883735832);
    assert_int_equal(r.operation, OPERATION_CREATE);
    assert_true(r.is_in_directory);
    assert_string_equal(r.object, "/tmp/me");
}

static void
a_refused_file_is_told_by_itself(void **state)
{
    struct audit_record r =
        parsed(AUDIT_RECORD_ACCESS, STAMP
               "domain=1 blockers=fs.write_file,fs.truncate path=\"/etc/hosts\" dev=\"vda\" ino=7");

    (void)state;
    assert_int_equal(r.kind, AUDIT_REFUSED);
    assert_int_equal(r.operation, OPERATION_WRITE);
    assert_false(r.is_in_directory);
    assert_string_equal(r.object, "/etc/hosts");
}

static void
a_path_with_blanks_comes_in_hex(void **state)
{
    struct audit_record r =
        parsed(AUDIT_RECORD_ACCESS,
               STAMP "domain=1 blockers=fs.read_file path=2F612062 dev=\"vda\" ino=7");

    (void)state;
    assert_int_equal(r.kind, AUDIT_REFUSED);
    assert_string_equal(r.object, "/a b");
}

static void
a_domain_is_told_with_its_process(void **state)
{
    struct audit_record r =
        parsed(AUDIT_RECORD_DOMAIN, STAMP "domain=1aa134d04 status=allocated mode=enforcing "
                                          "pid=23762 uid=0 exe=\"/tmp/me/lla\" comm=\"lla\"");

    (void)state;
    assert_int_equal(r.kind, AUDIT_DOMAIN_OF);
    assert_int_equal(r.pid, 23762);
    r = parsed(AUDIT_RECORD_DOMAIN, STAMP "domain=1aa134d04 status=deallocated denials=2");
    assert_int_equal(r.kind, AUDIT_DOMAIN_FREED);
    assert_true(r.domain == 0x1aa134d04);
}

/* A program's own name can't say what is not so: it is quoted, or in hex. */
static void
names_of_programs_are_no_keys(void **state)
{
    struct audit_record r =
        parsed(AUDIT_RECORD_DOMAIN, STAMP "domain=2 status=allocated mode=enforcing exe=\"/x\" "
                                          "comm=\"pid=1\" pid=77 uid=0");

    (void)state;
    assert_int_equal(r.kind, AUDIT_DOMAIN_OF);
    assert_int_equal(r.pid, 77);
}

static void
what_is_not_understood_is_nothing(void **state)
{
    static const struct {
        int type;
        const char *text;
    } others[] = {
        {1300,                STAMP "arch=c000003e syscall=257 success=no domain=1"            },
        {AUDIT_RECORD_ACCESS, ""                                                               },
        {AUDIT_RECORD_ACCESS, STAMP "blockers=fs.make_reg path=\"/x\""                         },
        {AUDIT_RECORD_ACCESS, STAMP "domain= blockers=fs.make_reg path=\"/x\""                 },
        {AUDIT_RECORD_ACCESS, STAMP "domain=1g blockers=fs.make_reg path=\"/x\""               },
        {AUDIT_RECORD_ACCESS, STAMP "domain=11111111111111111 blockers=fs.make_reg path=\"/x\""},
        {AUDIT_RECORD_ACCESS, STAMP "domain=1 blockers=fs.unheard_of path=\"/x\""              },
        {AUDIT_RECORD_ACCESS, STAMP "domain=1 blockers=fs.make_reg"                            },
        {AUDIT_RECORD_ACCESS, STAMP "domain=1 blockers=fs.make_reg path=\"\""                  },
        {AUDIT_RECORD_ACCESS, STAMP "domain=1 blockers=fs.make_reg path=\"x\""                 },
        {AUDIT_RECORD_ACCESS, STAMP "domain=1 blockers=fs.make_reg path=2F6"                   },
        {AUDIT_RECORD_ACCESS, STAMP "domain=1 blockers=fs.make_reg path=2F00"                  },
        {AUDIT_RECORD_ACCESS, STAMP "domain=1 blockers=scope.signal opid=1 ocomm=\"systemd\""  },
        {AUDIT_RECORD_DOMAIN, STAMP "domain=1 status=allocated mode=enforcing pid=0"           },
        {AUDIT_RECORD_DOMAIN, STAMP "domain=1 status=allocated mode=enforcing pid=99999999999" },
        {AUDIT_RECORD_DOMAIN, STAMP "domain=1 status=allocated mode=enforcing"                 },
        {AUDIT_RECORD_DOMAIN, STAMP "domain=1 status=alloc pid=2"                              },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (parsed(others[i].type, others[i].text).kind != AUDIT_OTHER) {
            fail_msg("%s", others[i].text);
        }
    }
}

/* Without a time a record could be of a process that had the number before. */
static void
a_record_without_a_right_stamp_is_nothing(void **state)
{
    static const char *const stamps[] = {
        "",
        "audit(): ",
        "audit(1795883735:2): ",
        "audit(.832:2): ",
        "audit(1795883735.83:2): ",
        "audit(1795883735.8320:2): ",
        "audit(17958.83735.832:2): ",
        "audit(-1795883735.832:2): ",
        "audit(1795883735.832",
        "audit(99999999999999999999.832:2): ",
        " audit(1795883735.832:2): ",
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
        (void)snprintf(text, sizeof(text), "%sdomain=1 blockers=fs.make_reg path=\"/x\"",
                       stamps[i]);
        if (parsed(AUDIT_RECORD_ACCESS, text).kind != AUDIT_OTHER) {
            fail_msg("%s", text);
        }
    }
    (void)snprintf(text, sizeof(text), "%sdomain=1 blockers=fs.make_reg path=\"/x\"", STAMP);
    assert_int_equal(parsed(AUDIT_RECORD_ACCESS, text).kind, AUDIT_REFUSED);
}

/* Each shorter text is read without a byte beyond it (checked by a sanitizer). */
static void
a_record_may_end_anywhere(void **state)
{
    static const char text[] = STAMP "domain=1a blockers=fs.make_reg path=\"/tmp/me\" dev=\"v\"";

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        struct audit_record r;

        audit_record_parse(&r, AUDIT_RECORD_ACCESS, text + sizeof(text) - 1 - n, n);
        audit_record_parse(&r, AUDIT_RECORD_ACCESS, text, n);
        assert_true(r.kind == AUDIT_OTHER || strcmp(r.object, "/tmp/me") == 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_name_is_told_by_its_directory),
        cmocka_unit_test(a_refused_file_is_told_by_itself),
        cmocka_unit_test(a_path_with_blanks_comes_in_hex),
        cmocka_unit_test(a_domain_is_told_with_its_process),
        cmocka_unit_test(names_of_programs_are_no_keys),
        cmocka_unit_test(what_is_not_understood_is_nothing),
        cmocka_unit_test(a_record_without_a_right_stamp_is_nothing),
        cmocka_unit_test(a_record_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
