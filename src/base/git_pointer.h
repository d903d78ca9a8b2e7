#ifndef SY_BASE_GIT_POINTER_H
#define SY_BASE_GIT_POINTER_H

#include <stddef.h>

/*
 * What git takes from its small files that name a directory, `.git` (gitrepository-layout(5),
 * read_gitfile_gently() in setup.c) and `commondir`: all of it but line ends at its end. A blank
 * there belongs to the name. `text` has room for a NUL behind its n bytes, and gets one behind what
 * is taken. Returns how many bytes that are.
 */
size_t git_pointer_cut(char *text, size_t n);
/* The path of a file `.git`, "gitdir: PATH", within `text`, as above. NULL: it is none, or
 * has a NUL. */
const char *git_pointer_path(char *text, size_t n);
/* How many bytes of REPOSITORY/worktrees/NAME, the git directory of a linked work tree, are the
 * repository's; others above it may have the name worktrees too. 0: it is no such path. */
size_t git_pointer_repository(const char *git_dir);

#endif
