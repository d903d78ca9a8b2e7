/* Which programs are shells, and whether one may take what is typed for commands. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "terminal/state_internal.h"

/* The name that the process has. */
static bool
read_name(char *ret, size_t size, pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    if (!state_read_file(ret, size, path)) {
        return false;
    }
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

static bool
is_in(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(name, names[i])) {
            return true;
        }
    }
    return false;
}

static bool
is_shell_name(const char *name)
{
    static const char *const names[] = {
        "bash", "sh",      "dash",  "zsh",    "ksh",  "mksh",  "fish", "rbash", "pwsh",
        "ash",  "busybox", "yash",  "lksh",   "tcsh", "csh",   "nu",   "osh",   "rc",
        "es",   "posh",    "ksh93", "elvish", "oksh", "loksh", "rzsh", "rksh",  "xonsh"};

    return is_in(names, sizeof(names) / sizeof(names[0]), name);
}

bool
state_is_shell(pid_t pid)
{
    char text[32];

    /* A busybox may be any program: there the name tells. */
    return (read_name(text, sizeof(text), pid) && is_shell_name(text)) ||
           (state_read_program(text, sizeof(text), pid) && is_shell_name(text) &&
            !str_eq(text, "busybox"));
}

void
state_shell_name(char *ret, size_t size, pid_t pid)
{
    if (!read_name(ret, size, pid) || !is_shell_name(ret)) {
        ret[0] = '\0';
    }
}

bool
state_names_shell(const char *text, size_t n)
{
    static const char *const ways[] = {"su",     "sudo",    "doas",   "ssh",        "docker",
                                       "podman", "lxc",     "chroot", "machinectl", "tmux",
                                       "screen", "runuser", "env",    "nsenter",    "kubectl"};
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    char word[16];
    size_t len = 0;

    for (size_t i = 0; i <= n; i++) {
        if (i < n && text[i] != '\0' && strchr(set, text[i]) != NULL) {
            if (len < sizeof(word) - 1) {
                word[len] = text[i];
            }
            len++;
            continue;
        }
        if (len > 0 && len < sizeof(word)) {
            word[len] = '\0';
            if ((is_shell_name(word) && !str_eq(word, "bash")) ||
                is_in(ways, sizeof(ways) / sizeof(ways[0]), word)) {
                return true;
            }
        }
        len = 0;
    }
    return false;
}

/* Does an option of a shell have its operand in the next word? */
static bool
takes_word(const char *option)
{
    static const char *const names[] = {"--rcfile", "--init-file",    "-o", "+o", "-O", "+O",
                                        "-C",       "--init-command", "-d", "-D"};

    return is_in(names, sizeof(names) / sizeof(names[0]), option);
}

/* Does a shell with these words, each with a NUL, run a script that they hold or name? */
static bool
runs_script(const char *words, size_t n)
{
    bool is_operand = false;

    for (size_t at = strlen(words) + 1; at < n; at += strlen(words + at) + 1) {
        const char *word = words + at;
        const bool is_long = word[0] == '-' && word[1] == '-';

        if (is_operand) {
            is_operand = false;
        } else if (word[0] != '-' && word[0] != '+') {
            return strncmp(word, "/dev/", 5) != 0 && strncmp(word, "/proc/", 6) != 0;
        } else if (word[0] == '-' && !is_long && strchr(word, 's') != NULL) {
            return false;
        } else if (str_eq(word, "--command") || (!is_long && strchr(word, 'c') != NULL)) {
            return word[0] == '-';
        } else {
            is_operand = takes_word(word);
        }
    }
    return false;
}

bool
state_runs_script(pid_t pid)
{
    static const char *const others[] = {"pwsh", "busybox"}; /* with words of their own */
    char path[64];
    char text[4096];
    char name[32];
    SY_FD fd = -1;
    ssize_t n = 0;

    if (!read_name(name, sizeof(name), pid) || !state_is_shell(pid) ||
        is_in(others, sizeof(others) / sizeof(others[0]), name)) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (n <= 0) {
        return false;
    }
    text[n] = '\0';
    return runs_script(text, (size_t)n);
}

