#include "process/observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/broker.h"
#include "process/limited.h"
#include "process/process_internal.h"
#include "sandbox/evidence.h"
#include "sandbox/linux/seccomp_program.h"
#include "sandbox/linux/seccomp_table.h"

#define WAIT_MS BROKER_WAIT_MS

/* One path of a call. */
struct target {
    enum sandbox_operation op; /* OPERATION_COUNT: there is none */
    int dir_arg;
    int path_arg;
};

struct observed {
    const char *name;
    enum seccomp_verdict verdict;
    enum sandbox_operation op;
    int dir_arg;
    int path_arg;
    enum sandbox_operation second_op;
    int second_dir_arg;
    int second_path_arg;
};

static const struct observed table[] = {
#define TABLE_ROW(name, number, verdict, op, dir, path, op2, dir2, path2)                          \
    {#name, verdict, op, dir, path, op2, dir2, path2},
    SECCOMP_OBSERVED(TABLE_ROW)
#undef TABLE_ROW
};

static const struct observed *
find(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (str_eq(table[i].name, name)) {
            return &table[i];
        }
    }
    return NULL;
}

/* One call, as the rules for evidence ask about it. */
struct question {
    const struct process *process;
    const struct seccomp_notif *call;
};

static bool
is_held(void *arg, struct sandbox_explanation *ret, enum sandbox_operation op, const char *path)
{
    const struct question *q = arg;

    return q->process->held != NULL && q->process->held(q->process->held_arg, ret, op, path);
}

/* As the caller itself: where we are root, its tree may run as somebody else. */
static int
may_do(void *arg, const char *path, int how)
{
    const struct seccomp_notif *n = ((const struct question *)arg)->call;
    struct limited_user room;

    return limited_access(path, how, limited_user_of((pid_t)n->pid, &room), WAIT_MS);
}

/* What means the caller in /proc would mean us. */
static bool
add_absolute(struct buf *ret, const char *name, pid_t tid)
{
    static const char *const selves[] = {"/proc/self/", "/proc/thread-self/"};

    for (size_t i = 0; i < 2; i++) {
        if (str_starts(name, selves[i])) {
            return buf_addf(ret, "/proc/%d/%s", (int)tid, name + strlen(selves[i])) == SY_E_OK;
        }
    }
    return buf_add_str(ret, name) == SY_E_OK;
}

/* The caller's path, made absolute. False where it can't be had. */
static bool
read_path(struct buf *ret, const struct seccomp_notif *n, const struct target *t)
{
    char name[LIMITED_READ_MAX];
    char link[64];
    char dir[LIMIT_PATH];
    pid_t tid = (pid_t)n->pid;
    int dir_fd = t->dir_arg >= 0 ? (int)(uint32_t)n->data.args[t->dir_arg] : AT_FDCWD;

    if (limited_read_string(tid, (uintptr_t)n->data.args[t->path_arg], name, WAIT_MS) != 0 ||
        name[0] == '\0') {
        return false;
    }
    if (name[0] == '/') {
        return add_absolute(ret, name, tid);
    }
    if (dir_fd == AT_FDCWD) {
        (void)snprintf(link, sizeof(link), "/proc/%d/cwd", (int)tid);
    } else {
        (void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)tid, dir_fd);
    }

    ssize_t got = readlink(link, dir, sizeof(dir) - 1);

    if (got <= 0 || dir[0] != '/') {
        return false;
    }
    dir[got] = '\0';
    return path_join(ret, dir, name) == SY_E_OK;
}

/* How it opens. False if that neither reads nor changes anything. */
static bool
read_flags(uint64_t *ret, const struct seccomp_notif *n, const struct observed *o)
{
    struct open_how how = {0};

    if (o->verdict == SECCOMP_OPEN_1 || o->verdict == SECCOMP_OPEN_2) {
        *ret = n->data.args[o->verdict == SECCOMP_OPEN_1 ? 1 : 2];
    } else if (str_eq(o->name, "openat2")) {
        if (limited_read((pid_t)n->pid, (uintptr_t)n->data.args[2], &how, sizeof(how), WAIT_MS) !=
            0) {
            return false;
        }
        *ret = how.flags;
    } else {
        *ret = O_WRONLY | O_CREAT | O_TRUNC; /* creat(2) */
    }
    return (*ret & O_PATH) == 0;
}

/* Reading what Landlock hides. Most is not: the question costs a walk, and is asked only about what
 * may be. Each is told; past the most that an answer holds none is looked for any more. */
static bool
reads_hidden(struct process *p, const char *path)
{
    if (!p->knows_hidden) {
        p->knows_hidden = true;
        if (sandbox_hidden_new(&p->hidden, p->plan, NULL) != SY_E_OK) {
            p->hidden = NULL;
        }
    }
    return p->hidden_reads < DENIALS_MAX && sandbox_hidden_may_hold(p->hidden, p->plan, path);
}

/* Would open(2) with these flags come as far as a refusal, and to do what? */
static bool
means_to_write(enum sandbox_operation *ret, uint64_t flags, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        *ret = OPERATION_WRITE;
        return errno == ENOENT && (flags & O_CREAT) != 0;
    }
    bool is_tmpfile = (flags & O_TMPFILE) == O_TMPFILE;

    if ((flags & O_CREAT) != 0 && ((flags & O_EXCL) != 0 || S_ISDIR(st.st_mode)) && !is_tmpfile) {
        /* EEXIST or EISDIR: a refusal only if the name is there to keep it. */
        *ret = OPERATION_CREATE;
        return true;
    }
    if (S_ISDIR(st.st_mode)) {
        return is_tmpfile;
    }
    *ret = (flags & O_ACCMODE) != O_RDONLY ? OPERATION_WRITE : OPERATION_TRUNCATE;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
}

