#ifndef SY_SANDBOX_SANDBOX_H
#define SY_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* Specification, SandboxPolicy. */
enum sandbox_mode {
    SANDBOX_READ_ONLY,
    SANDBOX_WORKSPACE_WRITE,
    SANDBOX_DANGER_FULL_ACCESS,
    SANDBOX_EXTERNAL /* somebody else's sandbox holds: none of ours */
};

/* "read-only", "workspace-write", "danger-full-access", "external-sandbox". */
const char *sandbox_mode_name(enum sandbox_mode mode);
bool sandbox_mode_parse(enum sandbox_mode *ret, const char *name) SY_NODISCARD;

/*
 * How strong a sandbox is, weakest first: none, Landlock and seccomp with a
 * broker, or these inside namespaces with a file tree of their own.
 */
enum sandbox_tier { TIER_NONE, TIER_NO_NAMESPACE, TIER_FULL };

/* "none", "no-namespace", "full". */
const char *sandbox_tier_name(enum sandbox_tier tier);
bool sandbox_tier_parse(enum sandbox_tier *ret, const char *name) SY_NODISCARD;

/*
 * What commands may do. Made from configuration (and a turn's cwd), never from
 * a call's arguments. Owns its strings; only read once made. Later layers
 * (protected subpaths, domains) are further members.
 */
struct sandbox_policy {
    enum sandbox_mode mode;
    char *cwd;                  /* the workspace: absolute, normalized */
    struct strv writable_roots; /* absolute */
    size_t n_granted_roots;     /* so many of them, the last, a person has granted: no link leads to
                                   one, or it would be another one than they saw */
    size_t n_linked_roots;      /* so many before those are git directories of linked worktrees'
                                   repositories (linux/linked.h). No link leads there either */
    char *tmpdir;               /* $TMPDIR of the session, NULL if unset */
    bool has_network;           /* network_access */
    bool finds_linked;          /* linked worktrees are looked for */
    bool cwd_has_no_links;     /* it was resolved when it was set: a link that leads to it since was
                                  made by somebody, and is refused */
    bool cwd_is_inner;         /* the commands of another turn can write where `cwd` lies */
    bool keeps_roots;          /* what an administrator requires of writable roots, */
    bool keeps_network;        /* of network.allow */
    bool keeps_reads;          /* and of allow_read: no grant widens it (access_kept_by) */
    bool narrows_mode;         /* a turn has a narrower mode than it may have: its fix is there */
    bool drops_roots;          /* a turn left out some of the roots that it may have, */
    bool drops_network;        /* or switched the network off: it gets no more of that by rules */
    struct strv network_allow; /* network.allow: hosts in reach while has_network is false */
    bool excludes_tmpdir;      /* exclude_tmpdir_env_var */
    bool excludes_slash_tmp;   /* exclude_slash_tmp */
    struct strv deny_read;     /* patterns (base/path_pattern.h) of what can't be read */
    size_t n_default_deny_read; /* so many of them, the first, are defaults all the same */
    struct strv deny_homes;     /* the defaults (deny.h) hold in each; absolute */
    struct strv allow_read;     /* paths taken out of the defaults */
    bool denies_system;         /* also those defaults that are in no home */
    bool closes_devices;        /* where /dev is everybody's: its nodes but for the common ones */
    struct strv own_dirs; /* of Shellyard itself, absolute: what a command writes there would be
                             believed later (linux/own.h), and none reads there, whatever
                             allow_read says */
    bool reports_all;     /* report: full */
    enum sandbox_tier max_tier;  /* not above, of what is there; TIER_NONE counts as no-namespace */
    enum sandbox_tier min_tier;  /* refuse below */
    bool runs_as_self;           /* started as root: not as the workspace's owner */
    bool protects;               /* who makes the plan keeps protected names (guard/guard.h) */
    struct strv protected_names; /* elsewhere.h, for whoever makes the tree and has no guard */
    uint64_t temp_bytes; /* most in temporary directories (full tier); 0: half of the memory */
};

