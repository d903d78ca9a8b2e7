#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "config/config_internal.h"

static void *
member(struct config *c, const struct config_row *row)
{
    return (char *)c + row->offset;
}

/* Moves the value into the struct; what it owned belongs to the struct then. */
static void
move_value(struct config *c, size_t key, struct config_value *v)
{
    const struct config_row *row = &config_rows[key];
    void *to = member(c, row);

    c->impl->places[key] = v->place;
    switch (row->type) {
    case CONFIG_CHOICE:
        *(const char **)to = v->word;
        return;
    case CONFIG_BOOLEAN:
        *(bool *)to = v->flag;
        return;
    case CONFIG_INTEGER:
        *(int64_t *)to = v->number;
        return;
    case CONFIG_STRING:
        c->impl->texts[key] = v->text;
        *(const char **)to = v->text;
        v->text = NULL;
        return;
    case CONFIG_LIST:
    case CONFIG_MAP:
        break;
    }
    *(struct strv *)to = v->list;
    v->list = (struct strv){0};
}

/* The highest source that gives the key; else the default. */
static enum sy_code
merge_key(struct config *c, size_t key, const struct config_layers *layers, struct sy_error *err)
{
    struct config_value fallback = {0};
    struct config_value *v = NULL;

    for (size_t source = CONFIG_SOURCES; v == NULL && source > 0; source--) {
        v = config_layer_value(&layers->of[source - 1], key);
    }

    enum sy_code rc = v == NULL ? config_value_default(&fallback, key, err) : SY_E_OK;

    if (rc == SY_E_OK) {
        move_value(c, key, v != NULL ? v : &fallback);
    }
    config_value_fini(&fallback);
    return rc;
}

enum sy_code
config_merge(struct config *ret, struct config_layers *layers, struct sy_error *err)
{
    enum sy_code rc = config_imply_requirements(layers, ret->impl->system_path, err);

    if (rc == SY_E_OK) {
        rc = config_check_requirements(layers, ret->impl->system_path, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    for (size_t key = 0; rc == SY_E_OK && key < CONFIG_KEYS; key++) {
        ret->impl->required[key] = config_is_required(layers, key);
        rc = merge_key(ret, key, layers, err);
    }
    return rc;
}

bool
config_requires(const struct config *c, const char *key)
{
    size_t k = config_find_key(key, strlen(key));

    SY_ASSERT(k < CONFIG_KEYS);
    return c->impl != NULL && c->impl->required[k];
}

void
config_fini(struct config *c)
{
    for (size_t key = 0; key < CONFIG_KEYS; key++) {
        const struct config_row *row = &config_rows[key];

        if (row->type == CONFIG_LIST || row->type == CONFIG_MAP) {
            strv_fini(member(c, row));
        }
        if (c->impl != NULL) {
            mem_free(c->impl->texts[key]);
        }
    }
    if (c->impl != NULL) {
        mem_free(c->impl->system_path);
        mem_free(c->impl->user_path);
        mem_free(c->impl);
    }
    *c = (struct config){0};
}

static enum sy_code
read_file_layer(struct config_layer *layer, const struct config_file *file, const char *home,
                struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_CONFIG_FILE};
    bool exists = false;
    enum sy_code rc = config_read_file(&text, &exists, file, err);

    if (rc != SY_E_OK || !exists) {
        return rc;
    }

    struct config_input in = {.source = file->source,
                              .name = file->path,
                              .text = buf_view(&text),
                              .len = text.len,
                              .home = home};

    return config_walk_file(layer, &in, err);
}

static enum sy_code
set_paths(struct config_impl *impl, const struct config_sources *sources, struct sy_error *err)
{
    impl->system_path =
        mem_strdup(sources->system_path != NULL ? sources->system_path : CONFIG_SYSTEM_PATH);
    if (impl->system_path == NULL) {
        return sy_err_nomem(err);
    }
    if (sources->user_path == NULL) {
        return config_user_path(&impl->user_path, sources, err);
    }
    impl->user_path = mem_strdup(sources->user_path);
    return impl->user_path != NULL ? SY_E_OK : sy_err_nomem(err);
}

static enum sy_code
read_layers(struct config_layers *layers, const struct config_impl *impl,
            const struct config_sources *sources, struct sy_error *err)
{
    const char *home = config_home(sources);
    struct config_file system = {.path = impl->system_path,
                                 .workspace = sources->workspace,
                                 .source = CONFIG_FROM_SYSTEM,
                                 /* Who names another file answers for it. */
                                 .must_be_root = sources->system_path == NULL};
    struct config_file user = {
        .path = impl->user_path, .workspace = sources->workspace, .source = CONFIG_FROM_USER};
    enum sy_code rc = read_file_layer(&layers->of[CONFIG_FROM_SYSTEM], &system, home, err);

    if (rc == SY_E_OK && user.path != NULL) {
        rc = read_file_layer(&layers->of[CONFIG_FROM_USER], &user, home, err);
    }
    if (rc == SY_E_OK) {
        rc = config_read_environment(&layers->of[CONFIG_FROM_ENVIRONMENT], sources->environ_list,
                                     home, err);
    }
    if (rc == SY_E_OK) {
        rc = config_read_flags(&layers->of[CONFIG_FROM_FLAG], sources->overrides, home, err);
    }
    if (rc == SY_E_OK && sources->mode != NULL) {
        rc = config_read_mode(&layers->of[CONFIG_FROM_FLAG], sources->mode, err);
    }
    return rc;
}

enum sy_code
config_load(struct config *ret, const struct config_sources *sources, struct sy_error *err)
{
    struct config_layers layers = {0};
    struct config c = {.impl = mem_alloc_zero(1, sizeof(struct config_impl))};

    if (c.impl == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = set_paths(c.impl, sources, err);

    if (rc == SY_E_OK) {
        rc = read_layers(&layers, c.impl, sources, err);
    }
    if (rc == SY_E_OK) {
        rc = config_merge(&c, &layers, err);
    }
    for (size_t i = 0; i < CONFIG_SOURCES; i++) {
        config_layer_fini(&layers.of[i]);
    }
    if (rc != SY_E_OK) {
        config_fini(&c);
        return rc;
    }
    *ret = c;
    return SY_E_OK;
}
