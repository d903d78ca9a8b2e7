#include "sandbox/elsewhere.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"

static const char *const platforms[] = {
#define PLATFORM_ROW(id, name) [id] = (name),
    SANDBOX_PLATFORMS(PLATFORM_ROW)
#undef PLATFORM_ROW
};

/* The entries are only read; the type is that of all string lists. */
static char git_hooks[] = ".git/hooks";
static char git_config[] = ".git/config*";
static char git_attributes[] = ".git/info/attributes";
static char git_module_hooks[] = ".git/modules/**/hooks";
static char git_module_config[] = ".git/modules/**/config*";
static char git_worktree_config[] = ".git/worktrees/*/config*";
static char agents[] = ".agents";
static char claude[] = ".claude";
static char codex[] = ".codex";
static char cursor[] = ".cursor";
static char idea[] = ".idea";
static char vscode[] = ".vscode";
static char mcp[] = ".mcp.json";
static char envrc[] = ".envrc";
static char bashrc[] = ".bashrc";
static char bash_profile[] = ".bash_profile";
static char bash_login[] = ".bash_login";
static char profile[] = ".profile";
static char zshrc[] = ".zshrc";
static char zshenv[] = ".zshenv";
static char zprofile[] = ".zprofile";
static char zlogin[] = ".zlogin";

char *const elsewhere_protected[] = {
    git_hooks,
    git_config,
    git_attributes,
    git_module_hooks,
    git_module_config,
    git_worktree_config,
    agents,
    claude,
    codex,
    cursor,
    idea,
    vscode,
    mcp,
    envrc,
    bashrc,
    bash_profile,
    bash_login,
    profile,
    zshrc,
    zshenv,
    zprofile,
    zlogin,
    NULL,
};

const char *
sandbox_platform_name(enum sandbox_platform p)
{
    SY_ASSERT((size_t)p < PLATFORM_COUNT);
    return platforms[p];
}

bool
sandbox_platform_parse(enum sandbox_platform *ret, const char *name)
{
    for (int i = 0; i < PLATFORM_COUNT; i++) {
        if (str_eq(name, platforms[i])) {
            *ret = (enum sandbox_platform)i;
            return true;
        }
    }
    return false;
}

char *const *
elsewhere_names(const struct elsewhere_request *r)
{
    return r->protected_names != NULL ? r->protected_names : elsewhere_protected;
}

bool
elsewhere_name_is_plain(const char *name)
{
    return strchr(name, '*') == NULL;
}

static bool
component_is_good(const char *s, size_t n)
{
    return n > 0 && !(n == 1 && s[0] == '.') && !(n == 2 && s[0] == '.' && s[1] == '.');
}

static bool
name_is_good(const char *name)
{
    const char *s = name;

    if (strlen(name) >= LIMIT_PATH) {
        return false;
    }
    for (;;) {
        size_t n = strcspn(s, "/");

        if (!component_is_good(s, n)) {
            return false;
        }
        if (s[n] == '\0') {
            /* A trailing "**" would name everything, or nothing. */
            return !(n == 2 && s[0] == '*' && s[1] == '*');
        }
        s += n + 1;
    }
}

enum sy_code
elsewhere_check_names(const struct elsewhere_request *r, struct sy_error *err)
{
    char *const *names = elsewhere_names(r);
    size_t n = 0;

    for (; names[n] != NULL; n++) {
        if (!name_is_good(names[n])) {
            return sy_err_set(
                err, SY_E_CONFIG,
                "protected name '%.80s' is not one: right is a path below a root, such "
                "as '.git/hooks', without empty, '.' or '..' parts and no '**' at its "
                "end",
                names[n]);
        }
    }
    if (n > LIMIT_PROTECTED) {
        return sy_err_set(err, SY_E_CONFIG, "%zu protected names, at most %u are possible", n,
                          LIMIT_PROTECTED);
    }
    return SY_E_OK;
}

static char
lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 0x20 : c);
}

/* One component, in which '*' stands for any part: the usual way with one
 * remembered star. */
static bool
component_fits(const char *pattern, size_t n_pattern, const char *s, size_t n)
{
    size_t p = 0;
    size_t i = 0;
    size_t star = n_pattern;
    size_t from = 0;

    while (i < n) {
        if (p < n_pattern && pattern[p] == '*') {
            star = p;
            from = i;
            p++;
        } else if (p < n_pattern && lower(pattern[p]) == lower(s[i])) {
            p++;
            i++;
        } else if (star < n_pattern) {
            p = star + 1;
            from++;
            i = from;
        } else {
            return false;
        }
    }
    while (p < n_pattern && pattern[p] == '*') {
        p++;
    }
    return p == n_pattern;
}

static const char *
behind(const char *s, size_t n)
{
    return s + n + (s[n] == '/' ? 1 : 0);
}

/* Whether components from the start of `s` are all of `name`; more may follow.
 * As above, with "**" for the star and components for the letters. */
static bool
name_fits(const char *name, const char *s)
{
    const char *star = NULL;
    const char *from = s;

    while (*name != '\0') {
        size_t n_name = strcspn(name, "/");
        size_t n = strcspn(s, "/");

        if (n_name == 2 && name[0] == '*' && name[1] == '*') {
            name = behind(name, n_name);
            star = name;
            from = s;
        } else if (n > 0 && component_fits(name, n_name, s, n)) {
            name = behind(name, n_name);
            s = behind(s, n);
        } else if (n > 0 && star != NULL) {
            from = behind(from, strcspn(from, "/"));
            name = star;
            s = from;
        } else {
            return false;
        }
    }
    return true;
}

bool
elsewhere_is_protected(char *const *names, const char *below)
{
    for (; *below != '\0'; below = behind(below, strcspn(below, "/"))) {
        for (size_t i = 0; names[i] != NULL; i++) {
            if (name_fits(names[i], below)) {
                return true;
            }
        }
    }
    return false;
}

bool
elsewhere_may_end(char *const *names, const char *component)
{
    size_t n = strlen(component);

    for (size_t i = 0; names[i] != NULL; i++) {
        const char *slash = strrchr(names[i], '/');
        const char *last = slash != NULL ? slash + 1 : names[i];

        if (component_fits(last, strlen(last), component, n)) {
            return true;
        }
    }
    return false;
}

void
elsewhere_features_none(enum feature_state features[FEATURE_COUNT])
{
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        features[i] = FEATURE_ABSENT;
    }
}

void
elsewhere_write_features(struct jw *w, const enum feature_state features[FEATURE_COUNT])
{
    jw_key(w, "features");
    jw_object(w);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        jw_key_str(w, sandbox_feature_name((enum sandbox_feature)i),
                   feature_state_name(features[i]));
    }
    jw_end_object(w);
}