void sandbox_policy_fini(struct sandbox_policy *p);
enum sy_code sandbox_policy_copy(struct sandbox_policy *ret,
                                 const struct sandbox_policy *from) SY_NODISCARD;
/* Do two policies ask for the same sandbox? Lists count in their order. */
bool sandbox_policy_equal(const struct sandbox_policy *a, const struct sandbox_policy *b);
/* Is that one of its writable roots granted by a person? */
bool sandbox_policy_is_granted(const struct sandbox_policy *p, size_t i);
/* Is it the git directory of a linked worktree? */
bool sandbox_policy_is_linked(const struct sandbox_policy *p, size_t i);
/* read-only and workspace-write are enforced by us; the others are not. */
bool sandbox_mode_is_enforced(enum sandbox_mode mode);
/* Full network: has_network under an enforced mode, always otherwise. */
bool sandbox_policy_has_network(const struct sandbox_policy *p);

/*
 * Is there, by text alone, what only mounts can hold: something denied to read, or a
 * directory of Shellyard's own, below a writable root? Without namespaces such a
 * policy is refused as soon as one of these is found.
 */
bool sandbox_policy_needs_mounts(const struct sandbox_policy *p);

/* Nothing; what network.allow names, through the proxy alone; everything. */
enum sandbox_network { NETWORK_OFF, NETWORK_ALLOW_LIST, NETWORK_ON };

/* "off", "allow-list", "on". */
const char *sandbox_network_name(enum sandbox_network n);
/* What a policy asks for; a plan may have less (sandbox_plan_network). */
enum sandbox_network sandbox_policy_network(const struct sandbox_policy *p);

/*
 * The features that a sandbox is made of, each with its state in every answer
 * (X-macro): id, name, what it does.
 */
#define SANDBOX_FEATURES(X)                                                                        \
    X(FEATURE_FS_WRITE, "fs_write", "writes only below writable roots")                            \
    X(FEATURE_FS_REFER, "fs_refer", "rename and link across directories inside a root")            \
    X(FEATURE_FS_TRUNCATE, "fs_truncate", "truncate(2) outside writable roots refused")            \
    X(FEATURE_FS_METADATA, "fs_metadata", "chmod, chown, xattr and utime outside roots refused")   \
    X(FEATURE_DEVICE_IOCTL, "device_ioctl", "ioctl on devices restricted")                         \
    X(FEATURE_NETWORK, "network", "no socket that reaches out of the sandbox")                     \
    X(FEATURE_UNIX_ABSTRACT, "unix_abstract", "abstract Unix sockets of others unreachable")       \
    X(FEATURE_UNIX_PATH, "unix_path", "named Unix sockets of others unreachable")                  \
    X(FEATURE_SIGNAL_SCOPE, "signal_scope", "no signals to processes outside")                     \
    X(FEATURE_SECCOMP, "seccomp", "dangerous system calls refused")                                \
    X(FEATURE_NO_NEW_PRIVS, "no_new_privs", "setuid and file capabilities without effect")         \
    X(FEATURE_CAPABILITIES, "capabilities", "all capabilities dropped")                            \
    X(FEATURE_RLIMITS, "rlimits", "resource limits (core dumps off)")                              \
    X(FEATURE_FD_CLOSE, "fd_close", "no inherited descriptors")                                    \
    X(FEATURE_TREE_KILL, "tree_kill", "every descendant ended with the command")                   \
    X(FEATURE_PID_NAMESPACE, "pid_namespace", "processes outside invisible")                       \
    X(FEATURE_PRIVATE_TMP, "private_tmp", "temporary directories of its own")                      \
    X(FEATURE_TEMP_LIMIT, "temp_limit", "size of temporary directories limited")                   \
    X(FEATURE_DENY_READ, "deny_read", "secrets unreadable")                                        \
    X(FEATURE_PROTECTED_NAMES, "protected_names", "names that others run programs from kept")      \
    X(FEATURE_AUDIT_RECORDS, "audit_records", "refusals told exactly, from the audit log")

