#include "sandbox/transform.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/document.h"
#include "sandbox/macos/seatbelt.h"
#include "sandbox/windows/token.h"

static const char seatbelt_program[] = "/usr/bin/sandbox-exec";

const char *
sandbox_type_name(enum sandbox_type type)
{
    switch (type) {
    case SANDBOX_NONE:
        break;
    case SANDBOX_MACOS_SEATBELT:
        return "macos-seatbelt";
    case SANDBOX_LINUX_SECCOMP:
        return "linux-seccomp";
    case SANDBOX_WINDOWS_RESTRICTED_TOKEN:
        return "windows-restricted-token";
    }
    return "none";
}

enum sandbox_type
sandbox_type_for(enum sandbox_mode mode, enum sandbox_platform platform)
{
    if (!sandbox_mode_is_enforced(mode)) {
        return SANDBOX_NONE;
    }
    switch (platform) {
    case PLATFORM_LINUX:
        return SANDBOX_LINUX_SECCOMP;
    case PLATFORM_MACOS:
        return SANDBOX_MACOS_SEATBELT;
    case PLATFORM_WINDOWS:
        return SANDBOX_WINDOWS_RESTRICTED_TOKEN;
    case PLATFORM_COUNT:
        break;
    }
    return SANDBOX_NONE;
}

void
sandbox_exec_env_fini(struct sandbox_exec_env *e)
{
    strv_fini(&e->command);
    strv_fini(&e->env);
    buf_fini(&e->document);
    mem_free(e->cwd);
    e->cwd = NULL;
}

static enum sy_code
out_of(enum sy_code rc, struct sy_error *err)
{
    if (rc == SY_E_OK || rc == SY_E_NOMEM) {
        return rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    return sy_err_set(err, rc, "the wrapped command or its policy is too long");
}

static enum sy_code
add_seatbelt(struct sandbox_exec_env *e, const struct sandbox_transform *t,
             const struct seatbelt_plan *plan)
{
    enum sy_code rc = strv_add(&e->command, seatbelt_program);

    if (rc == SY_E_OK) {
        rc = strv_add(&e->command, t->profile_path != NULL ? "-f" : "-p");
    }
    if (rc == SY_E_OK) {
        rc = strv_add(&e->command,
                      t->profile_path != NULL ? t->profile_path : buf_view(&plan->profile));
    }
    for (size_t i = 0; rc == SY_E_OK && i < plan->params.n; i++) {
        rc = strv_add(&e->command, "-D");
        if (rc == SY_E_OK) {
            rc = strv_add(&e->command, plan->params.v[i]);
        }
    }
    if (rc == SY_E_OK && t->argv[0][0] == '-') {
        rc = strv_add(&e->command, "--");
    }
    if (rc == SY_E_OK) {
        rc = strv_env_set(&e->env, "CODEX_SANDBOX", "seatbelt");
    }
    return rc == SY_E_OK ? buf_add(&e->document, plan->profile.data, plan->profile.len) : rc;
}

/* What programs that honour it need to find the one way out. */
static enum sy_code
add_proxy(struct strv *env, uint16_t port)
{
    static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                                        "http_proxy", "https_proxy", "all_proxy"};
    SY_AUTO(buf_fini) struct buf url = {.max = LIMIT_PATH};
    enum sy_code rc = buf_addf(&url, "http://localhost:%u", (unsigned)port);

    for (size_t i = 0; rc == SY_E_OK && i < sizeof(names) / sizeof(names[0]); i++) {
        rc = strv_env_set(env, names[i], buf_view(&url));
    }
    return rc;
}

