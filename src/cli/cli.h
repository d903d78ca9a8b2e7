#ifndef SY_CLI_CLI_H
#define SY_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "config/config.h"
#include "orchestrator/orchestrator.h"

/*
 * The command line. A verb is one constant `struct cli_verb` in its own file
 * and one row in verbs.c; help, completions, the man page check and the parser
 * all read the same tables, and nothing but the chosen verb's code runs.
 */

/* One option. A row of zeros ends a table. */
struct cli_option {
    char letter;         /* 's' for -s, or 0 */
    const char *name;    /* "sandbox" for --sandbox */
    const char *arg;     /* "MODE"; NULL: takes no value */
    const char *choices; /* "a|b|c" for help and completions, or NULL; "DIR": a directory */
    const char *help;    /* one line */
};

/* Options of one verb, at most. */
#define CLI_OPTIONS_MAX 12

/* The row of every verb that loads configuration; its values are collected in
 * struct cli_args `overrides`. */
#define CLI_OPTION_CONFIG                                                                          \
    {                                                                                              \
        'c', "config", "KEY=VALUE", NULL,                                                          \
            "set a configuration key (shellyard-config(5)); may be repeated"                       \
    }
#define CLI_OPTION_JSON                                                                            \
    {                                                                                              \
        0, "json", NULL, NULL, "print one JSON object"                                             \
    }
#define CLI_OPTION_END                                                                             \
    {                                                                                              \
        0, NULL, NULL, NULL, NULL                                                                  \
    }

struct cli_args;

struct cli_verb {
    const char *name;
    const char *summary;  /* one line, no full stop */
    const char *operands; /* usage after the options: "[--] COMMAND [ARGUMENT...]", or "" */
    const char *text;     /* more, for `help VERB`; ends with a newline; may be NULL */
    const char *examples; /* lines, each ends with a newline; may be NULL */
    const char *page;     /* man page that documents it: "shellyard-exec.1" */
    const struct cli_option *options;
    const struct cli_verb *const *verbs; /* sub-verbs, NULL-terminated; NULL: none */
    const char *operand_choices;         /* "a|b|c" for completions and errors; NULL: free */
    size_t min_operands;
    size_t max_operands;
    bool ends_options; /* the first operand ends the options, as in env(1) */
    int (*run)(const struct cli_args *args);
    /* Tells what is wrong with the command line; NULL: cli_fail. */
    int (*fail)(const struct cli_args *args, const struct sy_error *err);
};

/* A parsed command line. Borrows argv. */
struct cli_args {
    const struct cli_verb *verb;
    const char *values[CLI_OPTIONS_MAX]; /* by row of verb->options; NULL: not given */
    struct strv overrides;               /* the values of -c, in order */
    char *const *words;                  /* all of it, while there are no operands */
    char *const *operands;               /* NULL-terminated */
    size_t n_operands;
    bool wants_help;
};

/* All verbs, NULL-terminated. */
extern const struct cli_verb *const cli_verbs[];
/* A verb by name in a NULL-terminated list; NULL if there is none. */
const struct cli_verb *cli_verb_find(const struct cli_verb *const *verbs, const char *name);
/* The nearest name in such a list, or NULL. */
const char *cli_verb_nearest(const struct cli_verb *const *verbs, const char *name);

/*
 * Parses what follows a verb (argv NULL-terminated; operands are moved to its
 * front). SY_E_ARG with a sentence that names the word and, if there is one,
 * the nearest right one; *ret has what was read until then, and a --json that
 * stands behind it, for whoever tells. `path` is the verb's full name for
 * messages ("sandbox check").
 */
enum sy_code cli_parse(struct cli_args *ret, const struct cli_verb *verb, const char *path,
                       char **argv, struct sy_error *err) SY_NODISCARD;
void cli_args_fini(struct cli_args *a);
/* The value of an option by its long name ("" for one without value); NULL if
 * it was not given. */
const char *cli_get(const struct cli_args *a, const char *name);

/* "10", "10s", "500ms", "2m", "1h" in milliseconds, above 0 and at most 24 h.
 * SY_E_ARG with a sentence otherwise. */
enum sy_code cli_parse_duration(uint64_t *ret_ms, const char *text,
                                struct sy_error *err) SY_NODISCARD;

/* help.c: one verb (path as above), or the whole program, or all as JSON. */
enum sy_code cli_help_verb(struct buf *out, const struct cli_verb *verb,
                           const char *path) SY_NODISCARD;
enum sy_code cli_help_program(struct buf *out) SY_NODISCARD;
enum sy_code cli_help_json(struct buf *out) SY_NODISCARD;
/* The options that every verb takes, and those of the program itself. */
extern const struct cli_option cli_common_options[];
extern const struct cli_option cli_program_options[];

