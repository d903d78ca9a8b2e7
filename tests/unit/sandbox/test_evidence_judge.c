/*
 * What is made of a failed command's complaints: what of it is ours, under which policy.
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fault.h"
#include "fixture.h"
#include "sandbox/evidence.h"

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

/* Everything whose path ends so is protected. */
static bool
envrc_is_held(void *arg, struct sandbox_explanation *ret, enum sandbox_operation op,
              const char *path)
{
    const char *end = strstr(path, ".envrc");

    (void)arg;
    (void)op;
    if (end == NULL || strcmp(end, ".envrc") != 0) {
        return false;
    }
    (void)snprintf(ret->rule, sizeof(ret->rule), "held");
    (void)snprintf(ret->fix, sizeof(ret->fix), "lift it");
    return true;
}

/* Of the next cases; NULL: none. */
static char **dirs;

static char *const *
tell_dirs(void *arg)
{
    (void)arg;
    return dirs;
}

static enum sy_code
infer(const struct place *p, struct denial_list *list, char *note, evidence_access_fn *access,
      const char *text)
{
    const struct evidence_case c = {
        .plan = p->plan,
        .cwd = p->policy.cwd,
        .dirs = tell_dirs,
        .exit_code = 1,
        .access = access,
        .held = envrc_is_held,
        .uid = geteuid(),
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
where_directories_have_to_be_made_the_first_is_refused(void **state)
{
    static const char *const lines[] = {
        "fatal: could not create leading directories of '%s/new/.git': Permission denied",
        "fatal: could not create leading directories of '%s/new/deep/er': Permission denied",
        "tool: cannot create directory '%s/new/deep': Permission denied",
        "tool: cannot create directory '%s/new': Permission denied",
    };
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];
    char fix[400];

    place_ready(p);
    (void)snprintf(fix, sizeof(fix), "sandbox.writable_roots: [\"%s\"]", place_path(p, "O"));
    for (size_t i = 0; i < 2 * sizeof(lines) / sizeof(lines[0]); i++) {
        SY_AUTO(denial_list_fini) struct denial_list list = {0};

        SY_AUTO(buf_fini) struct buf line = {.max = sizeof(text)};
        const char *format = lines[i / 2];
        const char *place = strstr(format, "%s");

        assert_int_equal(buf_addf(&line, "%.*s%s%s", (int)(place - format), format,
                                  i % 2 == 0 ? place_path(p, "O") : "../O", place + 2),
                         SY_E_OK);
        assert_int_equal(infer(p, &list, note, plain_permissions, buf_view(&line)), SY_E_OK);
        assert_int_equal(list.n, 1);
        assert_string_equal(list.v[0].object, place_path(p, "O/new"));
        assert_string_equal(list.v[0].operation, "write");
        assert_string_equal(list.v[0].fix, fix);
    }
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

/* The text with both paths put in gives these denials, or none and a note that has the word. */
static void
expect_denials(struct place *p, const char *text, const char *denials, const char *note_word)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    SY_AUTO(buf_fini) struct buf told = {.max = 1 << 16};
    SY_AUTO(buf_fini) struct buf filled = {.max = 1 << 16};
    char note[SY_ERR_MSG_MAX];
    size_t skip = strlen(place_path(p, ""));

    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '@') { /* the place */
            assert_int_equal(buf_add_str(&filled, place_path(p, "")), SY_E_OK);
        } else {
            assert_int_equal(buf_add_char(&filled, *at), SY_E_OK);
        }
    }
    assert_int_equal(infer(p, &list, note, plain_permissions, buf_view(&filled)), SY_E_OK);
    for (size_t i = 0; i < list.n; i++) {
        const char *object = list.v[i].object;

        if (strlen(object) > skip && strncmp(object, place_path(p, ""), skip) == 0) {
            object += skip;
        }
        assert_int_equal(buf_addf(&told, "%s%s %s %s", i > 0 ? "|" : "", list.v[i].operation,
                                  object, denial_layer_name(list.v[i].layer)),
                         SY_E_OK);
    }
    if (strcmp(buf_view(&told), denials) != 0) {
        fail_msg("'%s' gives '%s' instead of '%s'", buf_view(&filled), buf_view(&told), denials);
    }
    if (note_word == NULL ? note[0] != '\0' : strstr(note, note_word) == NULL) {
        fail_msg("'%s' gives the note '%s'", buf_view(&filled), note);
    }
}

