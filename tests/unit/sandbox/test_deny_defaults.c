/*
 * What can't be read by default, where variables move it, and how names are
 * compared with patterns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "fault.h"
#include "sandbox/deny.h"
#include "sandbox/deny_match.h"

static void
check_default(const struct deny_default *d, const struct deny_default *before)
{
    char whole[200];

    (void)snprintf(whole, sizeof(whole), "/home/%s", d->below);
    assert_null(path_pattern_fault(whole));
    assert_true(d->reason[0] != '\0');
    if (before != NULL && deny_order(before->below, d->below) >= 0) {
        fail_msg("'%s' stands at the wrong place", d->below);
    }
}

static void
the_defaults_are_sorted_and_sound(void **state)
{
    (void)state;
    for (size_t i = 0; deny_home_default(i) != NULL; i++) {
        check_default(deny_home_default(i), i > 0 ? deny_home_default(i - 1) : NULL);
    }
    for (size_t i = 0; deny_system_default(i) != NULL; i++) {
        check_default(deny_system_default(i), i > 0 ? deny_system_default(i - 1) : NULL);
    }
}

static const char *docs;

static void
check_documented(const struct buf *text, const char *slash, const struct deny_default *d)
{
    char quoted[200];

    (void)snprintf(quoted, sizeof(quoted), "`%s%s`", slash, d->below);
    if (strstr(buf_view(text), quoted) == NULL) {
        fail_msg("%s does not name %s", docs, quoted);
    }
}

static void
the_documentation_names_each_default(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1U << 20};

    (void)state;
    assert_int_equal(fd_read_file(docs, &text, NULL), SY_E_OK);
    for (size_t i = 0; deny_home_default(i) != NULL; i++) {
        check_documented(&text, "", deny_home_default(i));
    }
    for (size_t i = 0; deny_system_default(i) != NULL; i++) {
        check_documented(&text, "/", deny_system_default(i));
    }
}

static void
nothing_that_tools_need_is_among_the_defaults(void **state)
{
    static const char *const needed[] = {".gitconfig", ".config/git/config", ".profile", ".bashrc",
                                         ".cargo/bin", ".config/git",        ".npm",     ".docker"};
    const struct deny_default *d = NULL;

    (void)state;
    for (size_t i = 0; (d = deny_home_default(i)) != NULL; i++) {
        for (size_t k = 0; k < sizeof(needed) / sizeof(needed[0]); k++) {
            assert_string_not_equal(d->below, needed[k]);
        }
    }
}

static bool
has(const struct strv *list, const char *text)
{
    for (size_t i = 0; i < list->n; i++) {
        if (str_eq(list->v[i], text)) {
            return true;
        }
    }
    return false;
}

static void
variables_name_further_places(void **state)
{
    static char home[] = "/home/u";
    static char *homes[] = {home, NULL};
    static char v1[] = "KUBECONFIG=/a/one:/b/two";
    static char v2[] = "XDG_CONFIG_HOME=/elsewhere/conf";
    static char v3[] = "NPM_CONFIG_USERCONFIG=/dev/null";
    static char v4[] = "CARGO_HOME=/c[x]";
    static char v5[] = "XDG_STATE_HOME=/home/u/.local/state";
    static char v6[] = "GNUPGHOME=relative";
    static char v7[] = "AZURE_CONFIG_DIR=/";
    static char *environ_list[] = {v1, v2, v3, v4, v5, v6, v7, NULL};
    const struct deny_sources from = {.homes = homes, .environ_list = environ_list};
    struct strv got = {.max = 500};

    (void)state;
    assert_int_equal(deny_add_named(&got, &from, NULL), SY_E_OK);
    assert_true(has(&got, "/a/one"));
    assert_true(has(&got, "/b/two"));
    assert_true(has(&got, "/elsewhere/conf/gh"));
    assert_true(has(&got, "/c[[]x]/credentials.toml"));
    for (size_t i = 0; i < got.n; i++) {
        assert_false(str_starts(got.v[i], "/dev"));
        assert_false(str_starts(got.v[i], "/home/u/.local/state"));
        assert_null(path_pattern_fault(got.v[i]));
    }
    strv_fini(&got);
}

static void
a_part_of_a_default_can_not_be_left_out(void **state)
{
    static char home[] = "/home/u";
    static char *homes[] = {home, NULL};
    static char part[] = "/home/u/.ssh/known_hosts";
    static char whole[] = "/home/u/.ssh";
    static char above[] = "/home/u/.config";
    static char *parts[] = {part, NULL};
    static char *wholes[] = {whole, part, above, NULL};
    struct deny_sources from = {.homes = homes, .allow_read = parts};
    struct strv got = {.max = 500};
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(deny_add_named(&got, &from, &err), SY_E_CONFIG);
    assert_string_equal(err.msg, "sandbox.allow_read: '/home/u/.ssh/known_hosts' is a part of "
                                 "'/home/u/.ssh', which is hidden as a whole: name that");
    from.allow_read = wholes;
    assert_int_equal(deny_add_named(&got, &from, &err), SY_E_OK);
    assert_true(deny_is_left_out(wholes, "/home/u", ".ssh"));
    assert_true(deny_is_left_out(wholes, "/home/u", ".config/gh"));
    assert_false(deny_is_left_out(wholes, "/home/u", ".gnupg"));
    assert_false(deny_is_left_out(wholes, "/home/other", ".ssh"));
    strv_fini(&got);
}

/* No key opens these: who names one is told so, what holds them may be named. */
static void
what_is_our_own_can_not_be_left_out(void **state)
{
    static char own[] = "/home/u/.local/state/shellyard";
    static char file[] = "/home/u/.local/state/shellyard/daemon.sock";
    static char beside[] = "/home/u/.local/state/shellyard2";
    static char above[] = "/home/u";
    static char *owns[] = {own, NULL};
    static char *good[] = {above, beside, NULL};
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(deny_check_own(NULL, owns, &err), SY_E_OK);
    assert_int_equal(deny_check_own(good, owns, &err), SY_E_OK);
    for (int i = 0; i < 2; i++) {
        char *bad[] = {above, i == 0 ? own : file, NULL};

        assert_int_equal(deny_check_own(bad, owns, &err), SY_E_CONFIG);
        assert_non_null(strstr(err.msg, "which no sandbox shows"));
    }
}