static enum sy_code
wrap_macos(struct sandbox_exec_env *e, const struct sandbox_transform *t, struct sy_error *err)
{
    struct seatbelt_plan plan;
    enum sy_code rc = SY_E_OK;

    if (t->profile_path != NULL && t->profile_path[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "the profile's path '%.120s' is not absolute",
                          t->profile_path);
    }
    rc = seatbelt_plan_init(&plan, t->request, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = add_seatbelt(e, t, &plan);
    if (rc == SY_E_OK && plan.proxy_port != 0) {
        rc = add_proxy(&e->env, plan.proxy_port);
    }
    seatbelt_plan_fini(&plan);
    return out_of(rc, err);
}

/* The policy for the wrapper, in the specification's names. */
static enum sy_code
write_policy(struct buf *out, const struct elsewhere_request *r)
{
    const struct sandbox_policy *p = r->policy;
    struct jw w = {.out = out};

    jw_object(&w);
    sandbox_policy_write(&w, p);
    jw_key_exact_list(&w, "deny_read", r->deny_read);
    jw_key_exact_list(&w, "protected_names", elsewhere_names(r));
    if (r->proxy_port != 0 && !p->has_network) {
        jw_key_int(&w, "proxy_port", r->proxy_port);
    }
    jw_end_object(&w);
    return jw_done(&w);
}

static enum sy_code
check_linux(const struct sandbox_transform *t, struct sy_error *err)
{
    const struct sandbox_policy *p = t->request->policy;

    if (t->wrapper == NULL || t->wrapper[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "the wrapper's path '%.120s' is not absolute",
                          t->wrapper != NULL ? t->wrapper : "");
    }
    if (t->policy_fd <= 2) {
        return sy_err_set(err, SY_E_ARG, "the policy's descriptor %d is not above 2", t->policy_fd);
    }
    if (p->cwd == NULL || p->cwd[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "the policy's working directory '%.120s' is not absolute",
                          p->cwd != NULL ? p->cwd : "");
    }
    return elsewhere_check_names(t->request, err);
}

static enum sy_code
wrap_linux(struct sandbox_exec_env *e, const struct sandbox_transform *t, struct sy_error *err)
{
    enum sy_code rc = check_linux(t, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = strv_add(&e->command, t->wrapper);
    if (rc == SY_E_OK) {
        rc = strv_add(&e->command, "--policy");
    }
    if (rc == SY_E_OK) {
        rc = strv_addf(&e->command, "%d", t->policy_fd);
    }
    if (rc == SY_E_OK) {
        rc = strv_add(&e->command, "--");
    }
    if (rc == SY_E_OK && t->request->proxy_port != 0 && !t->request->policy->has_network) {
        rc = add_proxy(&e->env, t->request->proxy_port);
    }
    return out_of(rc == SY_E_OK ? write_policy(&e->document, t->request) : rc, err);
}

static enum sy_code
wrap_windows(struct sandbox_exec_env *e, const struct sandbox_transform *t, struct sy_error *err)
{
    const struct token_caps caps = {.has_network_filter = t->has_network_filter};
    struct jw w = {.out = &e->document};
    struct token_plan plan;
    enum sy_code rc = token_plan_init(&plan, t->request, &caps, err);

    if (rc != SY_E_OK) {
        if (rc == SY_E_SANDBOX) {
            token_plan_fini(&plan);
        }
        return rc;
    }
    jw_object(&w);
    token_plan_write(&w, &plan);
    jw_end_object(&w);
    rc = jw_done(&w);
    if (rc == SY_E_OK) {
        rc = strv_add_all(&e->env, strv_view(&plan.environment));
    }
    token_plan_fini(&plan);
    return out_of(rc, err);
}

static enum sy_code
wrap(struct sandbox_exec_env *e, const struct sandbox_transform *t, struct sy_error *err)
{
    switch (e->sandbox) {
    case SANDBOX_MACOS_SEATBELT:
        return wrap_macos(e, t, err);
    case SANDBOX_LINUX_SECCOMP:
        return wrap_linux(e, t, err);
    case SANDBOX_WINDOWS_RESTRICTED_TOKEN:
        return wrap_windows(e, t, err);
    case SANDBOX_NONE:
        break;
    }
    return SY_E_OK;
}

static enum sy_code
check(const struct sandbox_transform *t, struct sy_error *err)
{
    bool is_absolute = t->cwd != NULL && t->cwd[0] == '/';

    if (t->argv == NULL || t->argv[0] == NULL || t->argv[0][0] == '\0') {
        return sy_err_set(err, SY_E_ARG, "no command to run in the sandbox");
    }
    if (t->platform == PLATFORM_WINDOWS && t->cwd != NULL) {
        SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

        return token_path(&path, "working directory", t->cwd, err);
    }
    if (!is_absolute) {
        return sy_err_set(err, SY_E_ARG, "the working directory '%.120s' is not absolute",
                          t->cwd != NULL ? t->cwd : "");
    }
    return SY_E_OK;
}

static enum sy_code
transform(struct sandbox_exec_env *e, const struct sandbox_transform *t, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (!sandbox_policy_has_network(t->request->policy)) {
        rc = out_of(strv_env_set(&e->env, "CODEX_SANDBOX_NETWORK_DISABLED", "1"), err);
    }
    if (rc == SY_E_OK) {
        rc = wrap(e, t, err);
    }
    if (rc == SY_E_OK) {
        rc = out_of(strv_add_all(&e->command, t->argv), err);
    }
    if (rc == SY_E_OK) {
        e->cwd = mem_strdup(t->cwd);
        rc = e->cwd != NULL ? SY_E_OK : sy_err_nomem(err);
    }
    return rc;
}

enum sy_code
sandbox_transform(struct sandbox_exec_env *ret, const struct sandbox_transform *t,
                  struct sy_error *err)
{
    struct sandbox_exec_env e = {
        .sandbox = sandbox_type_for(t->request->policy->mode, t->platform),
        .command = {.max = LIMIT_ARGV},
        .env = {.max = LIMIT_ENV},
        .document = {.max = LIMIT_CLI_TEXT},
    };
    enum sy_code rc = check(t, err);

    if (rc == SY_E_OK) {
        rc = transform(&e, t, err);
    }
    if (rc != SY_E_OK) {
        sandbox_exec_env_fini(&e);
        return rc;
    }
    *ret = e;
    return SY_E_OK;
}
