#include <string.h>

#include "approval/rules.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"

/* What a program does with the words behind it. */
enum runs {
    RUNS_WRAPPED,    /* a command of its arguments: any command */
    RUNS_SHELL,      /* a script or commands */
    RUNS_CODE,       /* a file of code, unless an option gives the code itself */
    RUNS_SUBCOMMAND, /* what its first word names: by itself it is any of them */
    RUNS_REMOVAL     /* it destroys what its operands name */
};

static const struct {
    const char *name;
    enum runs runs;
} programs[] = {
    {"bash",       RUNS_SHELL     },
    {"sh",         RUNS_SHELL     },
    {"zsh",        RUNS_SHELL     },
    {"dash",       RUNS_SHELL     },
    {"ksh",        RUNS_SHELL     },
    {"mksh",       RUNS_SHELL     },
    {"fish",       RUNS_SHELL     },
    {"ash",        RUNS_SHELL     },
    {"csh",        RUNS_SHELL     },
    {"tcsh",       RUNS_SHELL     },
    {"nu",         RUNS_SHELL     },
    {"cmd",        RUNS_SHELL     },
    {"powershell", RUNS_SHELL     },
    {"pwsh",       RUNS_SHELL     },
    {"python",     RUNS_CODE      },
    {"py",         RUNS_CODE      },
    {"pyw",        RUNS_CODE      },
    {"pythonw",    RUNS_CODE      },
    {"pypy",       RUNS_CODE      },
    {"ipython",    RUNS_CODE      },
    {"node",       RUNS_CODE      },
    {"nodejs",     RUNS_CODE      },
    {"deno",       RUNS_CODE      },
    {"bun",        RUNS_CODE      },
    {"perl",       RUNS_CODE      },
    {"ruby",       RUNS_CODE      },
    {"lua",        RUNS_CODE      },
    {"luajit",     RUNS_CODE      },
    {"julia",      RUNS_CODE      },
    {"php",        RUNS_CODE      },
    {"R",          RUNS_CODE      },
    {"Rscript",    RUNS_CODE      },
    {"osascript",  RUNS_CODE      },
    {"awk",        RUNS_CODE      },
    {"gawk",       RUNS_CODE      },
    {"mawk",       RUNS_CODE      },
    {"tclsh",      RUNS_CODE      },
    {"expect",     RUNS_CODE      },
    {"git",        RUNS_SUBCOMMAND},
    {"npm",        RUNS_SUBCOMMAND},
    {"pnpm",       RUNS_SUBCOMMAND},
    {"yarn",       RUNS_SUBCOMMAND},
    {"make",       RUNS_SUBCOMMAND},
    {"cargo",      RUNS_SUBCOMMAND},
    {"go",         RUNS_SUBCOMMAND},
    {"docker",     RUNS_SUBCOMMAND},
    {"podman",     RUNS_SUBCOMMAND},
    {"kubectl",    RUNS_SUBCOMMAND},
    {"systemctl",  RUNS_SUBCOMMAND},
    {"rm",         RUNS_REMOVAL   },
    {"shred",      RUNS_REMOVAL   },
    {"dd",         RUNS_REMOVAL   },
    {"mkfs",       RUNS_REMOVAL   },
    {"env",        RUNS_WRAPPED   },
    {"sudo",       RUNS_WRAPPED   },
    {"doas",       RUNS_WRAPPED   },
    {"su",         RUNS_WRAPPED   },
    {"runuser",    RUNS_WRAPPED   },
    {"pkexec",     RUNS_WRAPPED   },
    {"xargs",      RUNS_WRAPPED   },
    {"parallel",   RUNS_WRAPPED   },
    {"nohup",      RUNS_WRAPPED   },
    {"nice",       RUNS_WRAPPED   },
    {"ionice",     RUNS_WRAPPED   },
    {"chrt",       RUNS_WRAPPED   },
    {"taskset",    RUNS_WRAPPED   },
    {"time",       RUNS_WRAPPED   },
    {"timeout",    RUNS_WRAPPED   },
    {"setsid",     RUNS_WRAPPED   },
    {"stdbuf",     RUNS_WRAPPED   },
    {"strace",     RUNS_WRAPPED   },
    {"ltrace",     RUNS_WRAPPED   },
    {"watch",      RUNS_WRAPPED   },
    {"flock",      RUNS_WRAPPED   },
    {"script",     RUNS_WRAPPED   },
    {"unshare",    RUNS_WRAPPED   },
    {"nsenter",    RUNS_WRAPPED   },
    {"chroot",     RUNS_WRAPPED   },
    {"ssh",        RUNS_WRAPPED   },
    {"busybox",    RUNS_WRAPPED   },
    {"command",    RUNS_WRAPPED   },
    {"builtin",    RUNS_WRAPPED   },
    {"exec",       RUNS_WRAPPED   },
    {"eval",       RUNS_WRAPPED   },
    {"source",     RUNS_WRAPPED   },
    {".",          RUNS_WRAPPED   },
    {"trap",       RUNS_WRAPPED   },
    {"npx",        RUNS_WRAPPED   },
    {"bunx",       RUNS_WRAPPED   },
    {"uvx",        RUNS_WRAPPED   },
    {"pipx",       RUNS_WRAPPED   },
};

#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

