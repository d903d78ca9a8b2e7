/*
 * mutate HITS LAYER[,LAYER...] PROGRAM CMD...: runs a command where walls of its
 * sandbox are missing, while whoever makes them believes that they stand. By
 * ptrace(2), from outside: the programs under test are those that are shipped, and
 * have nothing in them that could switch a wall off.
 *
 * Whatever the command starts is traced until it executes PROGRAM (by the last
 * part of its name), which goes on alone. HITS is a file that gets one line a
 * layer, its name and how often it was taken away: a layer that was never met was
 * not tested.
 *
 *     landlock         landlock_restrict_self(2) does nothing
 *     landlock-read    no ruleset has anything to say about reading and executing
 *     abi:N            Landlock says that it is of ABI N, as on an older kernel
 *     seccomp          filters let through what they would refuse or kill
 *     broker           filters let through what they would ask their listener
 *     read-only        `/` of the full tier stays writable
 *     at:PATH          nothing is mounted on PATH
 *     below:PATH       nothing is mounted below PATH
 *     pid net ipc      no such namespace; with pid, the caller's /proc stays
 *     capabilities     they are kept
 *     no-new-privs     is not set
 *     descriptors      are left open
 *     limits           no core limit
 *     session          no session of its own
 *     subreaper        orphans go to somebody else
 *     quarantine       what is taken away after a run stays where it is
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum {
    NR_MOVE_MOUNT = 429,
    NR_CLOSE_RANGE = 436,
    NR_MOUNT_SETATTR = 442,
    NR_CREATE_RULESET = 444,
    NR_ADD_RULE = 445,
    NR_RESTRICT_SELF = 446,
    ASK_VERSION = 0x1,       /* LANDLOCK_CREATE_RULESET_VERSION */
    READ_RIGHTS = 0x1 | 0x4, /* execute, read files */
    RECURSIVE = 0x8000,
    SET_INTERFACE = 0x8914, /* SIOCSIFFLAGS */
};

/* A call that is about to be made. */
struct call {
    pid_t pid;
    long nr;
    uint64_t arg[6];
};

/* What is to be done with it. */
enum verdict { GO_ON, LEAVE_OUT };

struct chosen;

struct layer {
    const char *name;
    enum verdict (*meet)(const struct call *c, const struct chosen *by, bool *ret_hit);
    uint64_t what; /* is left out or let through: a call, an option of prctl(2), an action */
};

struct chosen {
    const struct layer *layer;
    char path[512]; /* of at: and below: */
    unsigned long hits;
};

static struct chosen chosen[32];
static size_t n_chosen;

/* Calls that were left out, and their results, which are written when they return. */
static struct {
    pid_t pid;
    unsigned result;
} left_out[4096];
static size_t n_left_out;

static void
die(const char *what)
{
    (void)fprintf(stderr, "mutate: %s: %s\n", what, strerrorname_np(errno));
    exit(125);
}

#ifdef __x86_64__
typedef struct user_regs_struct registers;

static unsigned long long *
argument(registers *r, int n)
{
    unsigned long long *const all[] = {&r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9};

    return all[n];
}

static void
set_result(registers *r, unsigned result)
{
    r->rax = result;
}
#else
typedef struct user_regs_struct registers;

static unsigned long long *
argument(registers *r, int n)
{
    return &r->regs[n];
}

static void
set_result(registers *r, unsigned result)
{
    r->regs[0] = result;
}
#endif

/* As the kernel has it: addresses in other processes are numbers. */
static long
trace(long request, pid_t pid, uint64_t at, uint64_t data)
{
    return syscall(SYS_ptrace, request, (long)pid, at, data);
}

static uint64_t
address(void *of)
{
    return (uint64_t)(uintptr_t)of;
}

static bool
move_registers(pid_t pid, registers *r, bool writes)
{
    struct iovec io = {r, sizeof(*r)};

    return trace(writes ? PTRACE_SETREGSET : PTRACE_GETREGSET, pid, NT_PRSTATUS, address(&io)) == 0;
}

static void
change_argument(const struct call *c, int n, uint64_t value)
{
    registers r;

    if (move_registers(c->pid, &r, false)) {
        *argument(&r, n) = value;
        (void)move_registers(c->pid, &r, true);
    }
}

