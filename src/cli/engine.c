#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/cli.h"
#include "command/command.h"
#include "guard/guard.h"
#include "sandbox/linux/linked.h"
#include "sandbox/linux/walk.h"
#include "tools/tools.h"

static enum sy_code
enter(struct cli_engine *e, const char *dir, struct sy_error *err)
{
    if (dir != NULL && chdir(dir) != 0) {
        int saved = errno;

        sy_err_sys(err, saved, "can't enter the working directory '%s'", dir);
        err->code = SY_E_CWD;
        return err->code;
    }
    if (getcwd(e->cwd, sizeof(e->cwd)) == NULL) {
        int saved = errno;
        const char *pwd = strv_env_find(e->environ_list, "PWD");
        struct place_shown_path shown;

        return sy_err_set(err, SY_E_CWD,
                          "the working directory%s%s%s is gone or can't be named (getcwd: %s): "
                          "cd to one that is there",
                          pwd != NULL ? ", '" : "",
                          pwd != NULL ? place_visible_path(&shown, pwd) : "",
                          pwd != NULL ? "' by PWD," : "", sy_errno_text(saved));
    }
    /* The kernel says "(unreachable)/..." outside of our root. */
    if (e->cwd[0] != '/') {
        return sy_err_set(err, SY_E_CWD, "the working directory '%s' is outside of the root",
                          e->cwd);
    }
    return SY_E_OK;
}

/* What a program would have in getcwd(3) after entering `dir` from `cwd`, which is what another one
 * had there: a link that leads to it by now is somebody else's. */
static enum sy_code
resolve(struct cli_engine *e, const char *cwd, const char *dir, struct sy_error *err)
{
    SY_FD from = walk_open(cwd);
    SY_FD to = from < 0 ? -1 : openat(from, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char link[32];

    if (to < 0 || faccessat(to, ".", X_OK, 0) != 0) {
        sy_err_sys(err, from < 0 ? -from : errno, "can't enter the working directory '%s'",
                   from < 0 ? cwd : dir);
        err->code = SY_E_CWD;
        return err->code;
    }
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", to);

    ssize_t n = readlink(link, e->cwd, sizeof(e->cwd));

    if (n < 0) {
        sy_err_sys(err, errno, "naming the working directory '%s' by /proc/self/fd", dir);
        err->code = SY_E_CWD;
        return err->code;
    }
    if (n == 0 || (size_t)n >= sizeof(e->cwd) || e->cwd[0] != '/') {
        return sy_err_set(err, SY_E_CWD, "the working directory '%s' can't be named", dir);
    }
    e->cwd[n] = '\0';
    return SY_E_OK;
}

static enum sy_code
load_with(struct config *ret, const struct cli_engine *e, const struct strv *overrides,
          const char *mode, struct sy_error *err)
{
    const char *home = strv_env_find(e->environ_list, "HOME");
    SY_AUTO(mem_free_charp) char *passwd_shell = NULL;
    SY_AUTO(mem_free_charp) char *passwd_home = NULL;

    if (home == NULL || home[0] != '/') {
        enum sy_code rc = passwd_lookup(getuid(), &passwd_shell, &passwd_home, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }

    const struct config_sources sources = {
        .workspace = e->cwd,
        .environ_list = e->environ_list,
        .home = passwd_home,
        .overrides = strv_view(overrides),
        .mode = mode,
    };
    enum sy_code rc = config_load(ret, &sources, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = guard_names_check(strv_view(&ret->sandbox.unprotected_names), err);
    if (rc != SY_E_OK) {
        sy_err_wrap(err, "sandbox.unprotected_names");
        config_fini(ret);
    }
    return rc;
}

/* Configuration, once the place is known. */
static enum sy_code
load(struct cli_engine *e, const struct cli_args *args, const char *mode, struct sy_error *err)
{
    if (strv_add_all(&e->overrides, strv_view(&args->overrides)) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    e->mode = mode;
    return load_with(&e->config, e, &e->overrides, mode, err);
}

static void
begin(struct cli_engine *e, char *const *environ_list)
{
    memset(e, 0, sizeof(*e));
    e->overrides.max = LIMIT_ARGV;
    e->environ_list = environ_list;
}

enum sy_code
cli_engine_load(struct cli_engine *ret, const struct cli_args *args, const char *dir,
                const char *mode, struct sy_error *err)
{
    begin(ret, environ);

    enum sy_code rc = enter(ret, dir, err);

    return rc == SY_E_OK ? load(ret, args, mode, err) : rc;
}

enum sy_code
cli_engine_load_for(struct cli_engine *ret, const struct cli_args *args, const char *cwd,
                    char *const *environ_list, struct sy_error *err)
{
    const char *dir = cli_get(args, "cwd");

    begin(ret, environ_list);

    enum sy_code rc = resolve(ret, cwd, dir != NULL ? dir : ".", err);

    return rc == SY_E_OK ? load(ret, args, cli_get(args, "sandbox"), err) : rc;
}

enum sy_code
cli_engine_turn(struct cli_engine *e, struct sy_error *err)
{
    return turn_from_config(&e->turn, &e->config, e->cwd, e->environ_list, err);
}

enum sy_code
cli_engine_turn_found(struct cli_engine *e, struct sy_error *err)
{
    enum sy_code rc = cli_engine_turn(e, err);

    if (rc == SY_E_OK && sandbox_policy_find_linked(&e->turn.sandbox) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc;
}

enum sy_code
cli_engine_try(struct config *ret, const struct cli_engine *e, const char *override,
               struct sy_error *err)
{
    SY_AUTO(strv_fini) struct strv overrides = {.max = e->overrides.n + 1};

    if (strv_add_all(&overrides, strv_view(&e->overrides)) != SY_E_OK ||
        strv_add(&overrides, override) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    /* The last word counts, also over -s. */
    return load_with(ret, e, &overrides, str_starts(override, "sandbox.mode=") ? NULL : e->mode,
                     err);
}

void
cli_engine_fini(struct cli_engine *e)
{
    turn_context_fini(&e->turn);
    config_fini(&e->config);
    strv_fini(&e->overrides);
}

/* Why neither variable names one. */
static enum sy_code
no_state_dir(struct sy_error *err)
{
    const char *home = strv_env_find(environ, "HOME");
    SY_AUTO(buf_fini) struct buf shown = {.max = 256};
    struct stat st;
    int failed = 0;

    if (home == NULL || home[0] == '\0') {
        return sy_err_set(err, SY_E_CONFIG,
                          "there is no state directory: set HOME or XDG_STATE_HOME");
    }
    if (str_add_visible(&shown, home, strlen(home), 120) == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (home[0] != '/') {
        return sy_err_set(
            err, SY_E_CONFIG,
            "there is no state directory: HOME is '%s', which is not absolute; set it "
            "to a directory, or XDG_STATE_HOME",
            buf_view(&shown));
    }
    failed = stat(home, &st) == 0 ? ENOTDIR : errno;
    (void)sy_err_sys(err, failed,
                     "there is no state directory (set XDG_STATE_HOME, or HOME to a directory that "
                     "is there), since HOME is '%s'",
                     buf_view(&shown));
    err->code = SY_E_CONFIG;
    return SY_E_CONFIG;
}

enum sy_code
cli_state_dir(struct buf *ret, struct sy_error *err)
{
    enum sy_code rc = guard_state_dir(ret, environ);

    if (rc == SY_E_NOTFOUND) {
        return no_state_dir(err);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}
