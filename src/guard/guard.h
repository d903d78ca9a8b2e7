#ifndef SY_GUARD_GUARD_H
#define SY_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/denial.h"
#include "sandbox/sandbox.h"

/*
 * The paths below writable roots that stay as they are all the same: what a
 * person's git, editor, shell or agent would run the next time it is used there.
 * The guard finds them, tells which *marks* a sandbox with mounts must bind, keeps
 * names from being made that do not exist yet, and looks after a run at what it
 * left. It mounts nothing.
 *
 * One thread. No call waits for anything but the disk. Symbolic links are never
 * followed below a root.
 */

/*
 * What is protected (X-macro): id, name as `unprotected` has it, kind, what it
 * is. Kinds: G part of a git directory, A at any depth below a root, H directly
 * in a home directory.
 */
#define GUARD_NAMES(X)                                                                             \
    X(GUARD_GIT, ".git", 'G', "a repository at the top of a root")                                 \
    X(GUARD_GIT_FILE, ".git-file", 'G', "a file .git, which names a git directory")                \
    X(GUARD_GIT_HOOKS, ".git/hooks", 'G', "programs that git runs")                                \
    X(GUARD_GIT_CONFIG, ".git/config", 'G', "git configuration, which names programs")             \
    X(GUARD_GIT_WORKTREE, ".git/config.worktree", 'G', "git configuration of a worktree")          \
    X(GUARD_GIT_ATTRIBUTES, ".git/info/attributes", 'G', "what sends files through programs")      \
    X(GUARD_GIT_COMMONDIR, ".git/commondir", 'G', "where git takes configuration from")            \
    X(GUARD_GIT_HOOKS_PATH, "core.hooksPath", 'G', "the directory that core.hooksPath names")      \
    X(GUARD_GIT_INCLUDE, "include.path", 'G', "a file that git configuration includes")            \
    X(GUARD_CODEX, ".codex", 'A', "an agent's configuration")                                      \
    X(GUARD_AGENTS, ".agents", 'A', "an agent's configuration")                                    \
    X(GUARD_CLAUDE, ".claude", 'A', "an agent's configuration")                                    \
    X(GUARD_CURSOR, ".cursor", 'A', "an agent's configuration")                                    \
    X(GUARD_VSCODE, ".vscode", 'A', "an editor's configuration")                                   \
    X(GUARD_IDEA, ".idea", 'A', "an editor's configuration")                                       \
    X(GUARD_MCP_JSON, ".mcp.json", 'A', "an agent's servers")                                      \
    X(GUARD_ENVRC, ".envrc", 'A', "commands that direnv runs")                                     \
    X(GUARD_BASHRC, ".bashrc", 'H', "commands that a shell runs")                                  \
    X(GUARD_BASH_PROFILE, ".bash_profile", 'H', "commands that a shell runs")                      \
    X(GUARD_BASH_LOGIN, ".bash_login", 'H', "commands that a shell runs")                          \
    X(GUARD_BASH_LOGOUT, ".bash_logout", 'H', "commands that a shell runs")                        \
    X(GUARD_PROFILE, ".profile", 'H', "commands that a shell runs")                                \
    X(GUARD_ZSHRC, ".zshrc", 'H', "commands that a shell runs")                                    \
    X(GUARD_ZSHENV, ".zshenv", 'H', "commands that a shell runs")                                  \
    X(GUARD_ZPROFILE, ".zprofile", 'H', "commands that a shell runs")                              \
    X(GUARD_ZLOGIN, ".zlogin", 'H', "commands that a shell runs")                                  \
    X(GUARD_ZLOGOUT, ".zlogout", 'H', "commands that a shell runs")                                \
    X(GUARD_KSHRC, ".kshrc", 'H', "commands that a shell runs")                                    \
    X(GUARD_CSHRC, ".cshrc", 'H', "commands that a shell runs")                                    \
    X(GUARD_TCSHRC, ".tcshrc", 'H', "commands that a shell runs")                                  \
    X(GUARD_LOGIN, ".login", 'H', "commands that a shell runs")                                    \
    X(GUARD_INPUTRC, ".inputrc", 'H', "keys that a shell turns into commands")                     \
    X(GUARD_GITCONFIG, ".gitconfig", 'H', "git configuration, which names programs")

