#ifndef SY_COMMAND_COMMAND_H
#define SY_COMMAND_COMMAND_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Shells: detection and argument vectors (the specification's "Shell Detection" and
 * derive_exec_args).
 *
 * A shell type is one file shell_<name>.c that defines
 * `const struct shell_kind shell_kind_<name>`, and one row in shells.def; the
 * build reads the row and compiles the file (docs/extending.md).
 */
struct shell_kind {
    const char *name;           /* "bash" */
    const char *display;        /* "Bash", as the specification writes the type */
    const char *const *aliases; /* base names that mean it, without ".exe"; NULL-terminated */
    const char *const *paths;   /* fallback places, best first; NULL-terminated */
    bool has_login_env;         /* `-l` reads profiles whose environment can be snapshot */
    /* The option by which it reads no file of the user's before `-c` either; NULL: it reads none */
    const char *bare_option;
    /* Files whose change makes a snapshot stale; "~/" means the home
     * directory, a trailing "/" a whole directory. NULL-terminated. */
    const char *const *profiles;
    const char *profile_variable; /* names another directory for those in "~/"; NULL: none does */
    /* Appends [path, flags..., script] to argv. */
    enum sy_code (*derive_exec_args)(struct strv *argv, const char *path, const char *script,
                                     bool login);
};

/* A shell that was found on this machine. Owns `path`. */
struct shell {
    const struct shell_kind *kind;
    char *path;
};

void shell_fini(struct shell *s);

/* The kind by name or path: base name, one ".exe" stripped. A name that ends
 * in ".exe" may be in either case and below backslashes, as Windows has it.
 * NULL when it is none that we know (fish, nu). */
const struct shell_kind *shell_kind_of(const char *name_or_path);
/* The script of an argument list that is bash, zsh or sh with -c or -lc, that and nothing else;
 * NULL: it is another. */
const char *shell_script_of(char *const *argv);
/* All kinds, NULL-terminated, in the order of shells.def. */
const struct shell_kind *const *shell_kinds(void);

/*
 * The user's shell: `configured` (may be NULL or "") if given, the name of a
 * type or an absolute path, which must be of a known type and an executable
 * file, else SY_E_CONFIG; else the passwd shell (getpwuid semantics, given by
 * the caller as `passwd_shell`, may be NULL) if its type is known and it
 * exists; else the fallback paths of its type; else bash, zsh, sh, /bin/sh in
 * this order. $SHELL is not consulted.
 */
enum sy_code shell_detect(struct shell *ret, const char *configured, const char *passwd_shell,
                          struct sy_error *err) SY_NODISCARD;

/* An absolute path or type name a call asks for: the file if it is one, else
 * the type's places. Unknown type or relative path: SY_E_ARG; nowhere on this
 * machine: SY_E_NOTFOUND. */
enum sy_code shell_find(struct shell *ret, const char *name_or_path,
                        struct sy_error *err) SY_NODISCARD;

/* derive_exec_args of the shell's kind. */
enum sy_code shell_derive(struct strv *argv, const struct shell *shell, const char *script,
                          bool login) SY_NODISCARD;
/*
 * The arguments with which a script that was derived for no login is executed, if its shell (the
 * file `program`) would read a file of the user's first: what such a file prints, runs or ends is
 * no part of the command. Left empty: the derived ones are as good.
 */
enum sy_code shell_bare(struct strv *ret, const char *program, char *const *derived) SY_NODISCARD;

/*
 * The passwd entry's shell and home of `uid`, read from /etc/passwd itself, so
 * that a static program needs no NSS modules. Strings owned by the caller,
 * NULL when there is no entry. (A user whom only NSS knows is looked up by the
 * caller with getent(1).)
 */
enum sy_code passwd_lookup(unsigned uid, char **ret_shell, char **ret_home,
                           struct sy_error *err) SY_NODISCARD;
/* The entry's name, by the same rules. */
enum sy_code passwd_name(unsigned uid, char **ret_name, struct sy_error *err) SY_NODISCARD;

/*
 * Finds the file that execvp would run: `name` itself if it has a slash
 * (relative to `cwd`), else the first executable regular file in the PATH
 * list. SY_E_NOTFOUND, or SY_E_NOEXEC when only files without the execute bit
 * (or directories) were found; each error is one clear sentence. Empty PATH
 * entries mean cwd, as POSIX has it; relative ones are taken from cwd; NULL is
 * the usual system directories. Paths are made within ret_path->max.
 */
enum sy_code command_resolve(struct buf *ret_path, const char *name, const char *cwd,
                             const char *path_list, struct sy_error *err) SY_NODISCARD;
/* The same in the file tree whose top that descriptor is, /proc aside; -1: ours. */
enum sy_code command_resolve_in(struct buf *ret_path, const char *name, const char *cwd,
                                const char *path_list, int top_fd,
                                struct sy_error *err) SY_NODISCARD;

#endif
