#ifndef SY_SANDBOX_LINUX_DENY_EXPAND_H
#define SY_SANDBOX_LINUX_DENY_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/linux/walk.h"

/*
 * What of patterns exists. Names on the way are taken as they are; where one is
 * a symbolic link, what it leads to is looked for as well, so that a secret that
 * was moved away behind a link is found where it lies. Such links are not
 * followed inside writable roots, where commands make them.
 */

/* Of a file system that keeps no time of birth. */
#define BORN_UNTOLD INT64_MIN

/* One thing to hide, by its path without links. */
struct deny_object {
    char *path;
    struct file_id id;
    bool is_dir;
    bool is_link;        /* only in a writable root: the link itself */
    bool is_in_root;     /* below a writable root (not the root itself) */
    bool has_more_names; /* a file with further hard links, wherever they are */
    size_t rule;         /* its number (deny.h) */
    int64_t born_ns;     /* inode numbers come again; BORN_UNTOLD: the disk does not say */
    int64_t changed_ns;  /* its ctime; 0: of a directory, or a later change may have the same */
};

/* A directory in which a name may be one to hide. */
struct deny_dir {
    char *path;
    struct file_id id;
    int64_t born_ns;
    int64_t changed_s; /* its ctime when it was looked at */
    uint32_t changed_ns;
    bool is_settled; /* a later change has another ctime */
    bool is_split;   /* it holds a thing to hide, at whatever depth, outside of roots */
    /* Of a split one, if the request keeps names: itself, and its names as
     * getdents64(2) gives them, DENY_KEPT_BACK in d_type of those to hide and of
     * split directories. */
    int fd;
    struct buf names;
};
#define DENY_KEPT_BACK 0xffU

struct deny_view {
    struct deny_object *objects;
    size_t n_objects;
    struct deny_dir *dirs;
    size_t n_dirs;
    struct strv unsearched; /* patterns that were not looked for: "**" in a root */
    size_t n_held;          /* objects outside of roots */
    bool has_more_names;    /* one of these has */
};

struct deny_request {
    const struct strv *patterns;   /* of a plan; none has a "**" at its end */
    const struct strv *homes;      /* that have the defaults */
    const struct strv *allow_read; /* what these leave out */
    bool denies_system;            /* those of the system too */
    bool closes_devices;           /* and /dev */
    const struct strv *roots;      /* writable ones, without links */
    /* Landlock is to hold it: names are kept, and roots are not searched for "**",
     * since nothing in them can be held. Else all is found, for mounts. */
    bool is_for_landlock;
};

/*
 * SY_E_CONFIG where a wildcard stands for names that can't be listed, SY_E_SANDBOX
 * where more is found than LIMIT_DENY_* allow. What is not there, and what may not
 * be looked into, is nothing to hide.
 */
enum sy_code deny_expand(struct deny_view *ret, const struct deny_request *request,
                         struct sy_error *err) SY_NODISCARD;
void deny_view_fini(struct deny_view *v);
void deny_dir_fini(struct deny_dir *d);

/* False once a directory in which something may be hidden was changed or replaced:
 * one statx(2) for each. */
bool deny_view_is_fresh(const struct deny_view *v);
/* Is there to hide now what was then, and where it was? False where the disk can't tell. */
bool deny_view_is_same(const struct deny_view *then, const struct deny_view *now);

/*
 * Grants reading by a ruleset for all but what is to hide: a rule for each name
 * of each split directory. What is granted is kept open in `keep`, if that is not NULL.
 */
struct grant_stock;
enum sy_code deny_view_grant(const struct deny_view *v, int ruleset_fd, struct grant_stock *keep,
                             struct sy_error *err) SY_NODISCARD;

#endif
