#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

#define NO_OPTION ((size_t)-1)

void
cli_args_fini(struct cli_args *a)
{
    strv_fini(&a->overrides);
}

const char *
cli_get(const struct cli_args *a, const char *name)
{
    for (size_t i = 0; a->verb->options[i].name != NULL; i++) {
        if (str_eq(a->verb->options[i].name, name)) {
            return a->values[i];
        }
    }
    return NULL;
}

static size_t
find_by_name(const struct cli_option *options, const char *name, size_t len)
{
    for (size_t i = 0; options[i].name != NULL; i++) {
        if (str_is(options[i].name, name, len)) {
            return i;
        }
    }
    return NO_OPTION;
}

static size_t
find_by_letter(const struct cli_option *options, char letter)
{
    for (size_t i = 0; options[i].name != NULL; i++) {
        if (options[i].letter == letter && letter != '\0') {
            return i;
        }
    }
    return NO_OPTION;
}

/* What the words of one command line are checked against. */
struct parse {
    struct cli_args *args;
    const struct cli_verb *verb;
    const char *path;
    char **next; /* the word after the current one */
};

static enum sy_code
unknown_option(const struct parse *p, const char *word, struct sy_error *err)
{
    const char *names[CLI_OPTIONS_MAX + 1];
    size_t n = 0;
    size_t len = strcspn(word, "=");
    char got[64];

    for (; p->verb->options[n].name != NULL; n++) {
        names[n] = p->verb->options[n].name;
    }
    names[n++] = "help";

    const char *near = NULL;

    if (str_starts(word, "--") && len - 2 < sizeof(got)) {
        memcpy(got, word + 2, len - 2);
        got[len - 2] = '\0';
        near = str_nearest(got, names, n);
    }
    if (near != NULL) {
        return sy_err_set(err, SY_E_ARG, "%s: unknown option '%.*s'; did you mean '--%s'?", p->path,
                          (int)len, word, near);
    }
    return sy_err_set(err, SY_E_ARG, "%s: unknown option '%.*s' (see 'shellyard help %s')", p->path,
                      (int)len, word, p->path);
}

/* Stores the value of row i; `inlined` is what stood in the same word. */
static enum sy_code
take_option(struct parse *p, size_t i, const char *inlined, struct sy_error *err)
{
    const struct cli_option *o = &p->verb->options[i];

    if (o->arg == NULL) {
        if (inlined != NULL) {
            return sy_err_set(err, SY_E_ARG, "%s: option '--%s' takes no value, got '%s'", p->path,
                              o->name, inlined);
        }
        p->args->values[i] = "";
        return SY_E_OK;
    }

    const char *value = inlined;

    if (value == NULL) {
        value = *p->next;
        if (value == NULL) {
            return sy_err_set(err, SY_E_ARG, "%s: option '--%s' needs a value: %s", p->path,
                              o->name, o->arg);
        }
        p->next++;
    }
    p->args->values[i] = value;
    if (o->letter == 'c') {
        return strv_add(&p->args->overrides, value) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
    }
    return SY_E_OK;
}

/* One word that begins with '-' and is neither "-" nor "--". */
static enum sy_code
parse_option(struct parse *p, const char *word, struct sy_error *err)
{
    const struct cli_option *options = p->verb->options;

    if (str_eq(word, "--help") || str_eq(word, "-h")) {
        p->args->wants_help = true;
        return SY_E_OK;
    }
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        size_t i = find_by_name(options, word + 2, len);

        if (i == NO_OPTION) {
            return unknown_option(p, word, err);
        }
        return take_option(p, i, word[2 + len] == '=' ? word + 2 + len + 1 : NULL, err);
    }

    size_t i = find_by_letter(options, word[1]);

    if (i == NO_OPTION || (options[i].arg == NULL && word[2] != '\0')) {
        return unknown_option(p, word, err);
    }
    return take_option(p, i, word[2] != '\0' ? word + 2 : NULL, err);
}

static enum sy_code
check_operands(const struct parse *p, struct sy_error *err)
{
    const struct cli_args *a = p->args;

    if (a->wants_help) {
        return SY_E_OK;
    }
    if (a->n_operands < p->verb->min_operands) {
        return sy_err_set(err, SY_E_ARG, "%s: expected %s (see 'shellyard help %s')", p->path,
                          p->verb->operands, p->path);
    }
    if (a->n_operands > p->verb->max_operands && p->verb->max_operands == LIMIT_ARGV) {
        return sy_err_set(err, SY_E_ARG, "%s: %zu words for %s, at most %u are possible", p->path,
                          a->n_operands, p->verb->operands, LIMIT_ARGV);
    }
    if (a->n_operands > p->verb->max_operands) {
        return sy_err_set(err, SY_E_ARG, "%s: unexpected argument '%s'", p->path,
                          a->operands[p->verb->max_operands]);
    }
    return SY_E_OK;
}

/* Who asked for an object gets one, wherever in a wrong command line that stands. */
static void
look_for_json(const struct parse *p)
{
    size_t i = find_by_name(p->verb->options, "json", strlen("json"));

    for (char **word = p->next; i != NO_OPTION && *word != NULL && !str_eq(*word, "--"); word++) {
        if (str_eq(*word, "--json")) {
            p->args->values[i] = "";
        }
    }
}

enum sy_code
cli_parse(struct cli_args *ret, const struct cli_verb *verb, const char *path, char **argv,
          struct sy_error *err)
{
    struct parse p = {.args = ret, .verb = verb, .path = path, .next = argv};
    char **kept = argv; /* operands, moved to the front */
    bool is_over = false;

    memset(ret, 0, sizeof(*ret));
    ret->verb = verb;
    ret->overrides.max = LIMIT_ARGV;
    while (*p.next != NULL) {
        char *word = *p.next++;

        if (is_over || word[0] != '-' || word[1] == '\0') {
            *kept++ = word;
            is_over = is_over || verb->ends_options;
        } else if (str_eq(word, "--")) {
            is_over = true;
        } else {
            enum sy_code rc = parse_option(&p, word, err);

            if (rc != SY_E_OK) {
                look_for_json(&p);
                return rc;
            }
        }
    }
    ret->words = argv;
    ret->n_operands = (size_t)(kept - argv);
    if (ret->n_operands == 0) {
        ret->operands = p.next; /* the NULL at the end: the words stay as they are */
    } else {
        *kept = NULL;
        ret->operands = argv;
    }
    return check_operands(&p, err);
}

enum sy_code
cli_parse_duration(uint64_t *ret_ms, const char *text, struct sy_error *err)
{
    static const struct {
        const char *suffix;
        uint64_t ms;
    } units[] = {
        {"",   1000   },
        {"ms", 1      },
        {"s",  1000   },
        {"m",  60000  },
        {"h",  3600000},
    };
    size_t digits = strspn(text, "0123456789");
    char number[24];

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t n = 0;

        if (digits == 0 || digits >= sizeof(number) || !str_eq(text + digits, units[i].suffix)) {
            continue;
        }
        memcpy(number, text, digits);
        number[digits] = '\0';
        if (str_to_u64(&n, number, 1, LIMIT_TIMEOUT_MAX_MS / units[i].ms)) {
            *ret_ms = n * units[i].ms;
            return SY_E_OK;
        }
        return sy_err_set(err, SY_E_ARG, "timeout '%s' must be above 0 and at most 24h", text);
    }
    return sy_err_set(err, SY_E_ARG,
                      "timeout '%s' is no duration; right are 10, 10s, 500ms, 2m, 1h", text);
}
