#ifndef SY_COMMAND_DANGER_INTERNAL_H
#define SY_COMMAND_DANGER_INTERNAL_H

#include "command/danger.h"
#include "command/dialect.h"
#include "command/judge_internal.h"

/* The script whose commands are judged. */
struct danger_in {
    const struct script *script; /* NULL: an argument list */
    bool has_known_variables;    /* what it assigns is not changed behind our back */
    size_t at;                   /* the command at hand, or the one around it */
    struct downloads *downloads; /* NULL: none, or has_looked is false */
    bool has_looked;
};

/* One judgement on its way. */
struct danger {
    struct danger_verdict *out;
    const struct judge_world *world;
    struct places places;
    struct danger_in in;
    danger_fn *fn;
    danger_seen_fn *seen;
    void *arg;                           /* of either */
    unsigned depth;                      /* commands around the one at hand */
    unsigned dialects;                   /* of the shell that reads; 0: not known */
    unsigned others;                     /* readings of scripts that are not bash's, so far */
    unsigned layers;                     /* scripts in scripts, programs in programs */
    bool reads_pipe;                     /* the command at hand */
    const struct script_command *before; /* what writes into that pipe; NULL: not known */
    enum sy_code rc;                     /* the first failure */
};

/* Remembers and tells. `argument` may be NULL. */
void danger_found(struct danger *d, enum danger_level level, const char *rule, struct words w,
                  const char *argument, const char *why);

/* A command, wherever it stands; a script, as bash reads it and as d->dialects do. */
void danger_words(struct danger *d, struct words w);
void danger_script(struct danger *d, struct words w, const char *text, size_t len);
/* Does it run what its script brings from the network? */
void danger_download(struct danger *d, const char *name, struct words w);
void danger_download_found(struct danger *d, struct words w);
void danger_download_free(struct downloads *l);
/* Programs and shells of Windows, and pwsh anywhere. */
void danger_windows(struct danger *d, const char *name, struct words w);
void danger_git(struct danger *d, struct words w);
/* A file that is written, from its beginning or not. */
void danger_overwrite(struct danger *d, struct words w, const struct script_word *target,
                      bool truncates);

/* How many words go before the command that a wrapper (sudo, env, timeout) starts, itself among
 * them; 0: it is no wrapper, or starts nothing. */
size_t danger_wrapper(const char *name, struct words w);
/* The command inside all wrappers. */
struct words danger_unwrap(const struct danger *d, struct words w);
/* Words joined by blanks, read as a script. */
void danger_joined(struct danger *d, struct words w, struct words script);

/* Judges what the program itself does. */
void danger_program(struct danger *d, const char *name, struct words w);

/* What a path stands for, by weight. */
enum target {
    TARGET_INSIDE, /* below a root of the workspace, or for temporary files */
    TARGET_ORDINARY,
    TARGET_DEVICE,     /* a disk, memory */
    TARGET_UNRESOLVED, /* only the shell will know, and it may be one of these: */
    TARGET_WORKSPACE,  /* a root of the workspace, or above it */
    TARGET_HOME,       /* the home directory, or above it */
    TARGET_ROOT        /* the root directory, or one of the system's */
};
enum target danger_target(struct danger *d, const struct script_word *w);
/* Is there a file that would be overwritten? True when it can't be known. */
bool danger_has_file(struct danger *d, const struct script_word *w);
/* The rule's name and sentence for a target that is none of the first two; NULL for these. */
const char *danger_target_rule(enum target t);
const char *danger_target_why(enum target t);
/* A finding about each word that is such a target. True: there was one. */
bool danger_targets(struct danger *d, struct words all, struct words targets);

#endif
