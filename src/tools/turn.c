#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "command/command.h"
#include "sandbox/deny.h"
#include "sandbox/linux/walk.h"
#include "tools/tools.h"

/* $HOME, the account's, and as root that of the workspace's owner. */
#define DENY_HOMES 3
/* State and configuration, of each home and where variables put them. */
#define OWN_DIRS (2 * DENY_HOMES + 2)

/* What errors show of where a key was set. */
#define SHOWN_PATH 120

static enum sy_code
copy_list(struct strv *ret, const struct strv *from, size_t max)
{
    *ret = (struct strv){.max = max};
    return strv_add_all(ret, strv_view(from));
}

/* A file of that name is no place for temporary ones, and not to be written to; nor is /, which
 * would open everything. */
static bool
is_for_files(const char *tmpdir)
{
    struct stat st;
    struct stat top;

    if (tmpdir == NULL || tmpdir[0] != '/') {
        return false;
    }
    if (stat(tmpdir, &st) != 0) {
        return true;
    }
    return S_ISDIR(st.st_mode) &&
           (stat("/", &top) != 0 || st.st_dev != top.st_dev || st.st_ino != top.st_ino);
}

static enum sy_code
fill_sandbox(struct sandbox_policy *ret, const struct config *config, const char *cwd,
             char *const *environ_list)
{
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    const char *tmpdir = strv_env_find(environ_list, "TMPDIR");
    enum sy_code rc = SY_E_OK;

    ret->finds_linked = config->sandbox.linked_worktrees;
    ret->keeps_roots = config_requires(config, "sandbox.writable_roots");
    ret->keeps_network = config_requires(config, "network.allow");
    ret->keeps_reads = config_requires(config, "sandbox.allow_read");
    ret->has_network = config->sandbox.network_access;
    ret->excludes_tmpdir = config->sandbox.exclude_tmpdir_env_var;
    ret->excludes_slash_tmp = config->sandbox.exclude_slash_tmp;
    ret->reports_all = str_eq(config->sandbox.report, "full");
    ret->temp_bytes = (uint64_t)config->limits.temp_bytes;
    ret->protects = config->sandbox.protect;
    ret->runs_as_self = str_eq(config->sandbox.run_as, "self");
    ret->max_tier = str_eq(config->sandbox.tier, "no-namespace") ? TIER_NO_NAMESPACE : TIER_FULL;
    ret->min_tier = str_eq(config->sandbox.tier, "full") || str_eq(config->sandbox.min_tier, "full")
                        ? TIER_FULL
                        : TIER_NO_NAMESPACE;
    ret->cwd = mem_strdup(cwd);
    ret->cwd_has_no_links = true;
    if (ret->cwd == NULL) {
        return SY_E_NOMEM;
    }
    if (is_for_files(tmpdir)) {
        rc = path_normalize(&normal, tmpdir);
        if (rc != SY_E_OK) {
            return rc;
        }
        ret->tmpdir = buf_take(&normal);
        if (ret->tmpdir == NULL) {
            return SY_E_NOMEM;
        }
    }
    rc = copy_list(&ret->writable_roots, &config->sandbox.writable_roots, LIMIT_ROOTS);
    return rc == SY_E_OK ? copy_list(&ret->network_allow, &config->network.allow, LIMIT_PROXY_ALLOW)
                         : rc;
}

/* The home of the account, whatever $HOME says, and as root that of the person
 * whose workspace it is. */
static enum sy_code
add_home(struct strv *homes, unsigned uid, struct sy_error *err)
{
    SY_AUTO(mem_free_charp) char *shell = NULL;
    SY_AUTO(mem_free_charp) char *home = NULL;
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    enum sy_code rc = passwd_lookup(uid, &shell, &home, err);

    if (rc != SY_E_OK || home == NULL || home[0] != '/') {
        return rc;
    }
    rc = path_normalize(&normal, home);
    for (size_t i = 0; i < homes->n && rc == SY_E_OK; i++) {
        if (str_eq(homes->v[i], buf_view(&normal))) {
            return SY_E_OK;
        }
    }
    return rc == SY_E_OK ? strv_add(homes, buf_view(&normal)) : rc;
}

static enum sy_code
fill_homes(struct strv *homes, const char *cwd, char *const *environ_list, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    const char *home = strv_env_find(environ_list, "HOME");
    struct stat st;
    enum sy_code rc = SY_E_OK;

    if (home != NULL && home[0] == '/') {
        rc = path_normalize(&normal, home);
        if (rc == SY_E_OK) {
            rc = strv_add(homes, buf_view(&normal));
        }
    }
    if (rc == SY_E_OK) {
        rc = add_home(homes, geteuid(), err);
    }
    if (rc == SY_E_OK && geteuid() == 0 && stat(cwd, &st) == 0 && st.st_uid != 0) {
        rc = add_home(homes, st.st_uid, err);
    }
    return rc;
}

