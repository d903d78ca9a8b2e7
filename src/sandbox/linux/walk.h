#ifndef SY_SANDBOX_LINUX_WALK_H
#define SY_SANDBOX_LINUX_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/sandbox.h"

/*
 * A path as the kernel would resolve it, with every symbolic link on the way
 * remembered. The kernel is asked first for a path without any; where there is
 * one, by text and readlink(2): what is opened afterwards is opened with
 * RESOLVE_NO_SYMLINKS, so that a link swapped in meanwhile is an error.
 */
struct walk {
    struct buf path;     /* no links, ".", ".."; what does not exist is kept as text */
    struct strv links;   /* each link met, by its own resolved path */
    int missing_errno;   /* 0: it exists; else why the first missing part is so */
    size_t existing_len; /* bytes of `path` that exist */
    bool is_open;        /* it exists, and no link was on the way: */
    int fd;              /* its descriptor (O_PATH), found in one call */
};

/* An absolute path. Fails for memory and for more than 40 links or a result
 * beyond LIMIT_PATH (SY_E_SYS with ELOOP, ENAMETOOLONG). */
enum sy_code walk_run(struct walk *ret, const char *path, struct sy_error *err) SY_NODISCARD;
void walk_fini(struct walk *w);
/* The policy's directory and its writable roots onto a list, without links: where they are. Granted
 * ones are by their names: if a link is there by now, nothing is. SY_E_SANDBOX: a link leads to the
 * directory that was resolved when it was set. */
enum sy_code walk_add_roots(struct strv *ret, const struct sandbox_policy *policy,
                            struct sy_error *err) SY_NODISCARD;

/* SY_E_SANDBOX in that case. */
enum sy_code walk_check_cwd(const struct sandbox_policy *policy, struct sy_error *err) SY_NODISCARD;
/* The refusal of a working directory that has come to be reached by a link (cwd_has_no_links). */
enum sy_code walk_refuse_cwd(const struct walk *w, const char *cwd, struct sy_error *err);

/* Opens with O_PATH what has no symbolic link on the way: the descriptor, or a
 * negative errno value (ELOOP: there is one). */
int walk_open(const char *path);

/* Which file a path is: Landlock's rules are on files, not names. */
struct file_id {
    uint64_t dev;
    uint64_t ino;
    uint64_t mount;
};

/* 0 or an errno value. Follows links. */
int file_id_of_path(struct file_id *ret, const char *path);
int file_id_of_fd(struct file_id *ret, int fd, bool *ret_is_dir);
struct statx;
struct file_id file_id_of_statx(const struct statx *st);

#endif
