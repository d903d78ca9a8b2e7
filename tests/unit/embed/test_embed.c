#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The public header alone: what an embedding program sees. */
#include "shellyard/shellyard.h"

static const char *launcher;

struct fixture {
    struct sy_engine *engine;
    char work[32];
};

static int
make(void **state)
{
    static struct fixture f;
    static const char *const environ_list[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent",
                                               "LANG=C.UTF-8", NULL};
    struct sy_engine_options options = {.size = sizeof(options), .environ_list = environ_list};

    snprintf(f.work, sizeof(f.work), "/var/tmp/sy-embed-XXXXXX");
    options.workspace = mkdtemp(f.work);
    *state = &f;
    return options.workspace != NULL && sy_engine_new(&f.engine, &options, NULL, 0) == SY_OK ? 0
                                                                                             : -1;
}

static int
unmake(void **state)
{
    struct fixture *f = *state;

    sy_engine_free(f->engine);
    return rmdir(f->work);
}

static struct sy_result *
run(struct fixture *f, struct sy_command *command)
{
    struct sy_result *result = NULL;
    char why[SY_WHY_MAX] = "";

    command->size = sizeof(*command);
    if (sy_run(f->engine, command, &result, why, sizeof(why)) != SY_OK) {
        fail_msg("%s", why);
    }
    return result;
}

static void
a_command_gives_its_output_and_code(void **state)
{
    const char *argv[] = {"sh", "-c", "echo out; echo err >&2; exit 4", NULL};
    struct sy_command command = {.argv = argv, .timeout_ms = 5000};
    struct sy_result *r = run(*state, &command);
    size_t size = 0;

    assert_int_equal(sy_result_outcome(r), SY_EXITED);
    assert_int_equal(sy_result_exit_code(r), 4);
    assert_string_equal(sy_result_text(r, SY_STDOUT, &size), "out\n");
    assert_int_equal(size, 4);
    assert_string_equal(sy_result_text(r, SY_STDERR, NULL), "err\n");
    assert_int_equal(sy_result_total_bytes(r, SY_BOTH), 8);
    assert_string_equal(sy_result_tier(r), "no-namespace");
    assert_null(sy_result_text(r, (enum sy_stream)7, &size));
    assert_int_equal(size, 0);
    assert_int_equal(sy_result_total_bytes(r, (enum sy_stream)7), 0);
    sy_result_free(r);
}

static void
a_write_outside_the_workspace_fails(void **state)
{
    struct fixture *f = *state;
    const char *inside[] = {"sh", "-c", "echo x > f && rm f", NULL};
    const char *outside[] = {"sh", "-c", "echo x > /var/tmp/sy-embed-outside", NULL};
    struct sy_command allowed = {.argv = inside, .timeout_ms = 5000};
    struct sy_command denied = {.argv = outside, .timeout_ms = 5000};
    struct sy_result *r = run(f, &allowed);

    assert_int_equal(sy_result_exit_code(r), 0);
    sy_result_free(r);
    r = run(f, &denied);
    assert_int_not_equal(sy_result_exit_code(r), 0);
    sy_result_free(r);
    assert_int_not_equal(access("/var/tmp/sy-embed-outside", F_OK), 0);
}

static void
a_timeout_keeps_what_was_written(void **state)
{
    const char *argv[] = {"sh", "-c", "echo early; sleep 30", NULL};
    struct sy_command command = {.argv = argv, .timeout_ms = 300};
    struct sy_result *r = run(*state, &command);

    assert_int_equal(sy_result_outcome(r), SY_TIMED_OUT);
    assert_int_equal(sy_result_exit_code(r), 124);
    assert_string_equal(sy_result_text(r, SY_BOTH, NULL), "early\n");
    sy_result_free(r);
}

static void
a_program_that_is_not_there_is_named(void **state)
{
    const char *argv[] = {"no-such-program", NULL};
    struct sy_command command = {.argv = argv};
    struct sy_result *r = run(*state, &command);

    assert_int_equal(sy_result_outcome(r), SY_FAILED);
    assert_int_equal(sy_result_exit_code(r), 127);
    assert_non_null(strstr(sy_result_error(r), "no-such-program"));
    sy_result_free(r);
}

