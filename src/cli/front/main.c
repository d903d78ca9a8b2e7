#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/exec.h"
#include "cli/pass.h"
#include "cli/verbs.h"
#include "transport/local.h"

/*
 * The small program that users call. It does `exec` by itself, as long as that
 * needs nothing heavy, and hands `mcp` and `proto` to a daemon that is up; everything else is the
 * full program's, which gets the same words (docs/adr/0009-a-small-program-in-front.md).
 */

#define FULL "shellyard/shellyard"

/* Where the full program may be, by the directory of this one: in a build
 * directory, and installed. */
static const char places[][sizeof("../libexec/" FULL)] = {"libexec/" FULL, "../libexec/" FULL};

/* Executes it with argv; returns only if it can't be. False: it is not there. */
static bool
try_place(const char *path, void *argv)
{
    (void)execv(path, argv);
    if (errno == ENOENT || errno == ENOTDIR) {
        return false;
    }
    cli_note("can't execute %s: %s", path, sy_errno_text(errno));
    return true;
}

/* What is said when none of the places has it; `dir` are path's first bytes, 0 if unknown. */
static void
tell_missing(const char *path, size_t dir, const char *configured, int failed, bool by_proc)
{
    static const char what[] = "the rest of the program is missing";
    static const char again[] = "install it again, whole";
    int n = (int)dir;

    if (dir == 0) {
        cli_note("%s: it is not %s, and where this program is can't be told without /proc: %s; "
                 "mount /proc, or %s",
                 what, configured, sy_errno_text(failed), again);
    } else {
        cli_note("%s: it is none of %.*s%s, %.*s%s, %s%s; %s", what, n, path, places[0], n, path,
                 places[1], configured,
                 by_proc ? "" : " (looked for beside the name it was called by: no /proc)", again);
    }
}

/*
 * Tries each place of the full program until `try` says true. False: it is in none of them, which
 * is told if `tells`. In one buffer, without printf: servers start this way, and are measured.
 */
static bool
try_places(bool (*try)(const char *path, void *arg), void *arg, bool tells)
{
    static const char configured[] = SY_LIBEXECDIR "/" FULL;
    char path[LIMIT_PATH + sizeof(places[0])];
    bool by_proc = true;
    int failed = cli_executable(path, &by_proc);
    size_t n = failed == 0 ? strlen(path) : 0;

    while (n > 0 && path[n - 1] != '/') {
        n--;
    }
    for (size_t i = 0; n > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
        memcpy(path + n, places[i], sizeof(places[i]));
        if (try(path, arg)) {
            return true;
        }
    }
    if (try(configured, arg)) {
        return true;
    }
    if (tells) {
        tell_missing(path, n, configured, failed, by_proc);
    }
    return false;
}

static int
hand_over(char **argv)
{
    (void)try_places(try_place, argv, true);
    return sy_code_status(SY_E_SYS);
}

/* Back to where it was called, for whoever reads -C again. */
static bool
go_back(int start_fd)
{
    return start_fd < 0 || fchdir(start_fd) == 0;
}

/*
 * False: the full program is to do it, or to say what is wrong. `words` is a
 * copy, in which the parser moves operands about.
 */
static bool
exec_here(int *ret_status, char **words)
{
    SY_AUTO(cli_args_fini) struct cli_args args;
    SY_FD start_fd = -1;
    struct sy_error err = {0};

    if (cli_parse(&args, &verb_exec, verb_exec.name, words, &err) != SY_E_OK || args.wants_help) {
        return false;
    }
    if (config_has_files(environ)) {
        return false; /* we would find out, with a process made ready for nothing */
    }
    if (cli_get(&args, "cwd") != NULL) {
        start_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (start_fd < 0) {
            return false;
        }
    }
    if (exec_run(ret_status, &args, &err)) {
        return true;
    }
    if (!go_back(start_fd)) {
        *ret_status = exec_fail(&args, &err);
        return true;
    }
    return false;
}

static bool
is_there(const char *path, void *ret)
{
    return stat(path, ret) == 0;
}

/* The verb with --no-daemon: the daemon has said that it is not for us. */
static bool
add_no_daemon(char **argv, size_t argc)
{
    static char no_daemon[] = "--no-daemon";
    char **more = mem_alloc((argc + 2) * sizeof(more[0]));

    if (more == NULL) {
        return false;
    }
    more[0] = argv[0];
    more[1] = argv[1];
    more[2] = no_daemon;
    memcpy(more + 3, argv + 2, (argc - 1) * sizeof(more[0]));
    (void)hand_over(more);
    mem_free(more);
    return true;
}

/* `mcp` and `proto`: what a daemon that is up does. False as for exec_here. */
static bool
pass_here(int *ret_status, const char *protocol, char **words, char **argv, size_t argc)
{
    const struct cli_verb verb = {.name = protocol, .options = cli_pass_options};
    SY_AUTO(cli_args_fini) struct cli_args args;
    static const int stdio[] = {STDIN_FILENO, STDOUT_FILENO};
    struct stat program;

    if (cli_parse(&args, &verb, protocol, words, NULL) != SY_E_OK || args.wants_help ||
        cli_get(&args, "no-daemon") != NULL || !try_places(is_there, &program, false)) {
        return false;
    }
    switch (cli_pass(ret_status, protocol, argv + 2, &program, stdio)) {
    case PASS_DONE:
        return true;
    case PASS_OWN:
        *ret_status = sy_code_status(SY_E_SYS);
        return add_no_daemon(argv, argc);
    case PASS_ALONE:
        break;
    }
    return false;
}

/* As much as a short command needs; more comes from the heap. */
#define STOCK ((size_t)64 * 1024)

int
main(int argc, char **argv)
{
    bool is_exec = argc >= 2 && str_eq(argv[1], verb_exec.name);

    bool is_server = argc >= 2 && (str_eq(argv[1], "mcp") || str_eq(argv[1], "proto"));

    if (!is_exec && (!is_server || !local_is_there(environ))) {
        return hand_over(argv);
    }

    static _Alignas(max_align_t) char stock[STOCK];

    mem_use_stock(stock, sizeof(stock));
    if (is_exec) {
        cli_touch_memory();
    }

    size_t n = (size_t)argc - 1; /* what follows the verb, and NULL */
    char **words = mem_alloc(n * sizeof(words[0]));
    int status = 0;

    if (words == NULL) {
        return hand_over(argv);
    }
    memcpy(words, argv + 2, n * sizeof(words[0]));
    cli_start();

    bool is_done = is_exec ? exec_here(&status, words)
                           : pass_here(&status, argv[1], words, argv, (size_t)argc);

    mem_free(words);
    return is_done ? status : hand_over(argv);
}
