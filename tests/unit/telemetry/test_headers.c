#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "telemetry/telemetry_internal.h"

static char path[] = "/tmp/shellyard-headers-XXXXXX";

static int
setup(void **state)
{
    int fd = 0;

    (void)state;
    (void)snprintf(path, sizeof(path), "/tmp/shellyard-headers-XXXXXX");
    fd = mkstemp(path);
    if (fd < 0) {
        return -1;
    }
    close(fd);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static void
write_file(const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static enum sy_code
read_headers(struct headers *ret, const char *file, const char *value, struct sy_error *err)
{
    static char entry[256];
    char *const environ_list[] = {mem_unconst("A=b"), entry, NULL};
    const struct config config = {
        .telemetry = {.otlp_headers_file = file, .otlp_headers_env = value != NULL ? "HEAD" : ""}
    };

    (void)snprintf(entry, sizeof(entry), "HEAD=%s", value != NULL ? value : "");
    return headers_read(ret, &config, environ_list, err);
}

static void
refuses(const char *file, const char *value, const char *part)
{
    struct headers h;
    struct sy_error err = {0};

    assert_int_equal(read_headers(&h, file, value, &err), SY_E_CONFIG);
    if (strstr(err.msg, part) == NULL) {
        fail_msg("'%s' is not in: %s", part, err.msg);
    }
    assert_null(strstr(err.msg, "SECRET"));
    headers_fini(&h);
}

static void
the_type_alone_without_configuration(void **state)
{
    struct headers h;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(read_headers(&h, "", NULL, &err), SY_E_OK);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.list[0], "Content-Type: application/json");
    assert_null(h.list[1]);
    headers_fini(&h);
}

static void
a_file_has_a_header_a_line(void **state)
{
    struct headers h;
    struct sy_error err = {0};

    (void)state;
    write_file("# who we are\n\nAuthorization: Bearer a:b=c\r\n  X-Scope: 1  \n");
    assert_int_equal(read_headers(&h, path, NULL, &err), SY_E_OK);
    assert_int_equal(h.n, 3);
    assert_string_equal(h.list[1], "Authorization: Bearer a:b=c");
    assert_string_equal(h.list[2], "X-Scope: 1");
    assert_null(h.list[3]);
    headers_fini(&h);
}

static void
a_variable_has_pairs_with_percent_signs(void **state)
{
    struct headers h;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(read_headers(&h, "", "api-key=a%20b%2Cc, x=y=z,", &err), SY_E_OK);
    assert_int_equal(h.n, 3);
    assert_string_equal(h.list[1], "api-key:a b,c");
    assert_string_equal(h.list[2], "x:y=z");
    headers_fini(&h);
}

static void
what_is_no_header_is_refused_and_never_shown(void **state)
{
    (void)state;
    write_file("SECRET\n");
    refuses(path, NULL, "header 1 is not of the form 'Name: value'");
    write_file("ok: 1\nSEC RET: x\n");
    refuses(path, NULL, "header 2");
    write_file("SECRET: a\x01z\n");
    refuses(path, NULL, "header 1");
    write_file(": SECRET\n");
    refuses(path, NULL, "header 1");
    refuses("", "SECRET", "header 1 is not of the form 'name=value'");
    refuses("", "a=SECRET%0d%0aX: y", "header 1");
    refuses("", "a=SECRET%2", "header 1");
    refuses("", "a=SECRET%00", "header 1");
    refuses("", "a=1,a=2,a=3,a=4,a=5,a=6,a=7,a=8,a=9,a=1,a=2,a=3,a=4,a=5,a=6,a=7,a=8",
            "at most 16 headers");
}

static void
a_file_that_others_may_read_is_refused(void **state)
{
    (void)state;
    write_file("a: SECRET\n");
    assert_int_equal(chmod(path, 0640), 0);
    refuses(path, NULL, "chmod 600");
    assert_int_equal(chmod(path, 0600), 0);

    struct headers h;
    struct sy_error err = {0};

    assert_int_equal(read_headers(&h, path, NULL, &err), SY_E_OK);
    headers_fini(&h);
    refuses("/tmp", NULL, "is no file");
    refuses(path, "a=b", "exclude each other");
}

static void
a_variable_that_is_not_there_is_an_error(void **state)
{
    const struct config config = {
        .telemetry = {.otlp_headers_file = "", .otlp_headers_env = "NOT_THERE"}
    };
    char *const none[] = {mem_unconst("NOT_THERE_EITHER=x"), NULL};
    struct headers h;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(headers_read(&h, &config, none, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "there is no variable NOT_THERE"));
}

static enum sy_code
read_both(void *arg)
{
    struct headers h;
    struct sy_error err = {0};
    enum sy_code rc = read_headers(&h, arg, NULL, &err);

    headers_fini(&h);
    if (rc == SY_E_OK) {
        rc = read_headers(&h, "", "a=b", &err);
        headers_fini(&h);
    }
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    write_file("a: b\n");
    fault_run(read_both, path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_type_alone_without_configuration),
        TEST(a_file_has_a_header_a_line),
        TEST(a_variable_has_pairs_with_percent_signs),
        TEST(what_is_no_header_is_refused_and_never_shown),
        TEST(a_file_that_others_may_read_is_refused),
        TEST(a_variable_that_is_not_there_is_an_error),
        TEST(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