/* completions.c: a script for "bash", "zsh" or "fish". */
enum sy_code cli_completions(struct buf *out, const char *shell) SY_NODISCARD;

/* The first thing that a program does: standard descriptors, SIGPIPE. (start.c) */
void cli_start(void);
/*
 * Has the kernel map zeroed memory and stack at once. Each page that is
 * touched first by itself costs a trap, and these are a good part of a start.
 */
void cli_touch_memory(void);
/* The same for what the allocator has taken already: for a program that needs it all. */
void cli_touch_heap(void);
/* The name that execve(2) got for this program, perhaps relative; NULL if the kernel did not say.
 */
const char *cli_called_as(void);
/*
 * This executable's absolute path: /proc/self/exe, or where that can't be read
 * (*ret_by_proc false) cli_called_as with its links resolved, which is right as
 * long as the working directory is the one of the start. 0 or an errno.
 */
int cli_executable(char ret[LIMIT_PATH], bool *ret_by_proc) SY_NODISCARD;
/* shellyard-launch of this installation, in ret; NULL: it has none. */
const char *cli_launcher_path(char ret[LIMIT_PATH]);
/* The same for shellyard-http. */
const char *cli_http_path(char ret[LIMIT_PATH]);

/*
 * Printing (print.c). Unbuffered; nothing else of the program writes to
 * standard output. cli_out returns an exit status: `status`, 141 (as after
 * SIGPIPE) when the reader is gone, 125 when writing failed.
 */
int cli_out(const struct buf *b, int status);
/* "shellyard: SENTENCE\n" on standard error, with what could deceive a reader made visible;
 * returns the code's exit status. */
int cli_fail(const struct sy_error *err);
/* The same for a verb that only judges, where 125 says nothing: 2 for a wrong directory too. */
int cli_fail_judging(const struct sy_error *err);
/* One more line like that, for notes. */
void cli_note(const char *fmt, ...) SY_PRINTF(1, 2);

#define CLI_STATUS_SIGPIPE 141

/*
 * Where a verb works and under which configuration (engine.c).
 * cli_engine_load enters `dir` (NULL: stays) and loads configuration with the
 * overrides and `mode` (NULL: as configured) on top; cli_engine_turn then makes
 * the turn.
 */
struct cli_engine {
    struct config config;
    struct turn_context turn;
    struct strv overrides;
    const char *mode;          /* of -s; borrowed, NULL: none */
    char *const *environ_list; /* borrowed: our own, or a client's */
    char cwd[LIMIT_PATH];
};

enum sy_code cli_engine_load(struct cli_engine *ret, const struct cli_args *args, const char *dir,
                             const char *mode, struct sy_error *err) SY_NODISCARD;
/* The same for a client whose working directory is `cwd` and environment `environ_list`: this
 * process stays where it is. */
enum sy_code cli_engine_load_for(struct cli_engine *ret, const struct cli_args *args,
                                 const char *cwd, char *const *environ_list,
                                 struct sy_error *err) SY_NODISCARD;
/* The configuration as it would be with one more `-c key=value`. */
enum sy_code cli_engine_try(struct config *ret, const struct cli_engine *e, const char *override,
                            struct sy_error *err) SY_NODISCARD;
enum sy_code cli_engine_turn(struct cli_engine *e, struct sy_error *err) SY_NODISCARD;
/* The same for who looks at its policy and makes no call, with the roots that each call finds
 * (sandbox/linux/linked.h). */
enum sy_code cli_engine_turn_found(struct cli_engine *e, struct sy_error *err) SY_NODISCARD;
void cli_engine_fini(struct cli_engine *e);
/* Where Shellyard keeps what is this user's; SY_E_CONFIG if nothing names it. */
enum sy_code cli_state_dir(struct buf *ret, struct sy_error *err) SY_NODISCARD;

/*
 * Writable roots that came by themselves and are as wide as the file system or the
 * home directory: easily a slip, so that people are told (wide.c). Not those that
 * somebody wrote into the configuration.
 */
#define CLI_WIDE_MAX 2
struct cli_wide {
    char path[LIMIT_PATH];
    const char *what;   /* "workspace", "TMPDIR" */
    const char *extent; /* "the whole file system" */
    const char *fix;    /* what narrows it */
};

size_t cli_wide_roots(struct cli_wide ret[CLI_WIDE_MAX], const struct cli_engine *e);
/* One line in the log for each. */
void cli_warn_of_wide_roots(const struct cli_engine *e);

/* The program that users call, absolute, for client configurations: not this
 * one if it is the full program behind a small one. (self.c) */
enum sy_code cli_self_path(char ret[LIMIT_PATH], struct sy_error *err) SY_NODISCARD;

#endif
