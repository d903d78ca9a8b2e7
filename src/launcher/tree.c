/* The file tree of one policy (launcher_internal.h says what it is). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "launcher/launcher_internal.h"
#include "sandbox/linux/walk.h"

/* What is put somewhere once the rest is read-only. */
struct piece {
    char path[LIMIT_PATH + 1];
    int fd; /* a detached mount */
    bool is_dir;
};

struct pieces {
    struct piece *v;
    size_t n;
    size_t max;
};

static const char *const device_names[] = {"null", "zero", "full", "random", "urandom", "tty"};

#define DEVICES (sizeof(device_names) / sizeof(device_names[0]))

/*
 * Of /run: what name resolution and locales read, through links in /etc. All the
 * rest of it is sockets and states of other programs.
 */
static const char *const kept_in_run[] = {
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/connman/resolv.conf",
};

#define KEPT (sizeof(kept_in_run) / sizeof(kept_in_run[0]))

static bool
is_dir_fd(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Clones what is at that path now. A missing one is left out unless it `must` be. */
static bool
take(struct pieces *to, const char *path, uint64_t attributes, bool must, struct failure *f)
{
    struct piece *p = &to->v[to->n];
    int fd = mount_clone(path, true);

    if (fd < 0) {
        return !must && (fd == -ENOENT || fd == -EACCES || fd == -ELOOP || fd == -ENOTDIR)
                   ? true
                   : failed(f, STAGE_MOUNTS, -fd, path);
    }

    int sys = mount_restrict(fd, attributes, true);

    if (sys < 0) {
        fd_close(&fd);
        return failed(f, STAGE_MOUNTS, -sys, path);
    }
    p->fd = fd;
    p->is_dir = is_dir_fd(fd);
    (void)snprintf(p->path, sizeof(p->path), "%s", path);
    to->n++;
    return true;
}

static bool
make_one(const char *path, bool is_dir)
{
    if (is_dir) {
        return mkdir(path, 0755) == 0;
    }

    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

    return fd >= 0;
}

/*
 * A place to put something, in a tmpfs of ours that hides what was there. Each
 * directory made on the way is bound on itself, or a command could rename it and the
 * work below would be gone from its name.
 */
static bool
make_place(const struct piece *p, struct failure *f)
{
    char path[LIMIT_PATH + 1];

    (void)snprintf(path, sizeof(path), "%s", p->path);
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (make_one(path, true)) {
            SY_FD fd = mount_clone(path, true);
            int sys = fd < 0 ? fd : mount_put(fd, path);

            if (sys < 0) {
                return failed(f, STAGE_MOUNTS, -sys, path);
            }
        } else if (errno != EEXIST) {
            return failed(f, STAGE_MOUNTS, errno, path);
        }
        *at = '/';
    }
    if (!make_one(path, p->is_dir) && errno != EEXIST) {
        return failed(f, STAGE_MOUNTS, errno, path);
    }
    return true;
}

static bool
put(const struct piece *p, struct failure *f)
{
    int sys = mount_put(p->fd, p->path);

    if (sys == -ENOENT) {
        if (!make_place(p, f)) {
            return false;
        }
        sys = mount_put(p->fd, p->path);
    }
    return sys == 0 ? true : failed(f, STAGE_MOUNTS, -sys, p->path);
}

static bool
put_all(const struct pieces *pieces, struct failure *f)
{
    for (size_t i = 0; i < pieces->n; i++) {
        /* The top is there already: nothing can be put over it. */
        if (!str_eq(pieces->v[i].path, "/") && !put(&pieces->v[i], f)) {
            return false;
        }
    }
    return true;
}

static bool
pieces_init(struct pieces *p, size_t max, struct failure *f)
{
    p->v = mem_alloc_zero(max, sizeof(p->v[0]));
    p->max = max;
    return p->v != NULL ? true : failed(f, STAGE_MOUNTS, ENOMEM, NULL);
}

static void
pieces_fini(struct pieces *p)
{
    for (size_t i = 0; i < p->n; i++) {
        fd_close(&p->v[i].fd);
    }
    mem_free(p->v);
}

static bool
make_links(struct failure *f)
{
    static const char *const links[][2] = {
        {"/proc/self/fd",   "/dev/fd"    },
        {"/proc/self/fd/0", "/dev/stdin" },
        {"/proc/self/fd/1", "/dev/stdout"},
        {"/proc/self/fd/2", "/dev/stderr"},
        {"pts/ptmx",        "/dev/ptmx"  },
    };

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        /* Another template of this yard may have made them. */
        if (symlink(links[i][0], links[i][1]) != 0 && errno != EEXIST) {
            return failed(f, STAGE_MOUNTS, errno, links[i][1]);
        }
    }
    return true;
}

static bool
seal(const char *path, struct failure *f)
{
    SY_FD fd = walk_open(path);
    int sys = fd < 0 ? fd : mount_restrict(fd, MOUNT_READ_ONLY, false);

    return sys == 0 ? true : failed(f, STAGE_MOUNTS, -sys, path);
}

