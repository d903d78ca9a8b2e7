#ifndef SY_SANDBOX_LINUX_DENY_SOURCE_H
#define SY_SANDBOX_LINUX_DENY_SOURCE_H

#include "sandbox/deny_match.h"
#include "sandbox/linux/deny_expand.h"

/*
 * The inside of deny_expand: what is looked for, and where the walk is.
 */

/* No pattern leads deeper, but for "**", where nothing sensible does. */
#define DENY_DEPTH_MAX 64

/* A directory that is being looked at. */
struct deny_frame {
    struct deny_dir dir;
    struct deny_names names;
    bool is_listable;
    bool is_in_root;
    size_t next;    /* byte of the next name; or the group, where none can be listed */
    size_t current; /* byte of the name that is being looked at */
};

/* A pattern with where it comes from; links make more of them. */
struct deny_source {
    const char *text; /* without its first '/' */
    size_t rule;
};

struct deny_expander {
    const struct deny_request *request;
    struct deny_view view;
    struct deny_frame *frames;
    size_t depth;
    struct deny_source *sources;
    size_t n_sources;
    struct strv behind_links; /* owns the texts of those that links made */
    bool has_new_source;
    size_t n_names;
    int64_t begun_ns; /* by the wall clock, as files are stamped */
    struct deny_hit hit;
    struct sy_error *err;
};

/* Room for one more in the array whose pointer `array` is the address of; it grows by powers
 * of two. */
enum sy_code deny_grow(void *array, size_t n, size_t size) SY_NODISCARD;
/* SY_E_SANDBOX: more of `what` than a limit. */
enum sy_code deny_too_much(struct deny_expander *x, const char *what, unsigned most);

/* Homes become sources, at the beginning. */
enum sy_code deny_add_homes(struct deny_expander *x) SY_NODISCARD;
/* What is wanted at or below a link (x->hit) is looked for where it leads: more sources. */
enum sy_code deny_follow(struct deny_expander *x, const char *path) SY_NODISCARD;
/* What the defaults want of a home, and of "/": into x->hit. */
enum sy_code deny_add_rows(struct deny_expander *x, size_t home) SY_NODISCARD;
enum sy_code deny_add_system_rows(struct deny_expander *x) SY_NODISCARD;

#endif
