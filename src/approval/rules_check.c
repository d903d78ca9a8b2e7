#include <string.h>

#include "approval/rules_internal.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

enum sy_code
rules_check_text(const char *text, size_t len, const char *what, const struct place *at,
                 struct sy_error *err)
{
    for (size_t i = 0; i < len;) {
        uint32_t c = 0;
        size_t n = utf8_decode(&c, text + i, len - i);

        /* The last two are no characters, and YAML has no place for them. */
        if (n == 0 || utf8_is_unseen(c) || c == 0xFFFEU || c == 0xFFFFU) {
            return place_error(err, at, "%s with the character U+%04X, which people would not see",
                               what, (unsigned)c);
        }
        i += n;
    }
    return SY_E_OK;
}

/* Variables by which another program runs than the one that is named. */
static bool
decides_what_runs(const char *assignment)
{
    static const char *const names[] = {
        "PATH",     "LD_",           "DYLD_",        "BASH_ENV",      "ENV",
        "IFS",      "SHELLOPTS",     "BASHOPTS",     "SHELLYARD_",    "PROMPT_COMMAND",
        "PS4",      "PYTHONSTARTUP", "PYTHONPATH",   "PYTHONHOME",    "PERL5OPT",
        "PERL5LIB", "RUBYOPT",       "NODE_OPTIONS", "GIT_EXEC_PATH", "ZDOTDIR",
    };
    size_t len = strcspn(assignment, "=");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_ends(names[i], "_") ? str_starts(assignment, names[i])
                                    : str_is(names[i], assignment, len)) {
            return true;
        }
    }
    return false;
}

static enum sy_code
check_allow(const struct rule *rule, struct sy_error *err)
{
    struct place_shown shown;

    for (size_t i = 0; i < rule->env.n; i++) {
        if (decides_what_runs(rule->env.v[i])) {
            return place_error(err, &rule->at,
                               "the variable '%s' decides what runs: no rule that allows takes it",
                               place_visible(&shown, rule->env.v[i], strcspn(rule->env.v[i], "=")));
        }
    }
    for (size_t i = 0; rule->cwds.n == 0 && i < rule->programs.n; i++) {
        const char *program = rule->programs.v[i];

        if (program[0] != '/' && strchr(program, '/') != NULL) {
            return place_error(err, &rule->at,
                               "'%s' is another program in each directory: a rule that allows it "
                               "needs 'cwd'",
                               place_visible(&shown, program, strlen(program)));
        }
    }
    return SY_E_OK;
}

static enum sy_code
check_steer(const struct rule *rule, struct sy_error *err)
{
    size_t rests = 0;

    for (size_t i = 0; i < rule->steer.n; i++) {
        const char *word = rule->steer.v[i];
        bool is_rest = str_eq(word, RULE_REST);

        rests += is_rest ? 1 : 0;
        if (i == 0 && (is_rest || word[0] == '\0')) {
            return place_error(err, &rule->at, "a better command begins with a program");
        }
        if (rests > 1 || (!is_rest && strstr(word, RULE_REST) != NULL)) {
            return place_error(err, &rule->at,
                               "'" RULE_REST "' is a word by itself and stands once, for what "
                               "follows the prefix");
        }
    }
    return SY_E_OK;
}

enum sy_code
rules_check_rule(const struct rule *rule, struct sy_error *err)
{
    if (rule->programs.n == 0) {
        return place_error(err, &rule->at, "a rule needs 'program'");
    }
    if (rule->decision == RULE_NONE) {
        return place_error(err, &rule->at, "a rule needs 'decision': allow, ask or forbid");
    }
    if (rule->lifts_sandbox && rule->decision != RULE_ALLOW) {
        return place_error(err, &rule->at, "'outside_sandbox' is for 'decision: allow'");
    }
    if (rule->steer.n > 0 && rule->decision != RULE_FORBID) {
        return place_error(
            err, &rule->at,
            "'steer' is for 'decision: forbid': what is steered does not run itself");
    }

    enum sy_code rc = check_steer(rule, err);

    return rc == SY_E_OK && rule->decision == RULE_ALLOW ? check_allow(rule, err) : rc;
}

/* Is it an absolute path without '.', '..' and '//'? */
static enum sy_code
check_path(const char *path, const struct place *at, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
    struct place_shown shown;
    enum sy_code rc = path[0] == '/' ? path_normalize(&plain, path) : SY_E_OK;

    (void)place_visible(&shown, path, strlen(path));
    if (rc != SY_E_OK) {
        return rc == SY_E_LIMIT ? place_error(err, at, "a path of more than %u bytes", LIMIT_PATH)
                                : sy_err_nomem(err);
    }
    return str_eq(path, buf_view(&plain))
               ? SY_E_OK
               : place_error(err, at,
                             "'%s': expected an absolute path, written out without '.', '..' and "
                             "'//'",
                             shown.text);
}

