#ifndef SY_GUARD_MEANING_H
#define SY_GUARD_MEANING_H

#include "guard/guard_internal.h"

enum entry_type { ENTRY_DIR, ENTRY_LINK, ENTRY_OTHER };

/* Neither a child nor a file: nothing to know. */
struct meaning {
    bool is_child; /* a directory to be known */
    bool is_file;  /* protected */
    bool is_top;
    bool is_extra; /* for what leads to it alone, not for its own name */
    enum node_kind kind;
    enum guard_name rule;
};

struct meaning meaning_of(const struct guard *g, const struct guard_node *node, const char *name,
                          enum entry_type type);

#endif