static bool
build_dev(const struct pieces *devices, const struct piece *shm, struct failure *f)
{
    static const struct piece pts = {.path = "/dev/pts", .is_dir = true, .fd = -1};

    if (!put_all(devices, f) || !make_place(&pts, f) || !make_links(f)) {
        return false;
    }
    return put(shm, f) && seal("/dev", f);
}

/* What the path is now, without links. */
static bool
take_resolved(struct pieces *to, const char *path, bool must, struct failure *f)
{
    struct walk walk;
    struct sy_error err = {0};

    if (walk_run(&walk, path, &err) != SY_E_OK) {
        return failed(f, STAGE_MOUNTS, err.sys != 0 ? err.sys : ENOMEM, path);
    }

    bool is_ok = take(to, buf_view(&walk.path), MOUNT_NO_SUID | MOUNT_NO_DEV, must, f);

    walk_fini(&walk);
    return is_ok;
}

/* Writable roots, as they are now, parents first; and the workspace where it would be hidden. */
static bool
take_roots(struct pieces *roots, const struct sandbox_plan *plan, struct failure *f)
{
    bool is_ok = true;

    for (size_t i = 0; is_ok && sandbox_plan_root(plan, i) != NULL; i++) {
        is_ok = take_resolved(roots, sandbox_plan_root(plan, i), true, f);
    }
    if (is_ok && sandbox_plan_mode(plan) == SANDBOX_READ_ONLY) {
        is_ok = take(roots, sandbox_plan_cwd(plan), MOUNT_READ_ONLY | MOUNT_NO_SUID | MOUNT_NO_DEV,
                     false, f);
    }
    for (size_t i = 1; is_ok && i < roots->n; i++) {
        for (size_t k = i; k > 0 && strlen(roots->v[k].path) < strlen(roots->v[k - 1].path); k--) {
            struct piece other = roots->v[k];

            roots->v[k] = roots->v[k - 1];
            roots->v[k - 1] = other;
        }
    }
    return is_ok;
}

/* All that is taken before the tree becomes another. */
struct supplies {
    struct pieces roots;
    struct pieces devices;
    struct pieces kept;
    struct pieces own; /* of the yard, in this order: */
};

enum { OWN_TMP, OWN_SHM, OWN_RUN, OWN_DEV, OWN_TMPDIR, OWN_COUNT };

static bool
take_own(struct supplies *s, bool may_write_tmp, struct failure *f)
{
    static const struct {
        const char *from;
        const char *to;
    } own[OWN_COUNT] = {
        [OWN_TMP] = {YARD_TMP, "/tmp"    },
        [OWN_SHM] = {YARD_SHM, "/dev/shm"},
        [OWN_RUN] = {YARD_RUN, "/run"    },
        [OWN_DEV] = {YARD_DEV, "/dev"    },
 /* $TMPDIR is the same by another name: the path comes later. */
        [OWN_TMPDIR] = {YARD_TMP, ""        },
    };

    for (size_t i = 0; i < OWN_COUNT; i++) {
        uint64_t attributes = i == OWN_TMP && !may_write_tmp ? MOUNT_READ_ONLY : 0;

        if (!take(&s->own, own[i].from, attributes, true, f)) {
            return false;
        }
        (void)snprintf(s->own.v[i].path, sizeof(s->own.v[i].path), "%s", own[i].to);
    }
    /* What it lies on is the person's /tmp, in which the workspace may be. */
    if (umount2(YARD_PLACE, MNT_DETACH) != 0) {
        return failed(f, STAGE_MOUNTS, errno, YARD_PLACE);
    }
    return true;
}

static bool
take_outside(struct supplies *s, const struct sandbox_plan *plan, struct failure *f)
{
    char path[32];

    for (size_t i = 0; i < DEVICES; i++) {
        (void)snprintf(path, sizeof(path), "/dev/%s", device_names[i]);
        /* They can be written to all the same; their mode and owner are the machine's. */
        if (!take(&s->devices, path, MOUNT_READ_ONLY | MOUNT_NO_SUID | MOUNT_NO_EXEC, false, f)) {
            return false;
        }
    }
    for (size_t i = 0; i < KEPT; i++) {
        if (!take(&s->kept, kept_in_run[i], MOUNT_READ_ONLY, false, f)) {
            return false;
        }
    }
    return take_roots(&s->roots, plan, f);
}

/* Where $TMPDIR really is, if it is anywhere. */
static bool
find_tmpdir(struct supplies *s, const struct sandbox_plan *plan, struct failure *f)
{
    const char *path = sandbox_plan_tmpdir(plan);
    struct pieces found = {0};
    struct piece *own = &s->own.v[OWN_TMPDIR];

    if (path == NULL) {
        return true;
    }
    if (!pieces_init(&found, 1, f)) {
        return false;
    }

    bool is_ok = take_resolved(&found, path, false, f);

    if (is_ok && found.n == 1 && found.v[0].is_dir) {
        memcpy(own->path, found.v[0].path, sizeof(own->path));
    }
    pieces_fini(&found);
    return is_ok;
}

