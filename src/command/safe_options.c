/* The programs that only look, and what would make them do more. */
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "command/safe_internal.h"

static const struct objection none = {NULL, NULL, NULL};

static struct objection
hidden(const struct script_word *w)
{
    return (struct objection){"safe.hidden-option", w->text,
                              "what the shell makes of it may be an option"};
}

bool
safe_word_may_hide(const struct script_word *w)
{
    bool begins_open = w->text[0] == '-' || strchr("*?[", w->text[0]) != NULL;

    if ((w->flags & (WORD_BRACE | WORD_ANSI_C)) != 0) {
        return true;
    }
    if ((w->flags & WORD_GLOB) != 0 && (begins_open || w->text[0] == '\0')) {
        return true;
    }
    return (w->flags & WORD_DYNAMIC) != 0 &&
           ((w->flags & (WORD_SPLITS | WORD_DYNAMIC_START)) != 0 || w->text[0] == '-');
}

static bool
long_is_bad(const struct option_rule *rule, const char *name)
{
    size_t len = strcspn(name, "=");
    char own[PROGRAM_NAME_MAX];

    if (len == 0 || len >= sizeof(own)) {
        return len > 0; /* none of the good ones is so long */
    }
    memcpy(own, name, len);
    own[len] = '\0';
    if (judge_in_list(rule->exact_long, own)) {
        return false;
    }
    for (const char *s = rule->bad_long; *s != '\0'; s += strspn(s, " ")) {
        size_t bad_len = strcspn(s, " ");

        if (len <= bad_len && strncasecmp(s, own, len) == 0) {
            return true;
        }
        s += bad_len;
    }
    return false;
}

bool
safe_option_is_bad(const struct option_rule *rule, const char *word)
{
    if (word[0] != '-' || word[1] == '\0') {
        return false;
    }
    if (word[1] == '-') {
        return long_is_bad(rule, word + 2);
    }
    for (const char *c = word + 1; *c != '\0'; c++) {
        if (strchr(rule->bad_short, *c) != NULL) {
            return true;
        }
        if (strchr(rule->value_short, *c) != NULL) {
            return false;
        }
    }
    return false;
}

static struct objection
judge_options(struct words w, const struct option_rule *rule, const char *name, const char *why)
{
    for (size_t i = 0; i < w.n; i++) {
        bool is_literal = (w.v[i].flags & WORD_DYNAMIC) == 0;

        if (is_literal && str_eq(w.v[i].text, "--")) {
            return none;
        }
        if (safe_word_may_hide(&w.v[i])) {
            return hidden(&w.v[i]);
        }
        if (safe_option_is_bad(rule, w.v[i].text)) {
            return (struct objection){name, w.v[i].text, why};
        }
    }
    return none;
}

static struct objection
base64_words(struct words w)
{
    static const struct option_rule rule = {"output", "", "o", "wb"};

    return judge_options(w, &rule, "base64.output", "it writes a file");
}

static struct objection
rg_words(struct words w)
{
    static const struct option_rule rule = {"pre hostname-bin search-zip", "", "z",
                                            "ABCEMTdefgjmrt"};

    return judge_options(w, &rule, "rg.program", "it makes rg start another program");
}

static struct objection
find_words(struct words w)
{
    static const char bad[] = "-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf";
    static const char with_pattern[] = "-name -iname -path -ipath -wholename -iwholename -regex "
                                       "-iregex -lname -ilname";

    for (size_t i = 0; i < w.n; i++) {
        bool is_pattern = i > 0 && judge_in_list(with_pattern, w.v[i - 1].text) &&
                          (w.v[i].flags & (WORD_SPLITS | WORD_GLOB | WORD_BRACE)) == 0;

        if (judge_in_list(bad, w.v[i].text)) {
            return (struct objection){"find.action", w.v[i].text,
                                      "it makes find run, delete or write something"};
        }
        if (!is_pattern && safe_word_may_hide(&w.v[i])) {
            return hidden(&w.v[i]);
        }
    }
    return none;
}

/* N, or N,M, and p. */
static bool
is_print_script(const char *s)
{
    size_t digits = strspn(s, "0123456789");

    if (digits > 0 && s[digits] == ',') {
        s += digits + 1;
        digits = strspn(s, "0123456789");
    }
    return digits > 0 && str_eq(s + digits, "p");
}

static struct objection
sed_words(struct words w)
{
    for (size_t i = 0; i < w.n; i++) {
        if ((w.v[i].flags & (WORD_DYNAMIC | WORD_GLOB | WORD_BRACE | WORD_ANSI_C)) != 0) {
            return hidden(&w.v[i]);
        }
    }
    if (w.n < 2 || w.n > 3 || !str_eq(w.v[0].text, "-n") || !is_print_script(w.v[1].text)) {
        return (struct objection){"sed.script", w.n > 0 ? w.v[w.n > 1 ? 1 : 0].text : NULL,
                                  "only `sed -n N,Mp FILE` is known to change nothing"};
    }
    if (w.n == 3 && w.v[2].text[0] == '-') {
        return (struct objection){"sed.option", w.v[2].text, "it is an option, not a file"};
    }
    return none;
}

/* Its second operand is a file that it writes. */
static struct objection
uniq_words(struct words w)
{
    size_t operands = 0;
    bool has_ended = false;

    for (size_t i = 0; i < w.n; i++) {
        const char *s = w.v[i].text;

        if ((w.v[i].flags & (WORD_DYNAMIC | WORD_GLOB | WORD_BRACE | WORD_ANSI_C)) != 0) {
            return hidden(&w.v[i]);
        }
        if (!has_ended && str_eq(s, "--")) {
            has_ended = true;
        } else if (!has_ended && s[0] == '-' && s[1] != '\0') {
            bool takes_next = str_eq(s, "-f") || str_eq(s, "-s") || str_eq(s, "-w");

            i += takes_next ? 1 : 0;
        } else {
            operands++;
        }
        if (operands > 1) {
            return (struct objection){"uniq.output", s, "it is a file that uniq writes"};
        }
    }
    return none;
}

static const struct safe_program programs[] = {
    {"base64", base64_words,   false},
    {"cat",    NULL,           false},
    {"cd",     NULL,           false},
    {"cut",    NULL,           false},
    {"echo",   NULL,           false},
    {"expr",   NULL,           false},
    {"false",  NULL,           false},
    {"find",   find_words,     false},
    {"git",    safe_git_words, false},
    {"grep",   NULL,           false},
    {"head",   NULL,           false},
    {"id",     NULL,           false},
    {"ls",     NULL,           false},
    {"nl",     NULL,           false},
    {"numfmt", NULL,           true },
    {"paste",  NULL,           false},
    {"pwd",    NULL,           false},
    {"rev",    NULL,           false},
    {"rg",     rg_words,       false},
    {"sed",    sed_words,      false},
    {"seq",    NULL,           false},
    {"stat",   NULL,           false},
    {"tac",    NULL,           true },
    {"tail",   NULL,           false},
    {"tr",     NULL,           false},
    {"true",   NULL,           false},
    {"uname",  NULL,           false},
    {"uniq",   uniq_words,     false},
    {"wc",     NULL,           false},
    {"which",  NULL,           false},
    {"whoami", NULL,           false},
};

const struct safe_program *
safe_program_find(const char *name)
{
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (str_eq(programs[i].name, name)) {
            return &programs[i];
        }
    }
    return NULL;
}

_Static_assert(sizeof(programs) / sizeof(programs[0]) < 64, "a bit for each");

unsigned
safe_program_index(const struct safe_program *row)
{
    return (unsigned)(row - programs);
}