static enum sy_code
match_names(void *arg)
{
    struct deny_wants wants = {0};
    struct deny_names names = {0};
    struct deny_hit hit = {0};
    enum sy_code rc = deny_wants_add(&wants, "b/x", 1);

    (void)arg;
    if (rc == SY_E_OK) {
        rc = deny_wants_add(&wants, "a", 2);
    }
    if (rc == SY_E_OK) {
        rc = deny_wants_add(&wants, "**/deep", 3);
    }
    if (rc == SY_E_OK) {
        rc = deny_wants_add(&wants, "b*/y", 4);
    }
    if (rc == SY_E_OK) {
        rc = deny_names_init(&names, &wants);
    }
    if (rc == SY_E_OK) {
        rc = deny_names_match(&names, "a", &hit);
    }
    bool is_right = rc == SY_E_OK && hit.is_wanted && hit.rule == 2;

    if (rc == SY_E_OK) {
        rc = deny_names_match(&names, "b", &hit);
        is_right = is_right && !hit.is_wanted && hit.below.n == 3; /* x, y, and **\/deep */
    }
    if (rc == SY_E_OK) {
        rc = deny_names_match(&names, "deep", &hit);
        is_right = is_right && hit.is_wanted && hit.rule == 3;
    }
    deny_wants_fini(&wants);
    deny_wants_fini(&hit.below);
    deny_names_fini(&names);
    return rc == SY_E_OK && !is_right ? SY_E_INTERNAL : rc;
}

static void
names_are_compared_with_all_patterns_at_once(void **state)
{
    (void)state;
    fault_run(match_names, NULL);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_sorted_and_sound),
        cmocka_unit_test(the_documentation_names_each_default),
        cmocka_unit_test(nothing_that_tools_need_is_among_the_defaults),
        cmocka_unit_test(variables_name_further_places),
        cmocka_unit_test(a_part_of_a_default_can_not_be_left_out),
        cmocka_unit_test(what_is_our_own_can_not_be_left_out),
        cmocka_unit_test(names_are_compared_with_all_patterns_at_once),
    };

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s docs/sandbox.md\n", argv[0]);
        return 2;
    }
    docs = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
