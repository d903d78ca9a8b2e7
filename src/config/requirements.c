#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/str.h"
#include "config/config_internal.h"

static size_t
rank_of(const struct config_row *row, const char *word)
{
    size_t i = 0;

    while (row->words[i] != NULL && !str_eq(row->words[i], word)) {
        i++;
    }
    return i;
}

/* Each item of `part` is in `whole`. */
static bool
is_subset(const struct strv *part, const struct strv *whole)
{
    for (size_t i = 0; i < part->n; i++) {
        if (!strv_has(whole, part->v[i])) {
            return false;
        }
    }
    return true;
}

/*
 * Where a root that need not exist yet really lies: the deepest directory
 * that exists resolved, the rest behind it. SY_E_DENIED when that can change
 * unseen (a link to nothing) or is hidden from us.
 */
static enum sy_code
resolve(struct buf *ret, const char *path)
{
    char head[PATH_MAX];
    char real[PATH_MAX];
    struct stat st;
    size_t len = strlen(path);

    buf_reset(ret);
    if (len >= sizeof(head)) {
        return SY_E_DENIED;
    }
    memcpy(head, path, len + 1);
    while (realpath(head, real) == NULL) {
        char *slash = strrchr(head, '/');

        if (errno != ENOENT || slash == NULL || slash[1] == '\0' || lstat(head, &st) == 0) {
            return SY_E_DENIED;
        }
        slash[slash == head ? 1 : 0] = '\0';
    }

    const char *rest = path + strlen(head);
    enum sy_code rc = buf_add_str(ret, real);

    while (*rest == '/') {
        rest++;
    }
    if (rc == SY_E_OK && *rest != '\0' && !str_ends(real, "/")) {
        rc = buf_add_char(ret, '/');
    }
    return rc != SY_E_OK ? rc : buf_add_str(ret, rest);
}

/* By where they lie, not by their names: a link below a required root may
 * lead out of it. */
static enum sy_code
is_root_below(bool *ret, const char *root, const struct strv *required)
{
    SY_AUTO(buf_fini) struct buf real_root = {.max = (size_t)LIMIT_PATH * 2};
    SY_AUTO(buf_fini) struct buf real_required = {.max = (size_t)LIMIT_PATH * 2};
    enum sy_code rc = resolve(&real_root, root);

    *ret = false;
    for (size_t i = 0; i < required->n && rc == SY_E_OK && !*ret; i++) {
        rc = resolve(&real_required, required->v[i]);
        if (rc == SY_E_DENIED) {
            rc = SY_E_OK;
            continue;
        }
        if (rc == SY_E_OK) {
            *ret = path_is_below(buf_view(&real_root), buf_view(&real_required));
        }
    }
    return rc;
}

