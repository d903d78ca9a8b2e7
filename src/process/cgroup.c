/*
 * Control groups: a directory per command in each hierarchy that holds memory or
 * processes. An engine that is killed leaves its directories; the next one
 * removes those that nobody holds a lock on.
 */
#include "process/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/cgroup_internal.h"
#include "process/keeper_internal.h"
#include "sandbox/linux/raw_syscall.h"

#define MARKER       "shellyard-"
#define NAME_ROOM    64
#define REMOVE_TRIES 200
#define NAME_TRIES   16
/* How far below its limit the peak of a full group may stay: what was asked for at once. */
#define PEAK_SLACK ((uint64_t)1 << 20)

/* A hierarchy's directory of one command. */
struct group_place {
    const struct cgroup_place *in; /* NULL: none */
    char name[NAME_ROOM];
    char path[LIMIT_PATH];
    int dir_fd; /* locked, so that nobody clears it away */
    int procs_fd;
};

struct cgroup {
    struct group_place places[CGROUP_PLACES];
};

static enum sy_code
put(int dir_fd, const char *file, const char *text, struct sy_error *err)
{
    SY_FD fd = openat(dir_fd, file, O_WRONLY | O_CLOEXEC);

    if (fd < 0) {
        return sy_err_sys(err, errno, "opening '%s' of a control group", file);
    }
    if (write(fd, text, strlen(text)) < 0) {
        return sy_err_sys(err, errno, "writing '%s' of a control group", file);
    }
    return SY_E_OK;
}

static enum sy_code
put_number(int dir_fd, const char *file, uint64_t number, struct sy_error *err)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    return put(dir_fd, file, text, err);
}

/* What stands behind `word` at the beginning of a line, or all of the first line without one; 0 if
 * it stands nowhere. */
static uint64_t
get_number(int dir_fd, const char *file, const char *word)
{
    SY_FD fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};
    size_t n = strlen(word);
    uint64_t number = 0;

    if (fd < 0 || fd_read_all(fd, &text, NULL) != SY_E_OK || text.len == 0) {
        return 0;
    }
    for (char *line = text.data; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (n == 0 || (strncmp(line, word, n) == 0 && line[n] == ' ')) {
            line += n == 0 ? 0 : n + 1;
            line[strcspn(line, "\n")] = '\0';
            return str_to_u64(&number, line, 0, UINT64_MAX) ? number : 0;
        }
    }
    return 0;
}

