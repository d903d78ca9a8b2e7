#include "process/env.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/env_internal.h"

enum {
    IN_ONE_SHOT = 1,                /* a command that runs to its end: nobody is there to answer */
    IN_PIPES = 2,                   /* a session without a terminal, */
    IN_TTY = 4,                     /* and one with: what asks there is seen, and can be answered */
    IN_SESSION = IN_PIPES | IN_TTY, /* (specification, UNIFIED_EXEC_ENV) */
    IN_BOTH = IN_ONE_SHOT | IN_SESSION,
    NO_TTY = IN_ONE_SHOT | IN_PIPES
};

/* What Shellyard puts in place of an inherited value. `value` NULL: the
 * variable is dropped. The policy's `set` and the call's own variables win:
 * who names one there means it. */
struct env_row {
    const char *name;
    const char *value;
    int where;
    const char *reason;
};

/* A program that fails at once. Every shell has it built in. */
#define REFUSE "false"

static const struct env_row rows[] = {
  /* Plain text. */
    {"TERM",                    "dumb",           IN_BOTH,    "no cursor movement or colour in what a model reads"},
    {"NO_COLOR",                "1",              IN_BOTH,    "no-color.org: programs that ignore TERM"           },
    {"COLORTERM",               "",               IN_BOTH,    "an inherited value means true colour"              },
    {"FORCE_COLOR",             NULL,             IN_BOTH,    "would override NO_COLOR, and node warns about it"  },
    {"CLICOLOR_FORCE",          NULL,             IN_BOTH,    "would override NO_COLOR"                           },
    {"LC_CTYPE",                "C.UTF-8",        IN_SESSION, "UNIFIED_EXEC_ENV"                                  },
    {"LC_ALL",                  "C.UTF-8",        IN_SESSION, "UNIFIED_EXEC_ENV"                                  },
    {"LANG",                    "C.UTF-8",        IN_SESSION, "UNIFIED_EXEC_ENV"                                  },
    {"CODEX_CI",                "1",              IN_SESSION, "UNIFIED_EXEC_ENV: tools in the wild read it"       },

 /* Pagers: they wait for a key. */
    {"PAGER",                   "cat",            IN_BOTH,    "the common one"                                    },
    {"GIT_PAGER",               "cat",            IN_BOTH,    "wins over PAGER and core.pager"                    },
    {"GH_PAGER",                "cat",            IN_BOTH,    "wins over PAGER in gh"                             },
    {"MANPAGER",                "cat",            IN_BOTH,    "wins over PAGER in man"                            },
    {"SYSTEMD_PAGER",           "cat",            IN_BOTH,    "systemctl, journalctl: less by default"            },
    {"AWS_PAGER",               "cat",            IN_BOTH,    "aws: less by default"                              },
    {"PSQL_PAGER",              NULL,             IN_BOTH,    "would win over PAGER in psql"                      },
    {"BAT_PAGER",               NULL,             IN_BOTH,    "would win over PAGER in bat"                       },
    {"DELTA_PAGER",             NULL,             IN_BOTH,    "would win over PAGER in delta"                     },

 /* Editors: no person is there, and one that succeeds at once would let
  * `git rebase -i` rewrite history, `git commit` take any message. */
    {"EDITOR",                  REFUSE,           IN_BOTH,    "the common one"                                    },
    {"VISUAL",                  REFUSE,           IN_BOTH,    "wins over EDITOR"                                  },
    {"GIT_EDITOR",              REFUSE,           IN_BOTH,    "wins over core.editor"                             },
    {"GIT_SEQUENCE_EDITOR",     REFUSE,           IN_BOTH,    "wins over sequence.editor"                         },
    {"SUDO_EDITOR",             NULL,             IN_BOTH,    "would win over EDITOR in sudoedit"                 },
    {"SYSTEMD_EDITOR",          NULL,             IN_BOTH,    "would win over EDITOR in systemctl edit"           },
    {"KUBE_EDITOR",             NULL,             IN_BOTH,    "would win over EDITOR in kubectl edit"             },
    {"HGEDITOR",                NULL,             IN_BOTH,    "would win over EDITOR in hg"                       },
    {"SVN_EDITOR",              NULL,             IN_BOTH,    "would win over EDITOR in svn"                      },
    {"GH_EDITOR",               NULL,             IN_BOTH,    "would win over EDITOR in gh"                       },
    {"JJ_EDITOR",               NULL,             IN_BOTH,    "would win over EDITOR in jj"                       },
    {"FCEDIT",                  NULL,             IN_BOTH,    "would win over EDITOR in the fc of shells"         },
    {"GIT_MERGE_AUTOEDIT",      "no",             IN_BOTH,    "a merge takes its message without an editor"       },

 /* Questions. Only those settings that refuse; none that says yes. */
    {"GIT_TERMINAL_PROMPT",     "0",              IN_BOTH,    "git fails instead of asking on the terminal"       },
    {"GIT_ASKPASS",             REFUSE,           IN_BOTH,    "wins over core.askPass; no window opens"           },
    {"SSH_ASKPASS",             REFUSE,           IN_BOTH,    "no window opens"                                   },
 /* Better than BatchMode in GIT_SSH_COMMAND, which would switch off the
  * user's core.sshCommand, and with it his key for this host. */
    {"SSH_ASKPASS_REQUIRE",     "force",          NO_TTY,     "ssh asks SSH_ASKPASS, which fails"                 },
 /* Else ssh-keygen takes no answer for an empty passphrase. */
    {"SSH_ASKPASS_REQUIRE",     "never",          IN_TTY,     "ssh asks on the terminal, and opens no window"     },
    {"SUDO_ASKPASS",            REFUSE,           IN_BOTH,    "no window opens"                                   },
    {"GCM_INTERACTIVE",         "never",          IN_BOTH,    "Git Credential Manager opens no browser"           },
    {"GH_PROMPT_DISABLED",      "1",              IN_BOTH,    "gh fails instead of asking"                        },
    {"DEBIAN_FRONTEND",         "noninteractive", IN_BOTH,    "debconf takes its defaults"                        },
    {"PIP_NO_INPUT",            "1",              IN_BOTH,    "pip fails instead of asking for a login"           },
    {"COMPOSER_NO_INTERACTION", "1",              IN_BOTH,    "composer fails instead of asking"                  },
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* Variables by which whoever sets them runs code in, or reshapes, each
 * program or shell of the call. */
static const char *const banned_prefixes[] = {
    "LD_",        /* the loader: ld.so(8) */
    "DYLD_",      /* the loader of macOS */
    "BASH_FUNC_", /* exported functions replace any command */
    "SHELLYARD_", /* ours, some name sockets and files of the engine */
};
static const char *const banned_names[] = {
    "BASH_ENV",       /* a script that each bash reads first */
    "ENV",            /* the same for sh */
    "PROMPT_COMMAND", /* code before each prompt */
    "SHELLOPTS",      /* set -e, -n, -x in each bash */
    "BASHOPTS",       /* shopt in each bash */
    "BASH_XTRACEFD",  /* where set -x writes */
};

/* Default excludes: names that hold a secret. Upper case; the name may have
 * either. The words stand for globs: *WORD*, *WORD or WORD*, or the whole name. */
struct secret_word {
    const char *word;
    size_t n;
};

#define WORD(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static const struct secret_word anywhere_words[] = {
    WORD("KEY"),    WORD("SECRET"),     WORD("TOKEN"),      WORD("PASSWORD"),
    WORD("PASSWD"), WORD("PASSPHRASE"), WORD("CREDENTIAL"),
};

