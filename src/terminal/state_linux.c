#include "terminal/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "terminal/state_internal.h"

/* "0x" and hexadecimal digits, of which the value is no bigger than a descriptor may be. */
static bool
to_number(unsigned *ret, const char *s)
{
    static const char digits[] = "0123456789abcdef";
    unsigned value = 0;

    if (s[0] != '0' || s[1] != 'x') {
        return false;
    }
    for (s += 2; *s != ' ' && *s != '\0'; s++) {
        const char *digit = strchr(digits, *s);

        if (digit == NULL || value > 0xFFFFFFU) {
            return false;
        }
        value = value * 16 + (unsigned)(digit - digits);
    }
    *ret = value;
    return true;
}

enum state_answer
state_is_terminal(pid_t pid, unsigned fd, const char *name)
{
    char path[64];
    char target[64];
    ssize_t n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, fd);
    n = readlink(path, target, sizeof(target) - 1);
    if (n < 0) {
        return STATE_UNKNOWN;
    }
    target[n] = '\0';
    return str_eq(target, name) || str_eq(target, "/dev/tty") ? STATE_YES : STATE_NO;
}

/* "NUMBER 0xARG1 0xARG2 ...", or "running". */
static enum state_answer
by_call(struct state_waiter *waiter, char *text, const char *name, state_peek_fn *peek)
{
    uint64_t number = 0;
    unsigned fd = 0;
    char *end = strchr(text, ' ');

    if (end == NULL) {
        return str_eq(text, "running\n") ? STATE_NO : STATE_UNKNOWN;
    }
    *end = '\0';
    if (!str_to_u64(&number, text, 0, UINT32_MAX)) {
        return STATE_UNKNOWN; /* -1: in no call, but not running either */
    }
    if (state_waits_for_many(number)) {
        return state_waits_for(waiter, number, end + 1, name, peek);
    }
    if (number != SYS_read && number != SYS_readv) {
        return STATE_NO;
    }
    if (!to_number(&fd, end + 1)) {
        return STATE_UNKNOWN;
    }
    waiter->is_alone = true;
    return state_is_terminal(waiter->pid, fd, name);
}

bool
state_read_file(char *ret, size_t size, const char *path)
{
    SY_FD fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : -1;

    if (n <= 0) {
        return false;
    }
    ret[n] = '\0';
    return true;
}

/* The call that a process is in, with its arguments. */
static bool
read_call(char *ret, size_t size, pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
    return state_read_file(ret, size, path);
}

bool
state_is_opening(pid_t pid)
{
    char text[256];
    uint64_t number = 0;

    if (!read_call(text, sizeof(text), pid)) {
        return true;
    }
    text[strcspn(text, " \n")] = '\0';
    if (!str_to_u64(&number, text, 0, UINT32_MAX)) {
        return str_eq(text, "running"); /* -1: in no call, but not running either */
    }
#ifdef SYS_open
    if (number == SYS_open) {
        return true;
    }
#endif
    return number == SYS_openat || number == SYS_openat2;
}

/* The threads of a process, with itself in front; at most `max`, and *ret_is_cut where it has more.
 * What the kernel has below /proc/PID is there for a thread's number too. */
static size_t
list_threads(pid_t *ret, size_t max, pid_t pid, bool *ret_is_cut)
{
    char path[64];
    size_t n = 0;
    DIR *tasks = NULL;

    ret[n++] = pid;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    if (tasks == NULL) {
        return n;
    }
    for (struct dirent *e = readdir(tasks); e != NULL; e = readdir(tasks)) {
        uint64_t thread = 0;

        if (!str_to_u64(&thread, e->d_name, 1, INT32_MAX) || (pid_t)thread == pid) {
            continue;
        }
        if (n == max) {
            *ret_is_cut = true;
            break;
        }
        ret[n++] = (pid_t)thread;
    }
    (void)closedir(tasks);
    return n;
}

static void
tell_alone(bool *ret_alone, bool is_alone)
{
    if (ret_alone != NULL) {
        *ret_alone = is_alone;
    }
}

