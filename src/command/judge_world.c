/* What is trusted on this machine. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/command.h"
#include "command/judge_programs.h"

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

/* The file, its links resolved; SY_E_NOTFOUND: there is none. */
static enum sy_code
find_now(struct buf *ret_path, bool *ret_trusted, const char *name, const struct judge_world *world)
{
    SY_AUTO(buf_fini) struct buf found = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
    bool is_searched = strchr(name, '/') == NULL && world->path_list != NULL;
    char real[PATH_MAX];
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
                       (!is_searched || path_list_is_kept(world, buf_view(&plain)));
    }
    return rc;
}

enum sy_code
judge_find_program(void *arg, struct buf *ret_path, bool *ret_trusted, const char *name,
                   const struct judge_world *world)
{
    const struct program_found *before = programs_recall(world, name);

    (void)arg;
    buf_reset(ret_path);
    *ret_trusted = false;
    if (before != NULL) {
        *ret_trusted = before->is_trusted;
        return before->path[0] != '\0' ? buf_add_str(ret_path, before->path) : SY_E_NOTFOUND;
    }

    enum sy_code rc = find_now(ret_path, ret_trusted, name, world);

    if (rc == SY_E_OK || rc == SY_E_NOTFOUND) {
        programs_remember(world, name, rc == SY_E_OK ? buf_view(ret_path) : "", *ret_trusted);
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