enum sandbox_feature {
#define SANDBOX_FEATURE_ENUM(id, name, what) id,
    SANDBOX_FEATURES(SANDBOX_FEATURE_ENUM)
#undef SANDBOX_FEATURE_ENUM
        FEATURE_COUNT
};

enum feature_state { FEATURE_ENFORCED, FEATURE_EMULATED, FEATURE_ABSENT };

const char *sandbox_feature_name(enum sandbox_feature f);
/* Does it hold something? Else it only tells more of what is held: nobody need be warned. */
bool sandbox_feature_is_wall(enum sandbox_feature f);
const char *sandbox_feature_text(enum sandbox_feature f);
const char *feature_state_name(enum feature_state s);

#define SANDBOX_REASON 200

/* What this kernel can do, asked once (a few system calls). */
struct sandbox_caps {
    int landlock_abi; /* 0: absent; else as landlock_create_ruleset(2) says */
    int landlock_errno;
    uint32_t landlock_errata;
    bool has_seccomp_filter;
    bool has_seccomp_notify;
    bool has_close_range;
    bool has_user_namespaces; /* a try, not a sysctl; filled by `check` only */
    /* A whole sandbox of the full tier has been made and thrown away (launcher);
     * else full_reason says what kept it from being. */
    bool has_full_tier;
    char full_reason[SANDBOX_REASON];
    /* Somebody reads what Landlock writes into the audit log (process/audit.h). */
    bool reads_audit;
    char release[65]; /* uname -r */
};

void sandbox_probe(struct sandbox_caps *ret);
/* The slower part: tries that need a process. For `sandbox check` and doctor. */
void sandbox_probe_deep(struct sandbox_caps *ret);

/*
 * The plan: pure data made from policy and capabilities alone, no file system
 * access beyond what the caller resolved; golden-tested.
 */
struct sandbox_plan;

/*
 * SY_E_SANDBOX with a sentence that names what is missing and how to get it
 * when the kernel can't hold the policy (fail closed). *ret is then a plan all
 * the same (to be freed): its features say what is absent, and
 * sandbox_ready_new refuses it. Other errors leave *ret untouched. The plan of
 * an unenforced mode is valid and empty.
 */
enum sy_code sandbox_plan_new(struct sandbox_plan **ret, const struct sandbox_policy *policy,
                              const struct sandbox_caps *caps, struct sy_error *err) SY_NODISCARD;
void sandbox_plan_free(struct sandbox_plan *plan);
enum feature_state sandbox_plan_feature(const struct sandbox_plan *plan, enum sandbox_feature f);
/* The tier that every answer carries. */
enum sandbox_tier sandbox_plan_tier(const struct sandbox_plan *plan);
/* Why it is not the full tier, though the policy would take that; "": it is, or nobody wanted it.
 */
const char *sandbox_plan_tier_reason(const struct sandbox_plan *plan);
/* What the plan was made for. */
enum sandbox_mode sandbox_plan_mode(const struct sandbox_plan *plan);
bool sandbox_plan_has_network(const struct sandbox_plan *plan);
/* NETWORK_OFF where the policy has an allow list and the kernel has no seccomp notification:
 * without a network of its own the list needs somebody who connects. */
enum sandbox_network sandbox_plan_network(const struct sandbox_plan *plan);
/* Full tier, and not NETWORK_ON: a network namespace, in which there are its commands and, with an
 * allow list, the proxy's listening sockets. */
bool sandbox_plan_has_own_network(const struct sandbox_plan *plan);
/* Is what Landlock refuses written to the audit log (process/audit.h)? Only where somebody reads
 * it, and not in the full tier, where mounts refuse first. */
bool sandbox_plan_is_logged(const struct sandbox_plan *plan);
/* Paths as the policy has them. The i-th directory of the user's that may be written (the
 * workspace, the configured ones), NULL beyond; $TMPDIR, NULL: may not be; may /tmp be? */