enum state_answer
state_reads_terminal(pid_t pid, const char *name, state_peek_fn *peek, bool *ret_alone)
{
    pid_t threads[LIMIT_STATE_THREADS];
    char text[256];
    bool is_cut = false;
    enum state_answer ret = STATE_NO;
    size_t n = 0;

    tell_alone(ret_alone, false);
    if (!read_call(text, sizeof(text), pid)) {
        return STATE_UNKNOWN;
    }
    n = list_threads(threads, LIMIT_STATE_THREADS, pid, &is_cut);
    for (size_t i = 0; i < n; i++) {
        struct state_waiter waiter = {.pid = threads[i]};
        /* One that has ended meanwhile reads nothing. */
        enum state_answer one = i == 0 || read_call(text, sizeof(text), threads[i])
                                    ? by_call(&waiter, text, name, peek)
                                    : STATE_NO;

        if (one == STATE_YES) {
            tell_alone(ret_alone, i == 0 && waiter.is_alone);
            return one;
        }
        ret = one == STATE_UNKNOWN ? one : ret;
    }
    return is_cut ? STATE_UNKNOWN : ret;
}

/* How much the call asks for: its third argument. 0: it says nothing of it. */
static unsigned
wanted_bytes(const char *text)
{
    unsigned ret = 0;

    for (unsigned i = 0; i < 3 && text != NULL; i++) {
        text = strchr(text, ' ');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL && to_number(&ret, text) ? ret : 0;
}

bool
state_read_program(char *ret, size_t size, pid_t pid)
{
    char path[64];
    char target[4096];
    ssize_t n = 0;
    const char *name = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0) {
        return false;
    }
    target[n] = '\0';
    name = strrchr(target, '/');
    return name != NULL && snprintf(ret, size, "%s", name + 1) < (int)size;
}

bool
state_is_program(pid_t pid, const char *shell)
{
    char name[32];

    return state_read_program(name, sizeof(name), pid) && str_eq(name, shell);
}

/*
 * Is the descriptor that it reads the one that it was given as input? What `source` opens, as
 * /dev/stdin, can only be read, even where it gets that number.
 */
static bool
reads_own_input(pid_t pid, const char *text)
{
    char path[64];
    char info[256];
    unsigned fd = 1;
    const char *arguments = strchr(text, ' ');
    const char *flags = NULL;
    size_t n = 0;

    if (arguments == NULL || !to_number(&fd, arguments + 1) || fd != 0) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/0", (int)pid);
    flags = state_read_file(info, sizeof(info), path) ? strstr(info, "flags:\t") : NULL;
    if (flags == NULL) {
        return false;
    }
    flags += strlen("flags:\t");
    n = strspn(flags, "01234567");
    return n > 0 && ((unsigned)(flags[n - 1] - '0') & O_ACCMODE) == O_RDWR;
}

/* What bash 5.1 and 5.2 ask for: of commands without a line editor, and for `read` and `select`. */
#define BASH_COMMANDS 1024U
#define BASH_READ     4096U

enum state_answer
state_reads_commands(pid_t pid, const char *name)
{
    char text[256];
    unsigned wanted = read_call(text, sizeof(text), pid) ? wanted_bytes(text) : 0;

    const bool is_own = wanted > 0 && reads_own_input(pid, text);
    struct state_waiter waiter = {.pid = pid};

    if (wanted == 0 || by_call(&waiter, text, name, NULL) != STATE_YES) {
        return STATE_UNKNOWN;
    }
    if (state_is_program(pid, "dash")) {
        return wanted > 1 ? STATE_YES : STATE_NO;
    }
    if (!state_is_program(pid, "bash")) {
        return STATE_UNKNOWN;
    }
    if (wanted == BASH_COMMANDS) {
        return STATE_YES;
    }
    /* `source` of a terminal asks for as much as `read`; byte by byte reads a bash that is not
     * interactive (2>/dev/null) its commands, too. */
    if (!is_own || (wanted == 1 && !state_runs_script(pid))) {
        return STATE_UNKNOWN;
    }
    return wanted == 1 || wanted == BASH_READ ? STATE_NO : STATE_UNKNOWN;
}

/* Each number has a blank behind it; one that was cut has none. */
static void
add_numbers(struct state_looks *todo, char *text, unsigned depth)
{
    char *at = text;

    for (char *end = strchr(at, ' '); end != NULL; at = end + 1, end = strchr(at, ' ')) {
        uint64_t child = 0;

        *end = '\0';
        if (!str_to_u64(&child, at, 1, INT32_MAX)) {
            continue;
        }
        if (todo->n == LIMIT_STATE_PROCESSES) {
            todo->is_cut = true;
            return;
        }
        todo->pids[todo->n] = (pid_t)child;
        todo->depths[todo->n++] = depth;
    }
    todo->is_cut = todo->is_cut || *at != '\0';
}