enum sy_code
rules_check_programs(const struct strv *programs, const struct place *at, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < programs->n; i++) {
        const char *program = programs->v[i];
        struct place_shown shown;

        if (program[0] == '/') {
            rc = check_path(program, at, err);
        } else if (program[0] == '\0' || program[0] == '~' || strpbrk(program, " =") != NULL) {
            rc = place_error(err, at,
                             "'%s' is no name of a program: its arguments go below 'args', "
                             "variables below 'env'",
                             place_visible(&shown, program, strlen(program)));
        }
    }
    return rc;
}

enum sy_code
rules_check_program(const struct rules *r, const struct rule_program *p, struct sy_error *err)
{
    struct place_shown shown;
    struct place_shown name;

    if (p->name[0] == '\0' || strchr(p->name, '/') != NULL) {
        return place_error(err, &p->at, "expected a name without '/': the paths go below 'paths'");
    }
    for (size_t i = 0; i < p->paths.n; i++) {
        enum sy_code rc = check_path(p->paths.v[i], &p->at, err);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (!str_eq(path_base(p->paths.v[i]), p->name)) {
            return place_error(err, &p->at, "'%s' is no path of the program '%s'",
                               place_visible(&shown, p->paths.v[i], strlen(p->paths.v[i])),
                               place_visible(&name, p->name, strlen(p->name)));
        }
    }
    for (size_t i = 0; i < r->programs_n; i++) {
        const struct rule_program *other = &r->programs[i];

        if (other->at.name == p->at.name && str_eq(other->name, p->name)) {
            return place_error(err, &p->at, "'%s' stands twice (first at line %zu)",
                               place_visible(&name, p->name, strlen(p->name)), other->at.line);
        }
    }
    return SY_E_OK;
}

enum sy_code
rules_check_host(const char *host, const struct place *at, struct sy_error *err)
{
    static const char host_bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_:";
    size_t len = strlen(host);
    struct place_shown shown;
    bool is_address = strchr(host, ':') != NULL && strchr(strchr(host, ':') + 1, ':') != NULL;

    (void)place_visible(&shown, host, len);
    if (strchr(host, '*') != NULL) {
        return place_error(err, at, "'%s' has a wildcard: a network rule is for one host",
                           shown.text);
    }
    if (strstr(host, "://") != NULL || strchr(host, '/') != NULL) {
        return place_error(err, at, "'%s' is a URL or a path: write the host alone", shown.text);
    }
    if (len == 0 || len > 253 || host[strspn(host, host_bytes)] != '\0') {
        return place_error(err, at, "'%s' is no host name in lower case", shown.text);
    }
    if (!is_address && strchr(host, ':') != NULL) {
        return place_error(err, at, "'%s' has a port: write the host alone", shown.text);
    }
    if (host[len - 1] == '.' || host[0] == '.') {
        return place_error(err, at, "'%s' begins or ends with a dot: leave it out", shown.text);
    }
    return SY_E_OK;
}

/* The words of an example, for its error. */
static const char *
show(struct place_shown *shown, const struct strv *argv)
{
    SY_AUTO(buf_fini) struct buf line = {.max = 256};

    for (size_t i = 0; i < argv->n; i++) {
        /* What does not fit would be cut anyway. */
        if (buf_addf(&line, "%s%.200s", i > 0 ? " " : "", argv->v[i]) != SY_E_OK) {
            break;
        }
    }
    return place_visible(shown, buf_view(&line), line.len);
}

/* Why the rule does not match what it is an example of. */
static enum sy_code
no_match(const struct rule *rule, const struct rule_example *e, struct sy_error *err)
{
    size_t first = rule_assignments(&e->argv);
    struct place_shown shown;
    struct place_shown word;

    (void)show(&shown, &e->argv);
    if (e->argv.n < first + 1 + rule->args_n) {
        return place_error(err, &e->at,
                           "example '%s' is not matched by its rule: the rule has %zu words, the "
                           "example %zu",
                           shown.text, 1 + rule->args_n, e->argv.n - first);
    }
    for (size_t i = 0; i < rule->args_n; i++) {
        const char *got = e->argv.v[first + 1 + i];
        bool is_there = false;

        for (size_t k = 0; k < rule->args[i].n; k++) {
            is_there = is_there || str_eq(rule->args[i].v[k], got);
        }
        if (!is_there) {
            return place_error(err, &e->at,
                               "example '%s' is not matched by its rule: argument %zu is '%s'",
                               shown.text, i + 1, place_visible(&word, got, strlen(got)));
        }
    }
    return place_error(err, &e->at,
                       "example '%s' is not matched by its rule: it is another program, or sets "
                       "variables that 'env' does not name",
                       shown.text);
}

static enum sy_code
check_example(const struct rules *r, const struct rule *rule, const struct rule_example *e,
              struct sy_error *err)
{
    struct rule_script s = {.commands = &e->argv,
                            .n = 1,
                            .is_whole = true,
                            .has_assignments = true,
                            .cwd = rule->cwds.n > 0 ? rule->cwds.v[0] : "/"};
    bool fits = rules_fits(r, rule, &e->argv, &s);
    struct rule_verdict v;
    struct place_shown shown;

