#ifndef SY_COMMAND_JUDGE_H
#define SY_COMMAND_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "command/script.h"

/*
 * What a judge of commands (safe.h, danger.h) knows of the world in which one would run.
 * Nothing is looked up but through this; nothing is started. All is borrowed.
 */
struct judge_world {
    struct script_reader *reader; /* reads the scripts; one thread at a time */
    const char *cwd;              /* absolute */
    const char *home;             /* absolute; NULL: unknown */
    const char *path_list;        /* PATH that the command will have; NULL: the usual directories */
    char *const *roots; /* top directories of the workspace, absolute; NULL-terminated or NULL */
    char *const *env;   /* "NAME=value" that the caller of this command asks for; or NULL */
    /* Where the script is a line typed to a shell that has been running: the dialects that may read
     * it, with their flags (dialect.h); 0: it is none. */
    unsigned typed;
    bool is_windows; /* the command will run on Windows */
    /*
     * The file that `name` would run from `cwd` with that PATH. *ret_trusted:
     * nobody but the system's administrator can put a file there, or change it. SY_E_NOTFOUND
     * when there is none. NULL: no program is trusted, hence none safe.
     */
    enum sy_code (*find_program)(void *arg, struct buf *ret_path, bool *ret_trusted,
                                 const char *name, const struct judge_world *world);
    /* Is there a file that is no directory? NULL: there always is. */
    bool (*has_file)(void *arg, const char *path);
    /*
     * Has the repository that git finds from `cwd` (and its submodules) nothing in its own
     * settings that makes git start a program: drivers, filters, includes, other keys that are
     * not known? NULL: git is never safe. What safe_git_env() switches off need not be looked at.
     */
    bool (*git_is_tame)(void *arg, const char *cwd);
    void *arg;                       /* handed to these */
    struct judge_programs *programs; /* what judge_find_program found before; or NULL */
};

/* Why a command was judged as it was. */
struct verdict {
    const char *rule;   /* "rm.forced": docs/internals/command.md lists them; never NULL */
    char command[160];  /* the words, made visible and cut */
    char argument[160]; /* the one that decided, likewise; "" if none did */
    char why[200];      /* a sentence's end: "rm -f asks nothing" */
};

/*
 * find_program for a world on this machine: the file is trusted when the directory where it
 * is found, and that of the file behind its links, is one of the system's for programs and
 * below no root of the workspace; and the file belongs to root, as does each directory above
 * it, and nobody else may write to them. A PATH that leads through a root of the workspace first,
 * or has a relative entry, makes nothing trusted: a file may come to be there.
 */
enum sy_code judge_find_program(void *arg, struct buf *ret_path, bool *ret_trusted,
                                const char *name, const struct judge_world *world);

/* Remembers what was found for bare names, and is asked only as long as no directory of PATH up
 * to that place and no such file has changed since. One thread at a time. NULL: no memory. */
struct judge_programs *judge_programs_new(void);
/* Accepts NULL. */
void judge_programs_free(struct judge_programs *p);
/* Until the end, what is asked is one look: no directory is looked at twice. For one judgement. */
void judge_programs_begin(struct judge_programs *p);
void judge_programs_end(struct judge_programs *p);

/* has_file for a world on this machine. */
bool judge_has_file(void *arg, const char *path);

#endif
