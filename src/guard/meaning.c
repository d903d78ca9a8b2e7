/* What an entry of a known directory is, by its name and the kind of the directory. */
#include "guard/meaning.h"

#include "base/str.h"

static struct meaning
child(enum node_kind kind, enum guard_name rule, bool is_top)
{
    return (struct meaning){.is_child = true, .kind = kind, .rule = rule, .is_top = is_top};
}

static struct meaning
file(enum guard_name rule)
{
    return (struct meaning){.is_file = true, .rule = rule};
}

/* What something else leads to. The directory of a link or file .git tells by what it holds whether
 * it is one of git. */
static bool
mean_extra(struct meaning *ret, const struct guard *g, const struct guard_node *node,
           const char *name, enum entry_type type)
{
    enum guard_name rule;

    if (!extra_find(&rule, g, node, name) || g->is_lifted[rule]) {
        return false;
    }
    *ret = type != ENTRY_DIR        ? file(rule)
           : rule == GUARD_GIT_FILE ? child(NODE_DIR, GUARD_GIT, false)
           : rule == GUARD_GIT_HOOKS || rule == GUARD_GIT_HOOKS_PATH ? child(NODE_HOOKS, rule, true)
                                                                     : child(NODE_OWN, rule, true);
    ret->is_extra = true;
    return true;
}

static struct meaning
mean_dir(const struct guard *g, const struct guard_node *node, const char *name,
         enum entry_type type)
{
    enum guard_name rule;
    struct meaning m;

    if (str_eq(name, ".git")) {
        return type == ENTRY_DIR ? child(NODE_GIT, GUARD_GIT, false) : file(GUARD_GIT_FILE);
    }
    if (guard_name_find(&rule, name, node->is_home) && !g->is_lifted[rule]) {
        return type == ENTRY_DIR ? child(NODE_OWN, rule, true) : file(rule);
    }
    if (mean_extra(&m, g, node, name, type)) {
        return m;
    }
    return type == ENTRY_DIR ? child(NODE_DIR, GUARD_GIT, false) : (struct meaning){0};
}

static struct meaning
mean_git(const char *name, enum entry_type type)
{
    static const struct {
        const char *name;
        enum guard_name rule;
        enum node_kind kind; /* as a directory */
        bool is_file;        /* else only a link instead of the directory is marked */
        bool is_top;
    } parts[] = {
        {"hooks",           GUARD_GIT_HOOKS,      NODE_HOOKS,     false, true },
        {"config",          GUARD_GIT_CONFIG,     NODE_OWN,       true,  true },
        {"config.worktree", GUARD_GIT_WORKTREE,   NODE_OWN,       true,  true },
        {"commondir",       GUARD_GIT_COMMONDIR,  NODE_OWN,       true,  true },
        {"info",            GUARD_GIT_ATTRIBUTES, NODE_INFO,      false, false},
        {"modules",         GUARD_GIT_HOOKS,      NODE_MODULES,   false, false},
        {"worktrees",       GUARD_GIT_WORKTREE,   NODE_WORKTREES, false, false},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!str_eq(parts[i].name, name)) {
            continue;
        }
        if (type == ENTRY_DIR) {
            return child(parts[i].kind, parts[i].rule, parts[i].is_top);
        }
        if (type == ENTRY_LINK || parts[i].is_file || parts[i].kind == NODE_HOOKS) {
            return file(parts[i].rule);
        }
    }
    return (struct meaning){0};
}

static struct meaning
mean_plain(const struct guard *g, const struct guard_node *node, const char *name,
           enum entry_type type)
{
    switch (node->kind) {
    case NODE_DIR:
        return mean_dir(g, node, name, type);
    case NODE_GIT: {
        struct meaning m = mean_git(name, type);

        if (m.is_child || m.is_file) {
            return m;
        }
        if (node->is_bare || (type == ENTRY_DIR && extra_leads(g, node, name))) {
            return mean_dir(g, node, name, type);
        }
        return mean_extra(&m, g, node, name, type) ? m : (struct meaning){0};
    }
    case NODE_INFO:
        return str_eq(name, "attributes") && type != ENTRY_DIR ? file(GUARD_GIT_ATTRIBUTES)
                                                               : (struct meaning){0};
    case NODE_MODULES:
        return type == ENTRY_DIR ? child(NODE_MODULES, GUARD_GIT_HOOKS, false)
                                 : (struct meaning){0};
    case NODE_WORKTREES:
        return type == ENTRY_DIR ? child(NODE_WORKTREE, GUARD_GIT_WORKTREE, false)
                                 : (struct meaning){0};
    case NODE_WORKTREE: {
        struct meaning m = mean_git(name, type);

        return str_eq(name, "hooks") || str_eq(name, "info") || str_eq(name, "config")
                   ? (struct meaning){0}
                   : m;
    }
    case NODE_HOOKS:
    case NODE_OWN:
        if (type == ENTRY_DIR) {
            return child(node->kind, node->rule, false);
        }
        return node->kind == NODE_HOOKS && str_ends(name, ".sample") ? (struct meaning){0}
                                                                     : file(node->rule);
    }
    return (struct meaning){0};
}

struct meaning
meaning_of(const struct guard *g, const struct guard_node *node, const char *name,
           enum entry_type type)
{
    struct meaning m = mean_plain(g, node, name, type);
    bool is_lifted = (m.is_file || m.is_top) && g->is_lifted[m.rule];

    return is_lifted ? (struct meaning){0} : m;
}