static const struct secret_word last_words[] = {
    WORD("_PASS"), WORD("_PWD"), /* MYSQL_PWD; OLDPWD has no underscore */
};

/* Settings of git: without their names (KEY) their number would end each git. */
static const struct secret_word first_words[] = {
    WORD("GIT_CONFIG_VALUE_"),
};

/* Sockets of agents: whoever reaches one signs with the user's keys. */
static const struct secret_word whole_words[] = {
    WORD("GIT_CONFIG_COUNT"), WORD("SSHPASS"),        WORD("SSH_AUTH_SOCK"),
    WORD("SSH_AGENT_PID"),    WORD("GPG_AGENT_INFO"),
};

static const char *const core_names[] = {
    "PATH", "SHELL",  "TMPDIR",   "TEMP",    "TMP",  "HOME",
    "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER",
};

static unsigned char
upper(char c)
{
    unsigned char u = (unsigned char)c;

    return u >= 'a' && u <= 'z' ? u & 0xDFU : u;
}

static bool
is_banned(struct name name)
{
    for (size_t i = 0; i < COUNT(banned_prefixes); i++) {
        size_t n = strlen(banned_prefixes[i]);

        if (name.n >= n && memcmp(name.s, banned_prefixes[i], n) == 0) {
            return true;
        }
    }
    return name_is_listed(name, banned_names, COUNT(banned_names));
}