enum guard_name {
#define GUARD_NAME_ENUM(id, name, kind, what) id,
    GUARD_NAMES(GUARD_NAME_ENUM)
#undef GUARD_NAME_ENUM
        GUARD_NAME_COUNT
};

const char *guard_name_text(enum guard_name n);
const char *guard_name_what(enum guard_name n);
/* false: no such name. */
bool guard_name_parse(enum guard_name *ret, const char *name) SY_NODISCARD;
/* SY_E_CONFIG, with the nearest right one, for the first of the NULL-terminated names (may be
 * NULL) that is none. */
enum sy_code guard_names_check(char *const *names, struct sy_error *err) SY_NODISCARD;

/* What a sandbox with mounts does with a path. */
enum guard_action {
    GUARD_READ_ONLY, /* bound on itself, read-only */
    GUARD_PIN        /* bound on itself, writable: can't be renamed or removed */
};

struct guard_mark {
    char *path; /* absolute; any bytes but NUL */
    enum guard_action action;
    bool is_dir;
    bool is_symlink; /* the link itself is to be covered, not followed */
    bool is_placeholder;
    dev_t dev; /* of the file that was found: compare with what is bound */
    ino_t ino;
    int64_t btime_ns; /* its birth, since inode numbers come again; 0: not known */
    const char *rule; /* static: the name by which `unprotected` lifts it */
};

/* Parents come before children. */
struct guard_marks {
    struct guard_mark *v;
    size_t n;
};

void guard_marks_fini(struct guard_marks *m);

struct guard_options {
    char *const *roots;       /* absolute, normalized; NULL-terminated */
    char *const *homes;       /* home directories; NULL: none */
    char *const *unprotected; /* names that are lifted; NULL: none */
    const char *state_dir;    /* absolute; made 0700 if missing; NULL: neither placeholders
                                 nor a quarantine, which can't be had without */
    bool has_mounts;          /* marks are bound: what is marked can't change, and missing names at
                                 the top get placeholders. false: the look after a run is all */
    bool is_short;            /* one run and no more: nothing is watched */
    uint32_t dirs_max;        /* directories that are looked at; 0: LIMIT_GUARD_DIRS */
    uint32_t depth_max;       /* 0: LIMIT_GUARD_DEPTH */
    uint32_t walk_ms;         /* 0: LIMIT_GUARD_WALK_MS */
};

struct guard;

/*
 * Walks the roots once. What a dead engine left in the state directory is
 * cleared away first. A root that does not exist has no marks. SY_E_CONFIG for an
 * unknown name in `unprotected`; a state directory that can't be used is SY_E_SYS.
 */
enum sy_code guard_new(struct guard **ret, const struct guard_options *options,
                       struct sy_error *err) SY_NODISCARD;
/* Placeholders that are still ours and empty are removed. */
void guard_free(struct guard *g);

/* How well it sees. */
struct guard_status {
    bool is_complete;          /* false: a bound was met, there may be more to protect */
    const char *incomplete_in; /* the root of that bound; borrowed; else NULL */
    const char *why;           /* static: which bound; else NULL */
    bool is_watching;          /* false: each refresh walks anew */
    bool has_state;            /* false: no placeholders (with has_mounts), no quarantine */
    uint32_t dirs;             /* directories known */
    uint32_t files;            /* protected files known */
    uint32_t walks;            /* whole walks so far */
    uint32_t active;           /* runs between begin and after */
};
void guard_status(const struct guard *g, struct guard_status *ret);

/* Readable when guard_refresh has something to do; -1: nothing is watched. */
int guard_fd(const struct guard *g);

/* All marks of now, a copy (guard_marks_fini). */
enum sy_code guard_marks_now(struct guard *g, struct guard_marks *ret) SY_NODISCARD;

