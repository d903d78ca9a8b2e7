/* git, when it throws away what was not committed, or what others have. */
#include <string.h>

#include "base/str.h"
#include "command/danger_internal.h"

struct loss {
    const char *subcommand;
    const char *letters; /* any of these in a bundle */
    const char *words;   /* or one of these words */
    const char *unless;  /* but not with one of these */
    const char *rule;
    const char *why;
};

static const char changes[] = "it throws away changes that were not committed";

static const struct loss losses[] = {
    {"clean",         "f",  "--force",                                              "-n --dry-run", "git.clean",
     "it removes files that git does not have"                                                                                                                         },
    {"reset",         "",   "--hard --h --ha --har",                                "",             "git.reset-hard",      changes                                     },
    {"checkout",      "f",  "--force -- .",                                         "",             "git.checkout-over",   changes                                     },
    {"switch",        "f",  "--force --discard-changes",                            "",             "git.checkout-over",   changes                                     },
    {"push",          "fd", "--force --mirror --delete --prune --force-with-lease", "-n --dry-run",
     "git.push-force",                                                                                                     "it removes or replaces what others have"   },
    {"branch",        "D",  "",                                                     "",             "git.branch-delete",   "it removes a branch that may not be merged"},
    {"stash",         "",   "drop clear",                                           "",             "git.stash-drop",      changes                                     },
    {"reflog",        "",   "expire delete",                                        "",             "git.history",         "it removes the last way back"              },
    {"filter-branch", "",   "*",                                                    "",             "git.history",         "it rewrites history"                       },
    {"filter-repo",   "",   "*",                                                    "",             "git.history",         "it rewrites history"                       },
    {"update-ref",    "d",  "",                                                     "",             "git.history",         "it removes the name of a commit"           },
    {"worktree",      "f",  "--force",                                              "add list",     "git.worktree-remove", changes                                     },
    {"rm",            "f",  "--force",                                              "--cached",     "git.rm-forced",       changes                                     },
    {"restore",       "",   "*",                                                    "-S --staged",  "git.restore",         changes                                     },
};

/* One of the words of the list, or its one letter in a bundle. */
static bool
has_any(struct words w, const char *list)
{
    bool has_letter = list[0] == '-' && list[1] != '-';

    for (size_t i = 0; i < w.n; i++) {
        const char *word = w.v[i].text;
        bool is_bundle = word[0] == '-' && word[1] != '-';

        if (judge_in_list(list, word) ||
            (has_letter && is_bundle && strchr(word + 1, list[1]) != NULL)) {
            return true;
        }
    }
    return false;
}

static const char *
find_loss(struct words w, const struct loss *loss)
{
    if (has_any(w, loss->unless)) {
        return NULL;
    }
    if (str_eq(loss->words, "*")) {
        return loss->subcommand;
    }
    for (size_t i = 0; i < w.n; i++) {
        const char *word = w.v[i].text;

        if (judge_in_list(loss->words, word) ||
            (word[0] == '-' && word[1] != '-' && strpbrk(word + 1, loss->letters) != NULL)) {
            return word;
        }
    }
    return NULL;
}

/* -c alias.NAME=!SCRIPT */
static void
judge_setting(struct danger *d, struct words w, const char *setting)
{
    const char *value = strchr(setting, '=');

    if (str_starts(setting, "alias.") && value != NULL && value[1] == '!') {
        danger_script(d, w, value + 2, strlen(value + 2));
    }
}

void
danger_git(struct danger *d, struct words w)
{
    static const char with_value[] =
        "-C --config-env --exec-path --git-dir --namespace --super-prefix --work-tree";
    size_t i = 1;

    for (; i < w.n && w.v[i].text[0] == '-'; i++) {
        if (str_eq(w.v[i].text, "-c") && i + 1 < w.n) {
            judge_setting(d, w, w.v[++i].text);
        } else if (judge_in_list(with_value, w.v[i].text)) {
            i++;
        }
    }
    if (i >= w.n) {
        return;
    }

    const char *subcommand = w.v[i].text;
    struct words rest = words_from(w, i + 1);

    for (size_t k = 0; k < sizeof(losses) / sizeof(losses[0]); k++) {
        const char *word =
            str_eq(losses[k].subcommand, subcommand) ? find_loss(rest, &losses[k]) : NULL;

        if (word != NULL) {
            danger_found(d, DANGER_DANGEROUS, losses[k].rule, w, word, losses[k].why);
        }
    }
    for (size_t k = 0; str_eq(subcommand, "push") && k < rest.n; k++) {
        if (strchr("+:", rest.v[k].text[0]) != NULL && rest.v[k].text[0] != '\0') {
            danger_found(d, DANGER_DANGEROUS, "git.push-force", w, rest.v[k].text,
                         "it removes or replaces what others have");
        }
    }
}
