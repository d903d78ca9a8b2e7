#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/path_pattern.h"
#include "fault.h"

static bool
fits(const char *pattern, const char *name)
{
    return path_pattern_fits(pattern, strlen(pattern), name, strlen(name));
}

static void
a_component_fits_names_as_in_a_shell(void **state)
{
    (void)state;
    assert_true(fits("id_rsa", "id_rsa"));
    assert_false(fits("id_rsa", "id_rsa.pub"));
    assert_false(fits("id_rsa", "ID_RSA"));
    assert_true(fits("*", ".hidden"));
    assert_true(fits("*", ""));
    assert_true(fits("*.pem", "a.b.pem"));
    assert_true(fits("*.pem", ".pem"));
    assert_false(fits("*.pem", "a.pem.bak"));
    assert_true(fits("a*b*c", "axxbxbxc"));
    assert_false(fits("a*b*c", "axxbxb"));
    assert_true(fits("?", "x"));
    assert_true(fits("?", "\xc3\xa9"));
    assert_false(fits("?", ""));
    assert_false(fits("?", "xy"));
    assert_true(fits("k[0-9x]", "k7"));
    assert_true(fits("k[0-9x]", "kx"));
    assert_false(fits("k[0-9x]", "ky"));
    assert_true(fits("k[!0-9]", "ky"));
    assert_true(fits("k[!0-9]", "k\xc3\xa9"));
    assert_false(fits("k[!0-9]", "k7"));
    assert_true(fits("[]]", "]"));
    assert_true(fits("[*]", "*"));
    assert_false(fits("[*]", "x"));
    assert_true(fits("*[[]*", "a[b"));
}

/* One star after the other must not try every division of the name. */
static void
many_stars_take_no_longer_than_a_few(void **state)
{
    char pattern[200];
    char name[201];

    (void)state;
    for (size_t i = 0; i < sizeof(pattern) - 2; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[sizeof(pattern) - 2] = 'b';
    pattern[sizeof(pattern) - 1] = '\0';
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_false(fits(pattern, name));
    name[sizeof(name) - 2] = 'b';
    assert_true(fits(pattern, name));
}

static void
what_can_not_be_exact_has_a_fault_that_tells_the_right_form(void **state)
{
    static const struct {
        const char *pattern;
        const char *says; /* NULL: it is fine */
    } cases[] = {
        {"/home/u/.ssh",       NULL                          },
        {"/home/u/*/.env",     NULL                          },
        {"/home/u/**/.env",    NULL                          },
        {"/home/u/.ssh/**",    NULL                          },
        {"/etc/k[a-z!-]y",     NULL                          },
        {"/x/[]]",             NULL                          },
        {"",                   "is not absolute"             },
        {"secret",             "is not absolute"             },
        {"~/x",                "is not absolute"             },
        {"/",                  "begin with the name"         },
        {"/**",                "begin with the name"         },
        {"/*/x",               "begin with the name"         },
        {"/home/../etc",       "write the path out"          },
        {"/home/u/..",         "write the path out"          },
        {"/home/u/\\*",        "'[*]' stands for a literal"  },
        {"/home/u/a**",        "stands alone between two '/'"},
        {"/home/u/**b",        "stands alone between two '/'"},
        {"/home/u/[ab",        "write '[[]'"                 },
        {"/home/u/[]",         "write '[[]'"                 },
        {"/home/u/[a/b]",      "write '[[]'"                 },
        {"/home/u/[z-a]",      "ends before it begins"       },
        {"/home/u/[\xc3\xa9]", "beyond ASCII"                },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *fault = path_pattern_fault(cases[i].pattern);

        if ((fault == NULL) != (cases[i].says == NULL) ||
            (fault != NULL && strstr(fault, cases[i].says) == NULL)) {
            fail_msg("'%s' %s", cases[i].pattern, fault != NULL ? fault : "has no fault");
        }
    }
}

static void
the_fixed_part_ends_before_the_first_wildcard(void **state)
{
    (void)state;
    assert_int_equal(path_pattern_fixed_len("/home/u/.ssh"), strlen("/home/u/.ssh"));
    assert_int_equal(path_pattern_fixed_len("/home/u/*.pem"), strlen("/home/u"));
    assert_int_equal(path_pattern_fixed_len("/home/u/a?/b"), strlen("/home/u"));
    assert_int_equal(path_pattern_fixed_len("/*"), 0);
    assert_true(path_pattern_is_deep("/w/**/.env"));
    assert_true(path_pattern_is_deep("/w/**"));
    assert_false(path_pattern_is_deep("/w/a**/x"));
}

static void
where_a_pattern_lies_is_told_by_its_fixed_part(void **state)
{
    (void)state;
    assert_true(path_pattern_is_below("/w/.env", "/w"));
    assert_true(path_pattern_is_below("/w/**/.env", "/w"));
    assert_true(path_pattern_is_below("/w", "/w"));
    assert_true(path_pattern_is_below("/w/x", "/"));
    assert_false(path_pattern_is_below("/ww/.env", "/w"));
    assert_false(path_pattern_is_below("/*/.env", "/w"));
    assert_false(path_pattern_is_below("/w", "/w/x"));
    assert_true(path_pattern_may_be_below("/srv/*/secrets", "/srv/a"));
    assert_true(path_pattern_may_be_below("/srv/*/secrets", "/srv"));
    assert_true(path_pattern_may_be_below("/w/.env", "/w"));
    assert_false(path_pattern_may_be_below("/w/.env", "/w/.env/x"));
    assert_false(path_pattern_may_be_below("/srv/*/secrets", "/srvx/a"));
}

static enum sy_code
quote(void *arg)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 100};
    enum sy_code rc = path_pattern_quote(&b, "/a*b/[c]/d?");

    (void)arg;
    if (rc == SY_E_OK && strcmp(buf_view(&b), "/a[*]b/[[]c]/d[?]") != 0) {
        return SY_E_INTERNAL;
    }
    return rc;
}

static void
a_quoted_path_stands_for_itself(void **state)
{
    (void)state;
    fault_run(quote, NULL);
    assert_true(fits("a[*]b", "a*b"));
    assert_true(fits("[[]c]", "[c]"));
    assert_false(fits("[[]c]", "c"));
    assert_false(fits("d[?]", "dx"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_a_pattern_lies_is_told_by_its_fixed_part),
        cmocka_unit_test(a_component_fits_names_as_in_a_shell),
        cmocka_unit_test(many_stars_take_no_longer_than_a_few),
        cmocka_unit_test(what_can_not_be_exact_has_a_fault_that_tells_the_right_form),
        cmocka_unit_test(the_fixed_part_ends_before_the_first_wildcard),
        cmocka_unit_test(a_quoted_path_stands_for_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