void
state_add_children(struct state_looks *todo, pid_t pid, unsigned depth)
{
    pid_t threads[LIMIT_STATE_THREADS];
    size_t n = list_threads(threads, LIMIT_STATE_THREADS, pid, &todo->is_cut);

    for (size_t i = 0; i < n; i++) {
        char path[64];
        char text[LIMIT_STATE_PROCESSES * 16];

        (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)threads[i]);
        if (state_read_file(text, sizeof(text), path)) {
            add_numbers(todo, text, depth);
        }
    }
}

/* What is behind the name in "PID (NAME) STATE PARENT GROUP ...": the name may hold anything, a
 * parenthesis as well. NULL: the kernel does not tell. */
const char *
state_read_stat(char *text, size_t size, pid_t pid)
{
    char path[64];
    const char *end = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (pid <= 0 || !state_read_file(text, size, path)) {
        return NULL;
    }
    end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' ? end + 2 : NULL;
}

bool
state_works(pid_t pid)
{
    char text[128];
    const char *state = state_read_stat(text, sizeof(text), pid);

    return state != NULL && (state[0] == 'R' || state[0] == 'D') && state[1] == ' ';
}

/* Of "STATE PARENT GROUP ...": the parent and the group; 0: not known. */
static void
read_kin(pid_t pid, pid_t *ret_parent, pid_t *ret_group)
{
    char text[128];
    const char *stat = state_read_stat(text, sizeof(text), pid);
    char *at = text + (stat != NULL ? stat - text : 0);
    pid_t found[2] = {0, 0};

    for (size_t i = 0; i < 2 && stat != NULL && (at = strchr(at, ' ')) != NULL; i++) {
        char *end = strchr(++at, ' ');
        uint64_t number = 0;

        if (end == NULL) {
            break;
        }
        *end = '\0';
        found[i] = str_to_u64(&number, at, 1, INT32_MAX) ? (pid_t)number : 0;
        *end = ' ';
    }
    *ret_parent = found[0];
    *ret_group = found[1];
}

/* The leader of a group, and those beside it, as in a pipeline: its parent's other children in that
 * group. */
static void
add_pipeline(struct state_looks *todo, pid_t leader)
{
    struct state_looks near = {.n = 0};
    pid_t parent = 0;
    pid_t group = 0;

    todo->pids[todo->n++] = leader;
    read_kin(leader, &parent, &group);
    if (parent <= 0) {
        return;
    }
    state_add_children(&near, parent, 1);
    todo->is_cut = todo->is_cut || near.is_cut;
    for (size_t i = 0; i < near.n && todo->n < LIMIT_STATE_PROCESSES; i++) {
        pid_t other = 0;

        read_kin(near.pids[i], &parent, &other);
        if (near.pids[i] != leader && other == group) {
            todo->depths[todo->n] = 0;
            todo->pids[todo->n++] = near.pids[i];
        }
    }
}

enum state_answer
state_group_reads(pid_t leader, const char *name, state_peek_fn *peek, bool *ret_alone)
{
    struct state_looks todo = {.n = 0};
    enum state_answer ret = STATE_NO;

    tell_alone(ret_alone, false);
    add_pipeline(&todo, leader);
    for (size_t i = 0; i < todo.n; i++) {
        enum state_answer one = state_reads_terminal(todo.pids[i], name, peek, ret_alone);

        if (one == STATE_YES) {
            return one;
        }
        ret = one == STATE_UNKNOWN ? one : ret;
        state_add_children(&todo, todo.pids[i], todo.depths[i] + 1);
    }
    return todo.is_cut ? STATE_UNKNOWN : ret;
}

bool
state_group_works(pid_t leader)
{
    struct state_looks todo = {.n = 0};

    add_pipeline(&todo, leader);
    for (size_t i = 0; i < todo.n; i++) {
        if (state_works(todo.pids[i])) {
            return true;
        }
        if (todo.depths[i] == 0) {
            state_add_children(&todo, todo.pids[i], 1);
        }
    }
    return todo.is_cut;
}

bool
state_has_helper(pid_t leader)
{
    struct state_looks children = {.n = 0};

    state_add_children(&children, leader, 1);
    for (size_t i = 0; i < children.n; i++) {
        char text[128];
        const char *state = state_read_stat(text, sizeof(text), children.pids[i]);
        const char *group = state != NULL ? strchr(state + 2, ' ') : NULL;
        char wanted[16];

        (void)snprintf(wanted, sizeof(wanted), " %d ", (int)leader);
        if (group != NULL && strncmp(group, wanted, strlen(wanted)) == 0 && state[0] != 'Z' &&
            state[0] != 'X') {
            return true;
        }
    }
    return false;
}
