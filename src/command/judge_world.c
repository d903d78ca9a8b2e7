/* What is trusted on this machine. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/command.h"
#include "command/judge_internal.h"

/* Where systems keep their programs; links resolved, a file may be in a directory below the
 * second list (a store of packages, or alternatives). */
static const char *const found_in[] = {"/usr/bin",
                                       "/bin",
                                       "/usr/sbin",
                                       "/sbin",
                                       "/usr/local/bin",
                                       "/usr/local/sbin",
                                       "/run/current-system/sw/bin",
                                       NULL};
static const char *const kept_in[] = {"/usr",       "/bin", "/sbin", "/lib", "/etc/alternatives",
                                      "/nix/store", NULL};

static bool
is_in(const char *const *list, const char *dir, bool or_below)
{
    for (; *list != NULL; list++) {
        if (str_eq(*list, dir) || (or_below && path_is_below(dir, *list))) {
            return true;
        }
    }
    return false;
}

/* Enough for common PATHs; with more, nothing is remembered. */
#define SEEN_DIRS  8
#define SEEN_COUNT 32
#define SEEN_PATH  ((size_t)128)

/* What tells that nothing has changed. */
struct identity {
    dev_t device;
    ino_t inode;
    struct timespec changed; /* also by other owners and rights */
};

struct seen {
    char name[PROGRAM_NAME_MAX];
    uint64_t key; /* of PATH and the workspace */
    char path[SEEN_PATH];
    bool is_trusted;
    size_t n;
    struct identity
        ids[SEEN_DIRS + 2]; /* PATH up to the place, the file, what is behind its links */
};

struct judge_programs {
    struct seen seen[SEEN_COUNT];
    size_t next; /* to be replaced */
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
    return key;
}

static struct identity
identity_of(int rc, const struct stat *st)
{
    return rc == 0 ? (struct identity){st->st_dev, st->st_ino, st->st_ctim} : (struct identity){0};
}

/* The identities that the answer for a file at `path` rests on; 0: too many. */
static size_t
identify(struct identity ids[SEEN_DIRS + 2], const char *path_list, const char *path)
{
    size_t dir_len = (size_t)(strrchr(path, '/') - path);
    struct stat st;
    size_t n = 0;

    for (const char *s = path_list; n < SEEN_DIRS; s += strcspn(s, ":") + 1) {
        char dir[SEEN_PATH];
        size_t len = strcspn(s, ":");

        if (len >= sizeof(dir)) {
            return 0;
        }
        memcpy(dir, s, len);
        dir[len] = '\0';
        ids[n++] = identity_of(stat(dir, &st), &st);
        if (len == dir_len && strncmp(dir, path, len) == 0) {
            ids[n++] = identity_of(lstat(path, &st), &st);
            ids[n++] =
                S_ISLNK(st.st_mode) ? identity_of(stat(path, &st), &st) : (struct identity){0};
            return n;
        }
        if (s[len] == '\0') {
            return 0;
        }
    }
    return 0;
}

static const struct seen *
recall(const struct judge_world *world, const char *name)
{
    struct judge_programs *p = world->programs;
    struct identity ids[SEEN_DIRS + 2] = {0};
    uint64_t key = p != NULL && world->path_list != NULL ? key_of(world) : 0;

    for (size_t i = 0; p != NULL && world->path_list != NULL && i < SEEN_COUNT; i++) {
        struct seen *s = &p->seen[i];

        if (s->n > 0 && s->key == key && str_eq(s->name, name)) {
            bool is_same = identify(ids, world->path_list, s->path) == s->n;

            for (size_t k = 0; is_same && k < s->n; k++) {
                is_same = ids[k].device == s->ids[k].device && ids[k].inode == s->ids[k].inode &&
                          ids[k].changed.tv_sec == s->ids[k].changed.tv_sec &&
                          ids[k].changed.tv_nsec == s->ids[k].changed.tv_nsec;
            }
            if (is_same) {
                return s;
            }
            s->n = 0;
        }
    }
    return NULL;
}

