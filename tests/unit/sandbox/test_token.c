#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "fault.h"
#include "golden_text.h"
#include "sandbox/windows/token.h"

static const char *golden_dir;

static char cwd[] = "c:/Users/u/work";
static char tmpdir[] = "C:\\Users\\u\\AppData\\Local\\Temp\\";
static char root_a[] = "D:\\data\\.\\cache";
static char secret[] = "C:\\Users\\u\\.ssh";
static char *roots[] = {root_a, NULL};
static char *secrets[] = {secret, NULL};

static const struct token_caps with_filter = {.has_network_filter = true};
static const struct token_caps without_filter = {0};

static struct sandbox_policy
workspace(void)
{
    return (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE,
        .cwd = cwd,
        .writable_roots = {.v = roots, .n = 1, .cap = 2, .max = 1},
        .tmpdir = tmpdir,
    };
}

static void
check_golden(const char *name, const struct elsewhere_request *r, const struct token_caps *caps)
{
    SY_AUTO(buf_fini) struct buf json = {.max = 1U << 20};
    SY_AUTO(buf_fini) struct buf text = {.max = 1U << 20};
    struct jw w = {.out = &json};
    struct token_plan plan;
    struct sy_error err = {0};
    enum sy_code rc = token_plan_init(&plan, r, caps, &err);

    assert_true(rc == SY_E_OK || rc == SY_E_SANDBOX);
    jw_object(&w);
    token_plan_write(&w, &plan);
    jw_end_object(&w);
    assert_int_equal(jw_done(&w), SY_E_OK);
    token_plan_fini(&plan);
    golden_lay_out(&text, buf_view(&json), json.len);
    golden_check(golden_dir, name, &text);
}

static void
plans_are_those_of_the_golden_files(void **state)
{
    static const char *const networks[] = {"off", "on", "proxy"};
    struct sandbox_policy policy = workspace();
    struct elsewhere_request request = {.policy = &policy};

    (void)state;
    for (int mode = SANDBOX_READ_ONLY; mode <= SANDBOX_EXTERNAL; mode++) {
        for (int network = 0; network < 3; network++) {
            char name[96];

            policy.mode = (enum sandbox_mode)mode;
            policy.has_network = network == 1;
            request.proxy_port = network == 2 ? 3128 : 0;
            (void)snprintf(name, sizeof(name), "windows-%s-network-%s.json",
                           sandbox_mode_name(policy.mode), networks[network]);
            check_golden(name, &request, &with_filter);
        }
    }
    policy = workspace();
    request.proxy_port = 0;
    check_golden("windows-refused-network.json", &request, &without_filter);
    request.deny_read = secrets;
    check_golden("windows-refused-deny-read.json", &request, &with_filter);
}

static enum sy_code
plan(struct token_plan *ret, const struct sandbox_policy *policy, const struct token_caps *caps,
     struct sy_error *err)
{
    const struct elsewhere_request request = {.policy = policy};

    return token_plan_init(ret, &request, caps, err);
}

static const struct token_ace *
ace_of(const struct token_plan *p, enum token_ace_kind kind, const char *path)
{
    for (size_t i = 0; i < p->n_aces; i++) {
        if (p->aces[i].kind == kind && strcmp(p->aces[i].path, path) == 0) {
            return &p->aces[i];
        }
    }
    return NULL;
}

/* One that is there. */
static const struct token_ace *
the_ace(const struct token_plan *p, enum token_ace_kind kind, const char *path)
{
    static const struct token_ace none = {0};
    const struct token_ace *ace = ace_of(p, kind, path);

    if (ace == NULL) {
        fail_msg("no entry for %s", path);
    }
    return ace != NULL ? ace : &none;
}

static bool
restricts(const struct token_plan *p, const char *sid)
{
    for (size_t i = 0; i < p->restricting.n; i++) {
        if (strcmp(p->restricting.v[i], sid) == 0) {
            return true;
        }
    }
    return false;
}

static void
each_root_has_a_sid_of_its_own(void **state)
{
    struct sandbox_policy policy = workspace();
    struct token_plan p;

    (void)state;
    assert_int_equal(plan(&p, &policy, &with_filter, NULL), SY_E_OK);

    const struct token_ace *work = the_ace(&p, ACE_ALLOW, "C:\\Users\\u\\work");
    const struct token_ace *cache = the_ace(&p, ACE_ALLOW, "D:\\data\\cache");
    const struct token_ace *temp = the_ace(&p, ACE_ALLOW, "C:\\Users\\u\\AppData\\Local\\Temp");

    assert_string_not_equal(work->sid, cache->sid);
    assert_true(restricts(&p, work->sid) && restricts(&p, cache->sid) && restricts(&p, temp->sid));
    assert_true(work->must_exist && !temp->must_exist);
    /* Who writes as Everyone or as the user would write everywhere. */
    assert_false(restricts(&p, "S-1-1-0"));
    assert_true(restricts(&p, TOKEN_LOGON_SID));
    assert_int_equal(p.flags, TOKEN_DISABLE_MAX_PRIVILEGE | TOKEN_LUA | TOKEN_WRITE_RESTRICTED);
    assert_int_equal(p.integrity, INTEGRITY_MEDIUM);
    token_plan_fini(&p);

    policy.mode = SANDBOX_READ_ONLY;
    assert_int_equal(plan(&p, &policy, &with_filter, NULL), SY_E_OK);
    assert_int_equal(p.n_aces, 0);
    assert_int_equal(p.restricting.n, 2);
    assert_int_equal(p.integrity, INTEGRITY_LOW);
    token_plan_fini(&p);
}

