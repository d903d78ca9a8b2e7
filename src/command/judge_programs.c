/* What judge_find_program found before, as long as nothing has changed. */
#include "command/judge_programs.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

/* A PATH of more directories is not remembered. */
#define DIRS_MAX 96
/* Paths that are remembered side by side, and the names of each. */
#define LISTS 2
#define NAMES 32
/* A directory that changed this lately may do so again without its time telling: file systems'
 * clocks go by steps, that of vfat(5) by the longest. */
#define SETTLED_S 2

/* What tells that nothing has changed. */
struct identity {
    dev_t device;
    ino_t inode;
    struct timespec changed; /* also by other owners and rights */
};

struct dir {
    struct identity id;
    uint64_t look;  /* when it was looked at */
    uint64_t since; /* as it is now */
    bool is_settled;
};

struct name {
    char name[PROGRAM_NAME_MAX];
    struct program_found found; /* path "": there is none */
    size_t n_dirs;              /* those of PATH up to the place */
    uint64_t look;              /* when it was found; 0: nothing is here */
    struct identity file;
    struct identity target; /* what is behind its links */
};

/* One PATH in one workspace. */
struct list {
    uint64_t key; /* 0: none */
    uint64_t used;
    struct dir dirs[DIRS_MAX];
    struct name names[NAMES];
    size_t next; /* to be replaced */
};

struct judge_programs {
    uint64_t look;
    bool is_one_look;
    struct list lists[LISTS];
};

struct judge_programs *
judge_programs_new(void)
{
    return mem_alloc_zero(1, sizeof(struct judge_programs));
}

void
judge_programs_free(struct judge_programs *p)
{
    mem_free(p);
}

void
judge_programs_begin(struct judge_programs *p)
{
    p->look++;
    p->is_one_look = true;
}

void
judge_programs_end(struct judge_programs *p)
{
    p->is_one_look = false;
}

static uint64_t
mix(uint64_t key, const char *s)
{
    do {
        key = (key ^ (unsigned char)*s) * UINT64_C(1099511628211);
    } while (*s++ != '\0');
    return key;
}

static uint64_t
key_of(const struct judge_world *world)
{
    uint64_t key = mix(UINT64_C(14695981039346656037), world->path_list);

    for (char *const *root = world->roots; root != NULL && *root != NULL; root++) {
        key = mix(key, *root);
    }
    return key != 0 ? key : 1;
}