static bool
assemble(const struct supplies *s, struct tree *t, struct failure *f)
{
    SY_FD top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_all_writable = s->roots.n > 0 && str_eq(s->roots.v[0].path, "/");
    int sys = top < 0 ? -errno
                      : mount_restrict(top, (is_all_writable ? 0 : MOUNT_READ_ONLY) | MOUNT_NO_SUID,
                                       true);

    if (sys < 0) {
        return failed(f, STAGE_MOUNTS, -sys, "making / read-only");
    }
    /* Below /dev no path leads to it, and it is a part of the tree, as what is cloned has to be. */
    if (!tree_open_covers(t, "/dev", f) || !put(&s->own.v[OWN_DEV], f) ||
        !build_dev(&s->devices, &s->own.v[OWN_SHM], f) || !put(&s->own.v[OWN_TMP], f)) {
        return false;
    }
    /* A system without /run has nothing to hide there. */
    if (access("/run", F_OK) == 0 && (!put(&s->own.v[OWN_RUN], f) || !put_all(&s->kept, f))) {
        return false;
    }
    if (s->own.v[OWN_TMPDIR].path[0] != '\0' && !put(&s->own.v[OWN_TMPDIR], f)) {
        return false;
    }
    if (!put_all(&s->roots, f)) {
        return false;
    }
    if (access("/run", F_OK) == 0 && !seal("/run", f)) {
        return false;
    }
    /* Marks that come later reach commands that run already. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) != 0) {
        return failed(f, STAGE_MOUNTS, errno, "making / shared");
    }
    return true;
}

static size_t
count_roots(const struct sandbox_plan *plan)
{
    size_t n = 0;

    while (sandbox_plan_root(plan, n) != NULL) {
        n++;
    }
    return n;
}

bool
tree_build(struct tree *t, const struct sandbox_plan *plan, struct failure *f)
{
    struct supplies s = {0};
    bool is_ok = pieces_init(&s.roots, count_roots(plan) + 1, f) &&
                 pieces_init(&s.devices, DEVICES, f) && pieces_init(&s.kept, KEPT, f) &&
                 pieces_init(&s.own, OWN_COUNT, f) &&
                 take_own(&s, sandbox_plan_writes_tmp(plan), f) && take_outside(&s, plan, f) &&
                 find_tmpdir(&s, plan, f) && assemble(&s, t, f);

    pieces_fini(&s.roots);
    pieces_fini(&s.devices);
    pieces_fini(&s.kept);
    pieces_fini(&s.own);
    return is_ok;
}

bool
tree_enter_run(struct failure *f)
{
    /* Who ends a tree as process 1 ends all that he sees. */
    if (getpid() != 1) {
        return failed(f, STAGE_NAMESPACES, ESRCH, "not process 1 of its namespace");
    }
    /* From here on nothing of ours reaches the template. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) {
        return failed(f, STAGE_MOUNTS, errno, "making / a slave");
    }
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) != 0) {
        return failed(f, STAGE_PROC, errno, NULL);
    }
    /* Terminals of the run alone: no other session's has a name here. */
    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0620") != 0) {
        return failed(f, STAGE_MOUNTS, errno, "/dev/pts");
    }
    return true;
}

static int
bind_on_itself(int target, uint64_t attributes)
{
    SY_FD copy = mount_clone_fd(target, true);
    int sys = copy < 0 ? copy : mount_restrict(copy, attributes, true);

    return sys < 0 ? sys : mount_put_fd(copy, target);
}

/* A link itself, where the last component is one; none on the way. */
static int
open_mark(const char *path)
{
    const struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

static int
mark(struct tree *t, char kind, const char *path)
{
    SY_FD target = open_mark(path);
    struct stat st;

    if (kind == LAUNCH_MARK_HIDE || kind == LAUNCH_MARK_HIDE_NAMED) {
        return tree_hide(t, target, kind == LAUNCH_MARK_HIDE_NAMED);
    }
    if (target < 0) {
        return target;
    }
    if (fstat(target, &st) == 0 && S_ISLNK(st.st_mode)) {
        /* The link on itself: it leads where it led, and stays. Where a kernel does not bind
         * links, something empty lies on it, through which nothing is reached. */
        return bind_on_itself(target, MOUNT_READ_ONLY) == 0 ? 0 : tree_hide_link(t, target);
    }
    switch (kind) {
    case LAUNCH_MARK_READ_ONLY:
        return bind_on_itself(target, MOUNT_READ_ONLY);
    case LAUNCH_MARK_PIN:
        return bind_on_itself(target, 0);
    default:
        return -EPROTO;
    }
}

bool
tree_mark(struct tree *t, const char *marks, size_t n, struct failure *f)
{
    if (n > 0 && marks[n - 1] != '\0') {
        return failed(f, STAGE_MOUNTS, EPROTO, "marks without an end");
    }
    for (size_t i = 0; i < n; i += strlen(marks + i) + 1) {
        const char *path = marks + i + 1;
        int sys = marks[i] == '\0' ? -EPROTO : mark(t, marks[i], path);

        if (sys < 0 && sys != -ENOENT) {
            return failed(f, STAGE_MOUNTS, -sys, path);
        }
    }
    return true;
}
