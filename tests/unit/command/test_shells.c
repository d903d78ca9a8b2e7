/*
 * Random scripts out of what shells stumble over: those that are judged safe are run by real
 * shells, in an empty directory, and must leave nothing there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "command/safe.h"
#include "world.h"

#define SCRIPTS  120000U
#define RUNS_MAX 80U

static const char *const tokens[] = {
    "echo ",       "ls ",         "cat ", "echo",     "ls",    "true",  "touch pwn", "touch pwn",
    "touch pwn\n", " ",           ";",    "&",        "|",     "||",    "&&",        "\n",
    "'",           "\"",          "\\",   "#",        "$",     "$(",    "`",         ")",
    "(",           "{",           "}",    "<<E",      "<<'E'", "\nE\n", "<",         "> pwn",
    ">pwn",        "2>/dev/null", ">&2",  "&>",       "$'",    "\\\n",  "$X",        "${X",
    "${X}",        "=",           "~",    "!",        "[",     "]",     "*",         "$((",
    "))",          "<(",          "\t",   "\r",       "$\"",   "{a,b}", "uniq a ",   "find . ",
    "-delete",     "\\x27",       "\\'",  "''",       "$#",    "${#",   "coproc ",   "time ",
    "function ",   "()",          "in ",  "do",       "done",  "if ",   "then",      "fi",
    "case ",       "esac",        ";;",   "\xc3\xa9", "\x01",  "%",     "^",         "+",
};

#define TOKENS (sizeof(tokens) / sizeof(tokens[0]))

static char dir[64];
static uint64_t seed = 20261128;

static size_t
next(size_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(seed >> 33) % n;
}

static int
make_dir(void **state)
{
    (void)state;
    memcpy(dir, "/tmp/test_shells.XXXXXX", sizeof("/tmp/test_shells.XXXXXX"));
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int
remove_dir(void **state)
{
    (void)state;
    return nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* False when there is no such shell. */
static bool
run(const char *shell, const char *script)
{
    char *argv[] = {mem_unconst(shell), mem_unconst("-c"), mem_unconst(script), NULL};
    char *environment[] = {mem_unconst("PATH=/usr/bin:/bin"), NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int status = 0;

    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addchdir_np(&actions, dir), 0);
    for (int fd = 0; fd <= 2; fd++) {
        assert_int_equal(posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0), 0);
    }

    int rc = posix_spawn(&pid, shell, &actions, NULL, argv, environment);

    (void)posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        return false;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 127 && access(shell, X_OK) != 0);
}

/* Whether nothing is in the directory: removing it tells, and it is made again. */
static bool
is_empty(void)
{
    bool was_empty = rmdir(dir) == 0;

    if (!was_empty) {
        (void)nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
    assert_int_equal(mkdir(dir, 0700), 0);
    return was_empty;
}

static void
write_script(char *ret, size_t size)
{
    size_t count = 2 + next(8);
    size_t n = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t which = i == 0 && next(4) > 0 ? next(6) : next(TOKENS);

        n += (size_t)snprintf(ret + n, size - n, "%s", tokens[which]);
        assert_true(n < size);
    }
}

static void
run_everywhere(const char *script)
{
    static const char *const shells[] = {"/bin/bash", "/bin/dash", "/bin/zsh", "/bin/sh"};

    for (size_t k = 0; k < sizeof(shells) / sizeof(shells[0]); k++) {
        (void)run(shells[k], script);
        if (!is_empty()) {
            fail_msg("%s left something: %s", shells[k], script);
        }
    }
}

static void
real_shells_do_nothing_for_safe_scripts(void **state)
{
    struct script_reader *reader = script_reader_new();
    struct judge_world world = test_world(reader);
    size_t runs = 0;

    (void)state;
    assert_non_null(reader);
    assert_true(run("/bin/sh", "touch pwn"));
    assert_false(is_empty()); /* such a script would be seen */
    for (unsigned i = 0; i < SCRIPTS && runs < RUNS_MAX; i++) {
        char script[256];
        char *argv[] = {mem_unconst("bash"), mem_unconst("-c"), script, NULL};
        struct safe_verdict v;

        write_script(script, sizeof(script));
        assert_int_equal(safe_judge(&v, &world, argv, NULL, NULL, NULL), SY_E_OK);
        if (!v.is_safe || strstr(script, "pwn") == NULL) {
            continue;
        }
        runs++;
        run_everywhere(script);
    }
    assert_true(runs > 50);
    script_reader_free(reader);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_shells_do_nothing_for_safe_scripts),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
