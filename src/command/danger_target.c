/* Which paths must not be lost. */
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/danger_internal.h"

/* Directories of a system; losing one loses the machine. */
static const char system_dirs[] =
    "/bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /proc /root /run /sbin "
    "/srv /sys /usr /usr/bin /usr/lib /usr/lib64 /usr/local /usr/sbin /usr/share /var /var/lib "
    "/nix /nix/store /Applications /Library /System /Users /Volumes /private /private/etc "
    "/private/var /cores";

static const char *const disks[] = {
    "/dev/sd",   "/dev/hd",    "/dev/vd",      "/dev/xvd",    "/dev/nvme", "/dev/mmcblk",
    "/dev/disk", "/dev/rdisk", "/dev/mapper/", "/dev/dm-",    "/dev/md",   "/dev/loop",
    "/dev/mem",  "/dev/kmem",  "/dev/port",    "/dev/block/", NULL};

static bool
is_above_or_is(const char *path, const char *of)
{
    return of != NULL && path_is_below(of, path);
}

/* An absolute path without . and .. */
static enum target
classify(const struct danger *d, const char *path)
{
    bool is_inside = false;

    for (const char *const *disk = disks; *disk != NULL; disk++) {
        if (str_starts(path, *disk)) {
            return TARGET_DEVICE;
        }
    }
    if (str_eq(path, "/") || judge_in_list(system_dirs, path)) {
        return TARGET_ROOT;
    }
    if (is_above_or_is(path, d->world->home)) {
        return TARGET_HOME;
    }
    for (char *const *root = d->world->roots; root != NULL && *root != NULL; root++) {
        if (path_is_below(*root, path)) {
            return TARGET_WORKSPACE;
        }
        is_inside = is_inside || path_is_below(path, *root);
    }
    if (path_is_below(path, "/tmp") || path_is_below(path, "/var/tmp") ||
        path_is_below(path, "/dev/shm")) {
        return TARGET_INSIDE;
    }
    return is_inside ? TARGET_INSIDE : TARGET_ORDINARY;
}

/* "dir/" + a pattern that matches all names, or nearly: the directory's contents. */
static size_t
without_wildcard(const char *s, size_t len)
{
    size_t name = len;

    while (name > 0 && s[name - 1] != '/') {
        name--;
    }
    for (size_t i = name; i < len; i++) {
        if (strchr("*?.[]!^{},", s[i]) == NULL) {
            return len;
        }
    }
    return memchr(s + name, '*', len - name) != NULL || memchr(s + name, '?', len - name) != NULL
               ? name
               : len;
}

/* The value that the script gave the variable, if it did so once and in plain words, and
 * nothing in it may change it otherwise. NULL: not known. */
static const char *
assigned_value(const struct danger *d, const char *name, size_t len)
{
    const char *value = NULL;
    const struct script *s = d->in.has_known_variables ? d->in.script : NULL;

    for (size_t i = 0; s != NULL && i < s->n_assigned; i++) {
        const struct script_word *w = &s->assigned[i];

        if (w->len > len && strncmp(w->text, name, len) == 0 &&
            (w->text[len] == '=' || w->text[len] == '+')) {
            if (value != NULL || (w->flags & WORD_DYNAMIC) != 0 || w->text[len] == '+') {
                return NULL;
            }
            value = w->text + len + 1;
        }
    }
    return value;
}

/* "$NAME" or "${NAME}" at s: its length, and the name. 0: something else. */
static size_t
parameter_at(const char *s, const char **ret_name, size_t *ret_len)
{
    bool has_brace = s[0] == '$' && s[1] == '{';
    const char *name = s + (has_brace ? 2 : 1);
    size_t len = 0;

    while ((name[len] >= 'a' && name[len] <= 'z') || (name[len] >= 'A' && name[len] <= 'Z') ||
           name[len] == '_' || (len > 0 && name[len] >= '0' && name[len] <= '9')) {
        len++;
    }
    if (s[0] != '$' || len == 0 || (has_brace && name[len] != '}')) {
        return 0;
    }
    *ret_name = name;
    *ret_len = len;
    return (size_t)(name - s) + len + (has_brace ? 1 : 0);
}

/* What "$NAME" of `len` letters is; NULL: not known. */
static const char *
value_of(const struct danger *d, const char *name, size_t len)
{
    if (len == 4 && strncmp(name, "HOME", 4) == 0) {
        return d->world->home;
    }
    if (len == 3 && strncmp(name, "PWD", 3) == 0) {
        return d->places.is_unknown || d->places.dirs.n > 1 ? NULL : d->world->cwd;
    }
    return assigned_value(d, name, len);
}

/*
 * The word with what is known put in. False when something is left that only the shell knows;
 * *ret then holds what stands before that.
 */
