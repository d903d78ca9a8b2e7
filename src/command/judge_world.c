/* What is trusted on this machine. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
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

static bool
path_list_is_absolute(const char *list)
{
    for (const char *s = list;; s += strcspn(s, ":") + 1) {
        if (*s != '/') {
            return false;
        }
        if (s[strcspn(s, ":")] == '\0') {
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

    for (char *const *root = world->roots; root != NULL && *root != NULL; root++) {
        if (path_is_below(found, *root) || path_is_below(real, *root)) {
            return false;
        }
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
    char real[PATH_MAX];
    enum sy_code rc = command_resolve(&found, name, world->cwd, world->path_list, NULL);

    (void)arg;
    *ret_trusted = false;
    if (rc == SY_E_OK) {
        rc = path_normalize(&plain, buf_view(&found));
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (realpath(buf_view(&found), real) == NULL) {
        return SY_E_NOTFOUND;
    }
    buf_reset(ret_path);
    rc = buf_add_str(ret_path, real);
    if (rc == SY_E_OK) {
        *ret_trusted =
            is_trusted(buf_view(&plain), real, world) &&
            (!is_searched || world->path_list == NULL || path_list_is_absolute(world->path_list));
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