static enum sy_code
are_roots_below(bool *ret, const struct strv *roots, const struct strv *required)
{
    *ret = true;
    for (size_t i = 0; i < roots->n && *ret; i++) {
        enum sy_code rc = is_root_below(ret, roots->v[i], required);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static bool
is_equal(const struct config_row *row, const struct config_value *a, const struct config_value *b)
{
    switch (row->type) {
    case CONFIG_CHOICE:
        return str_eq(a->word, b->word);
    case CONFIG_BOOLEAN:
        return a->flag == b->flag;
    case CONFIG_INTEGER:
        return a->number == b->number;
    case CONFIG_STRING:
        return str_eq(a->text, b->text);
    case CONFIG_LIST:
    case CONFIG_MAP:
        break;
    }
    return is_subset(&a->list, &b->list) && is_subset(&b->list, &a->list);
}

/* *ret: `v` is no wider than `required`. */
static enum sy_code
is_narrow(bool *ret, const struct config_row *row, const struct config_value *v,
          const struct config_value *required)
{
    switch (row->order) {
    case CONFIG_ORDER_EQUAL:
        *ret = is_equal(row, v, required);
        return SY_E_OK;
    case CONFIG_ORDER_CHOICE:
        *ret = rank_of(row, v->word) <= rank_of(row, required->word);
        return SY_E_OK;
    case CONFIG_ORDER_TRUE_IS_WIDE:
        *ret = !v->flag || required->flag;
        return SY_E_OK;
    case CONFIG_ORDER_FALSE_IS_WIDE:
        *ret = v->flag || !required->flag;
        return SY_E_OK;
    case CONFIG_ORDER_NUMBER:
        *ret = v->number <= required->number;
        return SY_E_OK;
    case CONFIG_ORDER_LIMIT:
        *ret = required->number == 0 || (v->number != 0 && v->number <= required->number);
        return SY_E_OK;
    case CONFIG_ORDER_ROOTS:
        return are_roots_below(ret, &v->list, &required->list);
    case CONFIG_ORDER_SUPERSET:
        *ret = is_subset(&required->list, &v->list);
        return SY_E_OK;
    case CONFIG_ORDER_FEWER:
        *ret = is_subset(&v->list, &required->list);
        return SY_E_OK;
    case CONFIG_ORDER_SUBSET:
        break;
    }
    *ret = required->list.n == 0 || (v->list.n > 0 && is_subset(&v->list, &required->list));
    return SY_E_OK;
}

static const char *
what_is_wanted(const struct config_row *row)
{
    switch (row->order) {
    case CONFIG_ORDER_EQUAL:
        return "must stay";
    case CONFIG_ORDER_CHOICE:
    case CONFIG_ORDER_TRUE_IS_WIDE:
    case CONFIG_ORDER_FALSE_IS_WIDE:
        return "may not be wider than";
    case CONFIG_ORDER_NUMBER:
        return "may not be more than";
    case CONFIG_ORDER_LIMIT:
        return "may be neither 0 (none) nor more than";
    case CONFIG_ORDER_ROOTS:
        return "must lie within";
    case CONFIG_ORDER_SUPERSET:
        return "must hold all of";
    case CONFIG_ORDER_FEWER:
    case CONFIG_ORDER_SUBSET:
        break;
    }
    return "may name only some of";
}

static enum sy_code
violation(const struct config_row *row, const struct config_value *v,
          const struct config_value *required, const struct config_place *required_at,
          struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf got = {.max = CONFIG_SHOWN_MAX};
    SY_AUTO(buf_fini) struct buf want = {.max = CONFIG_SHOWN_MAX};
    struct place_shown shown_got;
    struct place_shown shown_want;
    char variable[CONFIG_VARIABLE_MAX];
    struct place_shown_path path;
    struct config_place at = v->place;
    enum sy_code rc = config_format_value(&got, row, v);

    if (rc == SY_E_OK) {
        rc = config_format_value(&want, row, required);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (at.source == CONFIG_FROM_ENVIRONMENT) {
        config_variable_name(variable, row);
        at.name = variable;
    }
    return config_error(err, &at, "%s %s %s %s (%s:%zu)", row->info.key,
                        place_visible(&shown_got, buf_view(&got), got.len), what_is_wanted(row),
                        place_visible(&shown_want, buf_view(&want), want.len),
                        place_visible_path(&path, required_at->name), required_at->line);
}

static size_t
key_of(const char *name)
{
    return config_find_key(name, strlen(name));
}

static size_t
allow_key(void)
{
    return key_of("network.allow");
}

/* Whether the layers above the system file keep within `required`, which stands at *at. */
static enum sy_code
check_above(const struct config_layers *layers, size_t key, const struct config_value *required,
            const struct config_place *at, struct sy_error *err)
{
    const struct config_row *row = &config_rows[key];

    for (size_t source = CONFIG_FROM_USER; source < CONFIG_SOURCES; source++) {
        const struct config_value *v = config_layer_value(&layers->of[source], key);
        bool is_fine = true;

        if (v == NULL) {
            continue;
        }

        enum sy_code rc = is_narrow(&is_fine, row, v, required);

        if (rc == SY_E_NOMEM) {
            return sy_err_nomem(err);
        }
        /* What cannot be judged is not let through. */
        if (rc != SY_E_OK || !is_fine) {
            return violation(row, v, required, at, err);
        }
    }
    return SY_E_OK;
}

static enum sy_code
check_key(const struct config_layers *layers, size_t key, const char *system_path,
          struct sy_error *err)
{
    const struct config_layer *system = &layers->of[CONFIG_FROM_SYSTEM];
    const struct config_value *given = config_layer_value(system, key);
    size_t line = config_layer_required_line(system, key);
    struct config_place at = {.source = CONFIG_FROM_SYSTEM, .name = system_path};

    if (given != NULL) {
        at.line = given->place.line;
        return check_above(layers, key, given, &at, err);
    }

    struct config_value fallback = {0};
    enum sy_code rc = config_value_default(&fallback, key, err);

    at.line = line != 0 ? line : config_layer_required_line(system, allow_key());
    if (rc == SY_E_OK) {
        rc = check_above(layers, key, &fallback, &at, err);
    }
    config_value_fini(&fallback);
    return rc;
}

/* Full network would lift an allow list that is required. */
bool
config_is_required(const struct config_layers *layers, size_t key)
{
    const struct config_layer *system = &layers->of[CONFIG_FROM_SYSTEM];

    return config_layer_required_line(system, key) != 0 ||
           (str_eq(config_rows[key].info.key, "sandbox.network_access") &&
            config_layer_required_line(system, allow_key()) != 0);
}

/* The git directory of a linked worktree's repository would be one root more than those that are
 * required. */
enum sy_code
config_imply_requirements(struct config_layers *layers, const char *system_path,
                          struct sy_error *err)
{
    struct config_layer *system = &layers->of[CONFIG_FROM_SYSTEM];
    size_t line = config_layer_required_line(system, key_of("sandbox.writable_roots"));

    if (line == 0) {
        return SY_E_OK;
    }

    size_t key = key_of("sandbox.linked_worktrees");

    if (config_layer_value(system, key) != NULL) {
        return SY_E_OK;
    }

    struct config_value *v = config_layer_open(system, key);

    if (v == NULL) {
        return sy_err_nomem(err);
    }
    v->flag = false;
    v->is_set = true;
    v->place =
        (struct config_place){.source = CONFIG_FROM_SYSTEM, .name = system_path, .line = line};
    return config_layer_require(system, key, line, err);
}

enum sy_code
config_check_requirements(const struct config_layers *layers, const char *system_path,
                          struct sy_error *err)
{
    for (size_t key = 0; key < CONFIG_KEYS; key++) {
        if (!config_is_required(layers, key)) {
            continue;
        }

        enum sy_code rc = check_key(layers, key, system_path, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}