static bool
equals_nocase(const char *s, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (upper(s[i]) != (unsigned char)word[i]) {
            return false;
        }
    }
    return true;
}

/* The letters with which a word begins that may stand anywhere, a bit each: at
 * most places of a name a look at these is enough. */
static uint32_t
first_letters(void)
{
    uint32_t letters = 0;

    for (size_t i = 0; i < COUNT(anywhere_words); i++) {
        letters |= 1U << ((unsigned)anywhere_words[i].word[0] & 0x1FU);
    }
    return letters;
}

/* A word that may stand anywhere begins at the i-th letter. */
static bool
word_begins(struct name name, size_t i)
{
    unsigned char first = upper(name.s[i]);

    for (size_t k = 0; k < COUNT(anywhere_words); k++) {
        const struct secret_word *w = &anywhere_words[k];

        if (first == (unsigned char)w->word[0] && w->n <= name.n - i &&
            equals_nocase(name.s + i, w->word, w->n)) {
            return true;
        }
    }
    return false;
}

static bool
is_secret(struct name name, uint32_t letters)
{
    for (size_t i = 0; i < name.n; i++) {
        if ((letters >> ((unsigned)name.s[i] & 0x1FU) & 1U) != 0 && word_begins(name, i)) {
            return true;
        }
    }
    for (size_t k = 0; k < COUNT(last_words); k++) {
        const struct secret_word *w = &last_words[k];

        if (w->n <= name.n && equals_nocase(name.s + name.n - w->n, w->word, w->n)) {
            return true;
        }
    }
    for (size_t k = 0; k < COUNT(first_words); k++) {
        const struct secret_word *w = &first_words[k];

        if (w->n <= name.n && equals_nocase(name.s, w->word, w->n)) {
            return true;
        }
    }
    for (size_t k = 0; k < COUNT(whole_words); k++) {
        const struct secret_word *w = &whole_words[k];

        if (w->n == name.n && equals_nocase(name.s, w->word, w->n)) {
            return true;
        }
    }
    return false;
}

static bool
is_core(struct name name)
{
    for (size_t i = 0; i < COUNT(core_names); i++) {
        if (strlen(core_names[i]) == name.n && equals_nocase(name.s, core_names[i], name.n)) {
            return true;
        }
    }
    return false;
}

/* One of the globs means the name. */
static bool
matches_any(struct name name, const struct strv *globs)
{
    char text[ENV_NAME_MAX + 1];

    if (globs->n == 0) {
        return false;
    }
    memcpy(text, name.s, name.n);
    text[name.n] = '\0';
    for (size_t i = 0; i < globs->n; i++) {
        if (str_glob_nocase(globs->v[i], text)) {
            return true;
        }
    }
    return false;
}

/* Names met so far, by a few bits of a hash: "no" is sure, "yes" is to be
 * looked up. Without it each entry would be compared with all before it. */
struct names_met {
    uint64_t bits[32];
};

static uint32_t
hash_of(struct name name)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (size_t i = 0; i < name.n; i++) {
        hash = (hash ^ (unsigned char)name.s[i]) * 16777619U;
    }
    return hash;
}

/* False: the name was not met before. */
static bool
may_be_met(const struct names_met *met, struct name name)
{
    const uint32_t hash = hash_of(name);

    return (met->bits[hash % COUNT(met->bits)] >> (hash >> 26) & 1U) != 0;
}

/* True: the name may have been met before. */
static bool
meet(struct names_met *met, struct name name)
{
    const uint32_t hash = hash_of(name);
    uint64_t *word = &met->bits[hash % COUNT(met->bits)];
    const uint64_t bit = 1ULL << (hash >> 26);
    const bool is_known = (*word & bit) != 0;

    *word |= bit;
    return is_known;
}