/* Second words that by themselves run what the words behind them name. */
static const struct {
    const char *program;
    const char *word;
} runners[] = {
    {"npm",    "run" },
    {"npm",    "exec"},
    {"pnpm",   "run" },
    {"pnpm",   "exec"},
    {"pnpm",   "dlx" },
    {"yarn",   "run" },
    {"yarn",   "exec"},
    {"yarn",   "dlx" },
    {"bun",    "run" },
    {"bun",    "x"   },
    {"deno",   "eval"},
    {"deno",   "run" },
    {"cargo",  "run" },
    {"go",     "run" },
    {"docker", "run" },
    {"docker", "exec"},
    {"podman", "run" },
    {"podman", "exec"},
};

/* Pairs that are offered without what follows them. */
static const struct {
    const char *program;
    const char *words; /* blanks between and around */
} pairs[] = {
    {"git",     " status log diff show add commit fetch pull stash rev-parse blame "},
    {"cargo",   " build check test clippy fmt doc bench tree "                      },
    {"go",      " build test vet fmt list mod "                                     },
    {"npm",     " test ci install ls outdated audit "                               },
    {"pnpm",    " test install ls outdated audit "                                  },
    {"yarn",    " test install list "                                               },
    {"docker",  " ps images logs inspect "                                          },
    {"podman",  " ps images logs inspect "                                          },
    {"kubectl", " get describe logs "                                               },
};

/* The name of a program without its directory, its version and ".exe". */
static size_t
name_len(const char *name)
{
    size_t len = strlen(name);

    if (len > 4 && str_ends(name, ".exe")) {
        len -= 4;
    }

    size_t bare = len;

    while (bare > 0 && strchr("0123456789.-", name[bare - 1]) != NULL) {
        bare--;
    }
    return bare > 0 ? bare : len;
}

static size_t
find_program(const char *word)
{
    const char *name = path_base(word);
    size_t len = name_len(name);
    size_t i = 0;

    while (i < PROGRAMS &&
           (strlen(programs[i].name) != len || strncmp(programs[i].name, name, len) != 0)) {
        i++;
    }
    return i;
}

static bool
is_runner(const struct strv *prefix)
{
    const char *name = path_base(prefix->v[0]);

    for (size_t i = 0; prefix->n == 2 && i < sizeof(runners) / sizeof(runners[0]); i++) {
        if (str_eq(runners[i].program, name) && str_eq(runners[i].word, prefix->v[1])) {
            return true;
        }
    }
    return false;
}

/* An option that gives the code, or reads it from standard input; "-" alone
 * does too. Options of one letter may be bundled. */
static bool
gives_code(const char *word)
{
    static const char *const long_ones[] = {"--eval", "--print", "--command",
                                            "--exec", "--expr",  "--interactive"};

    for (size_t i = 0; i < sizeof(long_ones) / sizeof(long_ones[0]); i++) {
        if (str_starts(word, long_ones[i])) {
            return true;
        }
    }
    return word[0] == '-' && word[1] != '-' &&
           (word[1] == '\0' || strpbrk(word + 1, "ceErpi") != NULL);
}

/* An interpreter's prefix names its script, and gives no code. */
static bool
names_a_file(const struct strv *prefix)
{
    for (size_t i = 1; i < prefix->n; i++) {
        if (gives_code(prefix->v[i])) {
            return false;
        }
        if (prefix->v[i][0] != '-') {
            return true;
        }
    }
    return false;
}

/* What can't be shown as it is would be another command in the rule. */
static bool
is_text(const struct strv *prefix)
{
    for (size_t i = 0; i < prefix->n; i++) {
        if (!utf8_is_valid(prefix->v[i], strlen(prefix->v[i]))) {
            return false;
        }
    }
    return true;
}

bool
rule_may_propose(const struct strv *prefix)
{
    if (prefix->n == 0 || prefix->v[0][0] == '\0' || rule_assignments(prefix) > 0 ||
        !is_text(prefix)) {
        return false;
    }

    size_t i = find_program(prefix->v[0]);

    if (i == PROGRAMS) {
        return true;
    }
    switch (programs[i].runs) {
    case RUNS_WRAPPED:
    case RUNS_SHELL:
    case RUNS_REMOVAL:
        return false;
    case RUNS_CODE:
        return !is_runner(prefix) && names_a_file(prefix);
    case RUNS_SUBCOMMAND:
        break;
    }
    return prefix->n > 1 && prefix->v[1][0] != '-' && !is_runner(prefix);
}

static bool
is_prefix(const struct strv *prefix, const struct strv *argv)
{
    if (prefix->n > argv->n) {
        return false;
    }
    for (size_t i = 0; i < prefix->n; i++) {
        if (!str_eq(prefix->v[i], argv->v[i])) {
            return false;
        }
    }
    return true;
}

static bool
is_known_pair(const struct strv *argv)
{
    for (size_t i = 0; argv->n > 1 && i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const char *at = strstr(pairs[i].words, argv->v[1]);
        size_t len = strlen(argv->v[1]);

        if (str_eq(pairs[i].program, argv->v[0]) && strchr(argv->v[1], ' ') == NULL && len > 0 &&
            at != NULL && at[-1] == ' ' && at[len] == ' ') {
            return true;
        }
    }
    return false;
}

enum sy_code
rule_propose(struct strv *ret, const struct strv *argv, const struct strv *wanted)
{
    const struct strv *from = argv;
    size_t n = is_known_pair(argv) ? 2 : argv->n;
    enum sy_code rc = SY_E_OK;

    if (wanted != NULL && wanted->n > 0 && is_prefix(wanted, argv) && rule_may_propose(wanted)) {
        from = wanted;
        n = wanted->n;
    }
    if (!rule_may_propose(from)) {
        return SY_E_OK;
    }
    for (size_t i = 0; rc == SY_E_OK && i < n; i++) {
        rc = strv_add(ret, from->v[i]);
    }
    return rc;
}