/* The kernel makes no call of that number. */
static void
leave_out(pid_t pid, unsigned result)
{
#ifdef __x86_64__
    registers r;

    if (move_registers(pid, &r, false)) {
        r.orig_rax = (unsigned long long)-1;
        (void)move_registers(pid, &r, true);
    }
#else
    int none = -1;
    struct iovec io = {&none, sizeof(none)};

    (void)trace(PTRACE_SETREGSET, pid, 0x404 /* NT_ARM_SYSTEM_CALL */, address(&io));
#endif
    if (n_left_out < COUNT(left_out)) {
        left_out[n_left_out].pid = pid;
        left_out[n_left_out++].result = result;
    }
}

static void
give_result(pid_t pid)
{
    registers r;

    for (size_t i = 0; i < n_left_out; i++) {
        if (left_out[i].pid == pid) {
            unsigned result = left_out[i].result;

            left_out[i] = left_out[--n_left_out];
            if (move_registers(pid, &r, false)) {
                set_result(&r, result);
                (void)move_registers(pid, &r, true);
            }
            return;
        }
    }
}

static bool
read_word(pid_t pid, uint64_t at, uint64_t *ret)
{
    return trace(PTRACE_PEEKDATA, pid, at, address(ret)) == 0;
}

/* Into constant memory too. */
static void
write_word(pid_t pid, uint64_t at, uint64_t value)
{
    (void)trace(PTRACE_POKEDATA, pid, at, value);
}

static bool
path_of(const struct call *c, int n, char *ret, size_t size)
{
    char link[64];
    ssize_t len;

    (void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)c->pid, (int)c->arg[n]);
    len = readlink(link, ret, size - 1);
    ret[len > 0 ? len : 0] = '\0';
    return len > 0;
}

static enum verdict
out_if(bool is_it, bool *ret_hit)
{
    *ret_hit = is_it;
    return is_it ? LEAVE_OUT : GO_ON;
}

static bool
is_prctl(const struct call *c, uint64_t option)
{
    return c->nr == SYS_prctl && c->arg[0] == option;
}

static enum verdict
meet_number(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    return out_if((uint64_t)c->nr == by->layer->what, ret_hit);
}

static enum verdict
meet_option(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    return out_if(is_prctl(c, by->layer->what), ret_hit);
}

static enum verdict
meet_abi(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    (void)by;
    return out_if(c->nr == NR_CREATE_RULESET && c->arg[2] == ASK_VERSION, ret_hit);
}

static enum verdict
meet_landlock_read(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    bool is_ruleset = c->nr == NR_CREATE_RULESET && c->arg[0] != 0;
    bool is_rule = c->nr == NR_ADD_RULE && c->arg[1] == 1;
    uint64_t at = c->arg[is_ruleset ? 0 : 2];
    uint64_t rights;

    (void)by;
    if ((!is_ruleset && !is_rule) || !read_word(c->pid, at, &rights) ||
        (rights & READ_RIGHTS) == 0) {
        return GO_ON;
    }
    *ret_hit = is_ruleset;
    rights &= ~(uint64_t)READ_RIGHTS;
    write_word(c->pid, at, rights);
    /* A rule that grants nothing is an error. */
    return is_rule && rights == 0 ? LEAVE_OUT : GO_ON;
}

static bool
is_refusal(uint32_t action)
{
    action &= SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ERRNO || action == SECCOMP_RET_KILL_PROCESS ||
           action == SECCOMP_RET_KILL_THREAD || action == SECCOMP_RET_TRAP;
}

static enum verdict
meet_filter(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    bool is_broker = by->layer->what == SECCOMP_RET_USER_NOTIF;
    uint64_t head;
    uint64_t insns;

    if (c->nr != SYS_seccomp || c->arg[0] != SECCOMP_SET_MODE_FILTER ||
        !read_word(c->pid, c->arg[2], &head) ||
        !read_word(c->pid, c->arg[2] + sizeof(head), &insns)) {
        return GO_ON;
    }
    for (uint64_t i = 0; i < (head & 0xffff); i++) {
        uint64_t at = insns + i * sizeof(struct sock_filter);
        struct sock_filter insn;
        uint64_t word;

        if (!read_word(c->pid, at, &word)) {
            return GO_ON;
        }
        memcpy(&insn, &word, sizeof(insn));
        if (insn.code == (BPF_RET | BPF_K) &&
            (is_broker ? insn.k == SECCOMP_RET_USER_NOTIF : is_refusal(insn.k))) {
            insn.k = SECCOMP_RET_ALLOW;
            memcpy(&word, &insn, sizeof(word));
            write_word(c->pid, at, word);
            *ret_hit = true;
        }
    }
    return GO_ON;
}

