#include "command/danger.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/danger_internal.h"

static const char *const level_names[] = {
    [DANGER_NONE] = "none",
    [DANGER_NOTED] = "noted",
    [DANGER_UNKNOWN] = "unknown",
    [DANGER_DANGEROUS] = "dangerous",
    [DANGER_CATASTROPHIC] = "catastrophic",
};

const char *
danger_level_name(enum danger_level level)
{
    return level_names[level];
}

void
danger_found(struct danger *d, enum danger_level level, const char *rule, struct words w,
             const char *argument, const char *why)
{
    struct verdict v;

    verdict_set(&v, rule, w, argument, why);
    if (d->fn != NULL) {
        d->fn(d->arg, level, &v);
    }
    if (level > d->out->level) {
        d->out->level = level;
        d->out->verdict = v;
    }
}

/* Assigned at most so many times, and by no command that we do not follow: looking a variable
 * up takes time for each of them. */
#define VARIABLES_MAX 256U

static bool
has_known_variables(const struct script *s)
{
    for (size_t i = 0; i < s->n_commands; i++) {
        if (judge_in_list("read unset eval source . export declare local readonly typeset mapfile "
                          "readarray getopts printf let",
                          s->commands[i].words[0].text)) {
            return false;
        }
    }
    return s->n_assigned <= VARIABLES_MAX;
}

/* Scripts hold scripts, and programs start programs, to LIMIT_SCRIPT_LAYERS: hence the
 * recursion. NOLINTBEGIN(misc-no-recursion) */

/* The redirections of a script. */
static void
judge_redirects(struct danger *d, const struct script *script)
{
    for (size_t i = 0; i < script->n_redirects && d->rc == SY_E_OK; i++) {
        const struct script_redirect *r = &script->redirects[i];

        if (r->writes) {
            danger_overwrite(d, (struct words){&r->target, 1}, &r->target, r->truncates);
        }
    }
}

void
danger_script(struct danger *d, struct words w, const char *text, size_t len)
{
    const struct danger_in outer = d->in;
    struct script script = {0};
    struct sy_error err = {.code = SY_E_OK};
    enum sy_code rc = SY_E_OK;

    if (d->layers >= LIMIT_SCRIPT_LAYERS) {
        danger_found(d, DANGER_UNKNOWN, "script.layers", w, NULL,
                     "scripts inside scripts, too deep to look into");
        return;
    }
    rc = script_read(d->world->reader, &script, SCRIPT_BASH, text, len, &err);
    if (rc == SY_E_NOMEM) {
        d->rc = rc;
    } else if (rc != SY_E_OK) {
        danger_found(d, DANGER_UNKNOWN, "script.refused", w, NULL, err.msg);
    } else if (script.form == SCRIPT_UNREADABLE) {
        danger_found(d, DANGER_UNKNOWN, "script.unreadable", w, NULL, script.reason);
    }
    d->in =
        (struct danger_in){.script = &script, .has_known_variables = has_known_variables(&script)};
    d->layers++;
    for (size_t i = 0; i < script.n_commands && d->rc == SY_E_OK; i++) {
        const struct script_command *c = &script.commands[i];

        places_next(&d->places, c->flags);
        d->reads_pipe = (c->flags & COMMAND_READS_PIPE) != 0;
        d->before = d->reads_pipe && i > 0 ? &script.commands[i - 1] : NULL;
        d->in.at = i;
        danger_words(d, (struct words){c->words, c->n});
    }
    places_next(&d->places, 0);
    judge_redirects(d, &script);
    d->layers--;
    danger_download_free(d->in.downloads);
    d->in = outer;
    d->reads_pipe = false;
    d->before = NULL;
    script_fini(&script);
}

/* A shell whose script comes from its input: what is known of that. */
static void
judge_input(struct danger *d, struct words w)
{
    const struct script *s = d->in.script;
    const struct script_command *before = d->before;
    bool has_pipe = d->reads_pipe;

    for (size_t i = 0; s != NULL && i < s->n_inputs && d->rc == SY_E_OK; i++) {
        danger_script(d, w, s->inputs[i].text, s->inputs[i].len);
    }
    if (has_pipe && before != NULL && judge_in_list("echo printf", before->words[0].text)) {
        danger_joined(d, w, words_from((struct words){before->words, before->n}, 1));
    }
}

/* sh, bash and the like: -c SCRIPT, a file, or its input. */
static void
judge_shell(struct danger *d, struct words w)
{
    bool has_c = false;
    bool reads_input = false;
    size_t i = 1;

    for (; i < w.n; i++) {
        const char *word = w.v[i].text;

        if ((word[0] != '-' && word[0] != '+') || word[1] == '\0') {
            break;
        }
        if (str_starts(word, "--")) {
            i += judge_in_list("--rcfile --init-file", word) ? 1 : 0;
            continue;
        }
        has_c = has_c || (word[0] == '-' && strchr(word, 'c') != NULL);
        reads_input = reads_input || strchr(word, 's') != NULL;
        i += strchr("oO", word[strlen(word) - 1]) != NULL ? 1 : 0;
    }
    if (has_c && i < w.n) {
        danger_script(d, w, w.v[i].text, w.v[i].len);
    } else if (!has_c && (i >= w.n || reads_input || str_eq(w.v[i].text, "-"))) {
        judge_input(d, w);
    }
}

