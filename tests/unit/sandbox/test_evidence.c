/*
 * What is read from a failed command's output, and what is made of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fault.h"
#include "fixture.h"
#include "sandbox/evidence.h"

static bool
collect(void *arg, const struct named *n)
{
    struct buf *out = arg;

    assert_int_equal(buf_addf(out, "%s%s", out->len > 0 ? "|" : "", n->text), SY_E_OK);
    if (n->port != 0) {
        assert_int_equal(buf_addf(out, " port %u", n->port), SY_E_OK);
    }
    if (n->is_host) {
        assert_int_equal(buf_add_str(out, " (host)"), SY_E_OK);
    }
    if (n->is_removal) {
        assert_int_equal(buf_add_str(out, " (removal)"), SY_E_OK);
    }
    return true;
}

static void
expect_names(const char *text, const char *names)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 1 << 16};

    evidence_scan(text, strlen(text), collect, &out);
    if (strcmp(buf_view(&out), names) != 0) {
        fail_msg("'%s' gives '%s' instead of '%s'", text, buf_view(&out), names);
    }
}

static void
paths_are_found_in_the_complaints_of_common_programs(void **state)
{
    (void)state;
    expect_names("touch: cannot touch '/O/f': Permission denied", "/O/f");
    expect_names("mkdir: cannot create directory \xe2\x80\x98/O/a b\xe2\x80\x99: Read-only file "
                 "system",
                 "/O/a b");
    expect_names("rm: cannot remove '/O/f': Operation not permitted", "/O/f (removal)");
    expect_names("bash: line 1: /O/a b: Permission denied", "/O/a b");
    expect_names("bash: f: Permission denied", "f");
    expect_names("/tmp/x.sh: line 3: /O/f: Permission denied", "/O/f");
    expect_names("sh: 1: cannot create /O/f: Permission denied", "/O/f");
    expect_names("sh: can't create /O/f: Permission denied", "/O/f");
    expect_names("cat: ../O/f: Permission denied", "../O/f");
    expect_names("PermissionError: [Errno 13] Permission denied: '/etc/x'", "/etc/x");
    expect_names("OSError: [Errno 18] Invalid cross-device link: '/a' -> '/b'", "/a|/b");
    expect_names("Error: EACCES: permission denied, open '/etc/q'", "/etc/q");
    expect_names("open /etc/y: permission denied", "/etc/y");
    expect_names("java.io.FileNotFoundException: /etc/x (Permission denied)", "/etc/x");
    expect_names("fatal: Unable to create '/w/.git/index.lock': Read-only file system",
                 "/w/.git/index.lock");
    expect_names("error: could not lock config file /home/u/.gitconfig: Permission denied",
                 "/home/u/.gitconfig");
}

static void
hosts_are_found_in_the_complaints_of_common_programs(void **state)
{
    (void)state;
    expect_names("curl: (6) Could not resolve host: example.com", "example.com (host)");
    expect_names("fatal: unable to access 'https://github.com/a/b/': Could not resolve host: "
                 "github.com",
                 "github.com (host)");
    expect_names("curl: (7) Failed to connect to 127.0.0.1 port 8080 after 0 ms: x",
                 "127.0.0.1 port 8080 (host)");
    expect_names("ssh: Could not resolve hostname git.example.org: Temporary failure in name "
                 "resolution",
                 "git.example.org (host)");
    expect_names("ssh: connect to host git.example.org port 22: Network is unreachable",
                 "git.example.org port 22 (host)");
    expect_names("wget: unable to resolve host address \xe2\x80\x98"
                 "a.b\xe2\x80\x99",
                 "a.b (host)");
    expect_names("Temporary failure resolving 'deb.debian.org'", "deb.debian.org (host)");
    expect_names("Error: getaddrinfo EAI_AGAIN packages.example.org",
                 "packages.example.org (host)");
    expect_names("dial tcp: lookup proxy.golang.org: no such host", "proxy.golang.org (host)");
    expect_names("HTTPSConnectionPool(host='pypi.org', port=443): Max retries",
                 "pypi.org port 443 (host)");
}

/* Words alone say nothing, and neither do names that nothing is said about. */
static void
what_is_no_complaint_about_an_object_gives_no_name(void **state)
{
    (void)state;
    expect_names("permission denied / sandbox / seccomp", "");
    expect_names("Permission denied", "");
    expect_names("./sandbox/p.json\n/etc/hosts\n", "");
    expect_names("ls: cannot access '/nope': No such file or directory", "");
    expect_names("bash: nosuchcmd_x: command not found", "");
    expect_names("/usr/include/x.h:3:1: error: unknown type", "");
    expect_names("  File \"/usr/lib/python3/x.py\", line 3, in f", "");
    expect_names("see https://example.com/: it works", "");
}

static void
the_number_of_names_and_the_length_of_lines_are_bounded(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1 << 20};
    SY_AUTO(buf_fini) struct buf out = {.max = 1 << 20};
    size_t names = 1;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf_addf(&text, "touch: '/O/%d': Permission denied\n", i), SY_E_OK);
    }
    evidence_scan(buf_view(&text), text.len, collect, &out);
    for (size_t i = 0; i < out.len; i++) {
        names += out.data[i] == '|' ? 1 : 0;
    }
    assert_int_equal(names, EVIDENCE_NAMES);

    buf_reset(&text);
    buf_reset(&out);
    assert_int_equal(buf_add_char(&text, '/'), SY_E_OK);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(buf_add_char(&text, 'a'), SY_E_OK);
    }
    assert_int_equal(buf_add_str(&text, ": Permission denied\n"), SY_E_OK);
    evidence_scan(buf_view(&text), text.len, collect, &out);
    assert_string_equal(buf_view(&out), "");
}

