#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/tools.h"

static const char *
environ_get(char *const *list, const char *name)
{
    size_t n = strlen(name);

    for (; list != NULL && *list != NULL; list++) {
        if (strncmp(*list, name, n) == 0 && (*list)[n] == '=') {
            return *list + n + 1;
        }
    }
    return NULL;
}

static enum sy_code
copy_list(struct strv *ret, const struct strv *from, size_t max)
{
    *ret = (struct strv){.max = max};
    return strv_add_all(ret, strv_view(from));
}

static enum sy_code
fill_sandbox(struct sandbox_policy *ret, const struct config *config, const char *cwd,
             char *const *environ_list)
{
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    const char *tmpdir = environ_get(environ_list, "TMPDIR");
    enum sy_code rc = path_normalize(&normal, cwd);

    if (rc != SY_E_OK) {
        return rc;
    }
    ret->has_network = config->sandbox.network_access;
    ret->excludes_tmpdir = config->sandbox.exclude_tmpdir_env_var;
    ret->excludes_slash_tmp = config->sandbox.exclude_slash_tmp;
    ret->runs_as_self = str_eq(config->sandbox.run_as, "self");
    ret->max_tier = str_eq(config->sandbox.tier, "no-namespace") ? TIER_NO_NAMESPACE : TIER_FULL;
    ret->min_tier = str_eq(config->sandbox.tier, "full") || str_eq(config->sandbox.min_tier, "full")
                        ? TIER_FULL
                        : TIER_NO_NAMESPACE;
    ret->cwd = buf_take(&normal);
    if (ret->cwd == NULL) {
        return SY_E_NOMEM;
    }
    if (tmpdir != NULL && tmpdir[0] == '/') {
        rc = path_normalize(&normal, tmpdir);
        if (rc != SY_E_OK) {
            return rc;
        }
        ret->tmpdir = buf_take(&normal);
        if (ret->tmpdir == NULL) {
            return SY_E_NOMEM;
        }
    }
    return copy_list(&ret->writable_roots, &config->sandbox.writable_roots, LIMIT_ROOTS);
}

static enum sy_code
fill_env(struct env_policy *ret, const struct config *config)
{
    ret->default_excludes = config->environment.default_excludes;

    enum sy_code rc = copy_list(&ret->exclude, &config->environment.exclude, LIMIT_ENV);

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
}

enum sy_code
turn_from_config(struct turn_context *ret, const struct config *config, const char *cwd,
                 char *const *environ_list, struct sy_error *err)
{
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
    fill_limits(&ret->limits, config);
    ret->cwd = mem_strdup(cwd);

    enum sy_code rc = ret->cwd == NULL ? SY_E_NOMEM : SY_E_OK;

    if (rc == SY_E_OK) {
        rc = fill_sandbox(&ret->sandbox, config, cwd, environ_list);
    }
    if (rc == SY_E_OK) {
        rc = fill_env(&ret->env, config);
    }
    if (rc == SY_E_OK) {
        return rc;
    }
    turn_context_fini(ret);
    return rc == SY_E_LIMIT ? sy_err_set(err, rc, "a path or list of the policy is too long")
                            : sy_err_nomem(err);
}

void
session_options_from_config(struct session_options *ret, const struct config *config,
                            char *const *environ_list)
{
    *ret = (struct session_options){
        .shell_path = config->shell.path,
        .login_snapshot = config->shell.snapshot,
        .snapshot_timeout_ms = (uint64_t)config->shell.snapshot_timeout_ms,
        .environ_list = environ_list,
        .protects = config->sandbox.protect,
        .unprotected = strv_view(&config->sandbox.unprotected_names),
    };
}
