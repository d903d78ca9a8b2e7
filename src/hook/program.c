#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/place.h"
#include "base/str.h"
#include "hook/hook.h"

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
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
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
        if (!is_ours(&st) ||
            ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st.st_mode & S_ISVTX) == 0)) {
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
is_in(const char *path, const char *real, const char *root)
{
    char resolved[LIMIT_PATH];

    if (root == NULL) {
        return false;
    }
    return path_is_below(path, root) || path_is_below(real, root) ||
           (realpath(root, resolved) != NULL && path_is_below(real, resolved));
}

/* The plan knows all that is writable; the workspace stays none of the user's own places even
 * where nothing of it can be written. */
static enum sy_code
check_writable(const char *path, const char *real, const struct sandbox_policy *policy,
               const struct sandbox_plan *plan, struct sy_error *err)
{
    struct sandbox_explanation e;
    enum sy_code rc = SY_E_OK;

    if (is_in(path, real, policy->cwd) && !str_eq(policy->cwd, "/")) {
        return refuse_writable(path, policy->cwd, err);
    }
    for (size_t i = 0; i < policy->writable_roots.n; i++) {
        if (is_in(path, real, policy->writable_roots.v[i])) {
            return refuse_writable(path, policy->writable_roots.v[i], err);
        }
    }
    if (plan == NULL || !sandbox_mode_is_enforced(policy->mode)) {
        return SY_E_OK;
    }
    for (int i = 0; i < 2; i++) {
        rc = sandbox_explain(&e, plan, OPERATION_WRITE, i == 0 ? path : real, err);
        if (rc != SY_E_OK) {
            return rc;
        }
        if (e.is_allowed) {
            return refuse_writable(path, "a writable place of the sandbox", err);
        }
    }
    return SY_E_OK;
}

enum sy_code
hook_check_program(const char *path, const struct sandbox_policy *policy,
                   const struct sandbox_plan *plan, struct sy_error *err)
{
    char real[LIMIT_PATH];
    char as_written[LIMIT_PATH];
    struct place_shown_path shown;
    size_t len = strlen(path);

    if (path[0] != '/' || len >= sizeof(as_written) || realpath(path, real) == NULL) {
        return sy_err_set(err, SY_E_CONFIG, "hook '%s': %s", place_visible_path(&shown, path),
                          path[0] != '/' ? "expected an absolute path" : sy_errno_text(errno));
    }
    memcpy(as_written, path, len + 1);

    enum sy_code rc = check_file(path, err);

    if (rc == SY_E_OK) {
        rc = check_writable(path, real, policy, plan, err);
    }
    /* Where a link stands counts as well as where it leads. */
    if (rc == SY_E_OK) {
        rc = check_directories(path, as_written, err);
    }
    return rc == SY_E_OK ? check_directories(path, real, err) : rc;
}