static void
unset(struct strv *list, const struct names_met *met, const char *name)
{
    if (may_be_met(met, (struct name){name, strlen(name)})) {
        strv_env_unset(list, name);
    }
}

/* Adds or replaces a variable. */
static enum sy_code
put(struct strv *list, struct names_met *met, const char *name, const char *value)
{
    return meet(met, (struct name){name, strlen(name)}) ? strv_env_set(list, name, value)
                                                        : strv_env_add(list, name, value);
}

/* The same of a whole entry. */
static enum sy_code
put_entry(struct strv *list, struct names_met *met, const char *entry, struct name name)
{
    size_t i = meet(met, name) ? name_index(list, name) : list->n;

    if (i == list->n) {
        return strv_add(list, entry);
    }

    char *copy = mem_strdup(entry);

    if (copy == NULL) {
        return SY_E_NOMEM;
    }
    mem_free(list->v[i]);
    list->v[i] = copy;
    return SY_E_OK;
}

bool
env_inherit_parse(enum env_inherit *ret, const char *name)
{
    static const char *const names[] = {
        [ENV_INHERIT_ALL] = "all",
        [ENV_INHERIT_CORE] = "core",
        [ENV_INHERIT_NONE] = "none",
    };

    for (size_t i = 0; i < COUNT(names); i++) {
        if (str_eq(names[i], name)) {
            *ret = (enum env_inherit)i;
            return true;
        }
    }
    return false;
}

void
env_policy_fini(struct env_policy *p)
{
    strv_fini(&p->exclude);
    strv_fini(&p->set);
    strv_fini(&p->include_only);
}

static bool
is_inherited(const char *entry, struct name name, const struct env_policy *policy, uint32_t letters)
{
    if (name.n == 0 || (policy->inherit == ENV_INHERIT_CORE && !is_core(name)) || is_banned(name) ||
        (policy->default_excludes && is_secret(name, letters)) ||
        matches_any(name, &policy->exclude)) {
        return false;
    }
    /* One too long string makes execve(2) refuse the whole environment. */
    return strnlen(entry, LIMIT_ARG_STRLEN) < LIMIT_ARG_STRLEN;
}