static void
wrong_options_are_refused_with_a_sentence(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"true", NULL};
    const char *overrides[] = {"sandbox.mod=read-only", NULL};
    struct sy_command both = {.size = sizeof(both), .argv = argv, .script = "true"};
    struct sy_command late = {.size = sizeof(late), .argv = argv, .timeout_ms = -1};
    struct sy_command sizeless = {.argv = argv};
    struct sy_engine_options options = {.size = sizeof(options), .overrides = overrides};
    struct sy_engine *engine = NULL;
    struct sy_result *r = NULL;
    char why[SY_WHY_MAX];

    assert_int_equal(sy_run(f->engine, &both, &r, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_non_null(strstr(why, "exactly one"));
    assert_int_equal(sy_run(f->engine, &late, &r, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_int_equal(sy_run(f->engine, &sizeless, &r, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_int_equal(sy_engine_new(&engine, &options, why, sizeof(why)), SY_ERR_CONFIG);
    assert_non_null(strstr(why, "mode"));
    assert_null(r);
    assert_null(engine);
}

static void
null_is_refused_and_a_result_that_is_not_there_is_no_success(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"true", NULL};
    struct sy_engine_options options = {.size = sizeof(options)};
    struct sy_command command = {.size = sizeof(command), .argv = argv};
    struct sy_denial denial = {.size = sizeof(denial)};
    struct sy_feature feature = {.size = sizeof(feature)};
    struct sy_result *result = NULL;
    size_t size = 1;
    char why[SY_WHY_MAX] = "";

    assert_int_equal(sy_engine_new(NULL, &options, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_non_null(strstr(why, "ret must not be NULL"));
    assert_int_equal(sy_run(NULL, &command, &result, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_non_null(strstr(why, "engine must not be NULL"));
    assert_int_equal(sy_run(f->engine, &command, NULL, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_non_null(strstr(why, "ret must not be NULL"));
    assert_int_equal(sy_run(f->engine, &command, NULL, NULL, 0), SY_ERR_ARGUMENT);

    assert_int_equal(sy_result_outcome(NULL), SY_FAILED);
    assert_int_equal(sy_result_exit_code(NULL), 125);
    assert_int_equal(sy_result_signal(NULL), 0);
    assert_int_equal(sy_result_duration_ms(NULL), 0);
    assert_int_equal(sy_result_total_bytes(NULL, SY_BOTH), 0);
    assert_null(sy_result_text(NULL, SY_BOTH, &size));
    assert_int_equal(size, 0);
    assert_null(sy_result_text(NULL, SY_STDOUT, NULL));
    assert_string_equal(sy_result_error(NULL), "there is no result");
    assert_string_equal(sy_result_note(NULL), "");
    assert_int_equal(sy_result_denials(NULL), 0);
    assert_int_equal(sy_result_denial(NULL, 0, &denial), 0);
    assert_string_equal(sy_result_tier(NULL), "none");
    assert_string_equal(sy_result_tier_reason(NULL), "");
    assert_int_equal(sy_result_features(NULL), 0);
    assert_int_equal(sy_result_feature(NULL, 0, &feature), 0);
    sy_result_free(NULL);
    sy_engine_free(NULL);
    sy_cancel_fire(NULL);
    sy_cancel_free(NULL);

    assert_int_equal(sy_run(f->engine, &command, &result, why, sizeof(why)), SY_OK);
    assert_int_equal(sy_result_feature(result, 0, NULL), 0);
    assert_int_equal(sy_result_denial(result, 0, NULL), 0);
    sy_result_free(result);
}

static void
a_variable_without_a_name_or_value_is_named(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"true", NULL};
    const char *valueless[] = {"GOOD=1", "X", NULL};
    const char *nameless[] = {"=x", NULL};
    const char *unreadable[] = {"A B=secret", NULL};
    struct sy_command command = {.size = sizeof(command), .argv = argv, .env = valueless};
    struct sy_result *r = NULL;
    char why[SY_WHY_MAX];

    assert_int_equal(sy_run(f->engine, &command, &r, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_string_equal(why, "env[1] is 'X': right is \"NAME=value\"");
    command.env = nameless;
    assert_int_equal(sy_run(f->engine, &command, &r, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_string_equal(why, "env[0] is '=...': right is \"NAME=value\"");
    command.env = unreadable;
    assert_int_equal(sy_run(f->engine, &command, &r, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_non_null(strstr(why, "the name of env[0] is 'A B'"));
    assert_null(r);
}

struct seen {
    char text[64];
    size_t len;
    size_t stop_at;
    struct sy_cancel *cancel;
};

static int
take(void *arg, enum sy_stream stream, const char *bytes, size_t n)
{
    struct seen *s = arg;

    assert_int_equal(stream, SY_STDOUT);
    if (n > sizeof(s->text) - 1 - s->len) {
        n = sizeof(s->text) - 1 - s->len;
    }
    memcpy(s->text + s->len, bytes, n);
    s->len += n;
    if (s->cancel != NULL) {
        sy_cancel_fire(s->cancel);
    }
    return s->stop_at != 0 && s->len >= s->stop_at ? 1 : 0;
}

static void
output_streams_and_can_end_the_command(void **state)
{
    const char *argv[] = {"sh", "-c", "echo one; sleep 30", NULL};
    struct seen seen = {.stop_at = 4};
    struct sy_command command = {.argv = argv, .on_output = take, .arg = &seen};
    struct sy_result *r = run(*state, &command);

    assert_string_equal(seen.text, "one\n");
    assert_int_equal(sy_result_outcome(r), SY_CANCELLED);
    sy_result_free(r);
}

static void
a_token_cancels_a_run(void **state)
{
    const char *argv[] = {"sh", "-c", "echo one; sleep 30", NULL};
    struct seen seen = {.cancel = sy_cancel_new()};
    struct sy_command command = {
        .argv = argv, .on_output = take, .arg = &seen, .cancel = seen.cancel};
    struct sy_result *r = run(*state, &command);

    assert_int_equal(sy_result_outcome(r), SY_CANCELLED);
    assert_int_equal(sy_result_exit_code(r), 130);
    sy_result_free(r);
    sy_cancel_free(seen.cancel);
}

static void
a_token_that_was_fired_before_lets_nothing_run(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"touch", "ran", NULL};
    struct sy_cancel *cancel = sy_cancel_new();
    struct sy_command command = {.argv = argv, .cancel = cancel};
    char path[64];

    snprintf(path, sizeof(path), "%s/ran", f->work);
    sy_cancel_fire(cancel);
    for (int i = 0; i < 50; i++) {
        struct sy_result *r = run(f, &command);

        assert_int_equal(sy_result_outcome(r), SY_CANCELLED);
        sy_result_free(r);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    sy_cancel_free(cancel);
    command.cancel = NULL;

    struct sy_result *r = run(f, &command);

    sy_result_free(r);
    assert_int_equal(unlink(path), 0);
}

/* A child that the program has forked has all of its descriptors, for as long as it likes. */
static void
a_fork_of_the_program_keeps_no_engine(const struct fixture *f, const char *with_launcher)
{
    const char *argv[] = {"true", NULL};
    struct sy_engine_options options = {
        .size = sizeof(options), .workspace = f->work, .launcher = with_launcher};
    struct sy_command command = {.size = sizeof(command), .argv = argv, .timeout_ms = 20000};
    struct sy_engine *engine = NULL;
    struct sy_result *r = NULL;
    char byte = 0;
    int until[2];

    assert_int_equal(sy_engine_new(&engine, &options, NULL, 0), SY_OK);
    assert_int_equal(sy_run(engine, &command, &r, NULL, 0), SY_OK);
    sy_result_free(r);
    assert_int_equal(pipe(until), 0);

    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        close(until[1]);
        _exit(read(until[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(until[0]);
    sy_engine_free(engine);

    int status = -1;

    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    close(until[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void
an_engine_ends_though_a_fork_lives(void **state)
{
    a_fork_of_the_program_keeps_no_engine(*state, NULL);
    a_fork_of_the_program_keeps_no_engine(*state, launcher);
}

static void *
run_many(void *arg)
{
    int *good = arg;
    const char *argv[] = {"sh", "-c", "echo x", NULL};
    struct sy_engine_options options = {.size = sizeof(options), .workspace = "/var/tmp"};
    struct sy_engine *engine = NULL;

    if (sy_engine_new(&engine, &options, NULL, 0) != SY_OK) {
        return NULL;
    }
    for (int i = 0; i < 20; i++) {
        struct sy_command command = {.size = sizeof(command), .argv = argv};
        struct sy_result *r = NULL;

        if (sy_run(engine, &command, &r, NULL, 0) == SY_OK && sy_result_exit_code(r) == 0 &&
            strcmp(sy_result_text(r, SY_STDOUT, NULL), "x\n") == 0) {
            (*good)++;
        }
        sy_result_free(r);
    }
    sy_engine_free(engine);
    return NULL;
}

static void
engines_of_several_threads_do_not_meet(void **state)
{
    pthread_t threads[4];
    int good[4] = {0};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &good[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(good[i], 20);
    }
}

static const char *tier_here; /* NULL: whatever this machine gives */

/* The state of a feature of the result. */
static const char *
state_of(const struct sy_result *r, const char *name)
{
    struct sy_feature f = {.size = sizeof(f)};

    for (size_t i = 0; sy_result_feature(r, i, &f) == 1; i++) {
        assert_true(strlen(f.text) > 0);
        if (strcmp(f.name, name) == 0) {
            return f.state;
        }
    }
    return NULL;
}

static void
a_named_launcher_gives_the_full_tier_or_the_answer_says_no(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"sh", "-c", "cat /proc/1/comm", NULL};
    struct sy_command command = {.size = sizeof(command), .argv = argv, .timeout_ms = 20000};
    struct sy_engine_options options = {
        .size = sizeof(options), .workspace = f->work, .launcher = "shellyard-launch"};
    struct sy_engine *engine = NULL;
    struct sy_result *r = NULL;
    char why[SY_WHY_MAX] = "";

    assert_int_equal(sy_engine_new(&engine, &options, why, sizeof(why)), SY_ERR_ARGUMENT);
    assert_non_null(strstr(why, "not an absolute path"));
    options.launcher = launcher;
    assert_int_equal(sy_engine_new(&engine, &options, why, sizeof(why)), SY_OK);
    assert_int_equal(sy_run(engine, &command, &r, why, sizeof(why)), SY_OK);
    if (tier_here != NULL) {
        assert_string_equal(sy_result_tier(r), tier_here);
    }
    if (strcmp(sy_result_tier(r), "full") == 0) {
        assert_string_equal(sy_result_text(r, SY_STDOUT, NULL), "sy-keeper\n");
        assert_string_equal(sy_result_tier_reason(r), "");
        assert_string_equal(state_of(r, "pid_namespace"), "enforced");
    } else {
        /* A machine without namespaces: this runs under adversary/mask too. */
        assert_string_equal(sy_result_tier(r), "no-namespace");
        assert_non_null(strstr(sy_result_tier_reason(r), "namespaces failed: "));
        assert_string_equal(state_of(r, "pid_namespace"), "absent");
    }
    assert_string_equal(state_of(r, "fs_write"), "enforced");
    assert_null(state_of(r, "no such thing"));

    struct sy_feature none = {.size = sizeof(none)};

    assert_int_equal(sy_result_feature(r, sy_result_features(r), &none), 0);
    sy_result_free(r);
    sy_engine_free(engine);
}

#define SECRET "the-secret-bytes"

static void
put(const char *dir, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);

    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(SECRET "\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A home with a key and a token in it. */
static void
fill_home(char home[32])
{
    char path[64];

    snprintf(home, 32, "/var/tmp/sy-home-XXXXXX");
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof(path), "%s/.ssh", home);
    assert_int_equal(mkdir(path, 0700), 0);
    put(home, ".ssh/id");
    put(home, ".netrc");
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* With the state that an engine keeps there. */
static void
remove_home(const char *home)
{
    assert_int_equal(nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static struct sy_engine *
engine_of(const struct fixture *f, const char *home, const char *with, const char *setting)
{
    char variable[64];
    const char *environ_list[] = {"PATH=/usr/bin:/bin", variable, NULL};
    const char *overrides[] = {setting, NULL};
    struct sy_engine_options options = {.size = sizeof(options),
                                        .workspace = f->work,
                                        .environ_list = environ_list,
                                        .overrides = overrides,
                                        .launcher = with};
    struct sy_engine *engine = NULL;
    char why[SY_WHY_MAX] = "";

    snprintf(variable, sizeof(variable), "HOME=%s", home);
    if (sy_engine_new(&engine, &options, why, sizeof(why)) != SY_OK) {
        fail_msg("%s", why);
    }
    return engine;
}

static struct sy_result *
run_script(struct sy_engine *engine, const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct sy_command command = {.size = sizeof(command), .argv = argv, .timeout_ms = 20000};
    struct sy_result *r = NULL;
    char why[SY_WHY_MAX] = "";

    if (sy_run(engine, &command, &r, why, sizeof(why)) != SY_OK) {
        fail_msg("%s", why);
    }
    return r;
}

static bool
shows_secret(struct sy_result *r)
{
    size_t n = 0;
    const char *text = sy_result_text(r, SY_BOTH, &n);

    return memmem(text, n, SECRET, strlen(SECRET)) != NULL; /* tar writes NUL, too */
}

/* The one denial of a read of home/name, with the line that lets `hidden` out. */
static void
assert_refused(const struct sy_result *r, const char *home, const char *name, const char *hidden)
{
    bool is_full = strcmp(sy_result_tier(r), "full") == 0;
    struct sy_denial d = {.size = sizeof(d)};
    char text[128];

    assert_int_equal(sy_result_denials(r), 1);
    assert_int_equal(sy_result_denial(r, 0, &d), 1);
    assert_string_equal(d.operation, "read");
    assert_string_equal(d.layer, is_full ? "mount" : "landlock");
    assert_int_equal(d.is_exact, is_full ? 1 : 0);
    snprintf(text, sizeof(text), "%s/%s", home, name);
    assert_string_equal(d.object, text);
    snprintf(text, sizeof(text), "sandbox.allow_read: [\"%s/%s\"]", home, hidden);
    assert_string_equal(d.fix, text);
    assert_non_null(strstr(d.rule, "a default of sandbox.deny_read"));
}

static void
try_ways(struct sy_engine *engine, struct sy_engine *open)
{
    static const char *const ways[] = {
        "cat ~/.ssh/id",
        "cat /proc/self/root$HOME/.ssh/id",
        "ln -s ~/.ssh/id l; cat l; rm l",
        "cp ~/.netrc c && cat c; rm -f c",
        "ln ~/.netrc h && cat h; rm -f h",
        "tar cf - -C ~ .ssh",
    };

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct sy_result *r = run_script(engine, ways[i]);

        assert_false(shows_secret(r));
        assert_string_equal(state_of(r, "deny_read"), "enforced");
        sy_result_free(r);
        if (strstr(ways[i], "ln ~") == NULL) { /* no hard link leads out of a root anyway */
            r = run_script(open, ways[i]);
            assert_true(shows_secret(r));
            assert_string_equal(state_of(r, "deny_read"), "absent");
            sy_result_free(r);
        }
    }
}

static void
try_secrets(const struct fixture *f, const char *home, const char *with)
{
    struct sy_engine *engine = engine_of(f, home, with, NULL);
    struct sy_engine *open = engine_of(f, home, with, "sandbox.default_deny_read=false");
    struct sy_result *r = NULL;

    try_ways(engine, open);
    r = run_script(engine, "cat ~/.ssh/id; exit 1");
    assert_refused(r, home, ".ssh/id", ".ssh");
    sy_result_free(r);
    r = run_script(engine, "cat ~/.netrc; exit 1");
    assert_refused(r, home, ".netrc", ".netrc");
    sy_result_free(r);
    /* What it hides is told where an open is seen. */
    r = run_script(engine, "cat ~/.ssh/id 2>/dev/null || true");
    assert_int_equal(sy_result_exit_code(r), 0);
    if (strcmp(sy_result_tier(r), "full") == 0) {
        assert_refused(r, home, ".ssh/id", ".ssh");
    }
    sy_result_free(r);
    sy_engine_free(engine);
    sy_engine_free(open);
}

static void
a_secret_is_read_by_no_way_and_its_refusal_is_told(void **state)
{
    const struct fixture *f = *state;
    char home[32];

    fill_home(home);
    try_secrets(f, home, NULL);
    try_secrets(f, home, launcher);
    remove_home(home);
}

int
main(int argc, char **argv)
{
    static char path[PATH_MAX];

    launcher = argc > 1 ? realpath(argv[1], path) : NULL;
    tier_here = argc > 2 ? argv[2] : NULL;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_gives_its_output_and_code),
        cmocka_unit_test(a_write_outside_the_workspace_fails),
        cmocka_unit_test(a_timeout_keeps_what_was_written),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
        cmocka_unit_test(wrong_options_are_refused_with_a_sentence),
        cmocka_unit_test(null_is_refused_and_a_result_that_is_not_there_is_no_success),
        cmocka_unit_test(a_variable_without_a_name_or_value_is_named),
        cmocka_unit_test(output_streams_and_can_end_the_command),
        cmocka_unit_test(a_token_cancels_a_run),
        cmocka_unit_test(a_token_that_was_fired_before_lets_nothing_run),
        cmocka_unit_test(an_engine_ends_though_a_fork_lives),
        cmocka_unit_test(engines_of_several_threads_do_not_meet),
        cmocka_unit_test(a_named_launcher_gives_the_full_tier_or_the_answer_says_no),
        cmocka_unit_test(a_secret_is_read_by_no_way_and_its_refusal_is_told),
    };

    return cmocka_run_group_tests(tests, make, unmake);
}