const char *sandbox_plan_cwd(const struct sandbox_plan *plan);
const char *sandbox_plan_root(const struct sandbox_plan *plan, size_t i);
const char *sandbox_plan_tmpdir(const struct sandbox_plan *plan);
bool sandbox_plan_writes_tmp(const struct sandbox_plan *plan);
/* Why not all protected names are known, so that none of them counts as enforced, for each answer;
 * "": they are. */
void sandbox_plan_tell_unprotected(struct sandbox_plan *plan, const char *why);
/* The object that every answer carries under "sandbox": mode, tier, Landlock
 * ABI, network, and each feature's state. */
void sandbox_plan_write(struct jw *w, const struct sandbox_plan *plan);
/* Landlock ABI used (0 if none). */
int sandbox_plan_abi(const struct sandbox_plan *plan);
/* The whole plan as JSON, for golden tests and `sandbox check --json`. */
enum sy_code sandbox_plan_dump(const struct sandbox_plan *plan, struct buf *out) SY_NODISCARD;

/*
 * A plan made ready for any number of spawns: Landlock ruleset descriptor,
 * seccomp program, resource limits. Rules are per inode: sandbox_ready_is_fresh
 * tells whether every root still is the file it was made for, and whether the
 * directories in which something may be denied are as they were.
 */
struct sandbox_ready;

enum sy_code sandbox_ready_new(struct sandbox_ready **ret, const struct sandbox_plan *plan,
                               struct sy_error *err) SY_NODISCARD;
void sandbox_ready_free(struct sandbox_ready *ready);
/*
 * A ruleset like that of `ready`, which must be one of this plan with something to enforce, for a
 * command with a terminal of its own, by a descriptor of it: it may open that by its name too.
 * *ret_fd is the caller's. SY_E_SANDBOX where a root was replaced meanwhile. Where several are
 * made one after the other, what they grant stays open between them; *ret_keeps tells whoever began
 * that: it has to ask sandbox_ready_rest.
 */
enum sy_code sandbox_ready_for_terminal(int *ret_fd, bool *ret_keeps,
                                        const struct sandbox_ready *ready,
                                        const struct sandbox_plan *plan, int terminal_fd,
                                        struct sy_error *err) SY_NODISCARD;
/* Closes what stayed open, if no ruleset was made for a while (with UINT64_MAX: at once). Returns
 * when to ask again, UINT64_MAX: nothing is open. */
uint64_t sandbox_ready_rest(const struct sandbox_ready *ready, uint64_t now_ns);
bool sandbox_ready_is_fresh(const struct sandbox_ready *ready);
/*
 * The same, but where mounts hide what is denied, and a directory in which it may be has changed,
 * it is looked for anew: true as well if nothing else is to be hidden. `plan` is the one it was
 * made from.
 */
bool sandbox_ready_renew(struct sandbox_ready *ready, const struct sandbox_plan *plan);
/* The i-th root that was left out because it does not exist ($TMPDIR, /tmp,
 * /dev/shm, a device; never one that the configuration names); NULL beyond. */
const char *sandbox_ready_skipped(const struct sandbox_ready *ready, size_t i);
/*
 * What the policy denies to read, exists, and can't be held here, since it lies in
 * a writable root or has further names; NULL beyond. sandbox_plan_adopt makes the
 * plan say so, in the state of deny_read and wherever it is written.
 */
const char *sandbox_ready_unheld(const struct sandbox_ready *ready, size_t i);
enum sy_code sandbox_plan_adopt(struct sandbox_plan *plan, const struct sandbox_ready *ready,
                                struct sy_error *err) SY_NODISCARD;
/* The i-th thing that exists and is for mounts to hide (full tier), by its path without
 * links; NULL beyond, and in other tiers. */
const char *sandbox_ready_hidden(const struct sandbox_ready *ready, size_t i);
/* Is it a directory whose names give nothing away, as those of ~/.ssh are? Commands may see
 * these, so that what they open of it can be told. */
/* Is it below a writable root? What is above it there has to be kept from being renamed. */
bool sandbox_ready_hidden_is_in_root(const struct sandbox_ready *ready, size_t i);
bool sandbox_ready_hidden_has_names(const struct sandbox_ready *ready, size_t i);
/* The ruleset's descriptor, or -1 if the plan has none. */
int sandbox_ready_fd(const struct sandbox_ready *ready);