static enum sy_code
limit_memory(const struct group_place *p, uint64_t bytes, struct sy_error *err)
{
    bool is_v2 = p->in->means == MEANS_CGROUP_V2;
    enum sy_code rc =
        put_number(p->dir_fd, is_v2 ? "memory.max" : "memory.limit_in_bytes", bytes, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    /* Swap would let it grow on; where that isn't counted there is no such file. */
    if (is_v2) {
        (void)!put(p->dir_fd, "memory.swap.max", "0", NULL);
        (void)!put(p->dir_fd, "memory.oom.group", "1", NULL);
    } else {
        (void)!put_number(p->dir_fd, "memory.memsw.limit_in_bytes", bytes, NULL);
    }
    return SY_E_OK;
}

static enum sy_code
limit(const struct group_place *p, const struct resource_limits *limits, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (p->in->holds[RESOURCE_MEMORY] && limits->most[RESOURCE_MEMORY] != 0) {
        rc = limit_memory(p, limits->most[RESOURCE_MEMORY], err);
    }
    if (rc == SY_E_OK && p->in->holds[RESOURCE_PROCESSES] &&
        limits->most[RESOURCE_PROCESSES] != 0) {
        rc = put_number(p->dir_fd, "pids.max", limits->most[RESOURCE_PROCESSES], err);
    }
    return rc;
}

/* Is the locked directory still the one of that name? */
static bool
is_there(const struct group_place *p)
{
    struct stat by_name;
    struct stat by_fd;

    return fstatat(p->in->dir_fd, p->name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstat(p->dir_fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino;
}

/*
 * A new directory, locked. Between its making and the lock somebody who clears
 * away may take it: then the next name.
 */
static enum sy_code
make_dir(struct group_place *p, struct sy_error *err)
{
    static atomic_uint_fast64_t next = 1;

    for (int i = 0; i < NAME_TRIES; i++) {
        (void)snprintf(p->name, sizeof(p->name), MARKER "%d-%" PRIuFAST64, (int)getpid(),
                       atomic_fetch_add(&next, 1));
        if (mkdirat(p->in->dir_fd, p->name, 0755) != 0) {
            if (errno == EEXIST) {
                continue;
            }
            return sy_err_sys(err, errno, "making a control group in '%s'", p->in->path);
        }
        p->dir_fd = openat(p->in->dir_fd, p->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p->dir_fd >= 0 && flock(p->dir_fd, LOCK_SH | LOCK_NB) == 0 && is_there(p)) {
            return SY_E_OK;
        }
        fd_close(&p->dir_fd);
    }
    return sy_err_set(err, SY_E_SYS, "no name is free for a control group in '%s'", p->in->path);
}

/*
 * A task leaves its group only when it has been switched out for the last time, which
 * may be a moment after it was waited for. What can't be removed in that
 * moment (somebody put a stranger in) is cleared away by the next engine, or at our
 * own end.
 */
static void
place_remove(struct group_place *p)
{
    fd_close(&p->procs_fd);
    if (p->dir_fd < 0) {
        return;
    }
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat(p->in->dir_fd, p->name, AT_REMOVEDIR) == 0 || errno != EBUSY) {
            break;
        }
        (void)sched_yield();
    }
    fd_close(&p->dir_fd);
}

static enum sy_code
place_make(struct group_place *p, const struct resource_limits *limits, struct sy_error *err)
{
    enum sy_code rc = make_dir(p, err);

    if (rc == SY_E_OK) {
        rc = limit(p, limits, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if ((size_t)snprintf(p->path, sizeof(p->path), "%s/%s", p->in->path, p->name) >=
        sizeof(p->path)) {
        p->path[0] = '\0'; /* then only we remove it */
    }
    p->procs_fd = openat(p->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return p->procs_fd >= 0
               ? SY_E_OK
               : sy_err_sys(err, errno, "opening a control group of '%s'", p->in->path);
}

static bool
is_wanted(const struct cgroup_place *in, const struct resource_limits *limits)
{
    return (in->holds[RESOURCE_MEMORY] && limits->most[RESOURCE_MEMORY] != 0) ||
           (in->holds[RESOURCE_PROCESSES] && limits->most[RESOURCE_PROCESSES] != 0);
}

enum sy_code
cgroup_new(struct cgroup **ret, struct cgroup_home *home, const struct resource_limits *limits,
           struct sy_error *err)
{
    struct cgroup *g = mem_alloc_zero(1, sizeof(*g));
    enum sy_code rc = SY_E_OK;

    if (g == NULL) {
        return sy_err_nomem(err);
    }
    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        g->places[i].dir_fd = -1;
        g->places[i].procs_fd = -1;
    }
    for (size_t i = 0; i < home->n && rc == SY_E_OK; i++) {
        if (is_wanted(&home->places[i], limits)) {
            g->places[i].in = &home->places[i];
            rc = place_make(&g->places[i], limits, err);
        }
    }
    if (rc != SY_E_OK) {
        cgroup_free(g);
        return rc;
    }
    *ret = g;
    return SY_E_OK;
}

void
cgroup_free(struct cgroup *g)
{
    if (g == NULL) {
        return;
    }
    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        place_remove(&g->places[i]);
    }
    mem_free(g);
}

size_t
cgroup_entrances(const struct cgroup *g, int ret[CGROUP_PLACES])
{
    size_t n = 0;

    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        if (g->places[i].procs_fd >= 0) {
            ret[n++] = g->places[i].procs_fd;
        }
    }
    return n;
}

void
cgroup_paths(const struct cgroup *g, const char *ret[CGROUP_PLACES])
{
    size_t n = 0;

    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        ret[i] = NULL;
    }
    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        if (g->places[i].procs_fd >= 0 && g->places[i].path[0] != '\0') {
            ret[n++] = g->places[i].path;
        }
    }
}

