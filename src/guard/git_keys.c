#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "guard/git_config.h"

/* What a value may be. */
enum value_rule {
    VALUE_ANY,
    VALUE_BOOL,     /* not the path of a program */
    VALUE_URL,      /* no transport that is a program */
    VALUE_WORKTREE, /* below a root */
    VALUE_UPDATE    /* submodule.*.update: no "!command" */
};

struct key_rule {
    const char *section;
    const char *keys; /* between blanks; "*": all */
    bool has_subsection;
    enum value_rule value;
};

/* Known to be harmless. A key that can name a program, a file that is read as
 * configuration, or another place to send to, must never come in here. */
static const struct key_rule harmless[] = {
    {"core",
     " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode"
     " symlinks protecthfs protectntfs autocrlf eol safecrlf compression loosecompression"
     " bigfilethreshold untrackedcache fscache longpaths preloadindex trustctime checkstat"
     " quotepath abbrev sharedrepository sparsecheckout sparsecheckoutcone whitespace hidedotfiles"
     " multipackindex commitgraph warnambiguousrefs commentchar commentstring fsync fsyncmethod"
     " splitindex maxtreedepth lockfilepid filesreflocktimeout packedrefstimeout ",                 false, VALUE_ANY     },
    {"core",        " fsmonitor ",                                                                  false, VALUE_BOOL    },
    {"core",        " worktree ",                                                                   false, VALUE_WORKTREE},
    {"extensions",
     " objectformat compatobjectformat worktreeconfig partialclone refstorage noop noop-v1"
     " preciousobjects relativeworktrees ",                                                         false, VALUE_ANY     },
    {"remote",      " url pushurl ",                                                                true,  VALUE_URL     },
    {"remote",
     " fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall promisor"
     " partialclonefilter followremotehead gh-resolved ",                                           true,  VALUE_ANY     },
    {"remote",      " pushdefault ",                                                                false, VALUE_URL     },
    {"branch",      " remote pushremote ",                                                          true,  VALUE_URL     },
    {"branch",      " merge rebase description vscode-merge-base github-pr-owner-number ",          true,
     VALUE_ANY                                                                                                           },
    {"branch",      " autosetupmerge autosetuprebase sort ",                                        false, VALUE_ANY     },
    {"user",        " name email signingkey useconfigonly ",                                        false, VALUE_ANY     },
    {"author",      " name email ",                                                                 false, VALUE_ANY     },
    {"committer",   " name email ",                                                                 false, VALUE_ANY     },
    {"submodule",   " url ",                                                                        true,  VALUE_URL     },
    {"submodule",   " active branch ignore fetchrecursesubmodules shallow path ",                   true,  VALUE_ANY     },
    {"submodule",   " update ",                                                                     true,  VALUE_UPDATE  },
    {"submodule",   " active recurse fetchjobs propagatebranches ",                                 false, VALUE_ANY     },
    {"init",        " defaultbranch ",                                                              false, VALUE_ANY     },
    {"pull",        " rebase ff ",                                                                  false, VALUE_ANY     },
    {"push",        " default autosetupremote followtags ",                                         false, VALUE_ANY     },
    {"fetch",       " prune prunetags parallel writecommitgraph recursesubmodules fsckobjects ",    false,
     VALUE_ANY                                                                                                           },
    {"merge",       " ff conflictstyle renames renamelimit stat directoryrenames ",                 false, VALUE_ANY     },
    {"rebase",      " autosquash autostash updaterefs stat ",                                       false, VALUE_ANY     },
    {"commit",      " verbose gpgsign status cleanup ",                                             false, VALUE_ANY     },
    {"tag",         " sort gpgsign ",                                                               false, VALUE_ANY     },
    {"diff",
     " renames renamelimit algorithm colormoved mnemonicprefix noprefix context submodule"
     " ignoresubmodules wserrorhighlight indentheuristic ",                                         false, VALUE_ANY     },
    {"gc",          " auto autodetach autopacklimit pruneexpire reflogexpire worktreepruneexpire ", false,
     VALUE_ANY                                                                                                           },
    {"status",      " short branch showuntrackedfiles showstash submodulesummary ",                 false, VALUE_ANY     },
    {"index",       " version threads sparse recordendofindexentries ",                             false, VALUE_ANY     },
    {"pack",        " threads windowmemory compression writereverseindex usesparse ",               false, VALUE_ANY     },
    {"rerere",      " enabled autoupdate ",                                                         false, VALUE_ANY     },
    {"receive",     " denycurrentbranch denynonfastforwards fsckobjects ",                          false, VALUE_ANY     },
    {"transfer",    " fsckobjects ",                                                                false, VALUE_ANY     },
    {"feature",     " manyfiles experimental ",                                                     false, VALUE_ANY     },
    {"maintenance", " auto strategy ",                                                              false, VALUE_ANY     },
    {"advice",      "*",                                                                            false, VALUE_ANY     },
    {"lfs",         " repositoryformatversion ",                                                    false, VALUE_ANY     },
    {"lfs",         " access ",                                                                     true,  VALUE_ANY     },
};

static bool
has_word(const char *words, const char *word)
{
    if (str_eq(words, "*")) {
        return true;
    }

    size_t len = strlen(word);

    if (len == 0 || strchr(word, ' ') != NULL) {
        return false;
    }
    for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word)) {
        if (at > words && at[-1] == ' ' && at[len] == ' ') {
            return true;
        }
    }
    return false;
}

static bool
is_bool(const char *value)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "0", "1", ""};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (value == NULL || str_eq(value, words[i])) {
            return true;
        }
    }
    return false;
}

/* "ext::sh -c x" is a program; "-x" would be taken for an option. */
static bool
is_url_harmless(const char *value)
{
    static const char *const schemes[] = {"https:", "http:", "ssh:", "git:", "git+ssh:", "file:"};

    if (value == NULL || value[0] == '-') {
        return value == NULL;
    }

    size_t scheme = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "+.-_");

    if (strncmp(value + scheme, "::", 2) == 0) {
        return false;
    }
    if (strncmp(value + scheme, "://", 3) != 0) {
        return true; /* a path, or host:path */
    }
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncmp(value, schemes[i], strlen(schemes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool
is_worktree_harmless(const char *value, const struct git_config_place *at)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};

    if (value == NULL || path_join(&joined, at->git_dir, value) != SY_E_OK ||
        path_normalize(&plain, buf_view(&joined)) != SY_E_OK) {
        return false;
    }
    for (size_t i = 0; at->roots != NULL && at->roots[i] != NULL; i++) {
        if (path_is_below(buf_view(&plain), at->roots[i])) {
            return true;
        }
    }
    return false;
}

static bool
is_value_harmless(enum value_rule rule, const char *value, const struct git_config_place *at)
{
    switch (rule) {
    case VALUE_ANY:
        return true;
    case VALUE_BOOL:
        return is_bool(value);
    case VALUE_URL:
        return is_url_harmless(value);
    case VALUE_WORKTREE:
        return is_worktree_harmless(value, at);
    case VALUE_UPDATE:
        return value != NULL && has_word(" checkout rebase merge none ", value);
    }
    return false;
}

bool
git_config_is_harmless(const struct git_config_entry *e, const struct git_config_place *at)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        const struct key_rule *r = &harmless[i];

        if (str_eq(r->section, e->section) && r->has_subsection == (e->subsection != NULL) &&
            has_word(r->keys, e->key)) {
            return is_value_harmless(r->value, e->value, at);
        }
    }
    return false;
}
