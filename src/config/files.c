#include <errno.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/trusted_file.h"
#include "config/config_internal.h"

const char *
config_home(const struct config_sources *sources)
{
    const char *home = strv_env_find(sources->environ_list, "HOME");

    return (home == NULL || home[0] != '/') && sources->home != NULL ? sources->home : home;
}

const char *
config_user_home(const struct config_sources *sources)
{
    const char *home = config_home(sources);

    return home != NULL && home[0] == '/' ? home : NULL;
}

enum sy_code
config_user_file(char **ret, const struct config_sources *sources, const char *name,
                 struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf b = {.max = LIMIT_PATH};
    const char *xdg = strv_env_find(sources->environ_list, "XDG_CONFIG_HOME");
    const char *home = config_home(sources);
    enum sy_code rc = SY_E_OK;

    /* The XDG base directory specification has relative paths ignored. */
    if (xdg != NULL && xdg[0] == '/') {
        rc = buf_addf(&b, "%s/shellyard/%s", xdg, name);
    } else if (home != NULL && home[0] == '/') {
        rc = buf_addf(&b, "%s/.config/shellyard/%s", home, name);
    } else {
        return SY_E_OK;
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "%s is longer than %u bytes",
                          xdg != NULL && xdg[0] == '/' ? "XDG_CONFIG_HOME" : "HOME", LIMIT_PATH);
    }

    char *path = rc == SY_E_OK ? buf_take(&b) : NULL;

    if (path == NULL) {
        return sy_err_nomem(err);
    }
    *ret = path;
    return SY_E_OK;
}

enum sy_code
config_user_path(char **ret, const struct config_sources *sources, struct sy_error *err)
{
    return config_user_file(ret, sources, "config.yaml", err);
}

/* The link itself, since one to nothing is an error of the reader. */
static bool
may_exist(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || errno != ENOENT;
}

bool
config_has_files(char *const *environ_list)
{
    const struct config_sources sources = {.environ_list = environ_list};
    SY_AUTO(mem_free_charp) char *user = NULL;

    if (may_exist(CONFIG_SYSTEM_PATH)) {
        return true;
    }
    /* Without a home, passwd(5) has to be asked, which is not done here. */
    return config_user_path(&user, &sources, NULL) != SY_E_OK || user == NULL || may_exist(user);
}

enum sy_code
config_read_file(struct buf *b, bool *ret_exists, const struct config_file *file,
                 struct sy_error *err)
{
    const struct trusted_file trusted = {
        .path = file->path,
        .workspace = file->workspace,
        .must_be_root = file->must_be_root,
        .way_out = file->source == CONFIG_FROM_USER ? "or move the file (XDG_CONFIG_HOME)" : NULL,
    };

    return trusted_file_read(b, ret_exists, &trusted, err);
}