    if (!e->is_match) {
        return !fits ? SY_E_OK
                     : place_error(err, &e->at,
                                   "example '%s' must not match, but the rule matches "
                                   "it",
                                   show(&shown, &e->argv));
    }
    if (!fits) {
        return no_match(rule, e, err);
    }
    rules_decide(&v, r, &s);
    if (v.decision > rule->decision) {
        return place_error(err, &e->at,
                           "example '%s' is decided by the rule at line %zu (%s), not by this one "
                           "(%s)",
                           show(&shown, &e->argv), v.by->at.line, rule_decision_name(v.decision),
                           rule_decision_name(rule->decision));
    }
    return SY_E_OK;
}

enum sy_code
rules_check_examples(const struct rules *r, size_t first, struct sy_error *err)
{
    if (first == r->n) {
        return SY_E_OK;
    }

    /* By the rules of the same text alone: an administrator's later rule does not
     * make a user's file wrong. */
    const struct rules own = {.rules = r->rules + first,
                              .n = r->n - first,
                              .programs = r->programs,
                              .programs_n = r->programs_n};

    for (size_t i = 0; i < own.n; i++) {
        for (size_t k = 0; k < own.rules[i].examples_n; k++) {
            enum sy_code rc = check_example(&own, &own.rules[i], &own.rules[i].examples[k], err);

            if (rc != SY_E_OK) {
                return rc;
            }
        }
    }
    return SY_E_OK;
}

/* May the better command of `a` be one that `b` matches? Whatever follows it. */
static bool
may_lead_to(const struct rule *a, const struct rule *b)
{
    bool is_program = false;

    for (size_t i = 0; i < b->programs.n; i++) {
        is_program = is_program || str_eq(path_base(b->programs.v[i]), path_base(a->steer.v[0]));
    }
    for (size_t i = 0; is_program && i < b->args_n; i++) {
        bool is_there = false;

        if (i + 1 >= a->steer.n) {
            return false;
        }
        if (str_eq(a->steer.v[i + 1], RULE_REST)) {
            return true;
        }
        for (size_t k = 0; k < b->args[i].n; k++) {
            is_there = is_there || str_eq(b->args[i].v[k], a->steer.v[i + 1]);
        }
        is_program = is_there;
    }
    return is_program;
}

/* Of each rule: how many of those that are left lead to it. */
static void
count_before(size_t *before, const struct rules *r)
{
    for (size_t a = 0; a < r->n; a++) {
        for (size_t b = 0; r->rules[a].steer.n > 0 && b < r->n; b++) {
            before[b] += r->rules[b].steer.n > 0 && may_lead_to(&r->rules[a], &r->rules[b]) ? 1 : 0;
        }
    }
}

/* Takes away what nothing leads to, and then what only that led to: rules in
 * no circle. `todo` has room for all. */
static void
take_ends_away(size_t *before, size_t *todo, const struct rules *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (before[i] == 0) {
            todo[n++] = i;
        }
    }
    while (n > 0) {
        const struct rule *a = &r->rules[todo[--n]];

        for (size_t b = 0; a->steer.n > 0 && b < r->n; b++) {
            if (r->rules[b].steer.n > 0 && may_lead_to(a, &r->rules[b]) && --before[b] == 0) {
                todo[n++] = b;
            }
        }
    }
}

/* Among those that are left, one that leads to `to`. */
static size_t
one_before(const size_t *before, const struct rules *r, size_t to)
{
    size_t a = 0;

    while (before[a] == 0 || r->rules[a].steer.n == 0 ||
           !may_lead_to(&r->rules[a], &r->rules[to])) {
        a++;
    }
    return a;
}

static enum sy_code
circle_error(const struct rules *r, const size_t *before, size_t at, struct sy_error *err)
{
    struct rule_title title;

    /* Going back often enough, one is in the circle and not behind it. */
    for (size_t i = 0; i < r->n; i++) {
        at = one_before(before, r, at);
    }
    return place_error(err, &r->rules[at].at,
                       "the better commands lead in a circle: that of the rule at line %zu may be "
                       "'%s' again",
                       r->rules[one_before(before, r, at)].at.line,
                       rule_title(&title, &r->rules[at]));
}

static bool
has_steers(const struct rules *r)
{
    size_t i = 0;

    while (i < r->n && r->rules[i].steer.n == 0) {
        i++;
    }
    return i < r->n;
}

enum sy_code
rules_check_steers(const struct rules *r, struct sy_error *err)
{
    if (!has_steers(r)) {
        return SY_E_OK;
    }

    size_t *before = mem_alloc_zero(2 * r->n, sizeof(*before));
    enum sy_code rc = SY_E_OK;

    if (before == NULL) {
        return sy_err_nomem(err);
    }
    count_before(before, r);
    take_ends_away(before, before + r->n, r);
    for (size_t i = 0; rc == SY_E_OK && i < r->n; i++) {
        if (before[i] > 0) {
            rc = circle_error(r, before, i, err);
        }
    }
    mem_free(before);
    return rc;
}
