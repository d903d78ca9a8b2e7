#ifndef SY_SANDBOX_SANDBOX_INTERNAL_H
#define SY_SANDBOX_SANDBOX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/linux/landlock.h"
#include "sandbox/sandbox.h"

/* Where a rule comes from; the text is what explain and the dump say. */
#define PLAN_ORIGINS(X)                                                                            \
    X(ORIGIN_CWD, "policy cwd")                                                                    \
    X(ORIGIN_ROOT, "writable_roots")                                                               \
    X(ORIGIN_LINKED, "the repository of a linked worktree")                                        \
    X(ORIGIN_GRANT, "granted by a person")                                                         \
    X(ORIGIN_TMPDIR, "$TMPDIR")                                                                    \
    X(ORIGIN_SLASH_TMP, "/tmp")                                                                    \
    X(ORIGIN_SHM, "shared memory")                                                                 \
    X(ORIGIN_DEVICE, "device")

enum plan_origin {
#define PLAN_ORIGIN_ENUM(id, text) id,
    PLAN_ORIGINS(PLAN_ORIGIN_ENUM)
#undef PLAN_ORIGIN_ENUM
};

const char *plan_origin_text(enum plan_origin origin);

/* Everything below `path` (or the file itself) may be used with `access`. */
struct plan_rule {
    char *path; /* absolute, normalized by text */
    uint64_t access;
    enum plan_origin origin;
    bool must_exist; /* named in the configuration: missing is an error */
    bool at_parent;  /* mounted anew for each run: granted at what it is mounted on */
};

/* The kernel's own trees, and the whole of /run: nobody's work is there, and as root much of /proc
 * and /sys runs programs or changes the machine. `path` is normalized, or resolved. */
bool plan_place_refuses(const char *path);
enum sy_code plan_place_error(const char *path, enum plan_origin origin, struct sy_error *err);

/* What may be done with a device. */
#define PLAN_DEVICE_RIGHTS (LL_FS_READ_FILE | LL_FS_WRITE_FILE | LL_FS_TRUNCATE | LL_FS_IOCTL_DEV)

struct sandbox_plan {
    enum sandbox_mode mode;
    enum sandbox_tier tier;
    char weaker[SANDBOX_REASON]; /* why it is not the full tier, though it could be; "": it is, or
                                    need not */
    char *cwd;
    bool cwd_has_no_links;
    bool narrows_mode; /* as the policy's: what fixes the turn is told, not the configuration */
    bool drops_roots;
    bool drops_network;
    bool leaves_tmp_out; /* workspace-write would have no /tmp */
    bool protects;
    char unprotected[SANDBOX_REASON]; /* why not all protected names are held; "": they are */
    bool has_network;
    bool has_own_network;      /* a network namespace, since it is off or an allow list */
    struct strv network_allow; /* empty: no allow list */
    bool has_broker;           /* connect(2) to Unix sockets is judged by the engine */
    bool makes_terminals;      /* the engine opens those that commands make (process/broker.h) */
    bool is_logged;            /* what Landlock refuses is written to the audit log */
    bool has_observer;         /* what is refused is told by the engine: report: full */
    bool is_enforced;          /* by us, and the kernel can */
    bool is_refused;           /* would have to be, and the kernel can't */
    int abi;
    uint32_t errata;
    struct landlock_ruleset ruleset;
    struct plan_rule *rules;
    size_t n_rules;
    struct strv deny_read;      /* patterns; a "**" at the end is left out */
    size_t n_own_deny_read;     /* so many of them, the first, are Shellyard's own places */
    size_t n_default_deny_read; /* and so many behind those are defaults */
    struct strv deny_homes;
    struct strv allow_read;
    bool denies_system;
    bool closes_devices; /* of /dev its nodes can't be read but for those of a rule */
    struct strv own_dirs;
    bool denies_by_mount; /* mounts hide all of it, in roots too; Landlock restricts no reading */
    struct strv unheld;   /* of a ready: sandbox_plan_adopt */
    enum feature_state features[FEATURE_COUNT];
};

/* The directory at or above `path` (resolved) that the sandbox has of its own, whatever roots are
 * around it: only what is named below it comes from outside. NULL: there is none. */
const char *plan_place_own(const struct sandbox_plan *plan, const char *path);

/* "host:port" under a plan with an allow list (explain_network.c). */
enum sy_code sandbox_explain_host(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                                  const char *object, struct sy_error *err) SY_NODISCARD;
/* The same under a plan with a network of its own, whether it has an allow list or not. */
enum sy_code sandbox_explain_own(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                                 const char *object, struct sy_error *err) SY_NODISCARD;

#endif
