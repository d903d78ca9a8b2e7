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
