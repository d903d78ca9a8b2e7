#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <regex.h>

#include "base/limits.h"
#include "base/str.h"
#include "seatbelt_world.h"

/* Directories whose names try to end a literal, a list, a comment, a
 * parameter or an expression. */
static const char *const hostile[] = {
    "/W/a\"))(allow default)(allow file-write* (subpath \"/x",
    "/W/a\\\"))(allow default)",
    "/W/a\\",
    "/W/a\\\\\"",
    "/W/(((",
    "/W/)))",
    "/W/;comment",
    "/W/#\"x\"",
    "/W/'quoted",
    "/W/a\n(allow default)\n",
    "/W/a\r\tb",
    "/W/.*",
    "/W/a|b",
    "/W/[a-z]+{2}?^$",
    "/W/(a)(b)\\1",
    "/W/x=y=-D=z",
    "/W/-D",
    "/W/\xff\xfe\x80",
    "/W/\xc3\xa9\xe2\x80\x8b",
    "/W/ leading and trailing ",
    "/W/%s%n",
    "/W/$(param \"CWD\")",
};

#define HOSTILE (sizeof(hostile) / sizeof(hostile[0]))

/* One byte less at the end: another directory, which must not be a root. */
static void
check_hostile(const struct world *w, const char *root)
{
    char below[512];

    (void)snprintf(below, sizeof(below), "%s/f", root);
    world_allows(w, "file-write-create", below);
    (void)snprintf(below, sizeof(below), "%s/.git/hooks/f", root);
    world_denies(w, "file-write-create", below);
    (void)snprintf(below, sizeof(below), "%s/deep/.git/hooks/f", root);
    world_denies(w, "file-write-create", below);
    (void)snprintf(below, sizeof(below), "%s/.git/index", root);
    world_allows(w, "file-write-create", below);
    (void)snprintf(below, sizeof(below), "%.*s/f", (int)strlen(root) - 1, root);
    world_denies(w, "file-write-create", below);
    world_denies(w, "file-write-create", "/W/other");
    world_denies(w, "file-write-create", "/etc/passwd");
    assert_false(world_connects(w, "network-outbound", "example.com:443"));
}

/* Roots are ordered by length, which shows in the text: one alone has no order. */
static struct sandbox_policy
one_root(char *root)
{
    struct sandbox_policy policy = world_policy();

    policy.cwd = root;
    policy.writable_roots.n = 0;
    policy.excludes_tmpdir = true;
    policy.excludes_slash_tmp = true;
    return policy;
}

static void
no_path_gets_into_the_text_of_the_profile(void **state)
{
    char plain_root[] = "/W/plain";
    struct world plain = {.policy = one_root(plain_root)};

    (void)state;
    plain.request.deny_read = world_secrets;
    world_make(&plain);
    for (size_t i = 0; i < HOSTILE; i++) {
        char root[256];
        struct world w = {.policy = one_root(root), .request = {.deny_read = world_secrets}};

        (void)snprintf(root, sizeof(root), "%s", hostile[i]);
        world_make(&w);
        /* The strongest that can be said: byte for byte the same text. */
        assert_string_equal(buf_view(&w.plan.profile), buf_view(&plain.plan.profile));
        check_hostile(&w, root);
        world_fini(&w);
    }
    for (const char *c = buf_view(&plain.plan.profile); *c != '\0'; c++) {
        assert_true(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
    }
    world_fini(&plain);
}

static void
hostile_secrets_and_names_stay_data_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOSTILE; i++) {
        char secret[256];
        char name[256];
        char path[512];
        char *one_secret[] = {secret, NULL};
        char *one_name[] = {name, NULL};
        struct world w = {
            .policy = world_policy(),
            .request = {.deny_read = one_secret, .protected_names = one_name}
        };

        (void)snprintf(secret, sizeof(secret), "%s", hostile[i]);
        (void)snprintf(name, sizeof(name), "%s", hostile[i] + strlen("/W/"));
        if (strstr(name, "//") != NULL || str_ends(name, "/")) {
            one_name[0] = NULL;
        }
        world_make(&w);
        world_denies(&w, "file-read-data", secret);
        world_allows(&w, "file-read-data", "/W/other");
        world_allows(&w, "file-write-create", "/Users/u/work/other");
        if (one_name[0] != NULL) {
            (void)snprintf(path, sizeof(path), "/Users/u/work/d/%s", name);
            world_denies(&w, "file-write-create", path);
        }
        world_fini(&w);
    }
}

static void
a_quoted_path_matches_itself_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOSTILE; i++) {
        SY_AUTO(buf_fini) struct buf pattern = {.max = 4096};
        regex_t re;

        assert_int_equal(buf_add_char(&pattern, '^'), SY_E_OK);
        assert_int_equal(seatbelt_regex_quote(&pattern, hostile[i]), SY_E_OK);
        assert_int_equal(buf_add_char(&pattern, '$'), SY_E_OK);
        assert_int_equal(regcomp(&re, buf_view(&pattern), REG_EXTENDED | REG_NOSUB), 0);
        for (size_t k = 0; k < HOSTILE; k++) {
            assert_int_equal(regexec(&re, hostile[k], 0, NULL, 0) == 0, i == k);
        }
        regfree(&re);
    }
}

