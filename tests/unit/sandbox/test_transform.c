#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"
#include "fault.h"
#include "golden_text.h"
#include "sandbox/document.h"
#include "sandbox/transform.h"

static const char *golden_dir;

static char zsh[] = "/bin/zsh";
static char flag[] = "-lc";
static char script[] = "grep -r 'TODO' src/";
static char *grep[] = {zsh, flag, script, NULL};

static char work[] = "/home/user/project";
static char windows_work[] = "C:\\Users\\user\\project";
static char *const no_names[] = {NULL};

/* The specification's example: nothing but the workspace. */
static struct sandbox_policy
example(enum sandbox_mode mode)
{
    return (struct sandbox_policy){
        .mode = mode,
        .cwd = work,
        .excludes_slash_tmp = true,
    };
}

struct wrapped {
    struct sandbox_policy policy;
    struct elsewhere_request request;
    struct sandbox_transform transform;
    struct sandbox_exec_env env;
};

static void
wrapped_init(struct wrapped *w, enum sandbox_platform platform, enum sandbox_mode mode)
{
    *w = (struct wrapped){.policy = example(mode)};
    w->request.policy = &w->policy;
    w->transform = (struct sandbox_transform){
        .platform = platform,
        .request = &w->request,
        .argv = grep,
        .cwd = work,
        .wrapper = "/usr/libexec/shellyard/shellyard-launch",
        .policy_fd = 3,
        .profile_path = "/tmp/codex-sandbox-profile.sb",
        .has_network_filter = true,
    };
    if (platform == PLATFORM_WINDOWS) {
        w->policy.cwd = windows_work;
        w->transform.cwd = windows_work;
    }
}

