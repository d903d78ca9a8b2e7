#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "approval/rules.h"
#include "base/str.h"
#include "base/utf8.h"

/* Where the system keeps its programs: root alone can write there. */
static const char *const system_dirs[] = {
    "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin",
};

static bool
is_name_start(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool
is_assignment(const char *word)
{
    if (!is_name_start(*word)) {
        return false;
    }
    while (is_name_start(*word) || (*word >= '0' && *word <= '9')) {
        word++;
    }
    if (*word == '[') { /* an element of an array */
        word += strcspn(word, "]");
        word += *word == ']' ? 1 : 0;
    }
    return *word == '=' || (word[0] == '+' && word[1] == '=');
}

size_t
rule_assignments(const struct strv *argv)
{
    size_t n = 0;

    while (n < argv->n && is_assignment(argv->v[n])) {
        n++;
    }
    return n;
}

bool
rule_has_expired(const struct rule *r, int64_t now)
{
    return r->expires != 0 && now >= r->expires;
}

/* Is the absolute path one that stands for that name? Of several lists the
 * narrowest counts; without a list, system directories do. */
static bool
is_known_path(const struct rules *all, const char *name, const char *path)
{
    size_t dir_len = (size_t)(path_base(path) - path);
    bool is_listed = false;

    for (size_t i = 0; i < all->programs_n; i++) {
        const struct rule_program *p = &all->programs[i];

        if (str_eq(p->name, name)) {
            if (!strv_has(&p->paths, path)) {
                return false;
            }
            is_listed = true;
        }
    }
    for (size_t i = 0; !is_listed && i < sizeof(system_dirs) / sizeof(system_dirs[0]); i++) {
        is_listed = strlen(system_dirs[i]) == dir_len - 1 &&
                    strncmp(system_dirs[i], path, dir_len - 1) == 0;
    }
    return is_listed;
}

/* For rules that allow: what can't be another program than the one meant. */
static bool
allows_program(const struct rules *all, const struct rule *r, const char *word)
{
    if (strv_has(&r->programs, word)) {
        return true;
    }
    return word[0] == '/' && strv_has(&r->programs, path_base(word)) &&
           is_known_path(all, path_base(word), word);
}

/* For rules that ask and forbid: what may be the program that is meant. */
static bool
may_be_program(const struct rule *r, const char *word)
{
    const char *base = path_base(word);

    for (size_t i = 0; i < r->programs.n; i++) {
        const char *program = r->programs.v[i];
        bool is_exact = program[0] == '/' && word[0] == '/';

        if (is_exact ? str_eq(program, word) : str_eq(path_base(program), base)) {
            return true;
        }
    }
    return false;
}

/* "NAME" takes any value, "NAME=value" that one. */
static bool
env_has(const struct rule *r, const char *assignment)
{
    size_t len = strcspn(assignment, "=");

    for (size_t i = 0; i < r->env.n; i++) {
        const char *entry = r->env.v[i];

        if (str_eq(entry, assignment) || str_is(entry, assignment, len)) {
            return true;
        }
    }
    return false;
}

static bool
fits_env(const struct rule *r, const struct strv *argv, size_t assignments)
{
    bool is_any = false;

    for (size_t i = 0; i < assignments; i++) {
        bool is_named = env_has(r, argv->v[i]);

        if (!is_named && r->decision == RULE_ALLOW) {
            return false;
        }
        is_any = is_any || is_named;
    }
    return r->decision == RULE_ALLOW || r->env.n == 0 || is_any;
}

static bool
fits_cwd(const struct rule *r, const char *program, const char *cwd)
{
    /* Below that directory, "./x" is another file. */
    bool is_there_alone =
        r->decision == RULE_ALLOW && strchr(program, '/') != NULL && program[0] != '/';

    if (r->cwds.n == 0) {
        return true;
    }
    if (cwd == NULL) {
        return r->decision != RULE_ALLOW;
    }
    for (size_t i = 0; i < r->cwds.n; i++) {
        if (is_there_alone ? str_eq(cwd, r->cwds.v[i]) : path_is_below(cwd, r->cwds.v[i])) {
            return true;
        }
    }
    return false;
}

bool
rules_fits(const struct rules *all, const struct rule *r, const struct strv *argv,
           const struct rule_script *s)
{
    size_t first = s->has_assignments ? rule_assignments(argv) : 0;

    if (argv->n < first + 1 + r->args_n) {
        return false;
    }

    const char *program = argv->v[first];

    if (r->decision == RULE_ALLOW ? !allows_program(all, r, program)
                                  : !may_be_program(r, program)) {
        return false;
    }
    for (size_t i = 0; i < r->args_n; i++) {
        if (!strv_has(&r->args[i], argv->v[first + 1 + i])) {
            return false;
        }
    }
    return fits_env(r, argv, first) && fits_cwd(r, program, s->cwd);
}

/* What the rules say about one command. */
struct found {
    const struct rule *by;
    enum rule_decision decision;
    bool lifts_sandbox;
};

/* Of two that decide alike, the one that only tells of a better command is stricter
 * than the one that runs it, and the one that knows none is the strictest. */
static unsigned
strictness(const struct rule *by)
{
    if (by == NULL) {
        return 0;
    }
    return 4 * (unsigned)by->decision + (by->steer.n == 0 ? 2 : 0) + (by->steer_runs ? 0 : 1);
}

static struct found
find(const struct rules *all, const struct strv *argv, const struct rule_script *s)
{
    struct found f = {0};

    for (size_t i = 0; i < all->n; i++) {
        const struct rule *r = &all->rules[i];

        if (rule_has_expired(r, s->now) || !rules_fits(all, r, argv, s)) {
            continue;
        }
        if (strictness(r) > strictness(f.by)) {
            f.by = r;
            f.decision = r->decision;
        }
        f.lifts_sandbox = f.lifts_sandbox || r->lifts_sandbox;
    }
    return f;
}

static bool
changes_directory(const struct strv *argv, bool has_assignments)
{
    static const char *const words[] = {"cd", "pushd", "popd", "chdir"};
    size_t first = has_assignments ? rule_assignments(argv) : 0;

    /* `builtin cd` and `command cd` do it too; what is not known may. */
    for (; first < argv->n; first++) {
        const char *word = argv->v[first];

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (str_eq(word, words[i])) {
                return true;
            }
        }
        if (!str_eq(word, "builtin") && !str_eq(word, "command")) {
            return str_eq(word, "eval") || str_eq(word, "source") || str_eq(word, ".");
        }
    }
    return false;
}