static struct list *
list_of(struct judge_programs *p, const struct judge_world *world)
{
    const uint64_t key = key_of(world);
    struct list *oldest = &p->lists[0];

    for (size_t i = 0; i < LISTS; i++) {
        if (p->lists[i].key == key) {
            p->lists[i].used = p->look;
            return &p->lists[i];
        }
        oldest = p->lists[i].used < oldest->used ? &p->lists[i] : oldest;
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->key = key;
    oldest->used = p->look;
    return oldest;
}

static bool
is_same(const struct identity *a, const struct identity *b)
{
    return a->device == b->device && a->inode == b->inode &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static struct identity
identity_of(int rc, const struct stat *st)
{
    return rc == 0 ? (struct identity){st->st_dev, st->st_ino, st->st_ctim} : (struct identity){0};
}

/* Of a directory that is not there nothing is known but that. */
static bool
is_settled(const struct identity *id)
{
    struct timespec now;

    return id->inode == 0 || (clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 &&
                              now.tv_sec - id->changed.tv_sec > SETTLED_S);
}

static void
look_at(struct dir *d, const char *path, uint64_t look)
{
    struct stat st;

    if (d->look == look) {
        return;
    }

    struct identity now = identity_of(stat(path, &st), &st);

    if (d->look == 0 || !is_same(&now, &d->id)) {
        d->id = now;
        d->since = look;
    }
    d->is_settled = is_settled(&now);
    d->look = look;
}

/* Looks at the first n directories of PATH (all, if it has less). Returns how many it has, at most
 * n; 0: something about it can't be remembered. */
static size_t
look_at_dirs(struct list *l, const char *path_list, size_t n, uint64_t look)
{
    const char *s = path_list;

    for (size_t i = 0; i < DIRS_MAX; i++) {
        char dir[PROGRAM_PATH_MAX];
        size_t len = strcspn(s, ":");

        /* A relative one is another in each working directory. */
        if (*s != '/' || len >= sizeof(dir)) {
            return 0;
        }
        memcpy(dir, s, len);
        dir[len] = '\0';
        look_at(&l->dirs[i], dir, look);
        if (i + 1 == n || s[len] == '\0') {
            return i + 1;
        }
        s += len + 1;
    }
    return 0;
}

/* Is there something of that name in the first n directories? What can't be run today (a link that
 * leads nowhere, a file without that right) may be what runs tomorrow, and no directory changes. */
static bool
has_other(const char *path_list, size_t n, const char *name)
{
    const char *s = path_list;

    for (size_t i = 0; i < n; i++) {
        char path[PROGRAM_PATH_MAX + PROGRAM_NAME_MAX + 2];
        int len = (int)strcspn(s, ":");
        struct stat st;

        (void)snprintf(path, sizeof(path), "%.*s/%s", len, s, name);
        if (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
            return true;
        }
        s += len + 1;
    }
    return false;
}

/* The directories of PATH up to that of the file; 0: it is in none. */
static size_t
dirs_up_to(const char *path_list, const char *path)
{
    const size_t dir_len = (size_t)(strrchr(path, '/') - path);
    size_t n = 1;

    for (const char *s = path_list;; s += strcspn(s, ":") + 1, n++) {
        const size_t len = strcspn(s, ":");

        if (len == dir_len && strncmp(s, path, len) == 0) {
            return n;
        }
        if (s[len] == '\0') {
            return 0;
        }
    }
}

static void
identify(struct name *n)
{
    struct stat st;

    n->file = identity_of(lstat(n->found.path, &st), &st);
    n->target = n->file.inode != 0 && S_ISLNK(st.st_mode)
                    ? identity_of(stat(n->found.path, &st), &st)
                    : (struct identity){0};
}

static bool
is_as_it_was(struct list *l, const struct name *n, const char *path_list, uint64_t look)
{
    if (look_at_dirs(l, path_list, n->n_dirs, look) != n->n_dirs) {
        return false;
    }
    for (size_t i = 0; i < n->n_dirs; i++) {
        if (l->dirs[i].since > n->look) {
            return false;
        }
    }
    if (n->found.path[0] == '\0') {
        return true;
    }

    struct name now = {.found = n->found};

    identify(&now);
    return is_same(&now.file, &n->file) && is_same(&now.target, &n->target);
}

static bool
may_remember(const struct judge_world *world, const char *name)
{
    return world->programs != NULL && world->path_list != NULL && strlen(name) < PROGRAM_NAME_MAX &&
           strchr(name, '/') == NULL;
}

const struct program_found *
programs_recall(const struct judge_world *world, const char *name)
{
    struct judge_programs *p = world->programs;

    if (!may_remember(world, name)) {
        return NULL;
    }
    p->look += p->is_one_look ? 0 : 1;

    struct list *l = list_of(p, world);

    for (size_t i = 0; i < NAMES; i++) {
        struct name *n = &l->names[i];

        if (n->look == 0 || !str_eq(n->name, name)) {
            continue;
        }
        if (is_as_it_was(l, n, world->path_list, p->look)) {
            return &n->found;
        }
        n->look = 0;
    }
    /* Before anything is looked for: what changes from here on is seen the next time. */
    (void)look_at_dirs(l, world->path_list, DIRS_MAX, p->look);
    return NULL;
}

void
programs_remember(const struct judge_world *world, const char *name, const char *path,
                  bool is_trusted)
{
    struct judge_programs *p = world->programs;

    if (!may_remember(world, name) || strlen(path) >= PROGRAM_PATH_MAX) {
        return;
    }

    struct list *l = list_of(p, world);
    size_t n_dirs = look_at_dirs(l, world->path_list, DIRS_MAX, p->look);

    n_dirs = n_dirs > 0 && path[0] != '\0' ? dirs_up_to(world->path_list, path) : n_dirs;
    if (n_dirs == 0) {
        return;
    }
    for (size_t i = 0; i < n_dirs; i++) {
        if (!l->dirs[i].is_settled) {
            return;
        }
    }

    if (has_other(world->path_list, path[0] != '\0' ? n_dirs - 1 : n_dirs, name)) {
        return;
    }

    struct name *n = &l->names[l->next];

    l->next = (l->next + 1) % NAMES;
    *n = (struct name){.n_dirs = n_dirs, .look = p->look, .found = {.is_trusted = is_trusted}};
    memcpy(n->name, name, strlen(name) + 1);
    memcpy(n->found.path, path, strlen(path) + 1);
    if (path[0] != '\0') {
        identify(n);
    }
}
