#ifndef SY_CONFIG_CONFIG_INTERNAL_H
#define SY_CONFIG_CONFIG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/place.h"
#include "config/config.h"

/*
 * Inside the room. Text of every source becomes a layer (walker.c, text.c),
 * one value a key; requirements.c judges the layers, merge.c moves the highest
 * value of each key into the struct config, show.c prints that struct.
 * docs/internals/config.md tells the way through.
 */

/* --- keys.c: the table that everything else is driven by --- */

enum config_type {
    CONFIG_CHOICE,
    CONFIG_BOOLEAN,
    CONFIG_INTEGER,
    CONFIG_STRING,
    CONFIG_LIST,
    CONFIG_MAP,
};

/* When another value of the key is no wider than the required one. */
enum config_order {
    CONFIG_ORDER_EQUAL,         /* the same value */
    CONFIG_ORDER_CHOICE,        /* the same or an earlier word of the row */
    CONFIG_ORDER_TRUE_IS_WIDE,  /* false, or both true */
    CONFIG_ORDER_FALSE_IS_WIDE, /* true, or both false */
    CONFIG_ORDER_NUMBER,        /* the same or a smaller number */
    CONFIG_ORDER_LIMIT,         /* the same or a smaller number, but 0 is the widest: none */
    CONFIG_ORDER_ROOTS,         /* each root equal to or below a required one */
    CONFIG_ORDER_SUPERSET,      /* has at least the required items */
    CONFIG_ORDER_SUBSET,        /* has no other items; an empty list means "all" */
    CONFIG_ORDER_FEWER,         /* has no other items; an empty list means "none" */
};

/* What a string, or an item of a list or a map, has to be. */
enum config_content {
    CONFIG_ANY,
    CONFIG_PATH_OR_EMPTY, /* "" or an absolute path, "~" expanded */
    CONFIG_URL_OR_EMPTY,  /* "", https://..., or http:// to this machine */
    CONFIG_NAME_OR_EMPTY, /* "", or up to 200 visible characters of ASCII without a blank */
    CONFIG_ROOT,          /* an absolute path without "..", "~" expanded */
    CONFIG_PATTERN,       /* a pattern of variable names */
    CONFIG_HOST,          /* an entry of network.allow */
    CONFIG_PATH_PATTERN,  /* a pattern of paths, absolute, "~" expanded */
    CONFIG_VARIABLE,      /* NAME=value, NAME none of those that never pass */
};

/* A second spelling of a choice. */
struct config_alias {
    const char *word;
    const char *means;
};

struct config_row {
    struct config_key_info info;
    enum config_type type;
    enum config_order order;
    enum config_content content;
    bool is_of_files;         /* neither variable nor flag may set it */
    bool has_units;           /* a number of bytes, may end with K, M or G */
    const char *const *words; /* NULL-terminated, the narrowest first; else NULL */
    struct config_alias alias;
    int64_t min;
    int64_t max;
    int64_t floor;    /* the least number but 0 (CONFIG_ORDER_LIMIT); 0: no floor */
    size_t items_max; /* of a list or map */
    size_t offset;    /* of the member in struct config */
};

#define CONFIG_KEYS 65U

extern const struct config_row config_rows[CONFIG_KEYS];

/* --- key_names.c: keys by their names --- */

/* The part of the key behind its section and the dot. */
const char *config_short_name(const struct config_row *row);
/* By "section.name"; CONFIG_KEYS when there is none. */
size_t config_find_key(const char *key, size_t len);
/* By section and name. */
size_t config_find_in_section(const char *section, const char *name, size_t len);
/* The static name of a section, or NULL. */
const char *config_find_section(const char *name, size_t len);
/* "SHELLYARD_SANDBOX_MODE" into dst, cut at its size. */
#define CONFIG_VARIABLE_MAX 64
void config_variable_name(char dst[CONFIG_VARIABLE_MAX], const struct config_row *row);

/* Nearest names for "did you mean", or NULL. `got` is cut at 64 bytes, where
 * nothing is near any more. */
const char *config_nearest_key(const char *got, size_t len);
const char *config_nearest_section(const char *got, size_t len, bool with_requirements);
const char *config_nearest_in_section(const char *section, const char *got, size_t len);
/* The full keys whose short name is exactly `got`, in whatever section, as they stand between
 * quotes: "a.b", or "a.b' or 'c.b"; NULL: none. */