static enum verdict
meet_read_only(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    char top[8];
    uint64_t set;

    (void)by;
    if (c->nr == NR_MOUNT_SETATTR && (c->arg[2] & RECURSIVE) != 0 &&
        path_of(c, 0, top, sizeof(top)) && strcmp(top, "/") == 0 &&
        read_word(c->pid, c->arg[3], &set) && (set & 1) != 0) {
        write_word(c->pid, c->arg[3], set & ~(uint64_t)1);
        *ret_hit = true;
    }
    return GO_ON;
}

static enum verdict
meet_at(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    char target[4096];

    return out_if(c->nr == NR_MOVE_MOUNT && path_of(c, 2, target, sizeof(target)) &&
                      strcmp(target, by->path) == 0,
                  ret_hit);
}

static enum verdict
meet_below(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    char target[4096];
    size_t n = strlen(by->path);

    return out_if(c->nr == NR_MOVE_MOUNT && path_of(c, 2, target, sizeof(target)) &&
                      strncmp(target, by->path, n) == 0 && target[n] == '/',
                  ret_hit);
}

static void
without_flag(const struct call *c, uint64_t flag, bool *ret_hit)
{
    if ((c->nr == SYS_unshare || c->nr == SYS_clone) && (c->arg[0] & flag) != 0) {
        change_argument(c, 0, c->arg[0] & ~flag);
        *ret_hit = true;
    }
}

static enum verdict
meet_pid(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    static const uint64_t of_proc = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

    (void)by;
    without_flag(c, CLONE_NEWPID, ret_hit);
    /* Who believes to be alone in a namespace may end everybody. */
    return (c->nr == SYS_mount && c->arg[3] == of_proc) ||
                   (c->nr == SYS_kill && (int)c->arg[0] == -1)
               ? LEAVE_OUT
               : GO_ON;
}

static enum verdict
meet_net(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    (void)by;
    without_flag(c, CLONE_NEWNET, ret_hit);
    return c->nr == SYS_ioctl && (uint32_t)c->arg[1] == SET_INTERFACE ? LEAVE_OUT : GO_ON;
}

static enum verdict
meet_ipc(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    (void)by;
    without_flag(c, CLONE_NEWIPC, ret_hit);
    return GO_ON;
}

static enum verdict
meet_capabilities(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    (void)by;
    return out_if(c->nr == SYS_capset || is_prctl(c, PR_CAPBSET_DROP) ||
                      is_prctl(c, PR_SET_SECUREBITS) || is_prctl(c, PR_CAP_AMBIENT),
                  ret_hit);
}

static enum verdict
meet_limits(const struct call *c, const struct chosen *by, bool *ret_hit)
{
    (void)by;
    return out_if(c->nr == SYS_prlimit64 && c->arg[1] == RLIMIT_CORE && c->arg[2] != 0, ret_hit);
}

static const struct layer layers[] = {
    {"landlock",      meet_number,        NR_RESTRICT_SELF      },
    {"landlock-read", meet_landlock_read, 0                     },
    {"abi:",          meet_abi,           0                     },
    {"seccomp",       meet_filter,        SECCOMP_RET_ERRNO     },
    {"broker",        meet_filter,        SECCOMP_RET_USER_NOTIF},
    {"read-only",     meet_read_only,     0                     },
    {"at:",           meet_at,            0                     },
    {"below:",        meet_below,         0                     },
    {"pid",           meet_pid,           0                     },
    {"net",           meet_net,           0                     },
    {"ipc",           meet_ipc,           0                     },
    {"capabilities",  meet_capabilities,  0                     },
    {"no-new-privs",  meet_option,        PR_SET_NO_NEW_PRIVS   },
    {"descriptors",   meet_number,        NR_CLOSE_RANGE        },
    {"limits",        meet_limits,        0                     },
    {"session",       meet_number,        SYS_setsid            },
    {"subreaper",     meet_option,        PR_SET_CHILD_SUBREAPER},
    {"quarantine",    meet_number,        SYS_renameat2         },
};

static bool
choose(const char *word, size_t n)
{
    for (size_t i = 0; i < COUNT(layers); i++) {
        const char *name = layers[i].name;
        size_t len = strlen(name);
        bool has_path = name[len - 1] == ':';

        if (n_chosen < COUNT(chosen) && strncmp(word, name, len) == 0 &&
            (has_path ? n > len : n == len)) {
            struct chosen *c = &chosen[n_chosen++];

            c->layer = &layers[i];
            (void)snprintf(c->path, sizeof(c->path), "%.*s", (int)(n - len), word + len);
            return true;
        }
    }
    return false;
}

