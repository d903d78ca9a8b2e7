#ifndef SY_SANDBOX_TRANSFORM_H
#define SY_SANDBOX_TRANSFORM_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/elsewhere.h"

/* Specification, SandboxType. */
enum sandbox_type {
    SANDBOX_NONE,
    SANDBOX_MACOS_SEATBELT,
    SANDBOX_LINUX_SECCOMP,
    SANDBOX_WINDOWS_RESTRICTED_TOKEN
};

/* "none", "macos-seatbelt", "linux-seccomp", "windows-restricted-token". */
const char *sandbox_type_name(enum sandbox_type type);
/* Specification, select_sandbox: none for modes that are not ours to enforce. */
enum sandbox_type sandbox_type_for(enum sandbox_mode mode, enum sandbox_platform platform);

struct sandbox_transform {
    enum sandbox_platform platform;
    const struct elsewhere_request *request;
    char *const *argv;        /* the command, at least one word */
    const char *cwd;          /* where it runs, absolute; gains no right by that */
    const char *wrapper;      /* linux: absolute path of shellyard-launch */
    int policy_fd;            /* linux: the descriptor it reads `document` from, above 2 */
    const char *profile_path; /* macos: the file that will hold `document`; NULL: -p, in argv */
    bool has_network_filter;  /* windows: as in struct token_caps */
};

/*
 * Specification, ExecEnv: the members that the sandbox decides.
 *
 *   macos    /usr/bin/sandbox-exec -f PROFILE -D NAME=value ... COMMAND
 *            ("-p TEXT" without a profile path; "--" where COMMAND begins with '-')
 *   linux    WRAPPER --policy FD -- COMMAND (the policy never stands in argv)
 *   windows  COMMAND: whoever starts it does so with the plan's token
 *   none     COMMAND
 */
struct sandbox_exec_env {
    enum sandbox_type sandbox;
    struct strv command;
    char *cwd;
    struct strv env;     /* "NAME=value" on top of the command's own */
    struct buf document; /* macos: the profile; linux, windows: JSON; else empty */
};

/*
 * Pure. SY_E_ARG for a command or cwd that can't be run so; SY_E_CONFIG and
 * SY_E_SANDBOX as the planners give them. On an error nothing is to be freed:
 * there is no command that would run unconfined.
 */
enum sy_code sandbox_transform(struct sandbox_exec_env *ret, const struct sandbox_transform *t,
                               struct sy_error *err) SY_NODISCARD;
void sandbox_exec_env_fini(struct sandbox_exec_env *e);

#endif