/* ---- what is made of it ---- */

static int
plain_permissions(void *arg, const char *path, int how)
{
    (void)arg;
    return faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0 ? 0 : errno;
}

static int
refused_by_mode(void *arg, const char *path, int how)
{
    (void)arg;
    (void)path;
    (void)how;
    return EACCES;
}

static enum sy_code
infer(const struct place *p, struct denial_list *list, char *note, evidence_access_fn *access,
      const char *text)
{
    const struct evidence_case c = {
        .plan = p->plan,
        .cwd = p->policy.cwd,
        .exit_code = 1,
        .access = access,
        .note = note,
    };

    note[0] = '\0';
    return evidence_infer(list, &c, text, strlen(text));
}

static void
a_path_that_only_the_policy_refuses_is_a_denial(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];
    char fix[400];

    place_ready(p);
    (void)snprintf(text, sizeof(text),
                   "touch: cannot touch '%s': Permission denied\n"
                   "touch: cannot touch '%s': Permission denied\n"
                   "touch: cannot touch 'in': Permission denied\n",
                   place_path(p, "O/f"), place_path(p, "W/f"));
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1); /* the workspace is allowed: that was something else */
    assert_string_equal(list.v[0].object, place_path(p, "O/f"));
    assert_string_equal(list.v[0].operation, "write");
    assert_int_equal(list.v[0].confidence, DENIAL_INFERRED);
    assert_int_equal(list.v[0].layer, DENIAL_LANDLOCK);
    (void)snprintf(fix, sizeof(fix), "sandbox.writable_roots: [\"%s\"]", place_path(p, "O"));
    assert_string_equal(list.v[0].fix, fix);
    assert_string_equal(note, "");
}

static void
what_is_refused_anyway_is_told_as_not_ours(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];

    place_ready(p);
    (void)snprintf(text, sizeof(text), "touch: cannot touch '%s': Permission denied\n",
                   place_path(p, "O/f"));
    assert_int_equal(infer(p, &list, note, refused_by_mode, text), SY_E_OK);
    assert_int_equal(list.n, 0);
    assert_non_null(strstr(note, "not the sandbox: "));
    assert_non_null(strstr(note, place_path(p, "O/f")));
    assert_null(strstr(note, "writable_roots"));
}

static void
what_is_missing_is_no_denial(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];

    place_ready(p);
    (void)snprintf(text, sizeof(text), "x: '%s': Permission denied\n",
                   place_path(p, "O/missing/f"));
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 0);
    assert_string_equal(note, "");
}

static void
a_removal_is_judged_by_the_directory(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];
    char fix[400];

    place_file(p, "O/old", "1");
    place_ready(p);
    (void)snprintf(text, sizeof(text), "rm: cannot remove '%s': Permission denied\n",
                   place_path(p, "O/old"));
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].operation, "delete");
    (void)snprintf(fix, sizeof(fix), "sandbox.writable_roots: [\"%s\"]", place_path(p, "O"));
    assert_string_equal(list.v[0].fix, fix);
}

static void
a_host_is_refused_while_the_network_is_off_and_only_then(void **state)
{
    static const char text[] = "curl: (6) Could not resolve host: example.com\n";
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];

    place_ready(p);
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].object, "example.com");
    assert_string_equal(list.v[0].operation, "connect");
    assert_string_equal(list.v[0].fix, "sandbox.network_access: true");
    denial_list_fini(&list);

    p->policy.has_network = true;
    place_ready(p);
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 0);
}

static void
what_was_seen_is_not_inferred_again(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];
    char object[300];

    place_ready(p);
    (void)snprintf(object, sizeof(object), "%s", place_path(p, "O/d"));
    (void)snprintf(text, sizeof(text), "mkdir: cannot create '%s': Permission denied\n", object);

    const struct denial seen = {
        .confidence = DENIAL_EXACT, .operation = "create", .object = object};

    assert_int_equal(denial_add(&list, &seen), SY_E_OK);
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].operation, "create");
}

static enum sy_code
infer_one(void *arg)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    char note[SY_ERR_MSG_MAX];

    return infer(arg, &list, note, plain_permissions,
                 "touch: cannot touch '/usr/x': Permission denied\n");
}

static void
each_failing_allocation_is_told_or_finds_less(void **state)
{
    struct place *p = *state;

    place_ready(p);
    fault_run_lenient(infer_one, p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_found_in_the_complaints_of_common_programs),
        cmocka_unit_test(hosts_are_found_in_the_complaints_of_common_programs),
        cmocka_unit_test(what_is_no_complaint_about_an_object_gives_no_name),
        cmocka_unit_test(the_number_of_names_and_the_length_of_lines_are_bounded),
        cmocka_unit_test_setup_teardown(a_path_that_only_the_policy_refuses_is_a_denial,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_anyway_is_told_as_not_ours, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_is_no_denial, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_removal_is_judged_by_the_directory, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_host_is_refused_while_the_network_is_off_and_only_then,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_was_seen_is_not_inferred_again, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(each_failing_allocation_is_told_or_finds_less, place_setup,
                                        place_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
