#ifndef SY_PROCESS_ENV_H
#define SY_PROCESS_ENV_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The environment of a command (seed 000 ShellEnvironmentPolicy, order of
 * reference/codex-behaviour.md 3.4): inherit, default excludes, exclude, set,
 * include_only, then what must hold whatever the policy says. Pure.
 */
enum env_inherit { ENV_INHERIT_ALL, ENV_INHERIT_CORE, ENV_INHERIT_NONE };

bool env_inherit_parse(enum env_inherit *ret, const char *name) SY_NODISCARD;

struct env_policy {
    enum env_inherit inherit;
    bool default_excludes; /* *KEY* *SECRET* *TOKEN* *PASSWORD* *CREDENTIAL* ... */
    struct strv exclude;   /* glob patterns, letters of either case alike */
    struct strv set;       /* "NAME=value" */
    struct strv include_only;
};

void env_policy_fini(struct env_policy *p);

/* What of the call decides on variables. */
struct env_facts {
    bool has_network;        /* false: CODEX_SANDBOX_NETWORK_DISABLED=1 */
    const char *sandbox_tag; /* CODEX_SANDBOX value ("seatbelt"), NULL: not set */
    const char *tmpdir;      /* NULL: leave TMPDIR as it is */
};

/*
 * Builds the list into *ret (empty at the start). `base` is the engine's
 * environment, or the login snapshot merged over it; `extra` the call's own
 * additions (may be NULL), which pass the hard bans but not the excludes.
 * Never passed on, whoever sets them: LD_*, BASH_ENV, ENV, PROMPT_COMMAND,
 * and shell functions (BASH_FUNC_*), SHELLYARD_* of the engine.
 */
enum sy_code env_build(struct strv *ret, const struct env_policy *policy, char *const *base,
                       char *const *extra, const struct env_facts *facts) SY_NODISCARD;

/*
 * Lays a login shell's environment over the engine's: the login shell's
 * values win, entries of the engine's PATH that it lost are appended, PWD,
 * OLDPWD, SHLVL, _ and prompt variables are left as the engine has them.
 */
enum sy_code env_merge_login(struct strv *ret, char *const *engine_env,
                             char *const *login_env) SY_NODISCARD;

#endif
