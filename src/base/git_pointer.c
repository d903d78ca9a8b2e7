#include "base/git_pointer.h"

#include <string.h>

#include "base/str.h"

#define GITDIR "gitdir: "

size_t
git_pointer_cut(char *text, size_t n)
{
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r')) {
        n--;
    }
    if (text != NULL) {
        text[n] = '\0';
    }
    return n;
}

const char *
git_pointer_path(char *text, size_t n)
{
    size_t len = git_pointer_cut(text, n);

    if (len <= strlen(GITDIR) || strlen(text) != len || !str_starts(text, GITDIR)) {
        return NULL;
    }
    return text + strlen(GITDIR);
}

size_t
git_pointer_repository(const char *git_dir)
{
    static const char worktrees[] = "/worktrees";
    const char *name = strrchr(git_dir, '/');
    size_t n = name != NULL ? (size_t)(name - git_dir) : 0;
    size_t own = sizeof(worktrees) - 1;

    return n > own && strncmp(name - own, worktrees, own) == 0 ? n - own : 0;
}
