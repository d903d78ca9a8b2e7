#include <string.h>

#include "base/limits.h"
#include "process/env.h"
#include "process/env_internal.h"

/* Set by the shell for itself, or for a person's prompt: what a login shell
 * has there says nothing about the user's environment. */
static const char *const shell_own_names[] = {
    "PWD", "OLDPWD", "SHLVL", "_", "PS1", "PS2", "PS3", "PS4", "PROMPT", "RPROMPT", "RPS1",
};

bool
name_is(struct name name, const char *text)
{
    return name.n > 0 && name.s[0] == text[0] && strncmp(name.s, text, name.n) == 0 &&
           text[name.n] == '\0';
}

bool
name_is_listed(struct name name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (name_is(name, list[i])) {
            return true;
        }
    }
    return false;
}

struct name
name_of(const char *entry)
{
    return (struct name){entry, str_env_name(entry)};
}

size_t
name_index(const struct strv *list, struct name name)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *entry = list->v[i];

        if (entry[0] == name.s[0] && strncmp(entry, name.s, name.n) == 0 && entry[name.n] == '=') {
            return i;
        }
    }
    return list->n;
}

/* Appends the directories of `more` that the list lacks. */
static enum sy_code
add_lost_dirs(struct buf *list, const char *more)
{
    while (*more != '\0') {
        size_t n = strcspn(more, ":");
        bool is_there = n == 0; /* an empty one means the working directory: not worth keeping */

        for (const char *have = buf_view(list); !is_there && *have != '\0';) {
            size_t m = strcspn(have, ":");

            is_there = m == n && memcmp(have, more, n) == 0;
            have += m + (have[m] == ':' ? 1 : 0);
        }

        enum sy_code rc = SY_E_OK;

        if (!is_there && list->len > 0) {
            rc = buf_add_char(list, ':');
        }
        if (rc == SY_E_OK && !is_there) {
            rc = buf_add(list, more, n);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
        more += n + (more[n] == ':' ? 1 : 0);
    }
    return SY_E_OK;
}

static enum sy_code
merge_path(struct strv *ret, const char *engine_path)
{
    const char *login_path = strv_env_get(ret, "PATH");
    SY_AUTO(buf_fini) struct buf list = {.max = (size_t)2 * LIMIT_ARG_STRLEN};
    enum sy_code rc = buf_add_str(&list, login_path != NULL ? login_path : "");

    if (rc == SY_E_OK) {
        rc = add_lost_dirs(&list, engine_path);
    }
    return rc == SY_E_OK ? strv_env_set(ret, "PATH", buf_view(&list)) : rc;
}

/* Adds the well-formed entries whose names the list lacks. */
static enum sy_code
add_missing(struct strv *ret, char *const *entries, bool skips_shell_own)
{
    for (; entries != NULL && *entries != NULL; entries++) {
        struct name name = name_of(*entries);

        if (name.n == 0 || name_index(ret, name) < ret->n ||
            (skips_shell_own && name_is_listed(name, shell_own_names, COUNT(shell_own_names)))) {
            continue;
        }

        enum sy_code rc = strv_add(ret, *entries);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

enum sy_code
env_merge_login(struct strv *ret, char *const *engine_env, char *const *login_env)
{
    static const struct name path = {"PATH", 4};
    enum sy_code rc = add_missing(ret, login_env, true);
    const char *engine_path = NULL;

    for (char *const *entry = engine_env; entry != NULL && *entry != NULL; entry++) {
        struct name name = name_of(*entry);

        if (engine_path == NULL && name.n == path.n && name_is(name, path.s)) {
            engine_path = *entry + path.n + 1;
        }
    }
    if (rc == SY_E_OK && engine_path != NULL && engine_path[0] != '\0') {
        rc = merge_path(ret, engine_path);
    }
    return rc == SY_E_OK ? add_missing(ret, engine_env, false) : rc;
}

/* From here on bash begins to count anew (variables.c). */
#define SHELL_LEVELS 999U

enum sy_code
env_keep_from_rc(struct strv *ret)
{
    const char *level = NULL;
    uint64_t n = 0;

    if (strv_env_get(ret, "SSH_CLIENT") == NULL && strv_env_get(ret, "SSH2_CLIENT") == NULL) {
        return SY_E_OK;
    }
    level = strv_env_get(ret, "SHLVL");
    if (level != NULL && str_to_u64(&n, level, 1, SHELL_LEVELS - 1)) {
        return SY_E_OK;
    }
    return strv_env_set(ret, "SHLVL", "1");
}