static enum sy_code
add_inherited(struct strv *ret, struct names_met *met, const struct env_policy *policy,
              char *const *base)
{
    uint32_t letters = first_letters();

    if (policy->inherit == ENV_INHERIT_NONE || base == NULL) {
        return SY_E_OK;
    }
    for (; *base != NULL; base++) {
        struct name name = name_of(*base);

        if (!is_inherited(*base, name, policy, letters) ||
            (meet(met, name) && name_index(ret, name) < ret->n)) {
            continue;
        }

        enum sy_code rc = strv_add(ret, *base);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

bool
env_never_passes(const char *entry)
{
    struct name name = name_of(entry);

    return name.n > 0 && is_banned(name);
}

/* Lays entries over the list. Banned ones never pass; malformed ones are the
 * caller's mistake. */
static enum sy_code
add_entries(struct strv *ret, struct names_met *met, char *const *entries)
{
    for (; entries != NULL && *entries != NULL; entries++) {
        struct name name = name_of(*entries);

        if (name.n == 0) {
            return SY_E_ARG;
        }
        if (is_banned(name)) {
            continue;
        }

        enum sy_code rc = put_entry(ret, met, *entries, name);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static void
keep_only(struct strv *ret, const struct strv *globs)
{
    size_t kept = 0;

    if (globs->n == 0) {
        return;
    }
    for (size_t i = 0; i < ret->n; i++) {
        if (matches_any(name_of(ret->v[i]), globs)) {
            ret->v[kept++] = ret->v[i];
        } else {
            mem_free(ret->v[i]);
        }
    }
    ret->n = kept;
    if (ret->v != NULL) {
        ret->v[kept] = NULL;
    }
}

/* The policy set it, and its include_only has left it. */
static bool
is_chosen(const struct strv *ret, const struct env_policy *policy, struct name name)
{
    return name_index(&policy->set, name) < policy->set.n && name_index(ret, name) < ret->n;
}

static enum sy_code
apply_rows(struct strv *ret, struct names_met *met, const struct env_policy *policy,
           const struct env_facts *facts)
{
    int where = facts->has_terminal ? IN_TTY : facts->is_session ? IN_PIPES : IN_ONE_SHOT;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct env_row *row = &rows[i];
        struct name name = {row->name, strlen(row->name)};
        enum sy_code rc = SY_E_OK;

        if ((row->where & where) == 0 || is_chosen(ret, policy, name)) {
            continue;
        }
        if (row->value == NULL) {
            unset(ret, met, row->name);
        } else {
            rc = put(ret, met, row->name, row->value);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

/* "de_DE.UTF-8", "C.utf8", "sr_RS.UTF-8@latin" */
static bool
is_utf8_locale(const char *value)
{
    const char *dot = strchr(value, '.');

    return dot != NULL && (str_glob_nocase("UTF-8*", dot + 1) || str_glob_nocase("UTF8*", dot + 1));
}

/* The user's language stays, if it writes UTF-8: what is captured is read as
 * such. LANG is there in any case. */
static enum sy_code
make_locale_utf8(struct strv *ret, struct names_met *met, const struct env_policy *policy)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct name name = {names[i], strlen(names[i])};
        const char *value = strv_env_get(ret, names[i]);
        bool is_lang = i + 1 == COUNT(names);
        bool is_empty = value == NULL || value[0] == '\0';

        if ((is_empty && !is_lang) || (!is_empty && is_utf8_locale(value)) ||
            is_chosen(ret, policy, name)) {
            continue;
        }

        enum sy_code rc = put(ret, met, names[i], "C.UTF-8");

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

/* A shell sets it by itself, a program that is executed as it is reads what was there: the
 * engine's. What names the same directory by a link stays, as in a shell. */
static enum sy_code
correct_pwd(struct strv *ret, struct names_met *met, const struct env_policy *policy,
            const char *cwd)
{
    static const struct name name = {"PWD", sizeof("PWD") - 1};
    const char *pwd = strv_env_get(ret, name.s);
    struct stat named;
    struct stat here;

    if (pwd == NULL || cwd == NULL || str_eq(pwd, cwd) || is_chosen(ret, policy, name) ||
        (pwd[0] == '/' && stat(pwd, &named) == 0 && stat(cwd, &here) == 0 &&
         named.st_dev == here.st_dev && named.st_ino == here.st_ino)) {
        return SY_E_OK;
    }
    return put(ret, met, name.s, cwd);
}

/* What holds whoever says otherwise. */
static enum sy_code
apply_facts(struct strv *ret, struct names_met *met, const struct env_facts *facts)
{
    enum sy_code rc = put(ret, met, "SHELLYARD", "1");

    unset(ret, met, "CODEX_SANDBOX_NETWORK_DISABLED");
    unset(ret, met, "CODEX_SANDBOX");
    if (rc == SY_E_OK && !facts->has_network) {
        rc = put(ret, met, "CODEX_SANDBOX_NETWORK_DISABLED", "1");
    }
    if (rc == SY_E_OK && facts->sandbox_tag != NULL) {
        rc = put(ret, met, "CODEX_SANDBOX", facts->sandbox_tag);
    }
    return rc;
}

enum sy_code
env_build(struct strv *ret, const struct env_policy *policy, char *const *base, char *const *extra,
          const struct env_facts *facts)
{
    struct names_met met = {{0}};
    enum sy_code rc = add_inherited(ret, &met, policy, base);

    if (rc == SY_E_OK) {
        rc = add_entries(ret, &met, strv_view(&policy->set));
    }
    if (rc == SY_E_OK) {
        keep_only(ret, &policy->include_only);
        rc = apply_rows(ret, &met, policy, facts);
    }
    if (rc == SY_E_OK && !facts->is_session) {
        rc = make_locale_utf8(ret, &met, policy);
    }
    if (rc == SY_E_OK && facts->tmpdir != NULL) {
        rc = put(ret, &met, "TMPDIR", facts->tmpdir);
    }
    if (rc == SY_E_OK) {
        rc = correct_pwd(ret, &met, policy, facts->cwd);
    }
    if (rc == SY_E_OK) {
        rc = add_entries(ret, &met, extra);
    }
    if (rc == SY_E_OK) {
        rc = apply_facts(ret, &met, facts);
    }
    return rc == SY_E_OK ? env_keep_from_rc(ret) : rc;
}
