#ifndef SY_GUARD_GUARD_INTERNAL_H
#define SY_GUARD_GUARD_INTERNAL_H

#include <sys/stat.h>

#include "guard/guard.h"

/* What a known directory is, hence what its entries mean. */
enum node_kind {
    NODE_DIR,       /* any: searched for protected names */
    NODE_GIT,       /* a git directory, .git or bare */
    NODE_INFO,      /* its info */
    NODE_MODULES,   /* its modules, on the way to git directories */
    NODE_WORKTREES, /* its worktrees */
    NODE_WORKTREE,  /* one of them */
    NODE_HOOKS,     /* all files but samples are protected */
    NODE_OWN        /* all files are protected */
};

/* Which file it is, and whether it was written to. */
struct guard_ident {
    dev_t dev;
    ino_t ino;
    int64_t btime_ns; /* inode numbers come again; 0: the disk does not tell */
    mode_t mode;
    uid_t uid;
    gid_t gid;
    int64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns;
};

struct guard_file {
    char *name;
    enum guard_name rule;
    struct guard_ident id;
    struct guard_ident was; /* at the last baseline; ino 0: not there then */
    char *copy;             /* content (a link's target) at the baseline, or NULL */
    size_t copy_len;
    bool has_copy;
    bool is_pending; /* came, changed or went since the baseline */
    bool is_gone;
    bool is_seen;
};

struct guard_node {
    struct guard_node *parent; /* NULL: a root */
    struct guard_node *first;
    struct guard_node *last;
    struct guard_node *next;
    struct guard_node *next_dirty;
    struct guard_node *next_by_wd;
    struct guard_file *files;
    uint32_t n_files;
    uint32_t depth;
    dev_t dev;
    ino_t ino;
    int64_t btime_ns;
    ino_t entry_ino; /* as the parent's entry says: another one below a mount; of a
                        root: its index */
    int wd;
    enum node_kind kind;
    enum node_kind origin; /* what it is unless it looks like a git directory */
    enum guard_name rule;  /* of NODE_HOOKS and NODE_OWN, and of .git at the top */
    bool is_bare;          /* NODE_GIT that is searched as NODE_DIR too */
    bool is_top;           /* a protected directory itself, not what is in it */
    bool is_new;           /* came since the baseline */
    bool became_git;       /* was there, and became NODE_GIT since the baseline */
    bool is_adopted;       /* was there, and became protected since the baseline */
    bool is_gone;          /* protected, and went since the baseline */
    bool is_seen;
    bool is_queued;
    bool is_placeholder;
    bool is_held; /* a placeholder of whatever engine, by its time: it goes when that wants it to */
    bool is_home;
    char name[]; /* of a root: its path */
};

/* A path that git configuration names, or to which a protected link or a pointer file leads. */
struct guard_extra {
    char *path;
    enum guard_name rule;
    const struct guard_node *owner; /* the git directory, or where the link lies */
    bool is_link;
    bool is_way;  /* a link on the way to another of them: itself alone */
    bool is_seen; /* of a link: free outside of a scan of its owner */
};

/* What a removed file was: it may come back under another name (a moved tree). */
struct guard_lost {
    struct guard_ident id;
    enum guard_name rule;
};

struct guard_placeholder {
    char *path;
    dev_t dev;
    ino_t ino;
};

/* A mark that was told: which inode stood there. */
struct guard_told {
    char *path;
    dev_t dev;
    ino_t ino;
    int64_t btime_ns;
    enum guard_action action;
    bool is_placeholder;
    const char *rule; /* static */
};

struct journal;

#define GUARD_WD_BUCKETS 4096U

struct guard {
    struct strv roots;
    struct strv homes;
    bool is_lifted[GUARD_NAME_COUNT];
    bool has_mounts;
    bool is_short;
    uint32_t dirs_max;
    uint32_t depth_max;
    uint32_t walk_ms;
    char *state_dir;         /* NULL: none */
    struct journal *journal; /* NULL: not needed so far */
    /* the tree */
    struct guard_node **root_nodes; /* one a root; NULL where it does not exist */
    int *root_fds;
    uint32_t n_dirs;
    uint32_t n_files;
    struct guard_node *first_dirty;
    struct guard_node **last_dirty;
    struct guard_extra *extras;
    size_t n_extras;
    bool tree_changed; /* since marks were told */
    bool needs_places; /* since placeholders were made */
    bool holders_stale;
    struct guard_node **holders; /* directories with protected files */
    size_t n_holders;
    bool has_pending;
    /* bounds */
    uint64_t walk_end_ns;
    const char *incomplete_in;
    const char *why;
    /* watching */
    int inotify_fd;
    bool is_blind;        /* watches ran out: walk at each refresh */
    bool has_just_walked; /* the first walk serves the first run */
    uint32_t walks;
    struct guard_node **by_wd; /* GUARD_WD_BUCKETS; NULL: nothing is watched */
    /* runs */
    uint32_t active;
    uint64_t run; /* of the last baseline, names the quarantine */
    uint64_t quarantined;
    int64_t run_wall_ns; /* its time, as files have it */
    struct guard_lost *lost;
    size_t n_lost;
    size_t copied;
    /* marks */
    struct guard_told *told;
    size_t n_told;
    struct guard_placeholder *placeholders;
    size_t n_placeholders;
    bool has_joined; /* the placeholders of other engines */
};