/* A key of ours is nobody's business in the sandbox. */
static enum sy_code
hide_key(struct strv *ret, const char *path)
{
    SY_AUTO(buf_fini) struct buf pattern = {.max = (size_t)LIMIT_PATH * 3};
    enum sy_code rc = SY_E_OK;

    if (path == NULL || path[0] == '\0') {
        return rc;
    }
    rc = path_pattern_quote(&pattern, path);
    return rc == SY_E_OK ? strv_add(ret, buf_view(&pattern)) : rc;
}

static enum sy_code
add_own(struct strv *ret, const char *dir, const char *below)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    enum sy_code rc = buf_addf(&path, "%s/%s", dir, below);

    if (rc == SY_E_OK) {
        rc = path_normalize(&normal, buf_view(&path));
    }
    return rc == SY_E_OK ? strv_add_once(ret, buf_view(&normal)) : rc;
}

/* Where Shellyard has its state and its configuration, for whoever these homes are. */
static enum sy_code
fill_own(struct sandbox_policy *ret, const char *cwd, char *const *environ_list,
         struct sy_error *err)
{
    SY_AUTO(strv_fini) struct strv found = {.max = DENY_HOMES};
    const struct strv *homes = ret->deny_homes.n > 0 ? &ret->deny_homes : &found;
    const char *state = strv_env_find(environ_list, "XDG_STATE_HOME");
    const char *conf = strv_env_find(environ_list, "XDG_CONFIG_HOME");
    enum sy_code rc = homes == &found ? fill_homes(&found, cwd, environ_list, err) : SY_E_OK;

    ret->own_dirs.max = OWN_DIRS;
    if (rc == SY_E_OK && state != NULL && state[0] == '/') {
        rc = add_own(&ret->own_dirs, state, "shellyard");
    }
    if (rc == SY_E_OK && conf != NULL && conf[0] == '/') {
        rc = add_own(&ret->own_dirs, conf, "shellyard");
    }
    for (size_t i = 0; i < homes->n && rc == SY_E_OK; i++) {
        rc = add_own(&ret->own_dirs, homes->v[i], ".local/state/shellyard");
        if (rc == SY_E_OK) {
            rc = add_own(&ret->own_dirs, homes->v[i], ".config/shellyard");
        }
    }
    return rc;
}

static enum sy_code
fill_deny_read(struct sandbox_policy *ret, const struct config *config, const char *cwd,
               char *const *environ_list, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    ret->deny_read.max = LIMIT_DENY_PATTERNS;
    ret->deny_homes.max = DENY_HOMES;
    if (config->sandbox.default_deny_read) {
        rc = fill_homes(&ret->deny_homes, cwd, environ_list, err);

        const struct deny_sources from = {
            .homes = strv_view(&ret->deny_homes),
            .environ_list = environ_list,
            .allow_read = strv_view(&config->sandbox.allow_read),
        };

        if (rc == SY_E_OK) {
            rc = deny_add_named(&ret->deny_read, &from, err);
        }
        /* Permissions close these to everybody but root. */
        ret->denies_system = geteuid() == 0;
        ret->closes_devices = true;
    }
    ret->n_default_deny_read = ret->deny_read.n;
    if (rc == SY_E_OK) {
        rc = copy_list(&ret->allow_read, &config->sandbox.allow_read, LIMIT_DENY_READ);
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&ret->deny_read, strv_view(&config->sandbox.deny_read));
    }
    rc = rc == SY_E_OK ? hide_key(&ret->deny_read, config->assessment.key_file) : rc;
    return rc == SY_E_OK ? hide_key(&ret->deny_read, config->telemetry.otlp_headers_file) : rc;
}

static enum sy_code
fill_env(struct env_policy *ret, const struct config *config)
{
    ret->default_excludes = config->environment.default_excludes;

    enum sy_code rc = copy_list(&ret->exclude, &config->environment.exclude, LIMIT_ENV);
    const char *ours = config->telemetry.otlp_headers_env;

    /* It holds a secret of Shellyard's own. */
    if (rc == SY_E_OK && ours != NULL && ours[0] != '\0') {
        rc = strv_add(&ret->exclude, ours);
    }
    if (rc == SY_E_OK) {
        rc = copy_list(&ret->set, &config->environment.set, LIMIT_ENV);
    }
    if (rc == SY_E_OK) {
        rc = copy_list(&ret->include_only, &config->environment.include_only, LIMIT_ENV);
    }
    return rc;
}