/* Stages of the child's set-up; the failing one is told with its errno. */
#define SANDBOX_STAGES(X)                                                                          \
    X(STAGE_NONE, "none")                                                                          \
    X(STAGE_KEEPER, "starting the keeper")                                                         \
    X(STAGE_CLONE, "starting the process")                                                         \
    X(STAGE_POLICY, "reading the policy")                                                          \
    X(STAGE_NAMESPACES, "making namespaces")                                                       \
    X(STAGE_ID_MAPS, "mapping the user into its namespace")                                        \
    X(STAGE_MOUNTS, "mounting")                                                                    \
    X(STAGE_PROC, "mounting /proc")                                                                \
    X(STAGE_LOOPBACK, "raising the loopback interface")                                            \
    X(STAGE_IDENTITY, "becoming the workspace's owner")                                            \
    X(STAGE_PTY, "making a pseudo terminal")                                                       \
    X(STAGE_SESSION, "setsid")                                                                     \
    X(STAGE_DEATH_SIGNAL, "setting the parent-death signal")                                       \
    X(STAGE_STDIO, "standard descriptors")                                                         \
    X(STAGE_TERMINAL, "taking the terminal")                                                       \
    X(STAGE_ORDER, "waiting for the order to start")                                               \
    X(STAGE_CWD, "entering the working directory")                                                 \
    X(STAGE_CGROUP, "entering the control group")                                                  \
    X(STAGE_RLIMITS, "resource limits")                                                            \
    X(STAGE_CAPABILITIES, "dropping capabilities")                                                 \
    X(STAGE_NO_NEW_PRIVS, "no_new_privs")                                                          \
    X(STAGE_LANDLOCK, "Landlock")                                                                  \
    X(STAGE_SECCOMP, "seccomp")                                                                    \
    X(STAGE_EXEC, "executing the program")

enum sandbox_stage {
#define SANDBOX_STAGE_ENUM(id, text) id,
    SANDBOX_STAGES(SANDBOX_STAGE_ENUM)
#undef SANDBOX_STAGE_ENUM
};

const char *sandbox_stage_text(enum sandbox_stage s);

/*
 * The part of a sandbox that knows no path: the same for every policy with the
 * same answer about the network, so that a process can be made ready before
 * its command, directory and roots are known. Compare with sandbox_base_equal.
 */
struct seccomp_program;
struct template;
struct sandbox_base {
    const struct seccomp_program *program; /* NULL: nothing to enforce */
    /* The same for a process with a listener: for connect(2), or for an observer; NULL: none. */
    const struct seccomp_program *broker_program;
    bool is_observed; /* broker_program has an observer */
    bool is_logged;   /* what Landlock refuses is written to the audit log */
    /* Of the full tier: the template that makes it (process/template.h); NULL: none. */
    struct template *template;
};

/* Of a plan, and of what was made of it. Of an unenforced plan, and of no sandbox
 * (NULL): all NULL. */
struct sandbox_base sandbox_plan_base(const struct sandbox_plan *plan);
struct sandbox_base sandbox_ready_base(const struct sandbox_ready *ready);

static inline bool
sandbox_base_equal(const struct sandbox_base *a, const struct sandbox_base *b)
{
    return a->program == b->program && a->broker_program == b->broker_program &&
           a->is_logged == b->is_logged && a->template == b->template;
}

/*
 * The two halves of putting a process into its sandbox. Each runs in a
 * vfork-style child that shares the parent's memory: raw system calls only, no
 * errno, no heap, no locks. Each returns 0, or the errno value with *ret_stage
 * set.
 *
 * sandbox_apply_base: resource limits, capabilities, no_new_privs, seccomp.
 * An empty base applies nothing but no core dumps. `ret_listener` not NULL:
 * somebody answers for connect(2) while the network is off; *ret_listener
 * becomes the descriptor of seccomp_unotify(2), or stays as it is when there is
 * none (network on, or a listener could not be had). Without a listener every
 * connect(2) is refused, and there is no observer.
 *
 * sandbox_apply_privileges: of these, capabilities and no_new_privs alone.
 *
 * sandbox_apply_paths: Landlock, by the ruleset's descriptor in this process.
 */
