#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "command/command.h"
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

        sy_err_sys(err, saved, "the working directory is gone or can't be named");
        err->code = SY_E_CWD;
        return err->code;
    }
    /* The kernel says "(unreachable)/..." outside of our root. */
    if (e->cwd[0] != '/') {
        return sy_err_set(err, SY_E_CWD, "the working directory '%s' is outside of the root",
                          e->cwd);
    }
    return SY_E_OK;
}

enum sy_code
cli_engine_load(struct cli_engine *ret, const struct cli_args *args, const char *dir,
                const char *mode, struct sy_error *err)
{
    memset(ret, 0, sizeof(*ret));
    ret->overrides.max = LIMIT_ARGV;

    enum sy_code rc = enter(ret, dir, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (strv_add_all(&ret->overrides, strv_view(&args->overrides)) != SY_E_OK ||
        (mode != NULL && strv_addf(&ret->overrides, "sandbox.mode=%s", mode) != SY_E_OK)) {
        return sy_err_nomem(err);
    }

    const char *home = getenv("HOME");
    SY_AUTO(mem_free_charp) char *passwd_shell = NULL;
    SY_AUTO(mem_free_charp) char *passwd_home = NULL;

    if (home == NULL || home[0] != '/') {
        rc = passwd_lookup(getuid(), &passwd_shell, &passwd_home, err);
        if (rc != SY_E_OK) {
            return rc;
        }
    }

    const struct config_sources sources = {
        .workspace = ret->cwd,
        .environ_list = environ,
        .home = passwd_home,
        .overrides = strv_view(&ret->overrides),
    };

    return config_load(&ret->config, &sources, err);
}

enum sy_code
cli_engine_turn(struct cli_engine *e, struct sy_error *err)
{
    return turn_from_config(&e->turn, &e->config, e->cwd, environ, err);
}

void
cli_engine_fini(struct cli_engine *e)
{
    turn_context_fini(&e->turn);
    config_fini(&e->config);
    strv_fini(&e->overrides);
}