/* /Users/u/work is a link to /Volumes/D/work here. */
static enum sy_code
resolve_links(struct buf *ret, const char *path, void *arg)
{
    const char *from = arg;

    buf_reset(ret);
    return str_starts(path, from) ? buf_addf(ret, "/Volumes/D/work%s", path + strlen(from))
                                  : buf_add_str(ret, path);
}

static enum sy_code
resolve_fails(struct buf *ret, const char *path, void *arg)
{
    (void)ret;
    (void)path;
    (void)arg;
    return SY_E_SYS;
}

static enum sy_code
resolve_to_nothing(struct buf *ret, const char *path, void *arg)
{
    (void)path;
    (void)arg;
    buf_reset(ret);
    return SY_E_OK;
}

static void
rules_name_what_links_lead_to(void **state)
{
    struct world w = {
        .policy = world_policy(), .request = {.resolve = resolve_links, .resolve_arg = world_cwd}
    };
    struct sy_error err = {0};

    (void)state;
    world_make(&w);
    assert_string_equal(w.plan.params.v[0], "CWD=/Volumes/D/work");
    world_allows(&w, "file-write-data", "/Volumes/D/work/a");
    world_denies(&w, "file-write-data", "/Users/u/work/a");
    world_denies(&w, "file-write-data", "/Volumes/D/work/.git/hooks/a");
    world_allows(&w, "file-write-data", "/private/tmp/a");
    world_fini(&w);

    w.request.resolve = resolve_fails;
    assert_int_equal(seatbelt_plan_init(&w.plan, &w.request, &err), SY_E_SYS);
    assert_string_equal(err.msg, "resolving policy cwd '/Users/u/work'");
    w.request.resolve = resolve_to_nothing;
    assert_int_equal(seatbelt_plan_init(&w.plan, &w.request, &err), SY_E_CONFIG);
}

static void
a_root_of_everything_still_protects(void **state)
{
    struct world w = {.policy = world_policy()};
    char slash[] = "/";

    (void)state;
    w.policy.cwd = slash;
    world_make(&w);
    world_allows(&w, "file-write-data", "/a");
    world_denies(&w, "file-write-data", "/.git/hooks/a");
    world_denies(&w, "file-write-data", "/a/.git/hooks/a");
    world_fini(&w);
}

static enum sy_code
try_plan(struct sandbox_policy *policy, struct elsewhere_request *request, struct sy_error *err)
{
    struct seatbelt_plan plan;
    enum sy_code rc = SY_E_OK;

    request->policy = policy;
    rc = seatbelt_plan_init(&plan, request, err);
    if (rc == SY_E_OK) {
        seatbelt_plan_fini(&plan);
    }
    return rc;
}

static void
what_can_not_be_planned_is_named(void **state)
{
    static const char *const bad_names[] = {"", "/a", "a/", "a//b", ".", "a/..", "a/**"};
    struct sandbox_policy policy = world_policy();
    struct elsewhere_request request = {0};
    struct sy_error err = {0};
    char relative[] = "some/where";
    char *list[] = {relative, NULL};

    (void)state;
    policy.writable_roots.v = list;
    assert_int_equal(try_plan(&policy, &request, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "writable_roots 'some/where' is not absolute"));

    policy = world_policy();
    request.deny_read = list;
    assert_int_equal(try_plan(&policy, &request, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "deny_read 'some/where'"));

    request.deny_read = NULL;
    for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
        char name[16];
        char *names[] = {name, NULL};

        (void)snprintf(name, sizeof(name), "%s", bad_names[i]);
        request.protected_names = names;
        assert_int_equal(try_plan(&policy, &request, &err), SY_E_CONFIG);
        assert_non_null(strstr(err.msg, "protected name"));
    }
    request.protected_names = NULL;
    policy.writable_roots.n = LIMIT_ROOTS + 1;
    assert_int_equal(try_plan(&policy, &request, &err), SY_E_CONFIG);
    policy = world_policy();
    policy.cwd = relative;
    assert_int_equal(try_plan(&policy, &request, &err), SY_E_ARG);
    policy.cwd = NULL;
    assert_int_equal(try_plan(&policy, &request, &err), SY_E_ARG);
}

static void
more_than_an_exec_takes_is_refused(void **state)
{
    struct sandbox_policy policy = world_policy();
    struct elsewhere_request request = {0};
    struct sy_error err = {0};
    struct strv many = {.max = LIMIT_ROOTS};

    (void)state;
    for (unsigned i = 0; i < LIMIT_ROOTS; i++) {
        char path[3000];

        memset(path, 'x', sizeof(path));
        path[0] = '/';
        (void)snprintf(path + 2900, sizeof(path) - 2900, "%u", i);
        assert_int_equal(strv_add(&many, path), SY_E_OK);
    }
    policy.writable_roots = many;
    assert_int_equal(try_plan(&policy, &request, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "fewer writable roots"));
    strv_fini(&many);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_path_gets_into_the_text_of_the_profile),
        cmocka_unit_test(hostile_secrets_and_names_stay_data_too),
        cmocka_unit_test(a_quoted_path_matches_itself_and_nothing_else),
        cmocka_unit_test(rules_name_what_links_lead_to),
        cmocka_unit_test(a_root_of_everything_still_protects),
        cmocka_unit_test(what_can_not_be_planned_is_named),
        cmocka_unit_test(more_than_an_exec_takes_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