static const struct group_place *
holder(const struct cgroup *g, enum resource r)
{
    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        if (g->places[i].in != NULL && g->places[i].in->holds[r]) {
            return &g->places[i];
        }
    }
    return NULL;
}

enum resource_means
cgroup_means(const struct cgroup *g, enum resource r)
{
    const struct group_place *p = g != NULL ? holder(g, r) : NULL;

    return p != NULL ? p->in->means : MEANS_ABSENT;
}

/* By its peaks: counters of failures are not kept for memory with swap by each kernel. */
static bool
was_full_v1(const struct group_place *p)
{
    uint64_t most = get_number(p->dir_fd, "memory.limit_in_bytes", "");

    return get_number(p->dir_fd, "memory.max_usage_in_bytes", "") + PEAK_SLACK >= most ||
           get_number(p->dir_fd, "memory.memsw.max_usage_in_bytes", "") + PEAK_SLACK >= most;
}

bool
cgroup_was_hit(const struct cgroup *g, enum resource r)
{
    const struct group_place *p = holder(g, r);

    if (p == NULL) {
        return false;
    }
    if (r == RESOURCE_PROCESSES) {
        return get_number(p->dir_fd, "pids.events", "max") > 0;
    }
    /* A kill is counted here too if a group around this one, or the machine, was full. */
    if (p->in->means == MEANS_CGROUP_V2) {
        return get_number(p->dir_fd, "memory.events", "oom_kill") > 0 &&
               get_number(p->dir_fd, "memory.events", "oom") > 0;
    }
    return get_number(p->dir_fd, "memory.oom_control", "oom_kill") > 0 && was_full_v1(p);
}

void
cgroup_kill(const struct cgroup *g)
{
    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        if (g->places[i].in != NULL && g->places[i].in->means == MEANS_CGROUP_V2) {
            (void)!put(g->places[i].dir_fd, "cgroup.kill", "1", NULL);
        }
    }
}

/* Enters each place and leaves; the errno value where it can't. */
struct visit {
    int procs_fd;
    volatile int sys;
};

RAW_CODE static int
visit_main(void *arg)
{
    struct visit *v = arg;
    static const char self[] = "0";
    long rc = sy_raw3(SYS_write, v->procs_fd, sy_raw_ptr(self), 1);

    v->sys = rc < 0 ? (int)-rc : 0;
    return 0;
}

/* Can a task of ours be moved there? */
static enum sy_code
visit(const struct group_place *p, struct sy_error *err)
{
    struct visit v = {.procs_fd = p->procs_fd, .sys = ECHILD};
    void *stack = mmap(NULL, KEEPER_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

    if (stack == MAP_FAILED) {
        return sy_err_nomem(err);
    }

    pid_t pid = keeper_start_task(visit_main, &v, (char *)stack + KEEPER_STACK);
    int sys = pid < 0 ? errno : 0;

    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
    munmap(stack, KEEPER_STACK);
    sys = sys != 0 ? sys : v.sys;
    return sys == 0
               ? SY_E_OK
               : sy_err_sys(err, sys, "moving a task into a control group of '%s'", p->in->path);
}

enum sy_code
cgroup_place_try(const struct cgroup_place *place, struct sy_error *err)
{
    static const struct resource_limits some = {
        .most = {[RESOURCE_MEMORY] = (uint64_t)1 << 30, [RESOURCE_PROCESSES] = 100}
    };
    struct group_place p = {.in = place, .dir_fd = -1, .procs_fd = -1};
    enum sy_code rc = place_make(&p, &some, err);

    if (rc == SY_E_OK) {
        rc = visit(&p, err);
    }
    place_remove(&p);
    return rc;
}

void
cgroup_place_clear(const struct cgroup_place *place)
{
    int fd = openat(place->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (!str_starts(e->d_name, MARKER)) {
            continue;
        }

        SY_FD left =
            openat(place->dir_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        /* A living engine holds a lock; the kernel removes no group with somebody
         * inside. */
        if (left >= 0 && flock(left, LOCK_EX | LOCK_NB) == 0) {
            (void)unlinkat(place->dir_fd, e->d_name, AT_REMOVEDIR);
        }
    }
    closedir(dir);
}