/* The new name of a rename takes the place of what is there. */
static bool
tells_held(struct sandbox_explanation *why, const struct evidence_case *c, const struct observed *o,
           const struct target *t, enum sandbox_operation op, const char *path)
{
    struct stat st;
    bool replaces =
        o->op == OPERATION_RENAME && t->path_arg == o->second_path_arg && lstat(path, &st) == 0;

    return evidence_judge_held(why, c, replaces ? OPERATION_DELETE : op, path);
}

static void
look(struct process *p, const struct seccomp_notif *n, const struct observed *o,
     const struct target *t, int listener_fd)
{
    SY_AUTO(buf_fini) struct buf path = {.max = 2 * (size_t)LIMIT_PATH};
    struct sandbox_explanation why = {0};
    enum sandbox_operation op = t->op;
    uint64_t flags = 0;
    struct question question = {p, n};
    const struct evidence_case c = {
        .plan = p->plan, .access = may_do, .held = is_held, .arg = &question};
    int anyway = 0;
    uint64_t id = n->id;

    if (!read_path(&path, n, t) ||
        /* What was read is the caller's only if it is still in this very call. */
        ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0) {
        return;
    }

    bool opens =
        o->verdict != SECCOMP_OBSERVE || str_eq(o->name, "openat2") || str_eq(o->name, "creat");

    if (opens && !read_flags(&flags, n, o)) {
        return;
    }
    if (opens && (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) == 0) {
        if (!reads_hidden(p, buf_view(&path))) {
            return;
        }
        op = OPERATION_READ;
        p->hidden_reads++;
    } else if (opens && !means_to_write(&op, flags, buf_view(&path))) {
        return;
    }
    if (evidence_judge(&why, &anyway, &c, op, buf_view(&path)) == SY_E_OK && !why.is_allowed &&
        anyway == 0) {
        process_tell_denial(p, evidence_layer(p->plan), sandbox_operation_name(op), why.resolved,
                            &why);
    } else if (tells_held(&why, &c, o, t, op, buf_view(&path))) {
        process_tell_denial(p, DENIAL_GUARD, sandbox_operation_name(op), why.resolved, &why);
    }
}

/* What a refused call was for, where its arguments tell. */
static void
name_call(char *ret, size_t size, const char *name, const struct seccomp_notif *n)
{
    static const struct {
        int family;
        const char *name;
    } families[] = {
        {AF_INET,    "AF_INET"   },
        {AF_INET6,   "AF_INET6"  },
        {AF_NETLINK, "AF_NETLINK"},
        {AF_UNIX,    "AF_UNIX"   },
        {AF_PACKET,  "AF_PACKET" },
        {AF_VSOCK,   "AF_VSOCK"  },
    };
    int first = (int)(uint32_t)n->data.args[0];

    (void)snprintf(ret, size, "%s", name);
    if (str_eq(name, "socket") || str_eq(name, "socketpair")) {
        (void)snprintf(ret, size, "%s (family %d)", name, first);
        for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
            if (families[i].family == first) {
                (void)snprintf(ret, size, "%s (%s)", name, families[i].name);
            }
        }
    } else if (str_eq(name, "ioctl")) {
        (void)snprintf(ret, size, "ioctl (0x%x)", (unsigned)(uint32_t)n->data.args[1]);
    }
}

/* A socket of the internet, or a call that connects without connect(2). */
static bool
is_of_network(const char *name, const struct seccomp_notif *n)
{
    int family = (int)(uint32_t)n->data.args[0];

    return str_eq(name, "sendto") || str_eq(name, "sendmsg") || str_eq(name, "sendmmsg") ||
           (str_eq(name, "socket") && (family == AF_INET || family == AF_INET6));
}

static void
tell_refused(struct process *p, const char *name, const struct seccomp_notif *n)
{
    struct sandbox_explanation why = {.rule = "refused in every sandbox"};
    char object[64];

    name_call(object, sizeof(object), name, n);
    if (is_of_network(name, n) && sandbox_plan_has_own_network(p->plan)) {
        (void)snprintf(why.rule, sizeof(why.rule),
                       "a network of its own has TCP and UDP and nothing else");
    } else if (is_of_network(name, n) && !sandbox_plan_has_network(p->plan)) {
        (void)snprintf(why.rule, sizeof(why.rule), "%s",
                       sandbox_plan_network(p->plan) == NETWORK_ALLOW_LIST
                           ? "network.allow: TCP through the proxy and nothing else"
                           : "network access is off");
        (void)snprintf(why.fix, sizeof(why.fix), "sandbox.network_access: true");
    }
    process_tell_denial(p, DENIAL_SECCOMP, "call", object, &why);
}

int
observe_call(struct process *p, int listener_fd, const struct seccomp_notif *n)
{
    const char *name = sandbox_seccomp_name(n->data.nr);
    const struct observed *o = name != NULL ? find(name) : NULL;

    if (o == NULL) {
        if (p != NULL && p->plan != NULL) {
            tell_refused(p, name != NULL ? name : "unknown", n);
        }
        return EPERM;
    }
    const struct target targets[2] = {
        {o->op,        o->dir_arg,        o->path_arg       },
        {o->second_op, o->second_dir_arg, o->second_path_arg},
    };

    for (size_t i = 0; i < 2 && p != NULL && p->plan != NULL; i++) {
        if (targets[i].op != OPERATION_COUNT) {
            look(p, n, o, &targets[i], listener_fd);
        }
    }
    return OBSERVE_GO_ON;
}