static const char *
verb_of(enum rule_decision d)
{
    switch (d) {
    case RULE_ALLOW:
        return "is allowed";
    case RULE_ASK:
        return "needs a person's approval";
    case RULE_FORBID:
        return "is forbidden";
    case RULE_NONE:
        break;
    }
    return "is left open";
}

/* To at most `max` bytes, marked, on the border of a character. */
static void
cut(struct rule_title *t, size_t max)
{
    static const char dots[] = "...";
    size_t len = strlen(t->text);

    if (len > max) {
        memcpy(t->text + utf8_cut(t->text, len, max - (sizeof(dots) - 1)), dots, sizeof(dots));
    }
}

/* "git push" as far as it fits. */
static void
show_command(struct rule_title *ret, const struct strv *argv)
{
    size_t used = 0;

    ret->text[0] = '\0';
    for (size_t i = 0; i < argv->n; i++) {
        struct place_shown shown;
        int n = snprintf(ret->text + used, sizeof(ret->text) - used, "%s%s", i > 0 ? " " : "",
                         place_visible(&shown, argv->v[i], strlen(argv->v[i])));

        used += (size_t)n;
        if (used >= 48) {
            break;
        }
    }
    cut(ret, 60);
}

static void
explain(struct rule_verdict *v, const struct strv *argv)
{
    const struct rule *by = v->by;
    struct rule_title command;
    struct rule_title title;
    struct rule_title better;
    struct place_shown_path file;
    struct sy_error sentence = {0};

    show_command(&command, argv);
    (void)rule_title(&title, by);
    cut(&title, 40);
    if (v->steers) {
        show_command(&better, &by->steer);
    }
    /* Cuts on the border of a character. */
    (void)sy_err_set(&sentence, SY_E_DENIED, "'%s' %s by the rule for '%s' (%s:%zu)%s%s%s%s",
                     command.text, verb_of(v->decision), title.text,
                     place_visible_path(&file, path_base(by->at.name)), by->at.line,
                     v->steers ? "; better: " : "", v->steers ? better.text : "",
                     by->reason != NULL ? ": " : "", by->reason != NULL ? by->reason : "");
    memcpy(v->reason, sentence.msg, sizeof(v->reason));
}