/* What the process has as its input, as a name for state_reads_terminal. */
static bool
read_input(char *ret, size_t size, pid_t pid)
{
    char path[64];
    ssize_t n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)pid);
    n = readlink(path, ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Is that a pipe or the like, or (`or_device`) a terminal, and no file that stays as it is? */
static bool
is_stream(const char *path, bool or_device)
{
    struct statx st;

    /* Who serves the file may never answer. In doubt it is. */
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) != 0) {
        return true;
    }
    return !S_ISREG(st.stx_mode) && !S_ISDIR(st.stx_mode) && (or_device || !S_ISCHR(st.stx_mode));
}

/*
 * May the script that a shell runs be what is typed? It can have any name (a link to /dev/tty), but
 * the shell holds it open, behind the three descriptors that all have. One that waits for the other
 * end of a named pipe, or was just started, has yet to hold it (state_is_opening).
 */
static bool
reads_stream(pid_t pid, bool or_device)
{
    char path[64];
    char fd_path[sizeof(path) + 32];
    DIR *fds = NULL;
    bool ret = false;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    fds = opendir(path);
    if (fds == NULL) {
        return true;
    }
    for (const struct dirent *e = readdir(fds); e != NULL && !ret; e = readdir(fds)) {
        uint64_t number = 0;

        if (str_to_u64(&number, e->d_name, 3, INT32_MAX)) {
            (void)snprintf(fd_path, sizeof(fd_path), "%s/%u", path, (unsigned)number);
            ret = is_stream(fd_path, or_device);
        }
    }
    (void)closedir(fds);
    return ret;
}

/* Is what is typed to it read by shells elsewhere, or handed to some that it starts? */
static bool
is_relay(const char *name)
{
    static const char *const names[] = {
        "tmux: client", "screen",   "ssh",     "mosh-client", "docker", "podman", "su",
        "sudo",         "doas",     "runuser", "pkexec",      "script", "expect", "xargs",
        "parallel",     "at",       "batch",   "kubectl",     "lxc",    "telnet", "nsenter",
        "socat",        "nc",       "ncat",    "zellij",      "dtach",  "abduco", "machinectl",
        "unshare",      "unbuffer", "rlwrap"};

    return is_in(names, sizeof(names) / sizeof(names[0]), name);
}

/* Is it kept from the terminal, as a job in the background is, and given nothing else? */
static bool
is_kept_away(pid_t pid, pid_t foreground, const char *name)
{
    char text[128];
    char input[64];
    const char *state = state_read_stat(text, sizeof(text), pid);
    const char *group = state != NULL && state[0] != '\0' ? strchr(state + 2, ' ') : NULL;
    char wanted[16];

    (void)snprintf(wanted, sizeof(wanted), " %d ", (int)foreground);
    return foreground > 0 && group != NULL && strncmp(group, wanted, strlen(wanted)) != 0 &&
           (state_is_terminal(pid, 0, name) == STATE_YES ||
            (read_input(input, sizeof(input), pid) && str_eq(input, "/dev/null")));
}

bool
state_may_read_commands(pid_t root, pid_t foreground, const char *name)
{
    struct state_looks todo = {.pids = {root}, .n = 1};
    bool has_script = false;
    bool has_reader = false;
    char input[64] = "";

    for (size_t i = 0; i < todo.n; i++) {
        const pid_t pid = todo.pids[i];
        char called[32];
        bool is_shell = state_is_shell(pid);

        state_add_children(&todo, pid, 1);
        if (is_kept_away(pid, foreground, name)) {
            if (is_shell && (reads_stream(pid, false) || state_is_opening(pid))) {
                return true;
            }
            continue;
        }
        if (!read_name(called, sizeof(called), pid) || is_relay(called) ||
            (is_shell &&
             (!state_runs_script(pid) || reads_stream(pid, true) || state_is_opening(pid)))) {
            return true;
        }
        if (is_shell && !has_script) {
            has_script = read_input(input, sizeof(input), pid);
        }
        has_reader =
            has_reader || (has_script && state_reads_terminal(pid, input, NULL, NULL) == STATE_YES);
    }
    return todo.is_cut || todo.n == LIMIT_STATE_PROCESSES || (has_script && !has_reader);
}

bool
state_copies_to_file(pid_t root)
{
    struct state_looks todo = {.pids = {root}, .n = 1};

    for (size_t i = 0; i < todo.n; i++) {
        char path[64];
        struct statx st;

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/1", (int)todo.pids[i]);
        if (state_is_program(todo.pids[i], "cat") &&
            statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0) {
            return S_ISREG(st.stx_mode);
        }
        state_add_children(&todo, todo.pids[i], 1);
    }
    return false;
}
