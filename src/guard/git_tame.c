#include "guard/git_tame.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/git_config.h"

static bool
exists(const char *dir, const char *name, struct stat *st)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

    /* What can't be looked at may be anything. */
    return path_join(&path, dir, name) != SY_E_OK || stat(path.data, st) == 0 ||
           (errno != ENOENT && errno != ENOTDIR);
}

static enum sy_code
on_entry(void *arg, const struct git_config_entry *e)
{
    return git_config_is_harmless(e, arg) ? SY_E_OK : SY_E_DENIED;
}

static bool
file_is_harmless(const char *git_dir, const char *name, const struct git_config_place *place)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GIT_CONFIG};
    struct stat st;

    if (!exists(git_dir, name, &st)) {
        return true;
    }
    return path_join(&path, git_dir, name) == SY_E_OK && S_ISREG(st.st_mode) &&
           fd_read_file(path.data, &text, NULL) == SY_E_OK &&
           git_config_read(buf_view(&text), text.len, on_entry, mem_unconst(place), NULL) ==
               SY_E_OK;
}

static bool
dir_is_tame(const char *top, const char *git_dir)
{
    char *roots[] = {mem_unconst(top), NULL};
    const struct git_config_place place = {.git_dir = git_dir, .roots = roots};
    struct stat st;

    return !exists(git_dir, "commondir", &st) && !exists(git_dir, "modules", &st) &&
           file_is_harmless(git_dir, "config", &place) &&
           file_is_harmless(git_dir, "config.worktree", &place);
}

/* git takes a directory for a repository that has these. */
static bool
is_bare(const char *dir)
{
    struct stat st;

    return exists(dir, "HEAD", &st) && exists(dir, "objects", &st) && exists(dir, "refs", &st);
}

bool
git_tame_check(const char *cwd)
{
    SY_AUTO(buf_fini) struct buf git_dir = {.max = LIMIT_PATH};
    char dir[PATH_MAX];
    struct stat st;

    /* git goes up from where it really is, whatever links led there. */
    if (realpath(cwd, dir) == NULL) {
        return false;
    }
    for (;;) {
        char *slash = strrchr(dir, '/');

        if (exists(dir, ".git", &st)) {
            return path_join(&git_dir, dir, ".git") == SY_E_OK && S_ISDIR(st.st_mode) &&
                   dir_is_tame(dir, git_dir.data);
        }
        if (is_bare(dir)) {
            return false;
        }
        if (slash == NULL || dir[1] == '\0') {
            return true;
        }
        slash[slash == dir ? 1 : 0] = '\0';
    }
}