/* Takes over what is stricter than what was found before. */
static void
judge(struct rule_verdict *v, const struct found *f, size_t command)
{
    if (strictness(f->by) > strictness(v->by)) {
        v->decision = f->decision;
        v->by = f->by;
        v->command = command;
    }
}

/* The commands that run; true if a rule allows each of them. */
static bool
judge_commands(struct rule_verdict *v, const struct rules *r, const struct rule_script *s)
{
    struct rule_script at = *s;
    bool is_allowed = s->is_whole && s->n > 0;

    v->lifts_sandbox = is_allowed;
    for (size_t i = 0; i < s->n; i++) {
        struct found f = find(r, &s->commands[i], &at);
        bool is_trusted = s->is_trusted != NULL && s->is_trusted[i];

        is_allowed = is_allowed && f.decision == RULE_ALLOW;
        v->lifts_sandbox = v->lifts_sandbox && f.lifts_sandbox && is_trusted;
        judge(v, &f, i);
        if (changes_directory(&s->commands[i], s->has_assignments)) {
            at.cwd = NULL;
        }
    }
    return is_allowed;
}

void
rules_allowed(bool *ret, const struct rules *r, const struct rule_script *s)
{
    struct rule_script at = *s;

    for (size_t i = 0; i < s->n; i++) {
        ret[i] = s->is_whole && find(r, &s->commands[i], &at).decision == RULE_ALLOW;
        if (changes_directory(&s->commands[i], s->has_assignments)) {
            at.cwd = NULL;
        }
    }
}

void
rules_decide(struct rule_verdict *ret, const struct rules *r, const struct rule_script *s)
{
    *ret = (struct rule_verdict){0};

    bool is_allowed = judge_commands(ret, r, s);
    struct rule_script seen = *s;

    seen.cwd = NULL;
    for (size_t i = 0; i < s->hidden_n; i++) {
        struct found f = find(r, &s->hidden[i], &seen);

        if (f.decision > RULE_ALLOW) {
            judge(ret, &f, s->n + i);
        }
    }
    if (ret->decision == RULE_ALLOW && !is_allowed) {
        *ret = (struct rule_verdict){0};
    }
    ret->lifts_sandbox = ret->lifts_sandbox && ret->decision == RULE_ALLOW;
    if (ret->by == NULL) {
        return;
    }

    const struct strv *argv =
        ret->command < s->n ? &s->commands[ret->command] : &s->hidden[ret->command - s->n];

    ret->steers = ret->by->steer.n > 0;
    ret->steer_runs = ret->steers && ret->by->steer_runs && s->is_whole && s->n == 1 &&
                      ret->command == 0 && (!s->has_assignments || rule_assignments(argv) == 0);
    explain(ret, argv);
}

enum sy_code
rule_steer(struct strv *ret, const struct rule *r, const struct strv *argv, bool has_assignments)
{
    size_t rest = (has_assignments ? rule_assignments(argv) : 0) + 1 + r->args_n;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->steer.n; i++) {
        if (!str_eq(r->steer.v[i], RULE_REST)) {
            rc = strv_add(ret, r->steer.v[i]);
        } else if (rest < argv->n) {
            rc = strv_add_all(ret, argv->v + rest);
        }
    }
    return rc;
}

enum rule_decision
rules_decide_network(const struct rules *r, const char *host, enum rule_protocol protocol,
                     const struct rule_network **ret_by)
{
    const struct rule_network *by = NULL;

    for (size_t i = 0; i < r->network_n; i++) {
        const struct rule_network *n = &r->network[i];

        if (n->protocol == protocol && strcasecmp(n->host, host) == 0 &&
            (by == NULL || n->decision > by->decision)) {
            by = n;
        }
    }
    if (ret_by != NULL) {
        *ret_by = by;
    }
    return by != NULL ? by->decision : RULE_NONE;
}