static void
remember(const struct judge_world *world, const char *name, const char *found, bool is_trusted)
{
    struct judge_programs *p = world->programs;

    if (p == NULL || world->path_list == NULL || strlen(name) >= PROGRAM_NAME_MAX ||
        strlen(found) >= SEEN_PATH) {
        return;
    }

    struct seen *s = &p->seen[p->next];

    p->next = (p->next + 1) % SEEN_COUNT;
    *s = (struct seen){.key = key_of(world), .is_trusted = is_trusted};
    memcpy(s->name, name, strlen(name) + 1);
    memcpy(s->path, found, strlen(found) + 1);
    s->n = identify(s->ids, world->path_list, found);
}

static bool
is_below_root(const struct judge_world *world, const char *path)
{
    for (char *const *root = world->roots; root != NULL && *root != NULL; root++) {
        if (path_is_below(path, *root)) {
            return true;
        }
    }
    return false;
}

/* No directory of PATH up to `found` is one that a command may write to. */
static bool
path_list_is_kept(const struct judge_world *world, const char *found)
{
    size_t dir_len = (size_t)(strrchr(found, '/') - found);
    bool is_before = true;

    for (const char *s = world->path_list;; s += strcspn(s, ":") + 1) {
        size_t len = strcspn(s, ":");
        char dir[LIMIT_PATH];

        if (*s != '/' || len >= sizeof(dir)) {
            return false;
        }
        memcpy(dir, s, len);
        dir[len] = '\0';
        if (is_before && is_below_root(world, dir)) {
            return false;
        }
        is_before = is_before && !(len == dir_len && strncmp(dir, found, len) == 0);
        if (s[len] == '\0') {
            return true;
        }
    }
}

/* root's, and nobody else may write; a link's own mode says nothing. */
static bool
is_kept_by_root(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && st.st_uid == 0 &&
           (S_ISLNK(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)) == 0);
}

/* The path and each directory above it. Cuts it down to nothing meanwhile. */
static bool
chain_is_kept(char *path)
{
    for (;;) {
        char *slash = strrchr(path, '/');

        if (!is_kept_by_root(slash == path && slash[1] == '\0' ? "/" : path)) {
            return false;
        }
        if (slash == path) {
            return is_kept_by_root("/");
        }
        *slash = '\0';
    }
}

static bool
is_trusted(const char *found, const char *real, const struct judge_world *world)
{
    char dir[LIMIT_PATH];
    size_t n = strlen(found);

    if (is_below_root(world, found) || is_below_root(world, real)) {
        return false;
    }
    if (n >= sizeof(dir) || strlen(real) >= sizeof(dir)) {
        return false;
    }
    memcpy(dir, found, n + 1);
    *strrchr(dir, '/') = '\0';
    if (!is_in(found_in, dir, false) || !is_in(kept_in, real, true)) {
        return false;
    }
    memcpy(dir, found, n + 1);
    if (!chain_is_kept(dir)) {
        return false;
    }
    memcpy(dir, real, strlen(real) + 1);
    return str_eq(found, real) || chain_is_kept(dir);
}

enum sy_code
judge_find_program(void *arg, struct buf *ret_path, bool *ret_trusted, const char *name,
                   const struct judge_world *world)
{
    SY_AUTO(buf_fini) struct buf found = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
    bool is_searched = strchr(name, '/') == NULL;
    const struct seen *seen = is_searched ? recall(world, name) : NULL;
    char real[PATH_MAX];

    (void)arg;
    buf_reset(ret_path);
    *ret_trusted = false;
    if (seen != NULL) {
        *ret_trusted = seen->is_trusted;
        return buf_add_str(ret_path, seen->path);
    }

    enum sy_code rc = command_resolve(&found, name, world->cwd, world->path_list, NULL);

    if (rc == SY_E_OK) {
        rc = path_normalize(&plain, buf_view(&found));
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (realpath(buf_view(&found), real) == NULL) {
        return SY_E_NOTFOUND;
    }
    rc = buf_add_str(ret_path, buf_view(&plain));
    if (rc == SY_E_OK) {
        *ret_trusted = is_trusted(buf_view(&plain), real, world) &&
                       (!is_searched || world->path_list == NULL ||
                        path_list_is_kept(world, buf_view(&plain)));
        if (is_searched) {
            remember(world, name, buf_view(&plain), *ret_trusted);
        }
    }
    return rc;
}

bool
judge_has_file(void *arg, const char *path)
{
    struct stat st;

    (void)arg;
    return lstat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}
