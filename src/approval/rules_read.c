#include <stdio.h>
#include <string.h>

#include "approval/rules_internal.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/trusted_file.h"

struct place
rules_here(const struct rules_reader *r)
{
    struct place at = yaml_walk_here(&r->y);

    at.name = r->name;
    return at;
}

static enum sy_code
unknown_key(struct rules_reader *r, const struct rules_schema *schema)
{
    struct place at = rules_here(r);
    const char *got = yaml_walk_bytes(&r->y.event);
    const char *names[RULES_KEYS_MAX];
    char list[120] = "";
    struct place_shown shown;
    size_t used = 0;

    for (size_t i = 0; i < schema->n; i++) {
        names[i] = schema->keys[i].name;
        used +=
            (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    SY_ASSERT(used < sizeof(list));

    const char *near = str_nearest(got, names, schema->n);

    (void)place_visible(&shown, got, r->y.event.data.scalar.length);
    return near != NULL
               ? place_error(r->err, &at, "unknown key '%s' (did you mean '%s'?)", shown.text, near)
               : place_error(r->err, &at, "unknown key '%s' (%s has %s)", shown.text, schema->what,
                             list);
}

/* The current event is a key; its value follows. */
static enum sy_code
read_pair(struct rules_reader *r, const struct rules_schema *schema, void *into,
          struct place firsts[RULES_KEYS_MAX])
{
    struct place at = rules_here(r);
    size_t i = 0;

    if (r->y.event.type != YAML_SCALAR_EVENT) {
        return yaml_walk_wrong_part(&r->y, "a key");
    }
    while (i < schema->n && (r->y.event.data.scalar.length != strlen(schema->keys[i].name) ||
                             !str_eq(schema->keys[i].name, yaml_walk_bytes(&r->y.event)))) {
        i++;
    }
    if (i == schema->n) {
        return unknown_key(r, schema);
    }
    if (firsts[i].line != 0) {
        return place_error(r->err, &at, "duplicate key '%s' (first at line %zu, column %zu)",
                           schema->keys[i].name, firsts[i].line, firsts[i].column);
    }
    firsts[i] = at;

    enum sy_code rc = yaml_walk_next(&r->y);

    return rc == SY_E_OK ? schema->keys[i].read(r, into) : rc;
}

enum sy_code
rules_read_mapping(struct rules_reader *r, const struct rules_schema *schema, void *into)
{
    struct place firsts[RULES_KEYS_MAX] = {0};

    if (r->y.event.type != YAML_MAPPING_START_EVENT) {
        return yaml_walk_wrong_part(&r->y, schema->what);
    }
    for (;;) {
        enum sy_code rc = yaml_walk_next(&r->y);

        if (rc != SY_E_OK || r->y.event.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        rc = read_pair(r, schema, into, firsts);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

enum sy_code
rules_read_list(struct rules_reader *r, const char *what, rules_read_fn *read, void *into)
{
    if (r->y.event.type != YAML_SEQUENCE_START_EVENT) {
        return yaml_walk_wrong_part(&r->y, what);
    }
    for (;;) {
        enum sy_code rc = yaml_walk_next(&r->y);

        if (rc != SY_E_OK || r->y.event.type == YAML_SEQUENCE_END_EVENT) {
            return rc;
        }
        rc = read(r, into);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

enum sy_code
rules_read_text(struct rules_reader *r, char **ret, const char *what, bool takes_empty)
{
    struct place at = rules_here(r);

    if (r->y.event.type != YAML_SCALAR_EVENT) {
        return yaml_walk_wrong_part(&r->y, what);
    }
    if (yaml_walk_is_nothing(&r->y.event)) {
        return place_error(r->err, &at, "expected %s, got nothing%s", what,
                           takes_empty ? " (write \"\" for an empty one)" : "");
    }
    if (r->y.event.data.scalar.length == 0 && !takes_empty) {
        return place_error(r->err, &at, "expected %s, got an empty text", what);
    }

    enum sy_code rc = rules_check_text(yaml_walk_bytes(&r->y.event), r->y.event.data.scalar.length,
                                       what, &at, r->err);
    char *copy = rc == SY_E_OK ? mem_strdup(yaml_walk_bytes(&r->y.event)) : NULL;

    if (rc == SY_E_OK && copy == NULL) {
        return sy_err_nomem(r->err);
    }
    *ret = copy;
    return rc;
}

enum sy_code
rules_read_word(struct rules_reader *r, struct strv *list, const char *what, bool takes_empty)
{
    struct place at = rules_here(r);
    char *word = NULL;
    enum sy_code rc = rules_read_text(r, &word, what, takes_empty);

    if (rc != SY_E_OK) {
        return rc;
    }
    list->max = LIMIT_RULE_WORDS;
    rc = strv_add_take(list, word);
    return rc == SY_E_LIMIT ? place_error(r->err, &at, "more than %u words", LIMIT_RULE_WORDS)
           : rc != SY_E_OK  ? sy_err_nomem(r->err)
                            : SY_E_OK;
}

enum sy_code
rules_read_words(struct rules_reader *r, struct strv *list, const char *what, bool takes_empty)
{
    struct place at = rules_here(r);

    if (r->y.event.type != YAML_SEQUENCE_START_EVENT) {
        return rules_read_word(r, list, what, takes_empty);
    }
    for (;;) {
        enum sy_code rc = yaml_walk_next(&r->y);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (r->y.event.type == YAML_SEQUENCE_END_EVENT) {
            return list->n > 0 ? SY_E_OK
                               : place_error(r->err, &at, "expected %s, got an empty list", what);
        }
        rc = rules_read_word(r, list, what, takes_empty);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

static bool
is_plain(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

enum sy_code
rules_read_bool(struct rules_reader *r, bool *ret)
{
    const yaml_event_t *e = &r->y.event;
    struct place at = rules_here(r);
    struct place_shown shown;

    if (e->type != YAML_SCALAR_EVENT) {
        return yaml_walk_wrong_part(&r->y, "true or false");
    }
    *ret = str_eq(yaml_walk_bytes(e), "true");
    if (is_plain(e) && (*ret || str_eq(yaml_walk_bytes(e), "false"))) {
        return SY_E_OK;
    }
    return place_error(r->err, &at, "expected true or false, got '%s'%s",
                       place_visible(&shown, yaml_walk_bytes(e), e->data.scalar.length),
                       is_plain(e) ? "" : " (leave out the quotes)");
}

enum sy_code
rules_read_decision(struct rules_reader *r, enum rule_decision *ret)
{
    static const char *const names[] = {"allow", "ask", "forbid"};
    struct place at = rules_here(r);
    struct place_shown shown;

    if (r->y.event.type != YAML_SCALAR_EVENT) {
        return yaml_walk_wrong_part(&r->y, "allow, ask or forbid");
    }

    const char *got = yaml_walk_bytes(&r->y.event);

    for (size_t i = 0; i < 3; i++) {
        if (str_eq(got, names[i]) && r->y.event.data.scalar.length == strlen(names[i])) {
            *ret = (enum rule_decision)(RULE_ALLOW + i);
            return SY_E_OK;
        }
    }
    (void)place_visible(&shown, got, r->y.event.data.scalar.length);

    const char *near = str_nearest(got, names, 3);

    return near != NULL
               ? place_error(r->err, &at,
                             "expected allow, ask or forbid, got '%s' (did you mean "
                             "'%s'?)",
                             shown.text, near)
               : place_error(r->err, &at, "expected allow, ask or forbid, got '%s'", shown.text);
}

static enum sy_code
read_section(struct rules_reader *r, const char *what, rules_read_fn *read)
{
    return yaml_walk_is_nothing(&r->y.event) ? SY_E_OK : rules_read_list(r, what, read, NULL);
}

static enum sy_code
read_rules(struct rules_reader *r, void *into)
{
    (void)into;
    return read_section(r, "a list of rules", rules_read_rule);
}

static enum sy_code
read_programs(struct rules_reader *r, void *into)
{
    (void)into;
    return read_section(r, "a list of programs", rules_read_program);
}

static enum sy_code
read_network(struct rules_reader *r, void *into)
{
    (void)into;
    return read_section(r, "a list of network rules", rules_read_network);
}

static enum sy_code
read_root(struct rules_reader *r)
{
    static const struct rules_key keys[] = {
        {"rules",    read_rules   },
        {"programs", read_programs},
        {"network",  read_network },
    };
    static const struct rules_schema schema = {"a file of rules", keys, 3};

    return yaml_walk_is_nothing(&r->y.event) ? SY_E_OK : rules_read_mapping(r, &schema, NULL);
}

static enum sy_code
walk(struct rules_reader *r)
{
    bool is_empty = false;
    enum sy_code rc = yaml_walk_open(&r->y);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = yaml_walk_enter(&r->y, &is_empty);
    if (rc == SY_E_OK && !is_empty) {
        rc = read_root(r);
        if (rc == SY_E_OK) {
            rc = yaml_walk_leave(&r->y);
        }
    }
    yaml_walk_close(&r->y);
    return rc;
}

enum sy_code
rules_read(struct rules *into, const struct place_text *in, const char *home, struct sy_error *err)
{
    struct rules_reader r = {
        .y = {.in = in, .noun = "a file of rules", .err = err},
        .home = home,
        .rules = into,
        .err = err
    };
    size_t first = into->n;

    into->files.max = LIMIT_RULES;
    if (strv_add(&into->files, in->name) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    r.name = into->files.v[into->files.n - 1];

    enum sy_code rc = walk(&r);

    if (rc == SY_E_OK) {
        rc = rules_check_examples(into, first, err);
    }
    return rc == SY_E_OK ? rules_check_steers(into, err) : rc;
}

static enum sy_code
load_one(struct rules *into, const struct trusted_file *file, const char *home,
         struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_RULES_FILE};
    bool exists = false;
    enum sy_code rc = trusted_file_read(&text, &exists, file, err);
    struct place_text in = {.name = file->path, .text = buf_view(&text), .len = text.len};

    return rc == SY_E_OK && exists ? rules_read(into, &in, home, err) : rc;
}

enum sy_code
rules_load(struct rules *ret, const struct rules_sources *sources, struct sy_error *err)
{
    struct trusted_file system = {
        .path = sources->system_path != NULL ? sources->system_path : RULES_SYSTEM_PATH,
        .workspace = sources->workspace,
        .must_be_root = sources->system_path == NULL,
    };
    struct trusted_file user = {
        .path = sources->user_path,
        .workspace = sources->workspace,
        .way_out = "or move the file (XDG_CONFIG_HOME)",
    };

    *ret = (struct rules){0};

    enum sy_code rc = load_one(ret, &system, sources->home, err);

    if (rc == SY_E_OK && user.path != NULL) {
        rc = load_one(ret, &user, sources->home, err);
    }
    if (rc != SY_E_OK) {
        rules_fini(ret);
    }
    return rc;
}
