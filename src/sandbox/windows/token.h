#ifndef SY_SANDBOX_WINDOWS_TOKEN_H
#define SY_SANDBOX_WINDOWS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/elsewhere.h"

/*
 * The planner for Windows: a policy becomes the arguments of
 * CreateRestrictedToken, of a job object and of the edits to access control
 * lists that go with them. Pure; made and tested elsewhere too, and never yet
 * carried out on Windows.
 *
 * The idea: a write-restricted token is asked twice for each write, once as
 * the user and once as its restricting SIDs alone. Each writable root has a SID
 * of its own, made from its path, and an entry that lets that SID write; what
 * one workspace was given is therefore nothing to the commands of another.
 */

/* Flags of CreateRestrictedToken (X-macro): id, value, name. SANDBOX_INERT is
 * never set: it switches AppLocker off. */
#define TOKEN_FLAGS(X)                                                                             \
    X(TOKEN_DISABLE_MAX_PRIVILEGE, 0x1, "DISABLE_MAX_PRIVILEGE")                                   \
    X(TOKEN_LUA, 0x4, "LUA_TOKEN")                                                                 \
    X(TOKEN_WRITE_RESTRICTED, 0x8, "WRITE_RESTRICTED")

enum token_flag {
#define TOKEN_FLAG_ENUM(id, value, name) id = (value),
    TOKEN_FLAGS(TOKEN_FLAG_ENUM)
#undef TOKEN_FLAG_ENUM
};

/* Limits of the job (JOBOBJECT_BASIC_LIMIT_INFORMATION). Neither breakaway
 * flag is set: no process leaves the job. */
#define TOKEN_JOB_LIMITS(X)                                                                        \
    X(JOB_DIE_ON_UNHANDLED_EXCEPTION, 0x400, "DIE_ON_UNHANDLED_EXCEPTION")                         \
    X(JOB_KILL_ON_JOB_CLOSE, 0x2000, "KILL_ON_JOB_CLOSE")

enum token_job_limit {
#define TOKEN_JOB_ENUM(id, value, name) id = (value),
    TOKEN_JOB_LIMITS(TOKEN_JOB_ENUM)
#undef TOKEN_JOB_ENUM
};

/* JOBOBJECT_BASIC_UI_RESTRICTIONS: all of them. */
#define TOKEN_UI_LIMITS 0xffU

enum token_integrity { INTEGRITY_LOW, INTEGRITY_MEDIUM };

/* What stands for the logon session until the token is made. */
#define TOKEN_LOGON_SID "logon"

enum token_ace_kind { ACE_ALLOW, ACE_DENY };

/* FILE_GENERIC_READ | WRITE | EXECUTE | DELETE ("modify"). FILE_DELETE_CHILD is
 * left out: with it a name could be deleted that an entry of its own denies. */
#define TOKEN_ACE_MODIFY 0x1301bfU
/* Writing, appending, attributes, DELETE, FILE_DELETE_CHILD, WRITE_DAC, WRITE_OWNER. */
#define TOKEN_ACE_WRITES 0xd0156U
/* OBJECT_INHERIT_ACE | CONTAINER_INHERIT_ACE */
#define TOKEN_ACE_INHERIT 0x3U

struct token_ace {
    enum token_ace_kind kind;
    char *path;
    char *sid;
    uint32_t access;
    uint32_t inherit;
    bool must_exist; /* a missing one is an error; else it is left out */
    bool is_pattern; /* `path` holds '*': for each file that it fits */
};

enum token_network {
    TOKEN_NETWORK_OPEN,   /* the policy lets it */
    TOKEN_NETWORK_FILTER, /* a filter of the Windows Filtering Platform blocks it */
    TOKEN_NETWORK_PROXY,  /* the same filter, but for one port of localhost */
    TOKEN_NETWORK_UNHELD  /* nothing would block it: the plan is refused */
};

/* What the machine has; all false is a fresh Windows. */
struct token_caps {
    bool has_network_filter; /* an administrator had the filter installed */
};

struct token_plan {
    enum sandbox_mode mode;
    bool is_enforced;
    bool is_refused; /* would have to be enforced, and can't */
    bool has_network;
    uint16_t proxy_port;
    enum token_network network;
    uint32_t flags;              /* of enum token_flag */
    struct strv restricting;     /* SIDs to restrict: roots, TOKEN_LOGON_SID, RESTRICTED */
    struct strv disabled;        /* SIDs for deny-only: administrators */
    struct strv gone_privileges; /* must not be in the token that comes out */
    enum token_integrity integrity;
    uint32_t job_limits; /* of enum token_job_limit */
    uint32_t ui_limits;
    bool has_private_desktop;
    bool inherits_listed_handles; /* PROC_THREAD_ATTRIBUTE_HANDLE_LIST, three of them */
    struct strv environment;      /* "NAME=value" on top of the command's own */
    struct token_ace *aces;
    size_t n_aces;
    enum feature_state features[FEATURE_COUNT];
    char reason[SY_ERR_MSG_MAX]; /* of the refusal, else "" */
};

/*
 * SY_E_SANDBOX with a sentence when Windows can't hold the policy (fail
 * closed): network off without the filter, or any denied read. *ret is then
 * a plan all the same (to be freed). SY_E_CONFIG for a path that is not
 * absolute as Windows has it, or is a device, a stream or a short name; SY_E_ARG for
 * a policy without cwd; nothing is to be freed then.
 */
enum sy_code token_plan_init(struct token_plan *ret, const struct elsewhere_request *r,
                             const struct token_caps *caps, struct sy_error *err) SY_NODISCARD;
void token_plan_fini(struct token_plan *p);
/* "restricted-token" or "none". */
const char *token_plan_tier(const struct token_plan *p);
void token_plan_write(struct jw *w, const struct token_plan *p);

/*
 * "c:/a//b" -> "C:\a\b" into ret (reset first). SY_E_CONFIG with a sentence
 * for what is no plain absolute path: only X:\... and \\server\share\... are.
 */
enum sy_code token_path(struct buf *ret, const char *what, const char *path,
                        struct sy_error *err) SY_NODISCARD;
/* The SID of a root: the same for each spelling of its path in ASCII case. */
enum sy_code token_root_sid(struct buf *ret, const char *path) SY_NODISCARD;

#endif
