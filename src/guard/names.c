#include "base/str.h"
#include "guard/guard_internal.h"

struct name_row {
    const char *name;
    char kind;
    const char *what;
};

static const struct name_row rows[] = {
#define GUARD_NAME_ROW(id, name, kind, what) [id] = {name, kind, what},
    GUARD_NAMES(GUARD_NAME_ROW)
#undef GUARD_NAME_ROW
};

const char *
guard_name_text(enum guard_name n)
{
    return rows[n].name;
}

const char *
guard_name_what(enum guard_name n)
{
    return rows[n].what;
}

bool
guard_name_parse(enum guard_name *ret, const char *name)
{
    for (int i = 0; i < GUARD_NAME_COUNT; i++) {
        if (str_eq(rows[i].name, name)) {
            *ret = (enum guard_name)i;
            return true;
        }
    }
    return false;
}

enum sy_code
guard_names_check(char *const *names, struct sy_error *err)
{
    const char *right[GUARD_NAME_COUNT];
    enum guard_name unused = GUARD_GIT;

    for (int i = 0; i < GUARD_NAME_COUNT; i++) {
        right[i] = rows[i].name;
    }
    for (; names != NULL && *names != NULL; names++) {
        if (guard_name_parse(&unused, *names)) {
            continue;
        }

        const char *near = str_nearest(*names, right, GUARD_NAME_COUNT);

        return sy_err_set(err, SY_E_CONFIG,
                          "'%.80s' is no protected name%s%s%s (docs/sandbox.md lists them)", *names,
                          near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                          near != NULL ? "'?" : "");
    }
    return SY_E_OK;
}

bool
guard_name_find(enum guard_name *ret, const char *name, bool in_home)
{
    if (name[0] != '.') {
        return false;
    }
    for (int i = 0; i < GUARD_NAME_COUNT; i++) {
        if ((rows[i].kind == 'A' || (rows[i].kind == 'H' && in_home)) &&
            str_eq(rows[i].name, name)) {
            *ret = (enum guard_name)i;
            return true;
        }
    }
    return false;
}

bool
guard_name_is_git(enum guard_name n)
{
    return rows[n].kind == 'G';
}

bool
guard_name_is_part(const char *name)
{
    static const char *const parts[] = {".git",      "HEAD",      "objects",        "refs",
                                        "commondir", "hooks",     "info",           "config",
                                        "modules",   "worktrees", "config.worktree"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (str_eq(parts[i], name)) {
            return true;
        }
    }
    return false;
}
