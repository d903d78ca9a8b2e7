#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/place.h"
#include "base/private_group.h"
#include "base/str.h"
#include "hook/hook.h"
#include "sandbox/linux/walk.h"

static bool
is_ours(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

static enum sy_code
check_file(const char *path, struct sy_error *err)
{
    struct place_shown_path shown;
    struct stat st;

    (void)place_visible_path(&shown, path);
    if (stat(path, &st) != 0) {
        return sy_err_set(err, SY_E_CONFIG, "hook '%s': %s", shown.text, sy_errno_text(errno));
    }
    if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0) {
        return sy_err_set(err, SY_E_CONFIG, "hook '%s' is no executable file%s", shown.text,
                          S_ISREG(st.st_mode) ? "; fix: chmod +x" : "");
    }
    if (!is_ours(&st)) {
        return sy_err_set(err, SY_E_CONFIG,
                          "hook '%s' belongs to user %u, who could change it; fix: chown it to "
                          "you, or to root",
                          shown.text, (unsigned)st.st_uid);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !private_group_path(path, &st)) {
        return sy_err_set(err, SY_E_CONFIG,
                          "hook '%s': others may write it (mode %04o); fix: chmod go-w", shown.text,
                          (unsigned)(st.st_mode & 07777U));
    }
    return SY_E_OK;
}

/* Whoever can write a directory can put another file in its place; with the sticky bit only the
 * owner of what is in it can. `real` is shortened on the way. */
static enum sy_code
check_directories(const char *path, char *real, struct sy_error *err)
{
    for (char *slash = strrchr(real, '/'); slash != NULL; slash = strrchr(real, '/')) {
        struct place_shown_path shown;
        struct place_shown_path dir;
        struct stat st;
        bool is_top = slash == real;

        slash[is_top ? 1 : 0] = '\0';
        if (stat(real, &st) != 0) {
            return sy_err_set(err, SY_E_CONFIG, "hook '%s': its directory: %s",
                              place_visible_path(&shown, path), sy_errno_text(errno));
        }
        if (!is_ours(&st) || ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
                              (st.st_mode & S_ISVTX) == 0 && !private_group_path(real, &st))) {
            return sy_err_set(err, SY_E_CONFIG,
                              "hook '%s': others may write '%s', and so put another program there",
                              place_visible_path(&shown, path), place_visible_path(&dir, real));
        }
        if (is_top) {
            break;
        }
    }
    return SY_E_OK;
}

static enum sy_code
refuse_writable(const char *path, const char *root, struct sy_error *err)
{
    struct place_shown_path shown;
    struct place_shown_path in;

    return sy_err_set(err, SY_E_CONFIG,
                      "hook '%s' lies in '%s', where commands could rewrite it; move it elsewhere",
                      place_visible_path(&shown, path), place_visible_path(&in, root));
}

static bool
is_in(const char *name, const char *root)
{
    char resolved[LIMIT_PATH];

    return path_is_below(name, root) ||
           (realpath(root, resolved) != NULL && path_is_below(name, resolved));
}

/* The plan knows all that is writable; the workspace stays none of the user's own places even
 * where nothing of it can be written. `name` is one by which the program is reached. */
static enum sy_code
check_writable(const char *path, const char *name, const struct sandbox_policy *policy,
               const struct sandbox_plan *plan, struct sy_error *err)
{
    struct sandbox_explanation e;
    enum sy_code rc = SY_E_OK;

    if (policy->cwd != NULL && !str_eq(policy->cwd, "/") && is_in(name, policy->cwd)) {
        return refuse_writable(path, policy->cwd, err);
    }
    for (size_t i = 0; i < policy->writable_roots.n; i++) {
        if (is_in(name, policy->writable_roots.v[i])) {
            return refuse_writable(path, policy->writable_roots.v[i], err);
        }
    }
    if (plan == NULL || !sandbox_mode_is_enforced(policy->mode)) {
        return SY_E_OK;
    }
    rc = sandbox_explain(&e, plan, OPERATION_WRITE, name, err);
    return rc == SY_E_OK && e.is_allowed
               ? refuse_writable(path, "a writable place of the sandbox", err)
               : rc;
}

/* One name by which the program is reached: it is neither a command's to write nor others'. */
static enum sy_code
check_name(const char *path, const char *name, const struct sandbox_policy *policy,
           const struct sandbox_plan *plan, struct sy_error *err)
{
    char above[LIMIT_PATH];
    size_t len = strlen(name);
    enum sy_code rc = SY_E_OK;

    if (len >= sizeof(above)) {
        return sy_err_set(err, SY_E_CONFIG, "hook '%.160s...': the path is too long", path);
    }
    rc = check_writable(path, name, policy, plan, err);
    memcpy(above, name, len + 1);
    return rc == SY_E_OK ? check_directories(path, above, err) : rc;
}

enum sy_code
hook_check_program(const char *path, const struct sandbox_policy *policy,
                   const struct sandbox_plan *plan, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    struct place_shown_path shown;
    enum sy_code rc = SY_E_OK;

    if (path[0] != '/') {
        return sy_err_set(err, SY_E_CONFIG, "hook '%s': expected an absolute path",
                          place_visible_path(&shown, path));
    }
    rc = walk_run(&walk, path, err);
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM
                   ? rc
                   : sy_err_set(err, SY_E_CONFIG, "hook '%s': %s", place_visible_path(&shown, path),
                                sy_errno_text(err != NULL ? err->sys : 0));
    }
    rc = check_file(path, err);
    if (rc == SY_E_OK) {
        rc = check_name(path, path, policy, plan, err);
    }
    /* Whoever can turn one of the links on the way chooses the program. */
    for (size_t i = 0; i < walk.links.n && rc == SY_E_OK; i++) {
        rc = check_name(path, walk.links.v[i], policy, plan, err);
    }
    return rc == SY_E_OK ? check_name(path, buf_view(&walk.path), policy, plan, err) : rc;
}