/* names.c: what an entry of an ordinary directory is protected as. */
bool guard_name_find(enum guard_name *ret, const char *name, bool in_home);
bool guard_name_is_git(enum guard_name n);
/* ".git", or an entry by which a directory is a git directory, or of one. */
bool guard_name_is_part(const char *name);

/* tree.c */
static inline void
tree_touch(struct guard *g)
{
    g->tree_changed = true;
    g->needs_places = true;
    g->holders_stale = true;
}
struct guard_node *node_new(struct guard *g, struct guard_node *parent, const char *name,
                            enum node_kind kind);
/* Removes it and all below from the tree; what it knew of files is lost (struct guard_lost). */
void node_free(struct guard *g, struct guard_node *node);
/* Appends the absolute path. */
enum sy_code node_path(struct buf *out, const struct guard_node *node) SY_NODISCARD;
/* Its path below its root ("." for the root), and that root's index. */
enum sy_code node_relative(struct buf *out, const struct guard_node *node,
                           size_t *ret_root) SY_NODISCARD;
void node_queue(struct guard *g, struct guard_node *node);
void node_queue_all(struct guard *g);
struct guard_node *node_by_wd(const struct guard *g, int wd);
void node_set_wd(struct guard *g, struct guard_node *node, int wd);
/* Depth first, parents before children: `after` NULL for the first; NULL at the end. */
struct guard_node *node_walk(const struct guard *g, const struct guard_node *after);
/* The next one that is not below `after`. */
struct guard_node *node_beside(const struct guard *g, const struct guard_node *after);
/* A whole tree below `path` that is known, or NULL. */
struct guard_node *node_at(const struct guard *g, const char *path);
struct guard_file *node_file(const struct guard_node *node, const char *name);
enum sy_code node_add_file(struct guard *g, struct guard_node *node, const char *name,
                           enum guard_name rule, struct guard_file **ret) SY_NODISCARD;
void guard_file_fini(struct guard *g, struct guard_file *f);
bool guard_was_lost(const struct guard *g, const struct guard_file *f);

/* open.c: below a root, never through a link. Negative errno values. */
int open_below(int root_fd, const char *relative, int flags);
int node_open(const struct guard *g, const struct guard_node *node, int flags);
/* Of what `name` is in a directory, links not followed ("": of the descriptor itself).
 * 0 or an errno value. */
int ident_read(struct guard_ident *ret, int dir_fd, const char *name);
bool ident_equal(const struct guard_ident *a, const struct guard_ident *b);

/* scan.c: looks at each queued directory, and at what appears in it. */
enum sy_code scan_queued(struct guard *g) SY_NODISCARD;

/* watch.c */
void watch_start(struct guard *g);
void watch_add(struct guard *g, struct guard_node *node, int fd);
void watch_remove(struct guard *g, struct guard_node *node);
/* Reads all events and queues what they speak of. */
void watch_read(struct guard *g);

/* Some of it is not known: which root, and why. */
void scan_tell_incomplete(struct guard *g, const struct guard_node *node, const char *why);

/* extra.c: the paths that the configuration of a git directory names, with all that it includes. */
enum sy_code extra_read(struct guard *g, const struct guard_node *git) SY_NODISCARD;
/* A file of that rule has changed there: what configuration it belongs to is read anew. */
enum sy_code extra_changed(struct guard *g, const struct guard_node *node,
                           enum guard_name rule) SY_NODISCARD;
/* Between these two each link and pointer file of a directory is told; those that are not are
 * forgotten. */
void extra_links_begin(struct guard *g, const struct guard_node *node);
enum sy_code extra_link(struct guard *g, const struct guard_node *node, int dir_fd,
                        const char *name, const struct guard_file *like) SY_NODISCARD;
enum sy_code extra_links_end(struct guard *g, const struct guard_node *node) SY_NODISCARD;
/* Is that entry one of those paths, or on the way to one? */
bool extra_leads(const struct guard *g, const struct guard_node *dir, const char *name);
void extra_drop(struct guard *g, const struct guard_node *owner);
bool extra_find(enum guard_name *ret, const struct guard *g, const struct guard_node *dir,
                const char *name);

/* marks.c */
enum sy_code marks_collect(const struct guard *g, struct guard_marks *ret) SY_NODISCARD;
/* What differs from what was told; afterwards it counts as told. */
enum sy_code marks_changes(struct guard *g, struct guard_marks *changes) SY_NODISCARD;
void marks_forget(struct guard *g);

/* placeholder.c */
enum sy_code placeholders_make(struct guard *g, struct sy_error *err) SY_NODISCARD;
void placeholders_remove(struct guard *g);
bool placeholder_is_ours(const struct guard *g, dev_t dev, ino_t ino);
/* Is it one of any engine's, by the journal? */
bool placeholder_is_listed(struct guard *g, const char *dir, const char *name, ino_t ino);

/* guard.c: opens g->journal at its first use; SY_E_NOTFOUND without a state directory. */
enum sy_code guard_open_journal(struct guard *g, struct sy_error *err) SY_NODISCARD;

/* guard.c: takes in events, or walks; tells nothing. */
enum sy_code guard_look_again(struct guard *g, struct sy_error *err) SY_NODISCARD;

/* after.c, baseline.c */
enum sy_code baseline_take(struct guard *g) SY_NODISCARD;
/* Looks at each protected file for a change that no name tells. */
enum sy_code baseline_compare(struct guard *g) SY_NODISCARD;

#endif