static void
a_sid_is_that_of_the_path_in_any_case(void **state)
{
    SY_AUTO(buf_fini) struct buf a = {.max = 256};
    SY_AUTO(buf_fini) struct buf b = {.max = 256};

    (void)state;
    assert_int_equal(token_root_sid(&a, "C:\\Work"), SY_E_OK);
    assert_int_equal(token_root_sid(&b, "c:\\wORK"), SY_E_OK);
    assert_string_equal(buf_view(&a), buf_view(&b));
    assert_true(str_starts(buf_view(&a), "S-1-5-21-"));
    assert_int_equal(token_root_sid(&b, "C:\\Work2"), SY_E_OK);
    assert_string_not_equal(buf_view(&a), buf_view(&b));
}

static void
protected_names_are_denied_to_the_sid_of_their_root(void **state)
{
    struct sandbox_policy policy = workspace();
    struct token_plan p;

    (void)state;
    assert_int_equal(plan(&p, &policy, &with_filter, NULL), SY_E_OK);

    const struct token_ace *work = the_ace(&p, ACE_ALLOW, "C:\\Users\\u\\work");
    const struct token_ace *hooks = the_ace(&p, ACE_DENY, "C:\\Users\\u\\work\\.git\\hooks");
    const struct token_ace *config = the_ace(&p, ACE_DENY, "C:\\Users\\u\\work\\.git\\config*");

    assert_string_equal(hooks->sid, work->sid);
    assert_false(hooks->is_pattern);
    assert_true(config->is_pattern);
    assert_int_equal(hooks->access, TOKEN_ACE_WRITES);
    /* The root's own grant must not let a child be deleted past its entry. */
    assert_int_equal(work->access & 0x40, 0);
    assert_int_equal(p.features[FEATURE_PROTECTED_NAMES], FEATURE_EMULATED);
    token_plan_fini(&p);
}

static void
a_root_below_another_does_not_undo_its_protection(void **state)
{
    struct sandbox_policy policy = workspace();
    char inner[] = "C:\\USERS\\u\\work\\.git";
    char given_back[] = "C:\\Users\\u\\work\\.claude\\worktrees\\w";
    char *inner_roots[] = {given_back, inner, NULL};
    struct token_plan p;

    (void)state;
    policy.writable_roots.v = inner_roots;
    policy.writable_roots.n = 2;
    assert_int_equal(plan(&p, &policy, &with_filter, NULL), SY_E_OK);
    assert_null(ace_of(&p, ACE_ALLOW, inner));
    assert_non_null(ace_of(&p, ACE_ALLOW, given_back));
    token_plan_fini(&p);
}

static void
what_windows_can_not_hold_is_refused(void **state)
{
    struct sandbox_policy policy = workspace();
    struct elsewhere_request request = {.policy = &policy, .deny_read = secrets};
    struct sy_error err = {0};
    struct token_plan p;

    (void)state;
    assert_int_equal(plan(&p, &policy, &without_filter, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "network off"));
    assert_non_null(strstr(err.msg, "network_access: true"));
    assert_true(p.is_refused && !p.is_enforced);
    assert_string_equal(token_plan_tier(&p), "none");
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        assert_int_equal(p.features[i], FEATURE_ABSENT);
    }
    token_plan_fini(&p);

    assert_int_equal(token_plan_init(&p, &request, &with_filter, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "deny_read"));
    token_plan_fini(&p);

    /* The controls: each wish alone taken out. */
    policy.has_network = true;
    assert_int_equal(plan(&p, &policy, &without_filter, &err), SY_E_OK);
    assert_int_equal(p.network, TOKEN_NETWORK_OPEN);
    assert_int_equal(p.features[FEATURE_NETWORK], FEATURE_ABSENT);
    assert_int_equal(p.environment.n, 0);
    token_plan_fini(&p);
    policy.has_network = false;
    assert_int_equal(plan(&p, &policy, &with_filter, &err), SY_E_OK);
    assert_int_equal(p.features[FEATURE_NETWORK], FEATURE_ENFORCED);
    assert_string_equal(strv_env_get(&p.environment, "HTTPS_PROXY"), "http://127.0.0.1:9");
    token_plan_fini(&p);
}