static bool
expand(struct danger *d, struct buf *ret, const struct script_word *w)
{
    bool is_dynamic = (w->flags & WORD_DYNAMIC) != 0;
    const char *s = w->text;

    if ((w->flags & WORD_TILDE) != 0 && (s[1] == '/' || s[1] == '\0')) {
        if (d->world->home == NULL || buf_add_str(ret, d->world->home) != SY_E_OK) {
            return false;
        }
        s++;
    }
    while (*s != '\0') {
        size_t literal = is_dynamic ? strcspn(s, "$`") : strlen(s);
        const char *name = NULL;
        size_t len = 0;
        size_t used = 0;
        const char *value = NULL;

        if (buf_add(ret, s, literal) != SY_E_OK) {
            return false;
        }
        s += literal;
        if (*s == '\0') {
            return true;
        }
        used = parameter_at(s, &name, &len);
        value = used > 0 ? value_of(d, name, len) : NULL;
        if (value == NULL || buf_add_str(ret, value) != SY_E_OK) {
            return false;
        }
        s += used;
    }
    return true;
}

/* path from each place where the command may run: the worst. */
static enum target
classify_everywhere(struct danger *d, const char *path)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = (size_t)LIMIT_PATH * 4};
    SY_AUTO(buf_fini) struct buf plain = {.max = (size_t)LIMIT_PATH * 4};
    enum target worst = TARGET_INSIDE;

    for (size_t i = d->places.first; i < d->places.dirs.n; i++) {
        enum sy_code rc = path_join(&joined, d->places.dirs.v[i], path);

        if (rc == SY_E_OK) {
            rc = path_normalize(&plain, buf_view(&joined));
        }
        if (rc == SY_E_NOMEM) {
            d->rc = rc;
        }
        if (rc == SY_E_OK) {
            enum target t = classify(d, buf_view(&plain));

            worst = t > worst ? t : worst;
        }
        if (path[0] == '/') {
            return worst;
        }
    }
    return d->places.is_unknown && worst <= TARGET_ORDINARY && path[strspn(path, "./")] == '\0'
               ? TARGET_UNRESOLVED
               : worst;
}

enum target
danger_target(struct danger *d, const struct script_word *w)
{
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)LIMIT_ARG_STRLEN * 2};
    bool is_known = expand(d, &path, w);

    if (!is_known) {
        /* What follows may be nothing, so that what is left is what counts. */
        const char *slash = path.len > 0 ? strrchr(path.data, '/') : NULL;
        size_t keep = slash != NULL ? (size_t)(slash - path.data) + 1 : 0;

        if (keep == 0) {
            return TARGET_UNRESOLVED;
        }
        path.data[keep] = '\0';
        return classify_everywhere(d, path.data) > TARGET_ORDINARY ? TARGET_UNRESOLVED
                                                                   : TARGET_ORDINARY;
    }
    if (path.len > 0 && (w->flags & (WORD_GLOB | WORD_BRACE)) != 0) {
        size_t len = without_wildcard(path.data, path.len);

        path.data[len] = '\0';
        return classify_everywhere(d, len == 0 ? "." : path.data);
    }
    if ((w->flags & WORD_TILDE) != 0 && buf_view(&path)[0] == '~') { /* ~user */
        return strchr(buf_view(&path), '/') == NULL ? TARGET_HOME : TARGET_ORDINARY;
    }
    return path.len == 0 ? TARGET_ORDINARY : classify_everywhere(d, path.data);
}

bool
danger_has_file(struct danger *d, const struct script_word *w)
{
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)LIMIT_ARG_STRLEN * 2};
    SY_AUTO(buf_fini) struct buf joined = {.max = (size_t)LIMIT_ARG_STRLEN * 2};

    if (d->world->has_file == NULL || !expand(d, &path, w) || d->places.is_unknown ||
        (w->flags & (WORD_GLOB | WORD_BRACE)) != 0) {
        return true;
    }
    for (size_t i = d->places.first; i < d->places.dirs.n; i++) {
        enum sy_code rc = path_join(&joined, d->places.dirs.v[i], buf_view(&path));

        if (rc != SY_E_OK || d->world->has_file(d->world->arg, buf_view(&joined))) {
            return true;
        }
    }
    return false;
}

const char *
danger_target_rule(enum target t)
{
    switch (t) {
    case TARGET_ORDINARY:
    case TARGET_INSIDE:
        return NULL;
    case TARGET_DEVICE:
        return "catastrophe.device";
    case TARGET_ROOT:
        return "catastrophe.system";
    case TARGET_HOME:
        return "catastrophe.home";
    case TARGET_WORKSPACE:
        return "catastrophe.workspace";
    case TARGET_UNRESOLVED:
        return "catastrophe.unresolved";
    }
    return NULL;
}

const char *
danger_target_why(enum target t)
{
    switch (t) {
    case TARGET_ORDINARY:
    case TARGET_INSIDE:
        return NULL;
    case TARGET_DEVICE:
        return "it is a disk or memory itself";
    case TARGET_ROOT:
        return "it is the root directory or one of the system's";
    case TARGET_HOME:
        return "it is a home directory, or holds it";
    case TARGET_WORKSPACE:
        return "it is the workspace, or holds it";
    case TARGET_UNRESOLVED:
        return "only the shell will know what it is: nothing, or everything";
    }
    return NULL;
}

bool
danger_targets(struct danger *d, struct words all, struct words targets)
{
    bool has_found = false;

    for (size_t i = 0; i < targets.n; i++) {
        enum target t = danger_target(d, &targets.v[i]);

        if (danger_target_rule(t) != NULL) {
            danger_found(d, DANGER_CATASTROPHIC, danger_target_rule(t), all, targets.v[i].text,
                         danger_target_why(t));
            has_found = true;
        }
    }
    return has_found;
}
