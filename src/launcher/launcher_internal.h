#ifndef SY_LAUNCHER_LAUNCHER_INTERNAL_H
#define SY_LAUNCHER_LAUNCHER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "process/launch_wire.h"
#include "sandbox/sandbox.h"

/* What could not be done. */
struct failure {
    enum sandbox_stage stage;
    int sys;
    char detail[sizeof(((struct launch_report *)0)->detail)];
};

/* Fills *f and returns false. `about` is a path or a word; NULL: nothing to add. */
bool failed(struct failure *f, enum sandbox_stage stage, int sys, const char *about);

/*
 * The yard: what all templates of one launcher stand in. A user namespace, unless
 * we are root with the right to mount, and a mount namespace with one tmpfs in
 * it, that holds the temporary directories of the session.
 */
struct yard {
    bool is_open;
    bool has_user_namespace;
};

bool yard_open(struct yard *y, struct failure *f);
/* How much the tmpfs may hold, before it is used up (tree_build); 0: half of the memory. */
bool yard_limit(uint64_t temp_bytes, struct failure *f);

/* Where the yard's tmpfs is, and what is in it. Templates move it from there. */
#define YARD_PLACE "/tmp"
#define YARD_TMP   YARD_PLACE "/tmp"
#define YARD_SHM   YARD_PLACE "/shm"
#define YARD_RUN   YARD_PLACE "/run"
#define YARD_DEV   YARD_PLACE "/dev"

/* The file tree of one policy, in a mount namespace of the caller's own. */
struct tree {
    int covers_fd;     /* a tmpfs with what lies over hidden things and links */
    int watch_fd;      /* inotify(7): the n-th watch is of the n-th hidden thing; -1: none */
    unsigned n_hidden; /* so far */
};

/*
 * Makes the caller's mount namespace what the plan says: everything read-only, small
 * /dev and /run, private temporary directories, writable roots. Uses the yard's tmpfs up: it
 * is no longer at its place afterwards.
 */
bool tree_build(struct tree *t, const struct sandbox_plan *plan, struct failure *f);
/* Adds marks (process/launch_wire.h). A path that is gone is left out: there is nothing to protect.
 */
bool tree_mark(struct tree *t, const char *marks, size_t n, struct failure *f);
/* Mounts the tmpfs of what lies over hidden things. Something else has to be put over it: a command
 * that finds it could fill it. */
bool tree_open_covers(struct tree *t, const char *place, struct failure *f);
/* Hides what that descriptor (or a negative errno value: nothing) is of; the first
 * LIMIT_HIDDEN_NAMES names of a directory stay if it `has_names`. 0 or a negative errno value. */
int tree_hide(struct tree *t, int target, bool has_names);
/* The same for a link, of which nobody is told. */
int tree_hide_link(const struct tree *t, int target);
/* What a policy brings along instead of an engine that looks for it and sends marks: names below
 * its writable roots (sandbox/elsewhere.h) that exist become read-only, with all above them pinned;
 * what is denied to read is hidden, with all above it in a root pinned. */
bool protect_names(struct tree *t, const struct sandbox_plan *plan, char *const *names,
                   struct failure *f);
bool protect_secrets(struct tree *t, const struct sandbox_plan *plan,
                     const struct sandbox_ready *ready, struct failure *f);
/* Their first halves: what is found, added as marks (process/launch_wire.h). */
bool protect_find_names(struct buf *ret_marks, const struct sandbox_plan *plan, char *const *names,
                        struct failure *f);
bool protect_find_secrets(struct buf *ret_marks, const struct sandbox_plan *plan,
                          const struct sandbox_ready *ready, struct failure *f);
/* The part of it that each run has for itself: a /proc of its pid namespace. */
bool tree_enter_run(struct failure *f);

/* Mount calls by descriptor, as thin as can be: a descriptor or 0, or a negative errno value. */
int mount_clone(const char *path, bool with_below);
int mount_clone_fd(int fd, bool with_below);
int mount_restrict(int mount_fd, uint64_t attributes, bool with_below);
#define MOUNT_READ_ONLY 0x1U
#define MOUNT_NO_SUID   0x2U
#define MOUNT_NO_DEV    0x4U
#define MOUNT_NO_EXEC   0x8U
int mount_put(int mount_fd, const char *path);
int mount_put_fd(int mount_fd, int target_fd);

/* In a network namespace of the caller's own: its loopback interface goes up; a TCP socket there,
 * on 127.0.0.1 and that port, on which nobody listens yet. */
bool network_raise_loopback(struct failure *f);
bool network_bind_loopback(int *ret_fd, uint16_t port, struct failure *f);

/* Who commands run as. */
struct identity {
    bool changes;
    uid_t uid;
    gid_t gid;
};

/* Of the policy: as root, the owner of its workspace. */
bool identity_find(struct identity *ret, const struct sandbox_policy *policy, bool is_root,
                   struct failure *f);
bool identity_become(const struct identity *who, struct failure *f);

/* A message with its descriptors (at most LAUNCH_FDS, close-on-exec; the others are -1). Returns
 * as recvmsg(2), with a message that was cut as -1 and EMSGSIZE. */
#define LAUNCH_FDS 4
ssize_t receive_with_fds(int channel_fd, void *bytes, size_t n, int fds[LAUNCH_FDS]);
bool send_with_fd(int channel_fd, const void *bytes, size_t n, int fd);
/* What there is to tell the engine, with descriptors, up to the first that is -1. */
bool send_report(int channel_fd, const struct failure *f, const int fds[LAUNCH_FDS]);

/* One policy, made ready in the process that makes its keepers. */
struct template_process {
    int channel_fd;
    int engine_fd; /* -1: none */
    int held_fd;   /* of the engine, which is not to be the last to close it; -1: none */
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
    struct identity who;
    struct tree tree;
    /* Bound inside, for the engine's proxy (an allow list): HTTP, SOCKS; -1: none. */
    int proxy_fds[2];
};

/* Enters its namespaces, builds the tree, tries whether a run can be made. The file
 * holds the policy (sandbox/document.h). */
bool template_prepare(struct template_process *t, const struct yard *y, int policy_fd,
                      struct failure *f);
/* For a process that outlives it. What has been made of it stays with its keepers. */
void template_fini(struct template_process *t);
/* What a keeper is made with. */
struct run_fds {
    int channel; /* its end */
    int in;      /* of its command; -1: /dev/null */
    int out;
    int err;
    bool has_terminal; /* the three are a terminal, which is made inside */
};
/* Returns its process id; -1: the engine's end of the channel has been told. */
pid_t template_fork_keeper(const struct template_process *t, const struct run_fds *fds,
                           int *ret_pidfd);

/* `shellyard-launch --policy FD -- CMD`: the exit status. */
int wrapper_run(int policy_fd, char **argv);
enum { EXIT_USAGE = 2, EXIT_SETUP = 125, EXIT_NOEXEC = 126, EXIT_NOTFOUND = 127 };

/*
 * The process of one policy: makes namespaces and tree, tells the engine, and makes
 * keepers until its channel ends. Never returns.
 */
struct template_start {
    int policy_fd;
    int channel_fd;
    int engine_fd;
};
void template_run(const struct yard *y, const struct template_start *start)
    __attribute__((noreturn));

#endif