/* `-c SCRIPT` of su, script, flock; `-S WORDS` of env. */
static bool
judge_option_script(struct danger *d, struct words w, char letter)
{
    for (size_t i = 1; i < w.n; i++) {
        const char *word = w.v[i].text;

        if (word[0] != '-' || word[1] == '-' || word[1] == '\0') {
            continue;
        }

        const char *at = strchr(word, letter);

        if (at != NULL && at[1] != '\0') {
            danger_script(d, w, at + 1, strlen(at + 1));
            return true;
        }
        if (at != NULL && i + 1 < w.n) {
            danger_script(d, w, w.v[i + 1].text, w.v[i + 1].len);
            return true;
        }
    }
    return false;
}

/* Commands whose words are scripts. True: that is all they do. */
static bool
judge_script_words(struct danger *d, const char *name, struct words w)
{
    if (judge_is_shell(name)) {
        judge_shell(d, w);
        return true;
    }
    if (str_eq(name, "eval")) {
        danger_joined(d, w, words_from(w, 1));
        return true;
    }
    if (str_eq(name, "trap")) {
        size_t i = w.n > 1 && str_eq(w.v[1].text, "--") ? 2 : 1;

        if (i + 1 < w.n && !str_eq(w.v[i].text, "-")) {
            danger_script(d, w, w.v[i].text, w.v[i].len);
        }
        return true;
    }
    if (str_eq(name, "watch")) {
        size_t i = 1;

        while (i < w.n && w.v[i].text[0] == '-') {
            i += judge_in_list("-n --interval", w.v[i].text) ? 2 : 1;
        }
        danger_joined(d, w, words_from(w, i));
        return true;
    }
    if (judge_in_list("su runuser script flock", name)) {
        bool has_script = judge_option_script(d, w, 'c');

        return has_script && judge_in_list("su script", name);
    }
    if (str_eq(name, "env")) {
        (void)judge_option_script(d, w, 'S');
    }
    return false;
}

static void
judge_wrapped(struct danger *d, const char *name, struct words w, struct words inner)
{
    char inner_name[PROGRAM_NAME_MAX];

    judge_program_name(inner_name, danger_unwrap(d, inner).v[0].text, d->world->is_windows);
    if (judge_in_list("xargs parallel", name) && judge_in_list("rm shred unlink", inner_name)) {
        danger_found(d, DANGER_DANGEROUS, "xargs.rm", w, inner_name,
                     "it removes whatever its input names");
    }
    d->layers++;
    danger_words(d, inner);
    d->layers--;
}

static void
judge_command(struct danger *d, struct words w)
{
    char name[PROGRAM_NAME_MAX];
    size_t inner = 0;

    judge_program_name(name, w.v[0].text, d->world->is_windows);
    danger_download(d, name, w);
    if (judge_script_words(d, name, w)) {
        return;
    }
    if (judge_in_list("cd pushd", name)) {
        enum sy_code rc = places_cd(&d->places, d->world->home, w);

        d->rc = rc;
        return;
    }
    inner = danger_wrapper(name, w);
    if (inner > 0) {
        judge_wrapped(d, name, w, words_from(w, inner));
    } else {
        danger_program(d, name, w);
    }
}

void
danger_words(struct danger *d, struct words w)
{
    if (w.n == 0 || (w.v[0].flags & WORD_DYNAMIC_START) != 0 || d->rc != SY_E_OK) {
        return;
    }
    if (d->layers > LIMIT_SCRIPT_LAYERS) {
        danger_found(d, DANGER_UNKNOWN, "script.layers", w, NULL,
                     "programs that start programs, too deep to look into");
        return;
    }
    if (d->seen != NULL && d->depth > 0) {
        d->seen(d->arg, d->depth, w.v, w.n);
    }
    d->depth++;
    judge_command(d, w);
    d->depth--;
}

/* NOLINTEND(misc-no-recursion) */

static enum sy_code
walk(struct danger *d, char *const *argv, struct sy_error *err)
{
    struct words w = {0};
    struct script_word *words = words_of_argv(argv, &w.n);

    w.v = words;
    d->rc = words != NULL ? places_init(&d->places, d->world->cwd) : SY_E_NOMEM;
    if (d->rc == SY_E_OK) {
        danger_words(d, w);
    }
    places_fini(&d->places);
    mem_free(words);
    if (d->rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    return SY_E_OK;
}

enum sy_code
danger_judge(struct danger_verdict *ret, const struct judge_world *world, char *const *argv,
             danger_fn *fn, void *arg, struct sy_error *err)
{
    struct danger d = {.out = ret, .world = world, .fn = fn, .arg = arg};

    *ret = (struct danger_verdict){.level = DANGER_NONE, .verdict = {.rule = "none"}};
    return walk(&d, argv, err);
}

enum sy_code
danger_walk(const struct judge_world *world, char *const *argv, danger_seen_fn *seen, void *arg,
            struct sy_error *err)
{
    struct danger_verdict nobody = {.level = DANGER_NONE};
    struct danger d = {.out = &nobody, .world = world, .seen = seen, .arg = arg};

    return walk(&d, argv, err);
}
