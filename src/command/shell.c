#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/command_internal.h"

/* What errors show of a foreign name. */
#define NAME_SHOWN 120
/* What would be right in its place. */
#define CONFIGURED_REMEDY "; give the path of one, or none to detect it"

static const struct shell_kind *const kinds[] = {
#define SHELL(name) &shell_kind_##name,
#include "command/shells.def"
#undef SHELL
    NULL,
};

/* Tried in this order for a user whose shell is none that we know. */
static const char *const fallback_order[] = {"bash", "zsh", "sh"};

void
shell_fini(struct shell *s)
{
    mem_free_charp(&s->path);
    s->kind = NULL;
}

const char *
shell_script_of(char *const *argv)
{
    const struct shell_kind *kind = shell_kind_of(argv[0]);
    bool is_bourne = kind != NULL && (str_eq(kind->name, "bash") || str_eq(kind->name, "zsh") ||
                                      str_eq(kind->name, "sh"));

    if (is_bourne && argv[1] != NULL && argv[2] != NULL && argv[3] == NULL &&
        (str_eq(argv[1], "-c") || str_eq(argv[1], "-lc"))) {
        return argv[2];
    }
    return NULL;
}

const struct shell_kind *const *
shell_kinds(void)
{
    return kinds;
}

static const struct shell_kind *
kind_by_alias(const char *name, size_t n, bool any_case)
{
    for (const struct shell_kind *const *k = kinds; *k != NULL; k++) {
        for (const char *const *alias = (*k)->aliases; *alias != NULL; alias++) {
            int differs = any_case ? strncasecmp(*alias, name, n) : strncmp(*alias, name, n);

            if (differs == 0 && strlen(*alias) == n) {
                return *k;
            }
        }
    }
    return NULL;
}

const struct shell_kind *
shell_kind_of(const char *name_or_path)
{
    const char *name = path_base(name_or_path);
    size_t n = strlen(name);

    if (n <= 4 || strcasecmp(name + n - 4, ".exe") != 0) {
        return kind_by_alias(name, n, false);
    }

    /* A Windows file: either case, and the other separator. */
    const char *backslash = strrchr(name, '\\');

    if (backslash != NULL) {
        n -= (size_t)(backslash + 1 - name);
        name = backslash + 1;
    }
    return n > 4 ? kind_by_alias(name, n - 4, true) : NULL;
}

static bool
is_executable_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool
is_absolute(const char *path)
{
    return path[0] == '/' || (path[0] != '\0' && path[1] == ':' && path[2] == '\\');
}

static bool
has_separator(const char *path)
{
    return strchr(path, '/') != NULL || is_absolute(path);
}

static enum sy_code
found(struct shell *ret, const struct shell_kind *kind, const char *path, struct sy_error *err)
{
    char *copy = mem_strdup(path);

    if (copy == NULL) {
        return sy_err_nomem(err);
    }
    ret->kind = kind;
    ret->path = copy;
    return SY_E_OK;
}

/* The first of the kind's places that holds it, or NULL. */
static const char *
place_of(const struct shell_kind *kind)
{
    for (const char *const *path = kind->paths; *path != NULL; path++) {
        if (is_executable_file(*path)) {
            return *path;
        }
    }
    return NULL;
}

/* "bash, zsh, sh, powershell, cmd" */
static const char *
known_names(struct buf *list)
{
    for (const struct shell_kind *const *k = kinds; *k != NULL; k++) {
        if (buf_addf(list, "%s%s", k == kinds ? "" : ", ", (*k)->name) != SY_E_OK) {
            break;
        }
    }
    return buf_view(list);
}

static const char *
shown(struct buf *b, const char *name)
{
    /* Without memory the error is still raised, only without the name. */
    return str_add_visible(b, name, strlen(name), NAME_SHOWN) == SY_E_OK ? buf_view(b) : "?";
}

static enum sy_code
fail_unknown(const char *name, enum sy_code code, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf list = {.max = 256};
    SY_AUTO(buf_fini) struct buf text = {.max = NAME_SHOWN + 16};

    return sy_err_set(err, code, "'%s' is no shell that Shellyard knows (it knows %s)%s",
                      shown(&text, name), known_names(&list),
                      code == SY_E_CONFIG ? CONFIGURED_REMEDY : "");
}