static bool
choose_all(const char *words)
{
    for (;;) {
        size_t n = strcspn(words, ",");

        if (!choose(words, n)) {
            return false;
        }
        if (words[n] == '\0') {
            return true;
        }
        words += n + 1;
    }
}

/* What the call comes to that the layer leaves out. */
static unsigned
result_of(const struct chosen *by)
{
    return by->layer->meet == meet_abi ? (unsigned)strtoul(by->path, NULL, 10) : 0;
}

static void
on_call(pid_t pid)
{
    struct __ptrace_syscall_info info;

    if (trace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), address(&info)) <= 0) {
        return;
    }
    if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
        give_result(pid);
        return;
    }
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) {
        return;
    }

    struct call c = {.pid = pid, .nr = (long)info.entry.nr};
    enum verdict verdict = GO_ON;
    unsigned result = 0;

    for (size_t i = 0; i < COUNT(c.arg); i++) {
        c.arg[i] = info.entry.args[i];
    }
    for (size_t i = 0; i < n_chosen; i++) {
        bool is_hit = false;

        if (chosen[i].layer->meet(&c, &chosen[i], &is_hit) == LEAVE_OUT) {
            verdict = LEAVE_OUT;
            result = result_of(&chosen[i]);
        }
        chosen[i].hits += is_hit ? 1 : 0;
    }
    /* Filters and attributes lie in memory, into which no tracer without rights could look. */
    if (verdict == LEAVE_OUT || (is_prctl(&c, PR_SET_DUMPABLE) && c.arg[1] == 0)) {
        leave_out(pid, result);
    }
}

static bool
runs(pid_t pid, const char *program)
{
    char of[64];
    char exe[4096];
    ssize_t n;

    (void)snprintf(of, sizeof(of), "/proc/%d/exe", (int)pid);
    n = readlink(of, exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = '\0';

    const char *name = strrchr(exe, '/');

    return name != NULL && strcmp(name + 1, program) == 0;
}

/* Lets a stopped task go on, until its next call unless it is the program. */
static void
go_on(pid_t pid, int status, const char *program)
{
    int sig = WSTOPSIG(status);
    int event = status >> 16;

    if (event == PTRACE_EVENT_EXEC && runs(pid, program)) {
        (void)trace(PTRACE_DETACH, pid, 0, 0);
        return;
    }
    if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) {
        (void)trace(PTRACE_LISTEN, pid, 0, 0); /* stopped by a signal: stays so */
        return;
    }
    if (sig == (SIGTRAP | 0x80)) {
        on_call(pid);
    }

    bool is_signal = event == 0 && sig != (SIGTRAP | 0x80);

    (void)trace(PTRACE_SYSCALL, pid, 0, is_signal ? (uint64_t)sig : 0);
}

static pid_t
start(char **argv)
{
    static const unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                                         PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    int gate[2];
    char byte = 0;

    if (pipe2(gate, O_CLOEXEC) != 0) {
        die("pipe");
    }

    pid_t pid = fork();

    if (pid == 0) {
        if (read(gate[0], &byte, 1) == 1) {
            (void)execvp(argv[0], argv);
        }
        _exit(126);
    }
    if (pid < 0 || trace(PTRACE_SEIZE, pid, 0, options) != 0 ||
        trace(PTRACE_INTERRUPT, pid, 0, 0) != 0 || write(gate[1], &byte, 1) != 1) {
        die("tracing");
    }
    (void)close(gate[0]);
    (void)close(gate[1]);
    return pid;
}

static bool
tell_hits(const char *to)
{
    FILE *f = fopen(to, "we");

    for (size_t i = 0; f != NULL && i < n_chosen; i++) {
        (void)fprintf(f, "%s%s %lu\n", chosen[i].layer->name, chosen[i].path, chosen[i].hits);
    }
    return f != NULL && fclose(f) == 0;
}

int
main(int argc, char **argv)
{
    int code = 125;
    int status;
    pid_t pid;

    if (argc < 5 || !choose_all(argv[2])) {
        (void)fprintf(stderr, "usage: mutate HITS LAYER[,LAYER...] PROGRAM CMD...\n");
        return 125;
    }

    pid_t first = start(argv + 4);

    while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (pid > 0 && WIFSTOPPED(status)) {
            go_on(pid, status, argv[3]);
        } else if (pid == first) {
            code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
    if (!tell_hits(argv[1])) {
        die(argv[1]);
    }
    return code;
}