static void
of_the_paths_of_a_line_the_one_that_is_refused_is_told(void **state)
{
    static const struct {
        const char *text;
        const char *denials;
    } rows[] = {
        {"fatal: cannot copy '@O/old' to '@W/new': Read-only file system",           ""                      },
        {"fatal: cannot copy '@W/old' to '@O/new': Read-only file system",           "write O/new landlock"  },
        {"cp: cannot create regular file '@O/new': Permission denied",               "write O/new landlock"  },
        {"mv: cannot move '@O/old' to '@W/new': Permission denied",                  "delete O/old landlock" },
        {"mv: cannot move '@O/old' to '@O/new': Permission denied",
         "write O/new landlock|delete O/old landlock"                                                        },
        {"rename @W/a @O/new: permission denied",                                    "write O/new landlock"  },
        {"ln: failed to create symbolic link '@W/l' -> '@O/old': Permission denied", ""                      },
        {"@O/tool: line 3: @W/x: Permission denied",                                 ""                      },
        {"OSError: [Errno 13] Permission denied: '@O/new' -> '@W/x'",                "write O/new landlock"  },
        {"@O/ld: cannot open output file @O/a.out: Permission denied",               "write O/a.out landlock"},
    };
    struct place *p = *state;

    place_file(p, "O/old", "1");
    place_file(p, "O/tool", "1");
    place_ready(p);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_denials(p, rows[i].text, rows[i].denials, NULL);
    }
}

static void
a_protected_name_is_told_as_the_guards(void **state)
{
    struct place *p = *state;

    place_file(p, "W/.envrc", "1");
    place_ready(p);
    expect_denials(p, "bash: line 1: .envrc: Read-only file system", "write W/.envrc guard", NULL);
    expect_denials(p, "mv: cannot move '.envrc' to 'x': Device or resource busy",
                   "delete W/.envrc guard", NULL);
    expect_denials(p, "mkdir: cannot create directory '.envrc': File exists",
                   "create W/.envrc guard", NULL);
    expect_denials(p, "ln: failed to create hard link 'c' => '.envrc': Invalid cross-device link",
                   "write W/.envrc guard", NULL);
    /* Nobody holds these, and the same words about what the policy refuses are no refusal. */
    expect_denials(p, "mv: cannot move 'd' to 'x': Device or resource busy", "", NULL);
    expect_denials(p, "mkdir: cannot create directory '/usr': File exists", "", NULL);
    expect_denials(p, "cat: .envrc: Permission denied", "write W/.envrc guard", NULL);
}

/* The likeliest first; one where it would not be refused is not it. */
static void
a_name_without_a_directory_is_looked_for_where_the_command_was(void **state)
{
    struct place *p = *state;
    char outside[300];
    char inside[300];
    char *where[] = {outside, inside, NULL};

    place_file(p, "O/f", "1");
    place_mkdir(p, "W/in");
    place_file(p, "W/in/.envrc", "1");
    place_ready(p);
    (void)snprintf(outside, sizeof(outside), "%s", place_path(p, "O"));
    (void)snprintf(inside, sizeof(inside), "%s", place_path(p, "W/in"));
    expect_denials(p, "tee: f: Permission denied", "", NULL);
    dirs = where;
    expect_denials(p, "tee: f: Permission denied", "write O/f landlock", NULL);
    expect_denials(p, "rm: cannot remove '.envrc': Device or resource busy",
                   "delete W/in/.envrc guard", NULL);
    expect_denials(p, "tee: @W/f: Permission denied", "", NULL);
    where[0] = inside;
    where[1] = NULL;
    expect_denials(p, "tee: f: Permission denied", "", NULL);
    dirs = NULL;
}

static void
modes_and_owners_are_told_as_not_ours(void **state)
{
    struct place *p = *state;
    char file[300];

    place_file(p, "W/sealed", "1");
    place_ready(p);
    (void)snprintf(file, sizeof(file), "%s", place_path(p, "W/sealed"));
    assert_int_equal(chmod(file, 0), 0);
    if (geteuid() != 0) { /* root may, and then the words are about nothing */
        expect_denials(p, "bash: line 1: sealed: Permission denied", "", "not the sandbox: ");
        expect_denials(p, "chmod: changing permissions of '/usr': Operation not permitted", "",
                       "not the sandbox: /usr ");
    }
    expect_denials(p, "bash: line 1: other: Permission denied", "", NULL);
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
        cmocka_unit_test_setup_teardown(a_path_that_only_the_policy_refuses_is_a_denial,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_anyway_is_told_as_not_ours, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_is_no_denial, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(where_directories_have_to_be_made_the_first_is_refused,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_removal_is_judged_by_the_directory, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_host_is_refused_while_the_network_is_off_and_only_then,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(of_the_paths_of_a_line_the_one_that_is_refused_is_told,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_protected_name_is_told_as_the_guards, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(
            a_name_without_a_directory_is_looked_for_where_the_command_was, place_setup,
            place_teardown),
        cmocka_unit_test_setup_teardown(modes_and_owners_are_told_as_not_ours, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(what_was_seen_is_not_inferred_again, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(each_failing_allocation_is_told_or_finds_less, place_setup,
                                        place_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
