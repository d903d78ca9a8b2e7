#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/clients.h"

/* What the directory `root` (no links in it) opens beyond a project; NULL: nothing. */
static const char *
extent_of(const char *root, const char *home)
{
    if (str_eq(root, "/")) {
        return "the whole file system";
    }
    if (home[0] == '\0' || !path_is_below(home, root)) {
        return NULL;
    }
    return str_eq(root, home) ? "your whole home directory" : "all that your home directory is in";
}

static void
look_at(struct cli_wide *list, size_t *n, const struct cli_wide *root, const char *path,
        const char *home)
{
    struct cli_wide *w = &list[*n];
    char real[PATH_MAX];

    if (path == NULL || path[0] != '/' || realpath(path, real) == NULL) {
        return;
    }
    *w = *root;
    w->extent = extent_of(real, home);
    if (w->extent != NULL && strlen(real) < sizeof(w->path)) {
        memcpy(w->path, real, strlen(real) + 1);
        (*n)++;
    }
}

size_t
cli_wide_roots(struct cli_wide ret[CLI_WIDE_MAX], const struct cli_engine *e)
{
    static const struct cli_wide workspace = {
        .what = "workspace",
        .fix = "start in a project's directory or with -C DIR, or set sandbox.mode to read-only",
    };
    static const struct cli_wide tmpdir = {
        .what = "TMPDIR",
        .fix = "set sandbox.exclude_tmpdir_env_var to true, or TMPDIR to a directory for "
               "temporary files",
    };
    SY_AUTO(buf_fini) struct buf named = {.max = LIMIT_PATH};
    char home[PATH_MAX];
    const char *tmp = strv_env_find(e->environ_list, "TMPDIR");
    size_t n = 0;

    if (!str_eq(e->config.sandbox.mode, "workspace-write")) {
        return 0;
    }
    if (client_home(&named, e->environ_list, NULL) != SY_E_OK ||
        realpath(buf_view(&named), home) == NULL || str_eq(home, "/")) {
        home[0] = '\0';
    }
    look_at(ret, &n, &workspace, e->cwd, home);
    /* /tmp is a root by itself. */
    if (!e->config.sandbox.exclude_tmpdir_env_var && tmp != NULL && !str_eq(tmp, "/tmp")) {
        size_t before = n;

        look_at(ret, &n, &tmpdir, tmp, home);
        n = n > before && str_eq(ret[before].path, "/") ? before : n; /* which is none then */
    }
    return n;
}

void
cli_warn_of_wide_roots(const struct cli_engine *e)
{
    struct cli_wide list[CLI_WIDE_MAX];
    size_t n = log_enabled(LOG_WARN) ? cli_wide_roots(list, e) : 0;

    for (size_t i = 0; i < n; i++) {
        LOG(LOG_WARN, "sandbox", "commands may write more than a project",
            kv_str("extent", list[i].extent), kv_str("root", list[i].path),
            kv_str("from", list[i].what), kv_str("fix", list[i].fix));
    }
}
