#ifndef SY_PROCESS_ENV_H
#define SY_PROCESS_ENV_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The environment of a command (the specification's ShellEnvironmentPolicy, in
 * the order that Codex has): inherit, default excludes, exclude, set, include_only, then what must
 * hold whatever the policy says. Pure.
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

/* Is the name of this "NAME=value" one that no command gets, whoever sets it? */
bool env_never_passes(const char *entry);

/* What of the call decides on variables. */
struct env_facts {
    bool is_session;         /* interactive: all of UNIFIED_EXEC_ENV, CODEX_CI too */
    bool has_terminal;       /* such a one: ssh may ask there */
    bool has_network;        /* false: CODEX_SANDBOX_NETWORK_DISABLED=1 */
    const char *sandbox_tag; /* CODEX_SANDBOX value ("seatbelt"), NULL: not set */
    const char *tmpdir;      /* NULL: leave TMPDIR as it is */
    const char *cwd;         /* where it runs, absolute; NULL: leave PWD as it is */
};

/*
 * Builds the list into *ret (empty at the start, max LIMIT_ENV). `base` is the
 * engine's environment, or the login snapshot merged over it; `extra` the
 * call's own additions (may be NULL), which the excludes do not touch.
 *
 * Over what is inherited come the values by which no program waits for a
 * person: pagers, editors, prompts, terminal and locale (one table in env.c).
 * An inherited PWD that does not name the working directory becomes its path.
 * `set` and `extra` win over those. LANG is always there, and the locale is a
 * UTF-8 one unless `set` or `extra` ask for another.
 *
 * Never passed on, whoever sets them: LD_*, DYLD_*, BASH_ENV, ENV,
 * PROMPT_COMMAND, SHELLOPTS, BASHOPTS, BASH_XTRACEFD, shell functions
 * (BASH_FUNC_*), SHELLYARD_* of the engine. Always set: SHELLYARD=1, and
 * CODEX_SANDBOX* by the facts alone. With SSH_CLIENT or SSH2_CLIENT SHLVL is at
 * least 1: else each `bash -c` would read ~/.bashrc.
 *
 * Malformed entries of `base` are dropped, of two with one name the first
 * stays. A malformed entry of `set` or `extra` (no "=", no name, a blank or
 * control character in it) is SY_E_ARG.
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