int sandbox_apply_base(const struct sandbox_base *base, volatile int *ret_listener,
                       enum sandbox_stage *ret_stage);
int sandbox_apply_privileges(enum sandbox_stage *ret_stage);
int sandbox_apply_paths(const struct sandbox_base *base, int ruleset_fd,
                        enum sandbox_stage *ret_stage);
/* Both, without a broker. `ready` NULL: no core dumps, nothing else. */
int sandbox_apply(const struct sandbox_ready *ready, enum sandbox_stage *ret_stage);

/* What the policy would do with an object, and which rule says so. */
/* (X-macro): id, name. */
#define SANDBOX_OPERATIONS(X)                                                                      \
    X(OPERATION_READ, "read")                                                                      \
    X(OPERATION_WRITE, "write")       /* an existing file, or a new one */                         \
    X(OPERATION_CREATE, "create")     /* a new name: file, directory, link, socket */              \
    X(OPERATION_DELETE, "delete")     /* a name, also that of a symbolic link */                   \
    X(OPERATION_RENAME, "rename")     /* a name is taken away; the new one is created */           \
    X(OPERATION_TRUNCATE, "truncate") /* truncate(2), or opening with O_TRUNC */                   \
    X(OPERATION_CHMOD, "chmod")       /* mode, owner, times, attributes */                         \
    X(OPERATION_CONNECT, "connect")

enum sandbox_operation {
#define SANDBOX_OPERATION_ENUM(id, name) id,
    SANDBOX_OPERATIONS(SANDBOX_OPERATION_ENUM)
#undef SANDBOX_OPERATION_ENUM
        OPERATION_COUNT
};

const char *sandbox_operation_name(enum sandbox_operation op);
bool sandbox_operation_parse(enum sandbox_operation *ret, const char *name) SY_NODISCARD;

struct sandbox_explanation {
    bool is_allowed;
    char rule[160];       /* e.g. "writable root /W (policy cwd)" */
    char resolved[4096];  /* the object after symlinks, or as given */
    char fix[4096 + 128]; /* the one config line that would allow it; "" if none */
};

/*
 * `object`: for connect "host:port", "[v6]:port", "unix:PATH" or "unix:@NAME", else a path
 * (relative to policy->cwd). Resolves symlinks as the kernel would, for delete and rename not that
 * of the last component; a missing last component is judged by its directory.
 */
enum sy_code sandbox_explain(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                             enum sandbox_operation op, const char *object,
                             struct sy_error *err) SY_NODISCARD;
/*
 * What Landlock hides from reading under a plan, as it is now: for who asks about many paths, of
 * which few are hidden. NULL: nothing is, or mounts hide it.
 */
struct sandbox_hidden;
enum sy_code sandbox_hidden_new(struct sandbox_hidden **ret, const struct sandbox_plan *plan,
                                struct sy_error *err) SY_NODISCARD;
void sandbox_hidden_free(struct sandbox_hidden *h);
/* Is the path (absolute, links are followed) a file that may be one of these? Then
 * sandbox_explain tells. `h` may be NULL. */
bool sandbox_hidden_may_hold(const struct sandbox_hidden *h, const struct sandbox_plan *plan,
                             const char *path);

/*
 * Which entry of sandbox.deny_read, or default of it, hides a file: appends it as an explanation
 * names it. `path` is absolute and without links. SY_E_NOTFOUND: none. SY_E_DENIED: it is
 * Shellyard's own, which nothing takes back.
 */
enum sy_code sandbox_explain_hider(struct buf *ret, bool *ret_is_default,
                                   const struct sandbox_plan *plan, const char *path,
                                   struct sy_error *err) SY_NODISCARD;

#endif