struct config_same {
    char text[128];
};
const char *config_same_elsewhere(struct config_same *ret, const char *got, size_t len);

/* --- report.c: errors --- */

enum config_source {
    CONFIG_FROM_DEFAULT,
    CONFIG_FROM_SYSTEM,
    CONFIG_FROM_USER,
    CONFIG_FROM_ENVIRONMENT,
    CONFIG_FROM_FLAG,
};
#define CONFIG_SOURCES 5U

struct config_place {
    enum config_source source;
    const char *name; /* path, variable, key or "-s"; borrowed */
    size_t line;      /* from 1; 0: none */
    size_t column;
};

/* SY_E_CONFIG: "FILE:LINE:COLUMN: ...", "VARIABLE: ...", "-c KEY: ..." or "-s: ...". A
 * long path keeps its end. */
enum sy_code config_error(struct sy_error *err, const struct config_place *at, const char *fmt, ...)
    SY_PRINTF(3, 4);

/* The error of a value: "expected ..., got `got`". `got` is a phrase. */
enum sy_code config_error_type(struct sy_error *err, const struct config_place *at,
                               const struct config_row *row, const char *got);

/* A name that stands twice. */
enum sy_code config_error_duplicate(struct sy_error *err, const struct config_place *at,
                                    const char *name, size_t len, const struct config_place *first);

/* --- value.c: text to typed value --- */

struct config_value {
    bool is_set;
    struct config_place place; /* of the key */
    const char *word;          /* CONFIG_CHOICE, static */
    bool flag;                 /* CONFIG_BOOLEAN */
    int64_t number;            /* CONFIG_INTEGER */
    char *text;                /* CONFIG_STRING, owned */
    struct strv list;          /* CONFIG_LIST, CONFIG_MAP ("NAME=value") */
};

void config_value_fini(struct config_value *v);
/* Makes it set and empty; frees what it held. */
void config_value_begin(struct config_value *v, const struct config_row *row,
                        const struct config_place *key_at);

/* How a piece of text reached us. */
struct config_text {
    const char *bytes; /* NUL-terminated, valid UTF-8 */
    size_t len;        /* may be beyond a NUL */
    bool is_plain;     /* not quoted */
    const char *home;  /* for "~"; NULL: unknown */
    struct config_place at;
};

/* A choice, boolean, integer or string. */
enum sy_code config_value_scalar(struct config_value *v, const struct config_row *row,
                                 const struct config_text *t, struct sy_error *err) SY_NODISCARD;
/* One more item of a list. */
enum sy_code config_value_item(struct config_value *v, const struct config_row *row,
                               const struct config_text *t, struct sy_error *err) SY_NODISCARD;
/* One more entry of a map; the name must not be there yet. */
enum sy_code config_value_entry(struct config_value *v, const struct config_row *row,
                                const struct config_text *name, const struct config_text *value,
                                struct sy_error *err) SY_NODISCARD;
/* Index of the entry with that name; list.n when there is none. */
size_t config_value_find(const struct config_value *v, const char *name, size_t len);

/* --- layer.c: what one source gives --- */

struct config_given {
    struct config_value *values[CONFIG_KEYS]; /* owned; NULL: not set */
    size_t required_line[CONFIG_KEYS];        /* of the entry in `requirements`; 0: none */
};

/* Most sources give nothing, and most others a key or two. What is not there
 * need not be zeroed: each fresh page of memory costs a short command more
 * than all of this room. */
struct config_layer {
    struct config_given *given; /* owned; NULL: nothing yet */
};

void config_layer_fini(struct config_layer *layer);
/* The value of the key, made (empty, not set) if there is none yet; NULL when
 * there is no memory. It stays the layer's. */
struct config_value *config_layer_open(struct config_layer *layer, size_t key);
/* The value that the layer sets; NULL: none. */
struct config_value *config_layer_value(const struct config_layer *layer, size_t key);
/* Notes that `requirements` lists the key at the line. */
enum sy_code config_layer_require(struct config_layer *layer, size_t key, size_t line,
                                  struct sy_error *err) SY_NODISCARD;
/* 0: the key is not required. */
size_t config_layer_required_line(const struct config_layer *layer, size_t key);