static enum sy_code
fail_missing(const struct shell_kind *kind, enum sy_code code, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf list = {.max = 512};

    for (const char *const *path = kind->paths; *path != NULL; path++) {
        if (buf_addf(&list, "%s%s", path == kind->paths ? "" : ", ", *path) != SY_E_OK) {
            break;
        }
    }
    return sy_err_set(err, code, "no %s on this machine (looked for %s)", kind->name,
                      buf_view(&list));
}

static enum sy_code
detect_configured(struct shell *ret, const char *configured, struct sy_error *err)
{
    const struct shell_kind *kind = shell_kind_of(configured);
    const char *path = configured;

    if (kind == NULL) {
        return fail_unknown(configured, SY_E_CONFIG, err);
    }
    if (!has_separator(configured)) {
        path = place_of(kind);
        if (path == NULL) {
            return fail_missing(kind, SY_E_CONFIG, err);
        }
    } else if (!is_absolute(configured) || !is_executable_file(configured)) {
        SY_AUTO(buf_fini) struct buf text = {.max = NAME_SHOWN + 16};

        return sy_err_set(
            err, SY_E_CONFIG, "the configured shell '%s' is %s%s", shown(&text, configured),
            is_absolute(configured) ? "no executable file" : "no absolute path", CONFIGURED_REMEDY);
    }
    return found(ret, kind, path, err);
}

enum sy_code
shell_detect(struct shell *ret, const char *configured, const char *passwd_shell,
             struct sy_error *err)
{
    if (configured != NULL && configured[0] != '\0') {
        return detect_configured(ret, configured, err);
    }

    const struct shell_kind *kind = passwd_shell != NULL ? shell_kind_of(passwd_shell) : NULL;

    if (kind != NULL) {
        bool is_there = is_absolute(passwd_shell) && is_executable_file(passwd_shell);
        const char *path = is_there ? passwd_shell : place_of(kind);

        if (path != NULL) {
            return found(ret, kind, path, err);
        }
    }
    for (size_t i = 0; i < sizeof(fallback_order) / sizeof(fallback_order[0]); i++) {
        const struct shell_kind *next = shell_kind_of(fallback_order[i]);
        const char *path = next != NULL ? place_of(next) : NULL;

        if (path != NULL) {
            return found(ret, next, path, err);
        }
    }
    return sy_err_set(err, SY_E_NOTFOUND,
                      "no shell on this machine: neither bash, zsh nor /bin/sh; name one in the "
                      "configuration");
}

enum sy_code
shell_find(struct shell *ret, const char *name_or_path, struct sy_error *err)
{
    const struct shell_kind *kind = shell_kind_of(name_or_path);

    if (kind == NULL) {
        return fail_unknown(name_or_path, SY_E_ARG, err);
    }
    if (has_separator(name_or_path) && !is_absolute(name_or_path)) {
        SY_AUTO(buf_fini) struct buf text = {.max = NAME_SHOWN + 16};

        return sy_err_set(err, SY_E_ARG, "the shell '%s' must be a name or an absolute path",
                          shown(&text, name_or_path));
    }
    if (is_absolute(name_or_path) && is_executable_file(name_or_path)) {
        return found(ret, kind, name_or_path, err);
    }

    const char *path = place_of(kind);

    return path != NULL ? found(ret, kind, path, err) : fail_missing(kind, SY_E_NOTFOUND, err);
}

enum sy_code
shell_derive_posix(struct strv *argv, const char *path, const char *script, bool login)
{
    enum sy_code rc = strv_add(argv, path);

    if (rc == SY_E_OK) {
        rc = strv_add(argv, login ? "-lc" : "-c");
    }
    return rc != SY_E_OK ? rc : strv_add(argv, script);
}

enum sy_code
shell_derive(struct strv *argv, const struct shell *shell, const char *script, bool login)
{
    return shell->kind->derive_exec_args(argv, shell->path, script, login);
}

enum sy_code
shell_bare(struct strv *ret, const char *program, char *const *derived)
{
    const struct shell_kind *kind = shell_kind_of(program);

    if (kind == NULL || kind->bare_option == NULL || derived[0] == NULL || derived[1] == NULL ||
        !str_eq(derived[1], "-c")) {
        return SY_E_OK;
    }

    enum sy_code rc = strv_add(ret, derived[0]);

    if (rc == SY_E_OK) {
        rc = strv_add(ret, kind->bare_option);
    }
    return rc == SY_E_OK ? strv_add_all(ret, derived + 1) : rc;
}