static void
wrap(struct wrapped *w)
{
    struct sy_error err = {0};

    if (sandbox_transform(&w->env, &w->transform, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
}

static enum sy_code
refused(struct wrapped *w, struct sy_error *err)
{
    enum sy_code rc = sandbox_transform(&w->env, &w->transform, err);

    if (rc == SY_E_OK) {
        sandbox_exec_env_fini(&w->env);
    }
    return rc;
}

static void
is_command(const struct wrapped *w, const char *const *words)
{
    char *const *command = strv_view(&w->env.command);
    size_t n = 0;

    for (; words[n] != NULL; n++) {
        assert_true(n < w->env.command.n);
        assert_string_equal(command[n], words[n]);
    }
    assert_int_equal(w->env.command.n, n);
}

static void
macos_gives_the_vector_of_the_specification(void **state)
{
    struct wrapped w;

    (void)state;
    /* A read-only policy has the parameter CWD and no other. */
    wrapped_init(&w, PLATFORM_MACOS, SANDBOX_READ_ONLY);
    wrap(&w);
    is_command(&w, (const char *const[]){
                       "/usr/bin/sandbox-exec", "-f", "/tmp/codex-sandbox-profile.sb", "-D",
                       "CWD=/home/user/project", "/bin/zsh", "-lc", "grep -r 'TODO' src/", NULL});
    assert_int_equal(w.env.sandbox, SANDBOX_MACOS_SEATBELT);
    assert_string_equal(w.env.cwd, work);
    assert_string_equal(strv_env_get(&w.env.env, "CODEX_SANDBOX"), "seatbelt");
    assert_string_equal(strv_env_get(&w.env.env, "CODEX_SANDBOX_NETWORK_DISABLED"), "1");
    assert_int_equal(w.env.env.n, 2);
    assert_true(str_starts(buf_view(&w.env.document), "(version 1)\n(deny default)\n"));
    sandbox_exec_env_fini(&w.env);

    /* Roots are further parameters. */
    wrapped_init(&w, PLATFORM_MACOS, SANDBOX_WORKSPACE_WRITE);
    w.request.protected_names = no_names;
    wrap(&w);
    is_command(&w, (const char *const[]){
                       "/usr/bin/sandbox-exec", "-f", "/tmp/codex-sandbox-profile.sb", "-D",
                       "CWD=/home/user/project", "-D", "WRITABLE_ROOT_0=/home/user/project",
                       "/bin/zsh", "-lc", "grep -r 'TODO' src/", NULL});
    sandbox_exec_env_fini(&w.env);
}

static void
macos_without_a_file_has_the_profile_in_the_vector(void **state)
{
    static char dash[] = "-f";
    char *dashed[] = {dash, NULL};
    struct wrapped w;
    struct sy_error err = {0};

    (void)state;
    wrapped_init(&w, PLATFORM_MACOS, SANDBOX_READ_ONLY);
    w.transform.profile_path = NULL;
    /* A command that looks like an option of sandbox-exec stays a command. */
    w.transform.argv = dashed;
    wrap(&w);
    is_command(&w, (const char *const[]){"/usr/bin/sandbox-exec", "-p", buf_view(&w.env.document),
                                         "-D", "CWD=/home/user/project", "--", "-f", NULL});
    sandbox_exec_env_fini(&w.env);

    w.transform.profile_path = "profile.sb";
    assert_int_equal(refused(&w, &err), SY_E_ARG);
    assert_non_null(strstr(err.msg, "'profile.sb' is not absolute"));
}

static void
linux_hands_the_policy_over_a_descriptor(void **state)
{
    static char root[] = "/data";
    static char *roots[] = {root, NULL};
    struct wrapped w;
    struct json_doc doc;

    (void)state;
    wrapped_init(&w, PLATFORM_LINUX, SANDBOX_WORKSPACE_WRITE);
    w.policy.writable_roots = (struct strv){.v = roots, .n = 1, .cap = 2, .max = 1};
    wrap(&w);
    is_command(&w, (const char *const[]){"/usr/libexec/shellyard/shellyard-launch", "--policy", "3",
                                         "--", "/bin/zsh", "-lc", "grep -r 'TODO' src/", NULL});
    assert_int_equal(w.env.sandbox, SANDBOX_LINUX_SECCOMP);
    assert_string_equal(strv_env_get(&w.env.env, "CODEX_SANDBOX_NETWORK_DISABLED"), "1");
    assert_null(strv_env_get(&w.env.env, "CODEX_SANDBOX"));

    assert_int_equal(json_parse(&doc, buf_view(&w.env.document), w.env.document.len, NULL),
                     SY_E_OK);
    assert_string_equal(js_str(js_get(doc.root, "mode")), "workspace-write");
    assert_string_equal(js_str(js_get(doc.root, "cwd")), work);
    assert_string_equal(js_str(js_at(js_get(doc.root, "writable_roots"), 0)), "/data");
    json_doc_fini(&doc);

    /* The wrapper understands every member. */
    struct sandbox_policy read = {0};
    struct sy_error err = {0};

    assert_int_equal(
        sandbox_policy_read(&read, buf_view(&w.env.document), w.env.document.len, &err), SY_E_OK);
    assert_true(read.protects);
    assert_string_equal(read.protected_names.v[0], ".git/hooks");
    sandbox_policy_fini(&read);
    sandbox_exec_env_fini(&w.env);
}

static void
the_wrapper_is_told_where_no_link_may_lead(void **state)
{
    static char root[] = "/data";
    static char repository[] = "/main/.git";
    char *roots[] = {root, repository, work, NULL};
    struct wrapped w;
    struct sandbox_policy read = {0};
    struct sy_error err = {0};

    (void)state;
    wrapped_init(&w, PLATFORM_LINUX, SANDBOX_WORKSPACE_WRITE);
    w.policy.writable_roots = (struct strv){.v = roots, .n = 3, .cap = 4, .max = 3};
    w.policy.n_granted_roots = 1;
    w.policy.n_linked_roots = 1;
    w.policy.cwd_has_no_links = true;
    wrap(&w);
    assert_int_equal(
        sandbox_policy_read(&read, buf_view(&w.env.document), w.env.document.len, &err), SY_E_OK);
    assert_true(strv_eq(&read.writable_roots, &w.policy.writable_roots));
    assert_int_equal(read.n_granted_roots, 1);
    assert_int_equal(read.n_linked_roots, 1);
    assert_true(read.cwd_has_no_links);
    sandbox_policy_fini(&read);
    sandbox_exec_env_fini(&w.env);
}

/* With U+FFFD in their place a sibling of that name would be the one that is writable. */
static void
the_wrapper_is_told_of_paths_that_are_no_utf8(void **state)
{
    static char cwd[] = "/w/lat\xe9";
    static char root[] = "/w/lat\xef\xbf\xbd";
    static char tmpdir[] = "/t\xff";
    static char name[] = ".g\xfft";
    char *roots[] = {root, cwd, NULL};
    char *names[] = {name, NULL};
    struct wrapped w;
    struct sandbox_policy read = {0};
    struct sy_error err = {0};

    (void)state;
    wrapped_init(&w, PLATFORM_LINUX, SANDBOX_WORKSPACE_WRITE);
    w.policy.cwd = cwd;
    w.policy.tmpdir = tmpdir;
    w.policy.writable_roots = (struct strv){.v = roots, .n = 2, .cap = 3, .max = 2};
    w.request.deny_read = roots;
    w.request.protected_names = names;
    wrap(&w);
    assert_int_equal(
        sandbox_policy_read(&read, buf_view(&w.env.document), w.env.document.len, &err), SY_E_OK);
    assert_string_equal(read.cwd, cwd);
    assert_string_equal(read.tmpdir, tmpdir);
    assert_true(strv_eq(&read.writable_roots, &w.policy.writable_roots));
    assert_true(strv_eq(&read.deny_read, &w.policy.writable_roots));
    assert_string_equal(read.protected_names.v[0], name);
    sandbox_policy_fini(&read);
    sandbox_exec_env_fini(&w.env);
}

static void
windows_starts_the_command_itself_with_a_token(void **state)
{
    struct wrapped w;
    struct json_doc doc;
    struct sy_error err = {0};

    (void)state;
    wrapped_init(&w, PLATFORM_WINDOWS, SANDBOX_WORKSPACE_WRITE);
    wrap(&w);
    is_command(&w, (const char *const[]){"/bin/zsh", "-lc", "grep -r 'TODO' src/", NULL});
    assert_int_equal(w.env.sandbox, SANDBOX_WINDOWS_RESTRICTED_TOKEN);
    assert_string_equal(strv_env_get(&w.env.env, "CODEX_SANDBOX_NETWORK_DISABLED"), "1");
    assert_string_equal(strv_env_get(&w.env.env, "HTTP_PROXY"), "http://127.0.0.1:9");
    assert_int_equal(json_parse(&doc, buf_view(&w.env.document), w.env.document.len, NULL),
                     SY_E_OK);
    assert_string_equal(js_str(js_get(doc.root, "tier")), "restricted-token");
    assert_non_null(js_get(doc.root, "token"));
    json_doc_fini(&doc);
    sandbox_exec_env_fini(&w.env);

    /* What can't be held is no command at all. */
    w.transform.has_network_filter = false;
    assert_int_equal(refused(&w, &err), SY_E_SANDBOX);
    w.transform.has_network_filter = true;
    w.transform.cwd = "project";
    assert_int_equal(refused(&w, &err), SY_E_CONFIG);
}

static void
modes_that_are_not_ours_leave_the_command_as_it_is(void **state)
{
    (void)state;
    for (int mode = SANDBOX_DANGER_FULL_ACCESS; mode <= SANDBOX_EXTERNAL; mode++) {
        for (int platform = 0; platform < PLATFORM_COUNT; platform++) {
            struct wrapped w;

            wrapped_init(&w, (enum sandbox_platform)platform, (enum sandbox_mode)mode);
            wrap(&w);
            is_command(&w, (const char *const[]){"/bin/zsh", "-lc", "grep -r 'TODO' src/", NULL});
            assert_int_equal(w.env.sandbox, SANDBOX_NONE);
            assert_int_equal(w.env.env.n, 0);
            assert_int_equal(w.env.document.len, 0);
            sandbox_exec_env_fini(&w.env);
        }
    }
}

static void
the_network_is_told_to_the_command(void **state)
{
    (void)state;
    for (int platform = 0; platform < PLATFORM_COUNT; platform++) {
        struct wrapped w;

        wrapped_init(&w, (enum sandbox_platform)platform, SANDBOX_WORKSPACE_WRITE);
        w.policy.has_network = true;
        w.request.proxy_port = 3128;
        wrap(&w);
        assert_null(strv_env_get(&w.env.env, "CODEX_SANDBOX_NETWORK_DISABLED"));
        assert_null(strv_env_get(&w.env.env, "HTTPS_PROXY"));
        sandbox_exec_env_fini(&w.env);

        w.policy.has_network = false;
        wrap(&w);
        assert_string_equal(strv_env_get(&w.env.env, "CODEX_SANDBOX_NETWORK_DISABLED"), "1");
        assert_true(str_ends(strv_env_get(&w.env.env, "HTTPS_PROXY"), ":3128"));
        sandbox_exec_env_fini(&w.env);
    }
}

static void
what_can_not_be_wrapped_is_refused(void **state)
{
    static char *const nothing[] = {NULL};
    static char empty[] = "";
    static char *const empty_word[] = {empty, NULL};
    struct sy_error err = {0};
    struct wrapped w;

    (void)state;
    wrapped_init(&w, PLATFORM_LINUX, SANDBOX_WORKSPACE_WRITE);
    w.transform.argv = nothing;
    assert_int_equal(refused(&w, &err), SY_E_ARG);
    w.transform.argv = empty_word;
    assert_int_equal(refused(&w, &err), SY_E_ARG);
    w.transform.argv = grep;
    w.transform.cwd = "here";
    assert_int_equal(refused(&w, &err), SY_E_ARG);
    w.transform.cwd = work;
    w.transform.policy_fd = 2;
    assert_int_equal(refused(&w, &err), SY_E_ARG);
    w.transform.policy_fd = 3;
    w.transform.wrapper = "shellyard-launch";
    assert_int_equal(refused(&w, &err), SY_E_ARG);
    w.transform.wrapper = "/l";
    w.policy.cwd = NULL;
    assert_int_equal(refused(&w, &err), SY_E_ARG);
    w.policy.cwd = work;
    assert_int_equal(refused(&w, &err), SY_E_OK);
}

static void
write_vector(struct buf *out, const struct wrapped *w)
{
    struct jw j = {.out = out};

    jw_object(&j);
    jw_key_str(&j, "platform", sandbox_platform_name(w->transform.platform));
    jw_key_str(&j, "mode", sandbox_mode_name(w->policy.mode));
    jw_key_bool(&j, "network", sandbox_policy_has_network(&w->policy));
    jw_key_str(&j, "sandbox", sandbox_type_name(w->env.sandbox));
    jw_key(&j, "command");
    jw_array(&j);
    for (size_t i = 0; i < w->env.command.n; i++) {
        jw_str(&j, w->env.command.v[i]);
    }
    jw_end_array(&j);
    jw_key(&j, "env");
    jw_array(&j);
    for (size_t i = 0; i < w->env.env.n; i++) {
        jw_str(&j, w->env.env.v[i]);
    }
    jw_end_array(&j);
    jw_end_object(&j);
    assert_int_equal(jw_done(&j), SY_E_OK);
}

static void
vectors_are_those_of_the_golden_file(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1U << 20};

    (void)state;
    for (int platform = 0; platform < PLATFORM_COUNT; platform++) {
        for (int mode = SANDBOX_READ_ONLY; mode <= SANDBOX_EXTERNAL; mode++) {
            for (int network = 0; network < 2; network++) {
                SY_AUTO(buf_fini) struct buf json = {.max = 1U << 20};
                struct wrapped w;

                wrapped_init(&w, (enum sandbox_platform)platform, (enum sandbox_mode)mode);
                w.policy.has_network = network == 1;
                wrap(&w);
                write_vector(&json, &w);
                golden_lay_out(&text, buf_view(&json), json.len);
                sandbox_exec_env_fini(&w.env);
            }
        }
    }
    golden_check(golden_dir, "transform.txt", &text);
}

static enum sy_code
wrap_for(void *arg)
{
    struct wrapped w;

    wrapped_init(&w, *(const enum sandbox_platform *)arg, SANDBOX_WORKSPACE_WRITE);
    w.request.proxy_port = 3128;
    return refused(&w, NULL);
}

static void
wrapping_survives_each_failed_allocation(void **state)
{
    (void)state;
    for (int i = 0; i < PLATFORM_COUNT; i++) {
        enum sandbox_platform platform = (enum sandbox_platform)i;

        fault_run(wrap_for, &platform);
    }
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(macos_gives_the_vector_of_the_specification),
        cmocka_unit_test(macos_without_a_file_has_the_profile_in_the_vector),
        cmocka_unit_test(linux_hands_the_policy_over_a_descriptor),
        cmocka_unit_test(the_wrapper_is_told_where_no_link_may_lead),
        cmocka_unit_test(the_wrapper_is_told_of_paths_that_are_no_utf8),
        cmocka_unit_test(windows_starts_the_command_itself_with_a_token),
        cmocka_unit_test(modes_that_are_not_ours_leave_the_command_as_it_is),
        cmocka_unit_test(the_network_is_told_to_the_command),
        cmocka_unit_test(what_can_not_be_wrapped_is_refused),
        cmocka_unit_test(vectors_are_those_of_the_golden_file),
        cmocka_unit_test(wrapping_survives_each_failed_allocation),
    };

    assert_int_equal(argc, 2);
    golden_dir = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