/* --- walk_file.c, walk_value.c: YAML to layer (walker.h is theirs);
 * walk_none.c where there is no YAML reader --- */

/* What a text is read as. */
struct config_input {
    enum config_source source; /* `requirements` is taken from CONFIG_FROM_SYSTEM only */
    const char *name;          /* path, variable or key; must outlive the layer */
    const char *text;
    size_t len;
    const char *home;
};

/* SY_E_CONFIG when the text is no UTF-8. (input.c) */
enum sy_code config_check_utf8(const struct config_input *in, struct sy_error *err) SY_NODISCARD;
/* The text, for what needs no source: without one by config_named. (input.c) */
struct place_text config_input_text(const struct config_input *in);
struct place_text config_named(enum config_source source, const char *name);
/* A whole file. */
enum sy_code config_walk_file(struct config_layer *layer, const struct config_input *in,
                              struct sy_error *err) SY_NODISCARD;
/* The value of one key, from a variable or a flag. */
enum sy_code config_walk_value(struct config_layer *layer, size_t key,
                               const struct config_input *in, struct sy_error *err) SY_NODISCARD;

/* --- text.c: defaults; environment and flags to layers --- */

/* What the key is where no source says anything; *v is empty before. */
enum sy_code config_value_default(struct config_value *v, size_t key,
                                  struct sy_error *err) SY_NODISCARD;
enum sy_code config_read_environment(struct config_layer *layer, char *const *environ_list,
                                     const char *home, struct sy_error *err) SY_NODISCARD;
enum sy_code config_read_flags(struct config_layer *layer, char *const *overrides, const char *home,
                               struct sy_error *err) SY_NODISCARD;
/* The value of -s. */
enum sy_code config_read_mode(struct config_layer *layer, const char *mode,
                              struct sy_error *err) SY_NODISCARD;

/* --- files.c: which files, and whether they can be trusted --- */

/* The home directory: HOME, or what the caller knows where that is no absolute
 * path, so that a bare environment does not switch the user's file off. May be
 * NULL. */
const char *config_home(const struct config_sources *sources);

/* The default user path, to be freed by the caller; *ret stays NULL when there
 * is no home. */
enum sy_code config_user_path(char **ret, const struct config_sources *sources,
                              struct sy_error *err) SY_NODISCARD;

struct config_file {
    const char *path;
    const char *workspace; /* may be NULL */
    enum config_source source;
    bool must_be_root; /* the owner; else the effective user or root */
};

/* Reads it whole; *ret_exists says whether there is one. */
enum sy_code config_read_file(struct buf *b, bool *ret_exists, const struct config_file *file,
                              struct sy_error *err) SY_NODISCARD;

/* --- requirements.c --- */

struct config_layers {
    struct config_layer
        of[CONFIG_SOURCES]; /* by enum config_source; that of the default is empty */
};

/* What follows for other keys from those that are required becomes a value of the system's layer.
 */
enum sy_code config_imply_requirements(struct config_layers *layers, const char *system_path,
                                       struct sy_error *err) SY_NODISCARD;
/* Is the key required, by its name or by that of another? */
bool config_is_required(const struct config_layers *layers, size_t key);
/* SY_E_CONFIG when a layer above the system file widens a required key. */
enum sy_code config_check_requirements(const struct config_layers *layers, const char *system_path,
                                       struct sy_error *err) SY_NODISCARD;

/* --- merge.c --- */

struct config_impl {
    char *system_path;
    char *user_path; /* NULL: none */
    char *texts[CONFIG_KEYS];
    struct config_place places[CONFIG_KEYS];
    bool required[CONFIG_KEYS];
};

/* Judges the layers and moves the highest value of each key into *ret, which
 * has its impl already. */
enum sy_code config_merge(struct config *ret, struct config_layers *layers,
                          struct sy_error *err) SY_NODISCARD;

/* --- show.c --- */

/* A value as text: the longest are roots of the greatest length, each byte
 * escaped. */
#define CONFIG_SHOWN_MAX ((size_t)4 * LIMIT_ROOTS * LIMIT_PATH)
/* A value as text that could stand in the file, secrets masked. */
enum sy_code config_format_value(struct buf *b, const struct config_row *row,
                                 const struct config_value *v) SY_NODISCARD;

#endif
