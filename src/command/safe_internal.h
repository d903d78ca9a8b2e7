#ifndef SY_COMMAND_SAFE_INTERNAL_H
#define SY_COMMAND_SAFE_INTERNAL_H

#include "command/judge_internal.h"

/* Why a command's words are not safe; rule NULL: they are. `argument` is borrowed from them. */
struct objection {
    const char *rule;
    const char *argument;
    const char *why;
};

/* Judges the words behind the program's name, of a program with rules. */
typedef struct objection safe_words_fn(struct words w);

struct safe_program {
    const char *name;
    safe_words_fn *words; /* NULL: whatever they are */
    bool linux_only;
};

/* The row of a program, or NULL. */
const struct safe_program *safe_program_find(const char *name);

/* Which row of the table, less than 64. */
unsigned safe_program_index(const struct safe_program *row);

/*
 * True when a word may become an option that it does not show: a pattern that begins with a
 * wildcard, a variable at its start or one that may become several words, {a,b}.
 */
bool safe_word_may_hide(const struct script_word *w);

/* An option of a list of bad ones, by the rules of getopt_long: `--name`, `--name=value`, an
 * abbreviation, and single letters in a bundle up to one that takes a value. */
struct option_rule {
    const char *bad_long;    /* blank-separated, without -- */
    const char *exact_long;  /* these are what they are, though they abbreviate a bad one */
    const char *bad_short;   /* letters */
    const char *value_short; /* letters whose value follows */
};
bool safe_option_is_bad(const struct option_rule *rule, const char *word);

/* Judges git's words. */
struct objection safe_git_words(struct words w);

/* The PowerShell commands that are safe, by name in any case; NULL: it is not one of them.
 * `git` and `rg` are, with their own words. */
bool safe_powershell_command(const char *name, bool is_windows);
/* A word that no safe script holds. */
bool safe_powershell_is_bad_word(const char *word);
/* The script of a PowerShell command line, if it is one that may be safe: its one command
 * argument, or its bare words joined into *joined. SY_E_ARG: not safe. */
enum sy_code safe_powershell_script(struct words w, struct buf *joined);

#endif
