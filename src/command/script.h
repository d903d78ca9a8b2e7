#ifndef SY_COMMAND_SCRIPT_H
#define SY_COMMAND_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What a script would run, as lists of words, without running anything.
 *
 * A script is read once; what was found serves three readers:
 *   SCRIPT_PLAIN    nothing but simple commands, joined by && || ; | and newlines. Each of
 *                   them is in `commands`, each word with the value that the shell gives it.
 *   SCRIPT_HEREDOC  one simple command whose input is a here-document.
 *   SCRIPT_COMPLEX  everything else that is valid. `commands` has all that stand anywhere
 *                   in it (loops, functions, substitutions): enough to see danger, never to
 *                   call it safe, for the shell may run them never, often, or changed.
 *   SCRIPT_UNREADABLE  not understood as a whole: nothing is in `commands`.
 * What keeps it from being plain is in `reason`.
 */
enum script_form { SCRIPT_PLAIN, SCRIPT_HEREDOC, SCRIPT_COMPLEX, SCRIPT_UNREADABLE };

/* bash stands for zsh and sh too: what they read in another way is never plain. */
enum script_language { SCRIPT_BASH, SCRIPT_POWERSHELL };

enum script_word_flag {
    WORD_DYNAMIC = 1U << 0,       /* holds something that the shell computes; `text` has the rest */
    WORD_SPLITS = 1U << 1,        /* with DYNAMIC: may become no word, or several */
    WORD_GLOB = 1U << 2,          /* an unquoted *, ? or [: may become names of files */
    WORD_TILDE = 1U << 3,         /* begins with an unquoted ~ */
    WORD_BRACE = 1U << 4,         /* {a,b} or {1..9}: becomes several words */
    WORD_QUOTED = 1U << 5,        /* some of it was quoted or escaped */
    WORD_DYNAMIC_START = 1U << 6, /* with DYNAMIC: nothing literal stands before it */
    WORD_ANSI_C = 1U << 7,        /* some is $'...': `text` is as bash and zsh read it, nearly */
    WORD_BACKTICKS = 1U << 8      /* of a here-document: what stands between these is run */
};

struct script_word {
    const char *text; /* NUL-terminated; in `source` of a computed part: "$NAME" as written */
    uint32_t len;
    unsigned flags;
};

enum script_command_flag {
    COMMAND_READS_PIPE = 1U << 0, /* its input is the output of the command before it */
    COMMAND_NESTED = 1U << 1,     /* in a substitution, function, loop or the like */
    COMMAND_ASSIGNS = 1U << 2,    /* NAME=value stands before it */
    COMMAND_AFTER_AND = 1U << 3   /* runs only if the one before it succeeded */
};

struct script_command {
    const struct script_word *words; /* the first is the program; never empty */
    size_t n;
    unsigned flags;
};

/* Where a command's output goes, or input comes from. To which command it belongs is not
 * kept: `a && b > f` is parsed as if it were for both. */
struct script_redirect {
    struct script_word target;
    bool writes;    /* > >> >| &> and the like */
    bool truncates; /* writes, and not >> */
};

struct script {
    enum script_form form;
    char reason[128]; /* why it is not plain; "" when it is */
    const struct script_command *commands;
    size_t n_commands;
    const struct script_redirect *redirects; /* other than 2>&1, /dev/null and such harmless ones */
    size_t n_redirects;
    const struct script_word *inputs; /* here-documents and here-strings */
    size_t n_inputs;
    const struct script_word *assigned; /* NAME=value, each as one word */
    size_t n_assigned;
    struct script_store *store; /* memory of all of these */
};

/* Frees; accepts zeroed, and leaves it so. */
void script_fini(struct script *s);

/* A parser, kept from script to script since making it costs more than using it. One thread
 * at a time. NULL when memory is out. */
struct script_reader *script_reader_new(void);
/* Accepts NULL. */
void script_reader_free(struct script_reader *r);

/*
 * Reads `len` bytes. What `ret` held before is replaced, its memory used again. SY_E_OK also for
 * SCRIPT_UNREADABLE, which is a script with wrong syntax. SY_E_PARSE for what is no text (NUL
 * bytes, invalid UTF-8), SY_E_LIMIT beyond LIMIT_SCRIPT, LIMIT_SCRIPT_DEPTH and
 * LIMIT_SCRIPT_MEMORY: such a script is as little understood as an unreadable one, and `ret`
 * says so too.
 */
enum sy_code script_read(struct script_reader *r, struct script *ret, enum script_language language,
                         const char *text, size_t len, struct sy_error *err) SY_NODISCARD;

#endif