static void
paths_of_windows_are_read_strictly(void **state)
{
    static const struct {
        const char *text;
        const char *path; /* NULL: refused */
    } cases[] = {
        {"C:\\W",                   "C:\\W"                  },
        {"c:/W//a/./b/",            "C:\\W\\a\\b"            },
        {"C:\\",                    "C:\\"                   },
        {"\\\\server\\share\\a",    "\\\\server\\share\\a"   },
        {"//server/share",          "\\\\server\\share"      },
        {"C:\\W\\it's (a) [b] {c}", "C:\\W\\it's (a) [b] {c}"},
        {"C:\\W\\\xc3\xa9",         "C:\\W\\\xc3\xa9"        },
        {"C:\\W\\a~b",              "C:\\W\\a~b"             },
        {"C:\\W\\console",          "C:\\W\\console"         },
        {"C:",                      NULL                     },
        {"C:W",                     NULL                     },
        {"W",                       NULL                     },
        {"",                        NULL                     },
        {"/home/u",                 NULL                     },
        {"\\W",                     NULL                     },
        {"\\\\server",              NULL                     },
        {"\\\\server\\",            NULL                     },
        {"\\\\.\\C:\\W",            NULL                     },
        {"\\\\?\\C:\\W",            NULL                     },
        {"C:\\W\\..\\X",            NULL                     },
        {"C:\\W\\a:stream",         NULL                     },
        {"C:\\W\\a\"b",             NULL                     },
        {"C:\\W\\a|b",              NULL                     },
        {"C:\\W\\*",                NULL                     },
        {"C:\\W\\a\nb",             NULL                     },
        {"C:\\W\\a.",               NULL                     },
        {"C:\\W\\a ",               NULL                     },
        {"C:\\W\\...",              NULL                     },
        {"C:\\PROGRA~1\\a",         NULL                     },
        {"C:\\W\\nul",              NULL                     },
        {"C:\\W\\COM1.txt",         NULL                     },
        {"C:\\W\\Con .txt",         NULL                     },
        {"C:\\W\\\xff\xfe",         NULL                     },
    };
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    struct sy_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum sy_code rc = token_path(&path, "root", cases[i].text, &err);

        if (rc != (cases[i].path != NULL ? SY_E_OK : SY_E_CONFIG)) {
            fail_msg("'%s': %s", cases[i].text, sy_code_name(rc));
        }
        if (cases[i].path != NULL) {
            assert_string_equal(buf_view(&path), cases[i].path);
        } else {
            assert_true(str_starts(err.msg, "root '"));
        }
    }
}

static enum sy_code
onto_drive(struct buf *ret, const char *path, void *arg)
{
    buf_reset(ret);
    return buf_addf(ret, "%s%s", (const char *)arg, path);
}

static void
roots_are_what_the_system_says_they_are(void **state)
{
    struct sandbox_policy policy = workspace();
    char posix[] = "/w";
    char drive[] = "E:";
    struct elsewhere_request request = {
        .policy = &policy, .resolve = onto_drive, .resolve_arg = drive};
    struct token_plan p;

    (void)state;
    policy.cwd = posix;
    policy.writable_roots.n = 0;
    policy.excludes_tmpdir = true;
    assert_int_equal(token_plan_init(&p, &request, &with_filter, NULL), SY_E_OK);
    assert_non_null(ace_of(&p, ACE_ALLOW, "E:\\w"));
    token_plan_fini(&p);
    policy.cwd = NULL;
    assert_int_equal(token_plan_init(&p, &request, &with_filter, NULL), SY_E_ARG);
    policy.cwd = posix;
    policy.writable_roots.n = LIMIT_ROOTS + 1;
    assert_int_equal(token_plan_init(&p, &request, &with_filter, NULL), SY_E_CONFIG);
    request.resolve = NULL;
    assert_int_equal(token_plan_init(&p, &request, &with_filter, NULL), SY_E_CONFIG);
}

static enum sy_code
plan_and_write(void *arg)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 1U << 20};
    struct sandbox_policy policy = workspace();
    struct elsewhere_request request = {.policy = &policy};
    struct jw w = {.out = &out};
    struct token_plan p;
    enum sy_code rc = token_plan_init(&p, &request, &with_filter, NULL);

    (void)arg;
    if (rc != SY_E_OK) {
        return rc;
    }
    jw_object(&w);
    token_plan_write(&w, &p);
    jw_end_object(&w);
    token_plan_fini(&p);
    return jw_done(&w);
}

static void
planning_survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(plan_and_write, NULL);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_those_of_the_golden_files),
        cmocka_unit_test(each_root_has_a_sid_of_its_own),
        cmocka_unit_test(a_sid_is_that_of_the_path_in_any_case),
        cmocka_unit_test(protected_names_are_denied_to_the_sid_of_their_root),
        cmocka_unit_test(a_root_below_another_does_not_undo_its_protection),
        cmocka_unit_test(what_windows_can_not_hold_is_refused),
        cmocka_unit_test(paths_of_windows_are_read_strictly),
        cmocka_unit_test(roots_are_what_the_system_says_they_are),
        cmocka_unit_test(planning_survives_each_failed_allocation),
    };

    assert_int_equal(argc, 2);
    golden_dir = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