/*
 * Takes in what happened since. *changes (may be NULL) gets the marks that are new or
 * whose path is another inode now, since they were last told by
 * guard_begin, guard_refresh, guard_after or guard_marks_now: a mount that lay on
 * the old one is gone. What came into being during a run is not among
 * them until guard_after has looked at it. Nothing happened: one read(2).
 */
enum sy_code guard_refresh(struct guard *g, struct guard_marks *changes,
                           struct sy_error *err) SY_NODISCARD;

/*
 * Before the command of a run starts: refreshes, makes placeholders (with
 * has_mounts), and takes what is there as what was there before. Runs may overlap:
 * what changes meanwhile is then looked at when the first of them ends.
 * On an error nothing has begun.
 */
enum sy_code guard_begin(struct guard *g, struct guard_marks *changes,
                         struct sy_error *err) SY_NODISCARD;

/*
 * Do the marks that were told last, bound by a sandbox with mounts, refuse an operation on a path
 * (absolute, without links)? If so, rule and fix of *ret say which name and how it is lifted
 * (no fix: not by one line). OPERATION_CREATE: only if the name is there for no other
 * reason than to keep it.
 */
bool guard_holds(const struct guard *g, struct sandbox_explanation *ret, enum sandbox_operation op,
                 const char *path);

/*
 * For changes that we make ourselves, not by a command: is the file at `path` (absolute, without
 * links) protected, whether it is there or not? `all` are the paths that come into being together
 * (NULL-terminated): several can make a repository. Names decide, and what the last look has found.
 */
enum sy_code guard_forbids(bool *ret, enum guard_name *ret_rule, const struct guard *g,
                           const char *path, char *const *all) SY_NODISCARD;

/* What guard_after found. */
enum guard_verdict {
    GUARD_HARMLESS,    /* told, left as it is */
    GUARD_QUARANTINED, /* new: moved to `quarantine` */
    GUARD_RESTORED,    /* put back as it was before; the other one is in `quarantine` */
    GUARD_LEFT         /* harmful, and could not be moved: `why` */
};

struct guard_finding {
    enum guard_verdict verdict;
    enum guard_name name;
    const char *operation; /* static: "create", "write", "remove" */
    char *path;
    char *quarantine; /* where it lies now; NULL */
    char *why;        /* "core.fsmonitor", "an executable hook" ... */
};

struct guard_findings {
    struct guard_finding *v;
    size_t n;
    uint32_t more; /* beyond LIMIT_GUARD_FINDINGS, dealt with all the same */
};

void guard_findings_fini(struct guard_findings *f);
/* As a denial of the guard's layer (denial_add copies). A harmless one is none. */
enum sy_code guard_finding_denial(struct denial_list *list,
                                  const struct guard_finding *f) SY_NODISCARD;
/* One sentence without its full stop. */
enum sy_code guard_finding_sentence(struct buf *out, const struct guard_finding *f) SY_NODISCARD;

/*
 * After the last process of a run ended. *findings is filled even on an error.
 * Ends the run in any case.
 */
enum sy_code guard_after(struct guard *g, struct guard_findings *findings,
                         struct sy_error *err) SY_NODISCARD;

/*
 * Removes placeholders while no run is active (the owner's idle time; guard_begin
 * makes them again). A file that is not the very same, or not empty, stays.
 */
void guard_rest(struct guard *g);

/*
 * Clears away what dead engines left: placeholders and temporary names. For
 * a janitor after an engine was killed; guard_new does it too. *ret_removed may
 * be NULL.
 */
enum sy_code guard_recover(const char *state_dir, uint32_t *ret_removed,
                           struct sy_error *err) SY_NODISCARD;
/* $XDG_STATE_HOME/shellyard, else $HOME/.local/state/shellyard; SY_E_NOTFOUND with neither, or
 * where that home is no directory. */
enum sy_code guard_state_dir(struct buf *ret, char *const *environ_list) SY_NODISCARD;

#endif
