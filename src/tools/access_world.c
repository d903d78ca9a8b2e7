#include "tools/access_world.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "guard/guard.h"
#include "sandbox/linux/walk.h"

/* Of each list: homes, and what Shellyard has in each of them. */
#define PLACES 64U
/* Shellyard's own, and the hooks of both events: each by its name, where it is, and the links on
 * the way, of which a path has no more than 40. */
#define PROGRAMS (PLACES + 2U * LIMIT_HOOKS * 42U)

void
access_surroundings_fini(struct access_surroundings *s)
{
    strv_fini(&s->homes);
    strv_fini(&s->own);
    strv_fini(&s->programs);
    strv_fini(&s->protected);
    *s = (struct access_surroundings){0};
}

/* As it is written, and where it is: either may be compared with. */
static enum sy_code
add_place(struct strv *list, const char *dir, const char *below)
{
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)LIMIT_PATH * 2};
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    char real[PATH_MAX];
    enum sy_code rc = buf_addf(&path, "%s%s", dir, below);

    if (rc == SY_E_OK && dir[0] == '/') {
        rc = path_normalize(&normal, buf_view(&path));
    }
    if (rc != SY_E_OK || normal.len == 0) {
        return rc == SY_E_LIMIT ? SY_E_OK : rc; /* no place has so long a name */
    }
    rc = strv_add(list, buf_view(&normal));
    if (rc == SY_E_OK && realpath(buf_view(&normal), real) != NULL &&
        !str_eq(real, buf_view(&normal))) {
        rc = strv_add(list, real);
    }
    return rc;
}

static enum sy_code
add_variable(struct strv *list, char *const *environ_list, const char *name, const char *below)
{
    const char *value = strv_env_find(environ_list, name);

    return value != NULL ? add_place(list, value, below) : SY_E_OK;
}

static enum sy_code
add_homes(struct strv *homes, const struct sandbox_policy *policy, char *const *environ_list)
{
    enum sy_code rc = add_variable(homes, environ_list, "HOME", "");

    if (rc == SY_E_OK) {
        rc = add_place(homes, "/root", "");
    }
    for (size_t i = 0; i < policy->deny_homes.n && rc == SY_E_OK; i++) {
        rc = add_place(homes, policy->deny_homes.v[i], "");
    }
    return rc;
}

static enum sy_code
add_own(struct strv *own, const struct sandbox_policy *policy, const struct strv *homes,
        char *const *environ_list)
{
    static const char *const in_home[] = {"/.config/shellyard", "/.local/state/shellyard",
                                          "/.cache/shellyard", "/.local/share/shellyard"};
    static const char *const variables[] = {"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
                                            "XDG_DATA_HOME", "XDG_RUNTIME_DIR"};
    enum sy_code rc = add_place(own, "/etc/shellyard", "");

    for (size_t i = 0; i < homes->n; i++) {
        for (size_t k = 0; k < sizeof(in_home) / sizeof(in_home[0]) && rc == SY_E_OK; k++) {
            rc = add_place(own, homes->v[i], in_home[k]);
        }
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && rc == SY_E_OK; i++) {
        rc = add_variable(own, environ_list, variables[i], "/shellyard");
    }
    for (size_t i = 0; i < policy->own_dirs.n && rc == SY_E_OK; i++) {
        rc = add_place(own, policy->own_dirs.v[i], "");
    }
    return rc;
}

/* Where this program is, which holds the launcher as well when it is not installed. */
static enum sy_code
add_programs(struct strv *programs)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash = NULL;

    if (n <= 0) {
        return SY_E_OK;
    }
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash != NULL && slash != self) {
        *slash = '\0';
    }
    return add_place(programs, self, "");
}

/* A hook has a say in what runs, and runs outside of the sandbox: who can write it, or turn a link
 * on the way to it, speaks for the person. */
static enum sy_code
add_hooks(struct strv *programs, const struct strv *hooks)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < hooks->n && rc == SY_E_OK; i++) {
        SY_AUTO(walk_fini) struct walk walk = {0};
        struct sy_error why = {0};

        rc = add_place(programs, hooks->v[i], "");
        if (rc == SY_E_OK && walk_run(&walk, hooks->v[i], &why) != SY_E_OK) {
            rc =
                why.code == SY_E_NOMEM ? SY_E_NOMEM : SY_E_OK; /* it leads nowhere: it is not run */
        }
        for (size_t k = 0; k < walk.links.n && rc == SY_E_OK; k++) {
            rc = strv_add(programs, walk.links.v[k]);
        }
    }
    return rc;
}

/* Those that are the name of a file; the others are parts of a git directory. */
static enum sy_code
add_protected(struct strv *names, const struct config *config)
{
    enum sy_code rc = SY_E_OK;

    for (int i = 0; config->sandbox.protect && i < GUARD_NAME_COUNT && rc == SY_E_OK; i++) {
        const char *name = guard_name_text((enum guard_name)i);

        if (name[0] == '.' && strchr(name, '/') == NULL && !str_eq(name, ".git-file") &&
            !strv_has(&config->sandbox.unprotected_names, name)) {
            rc = strv_add(names, name);
        }
    }
    return rc;
}

enum sy_code
access_surroundings_find(struct access_surroundings *ret, const struct config *config,
                         const struct sandbox_policy *policy, char *const *environ_list,
                         struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    *ret = (struct access_surroundings){.homes = {.max = PLACES},
                                        .own = {.max = (size_t)PLACES * 8},
                                        .programs = {.max = PROGRAMS},
                                        .protected = {.max = GUARD_NAME_COUNT}};
    rc = add_homes(&ret->homes, policy, environ_list);
    if (rc == SY_E_OK) {
        rc = add_own(&ret->own, policy, &ret->homes, environ_list);
    }
    if (rc == SY_E_OK) {
        rc = add_programs(&ret->programs);
    }
    if (rc == SY_E_OK) {
        rc = add_hooks(&ret->programs, &config->hooks.pre_exec);
    }
    if (rc == SY_E_OK) {
        rc = add_hooks(&ret->programs, &config->hooks.permission_request);
    }
    if (rc == SY_E_OK) {
        rc = add_protected(&ret->protected, config);
    }
    ret->world = (struct access_world){
        .homes = strv_view(&ret->homes),
        .own = strv_view(&ret->own),
        .programs = strv_view(&ret->programs),
        .protected = strv_view(&ret->protected),
    };
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}