static void
fill_limits(struct resource_limits *ret, const struct config *config)
{
    ret->most[RESOURCE_MEMORY] = (uint64_t)config->limits.memory_bytes;
    ret->most[RESOURCE_PROCESSES] = (uint64_t)config->limits.processes;
    ret->most[RESOURCE_OPEN_FILES] = (uint64_t)config->limits.open_files;
    ret->most[RESOURCE_FILE_SIZE] = (uint64_t)config->limits.file_bytes;
    ret->most[RESOURCE_CPU] = (uint64_t)config->limits.cpu_seconds;
    ret->most[RESOURCE_OUTPUT] = (uint64_t)config->limits.output_bytes;
    ret->most[RESOURCE_TEMP] = (uint64_t)config->limits.temp_bytes;
}

struct approval_granular
turn_granular(const struct config *config)
{
    return (struct approval_granular){
        .sandbox_approval = config->approval.granular_sandbox_approval,
        .rules = config->approval.granular_rules,
    };
}

/* `cwd` without links. */
static enum sy_code
fill(struct turn_context *ret, const struct config *config, const char *cwd,
     char *const *environ_list, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    ret->cwd = mem_strdup(cwd);
    if (ret->cwd == NULL) {
        return SY_E_NOMEM;
    }
    rc = fill_sandbox(&ret->sandbox, config, cwd, environ_list);
    if (rc == SY_E_OK) {
        rc = fill_deny_read(&ret->sandbox, config, cwd, environ_list, err);
    }
    if (rc == SY_E_OK) {
        rc = fill_own(&ret->sandbox, cwd, environ_list, err);
    }
    if (rc == SY_E_OK) {
        rc = deny_check_own(strv_view(&config->sandbox.allow_read),
                            strv_view(&ret->sandbox.own_dirs), err);
    }
    return rc == SY_E_OK ? fill_env(&ret->env, config) : rc;
}

enum sy_code
turn_from_config(struct turn_context *ret, const struct config *config, const char *cwd,
                 char *const *environ_list, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};

    *ret = (struct turn_context){.sandbox_required = config->sandbox.required};
    if (cwd[0] != '/') {
        return sy_err_set(err, SY_E_CWD, "working directory '%s' is not absolute", cwd);
    }
    /* Configuration has checked these words already. */
    if (!sandbox_mode_parse(&ret->sandbox.mode, config->sandbox.mode) ||
        !approval_policy_parse(&ret->approval, config->approval.policy) ||
        !env_inherit_parse(&ret->env.inherit, config->environment.inherit)) {
        return sy_err_set(err, SY_E_INTERNAL, "configuration holds a word that no room knows");
    }
    ret->asks_for_all = str_eq(config->approval.on_request, "all");
    ret->granular = turn_granular(config);
    fill_limits(&ret->limits, config);

    /* Whoever leads here later by a link would choose what commands may write. */
    struct sy_error why = {0};
    enum sy_code rc = walk_run(&walk, cwd, &why);

    if (rc == SY_E_OK) {
        rc = fill(ret, config, buf_view(&walk.path), environ_list, &why);
    }
    if (rc == SY_E_OK) {
        return rc;
    }
    turn_context_fini(ret);
    if (why.code != SY_E_OK) {
        return sy_err_set(err, why.code, "%s", why.msg);
    }
    return rc == SY_E_LIMIT ? sy_err_set(err, rc, "a path or list of the policy is too long")
                            : sy_err_nomem(err);
}

void
session_options_from_config(struct session_options *ret, const struct config *config,
                            char *const *environ_list)
{
    SY_AUTO(buf_fini) struct buf where = {.max = LIMIT_PATH + 32};

    *ret = (struct session_options){
        .shell_path = config->shell.path,
        .login_snapshot = config->shell.snapshot,
        .snapshot_timeout_ms = (uint64_t)config->shell.snapshot_timeout_ms,
        .environ_list = environ_list,
        .protects = config->sandbox.protect,
        .unprotected = strv_view(&config->sandbox.unprotected_names),
    };
    /* Of a long path its end says more. */
    if (config_where(&where, config, "shell.path") == SY_E_OK) {
        (void)snprintf(ret->shell_from, sizeof(ret->shell_from), "shell.path (%s)",
                       buf_view(&where) + (where.len > SHOWN_PATH ? where.len - SHOWN_PATH : 0));
    }
}
