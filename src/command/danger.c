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

/* Scripts hold scripts, and programs start programs, to LIMIT_SCRIPT_LAYERS: hence the
 * recursion. NOLINTBEGIN(misc-no-recursion) */

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

static bool
is_input(const char *file)
{
    return judge_in_list("/dev/stdin /dev/fd/0 /proc/self/fd/0", file);
}

/* How many of the next words belong to bundled letters of a shell; `-oNAME` has its own. */
static size_t
option_words(const char *word)
{
    const char *name = strpbrk(word, "oO");
    size_t ret = 0;

    if (name == NULL || strlen(name + 1) > 2) {
        return 0;
    }
    for (; *name != '\0'; name++) {
        ret += *name == 'o' || *name == 'O' ? 1 : 0;
    }
    return ret;
}

/* sh, bash and the like: -c SCRIPT, a file, or its input. */
static void
judge_bourne(struct danger *d, struct words w)
{
    bool has_c = false;
    bool reads_input = false;
    size_t i = 1;

    for (; i < w.n; i++) {
        const char *word = w.v[i].text;

        if (judge_in_list("- --", word)) {
            i++;
            break;
        }
        if (word[0] != '-' && word[0] != '+') {
            break;
        }
        if (str_starts(word, "--")) {
            i += judge_in_list("--rcfile --init-file --emulate", word) ? 1 : 0;
            continue;
        }
        has_c = has_c || (word[0] == '-' && strchr(word, 'c') != NULL);
        reads_input = reads_input || strchr(word, 's') != NULL;
        i += option_words(word);
    }
    if (has_c && i < w.n) {
        danger_script(d, w, w.v[i].text, w.v[i].len);
    } else if (!has_c && (i >= w.n || reads_input || is_input(w.v[i].text))) {
        judge_input(d, w);
    }
}

/* Is the long option, perhaps cut and with its value, of this name? *ret_value: NULL, or that. */
static bool
is_long(const char *word, const char *name, const char **ret_value)
{
    const char *value = strchr(word, '=');
    const size_t n = value != NULL ? (size_t)(value - word) : strlen(word);

    *ret_value = value != NULL ? value + 1 : NULL;
    return str_starts(word, "--") && n > 3 && n - 2 <= strlen(name) &&
           strncmp(word + 2, name, n - 2) == 0;
}

/* An option of fish: the script that it runs, in this word or the next, or NULL. */
static const char *
fish_script(const char *word, const char *next, size_t *ret_words)
{
    const char *value = NULL;

    *ret_words = 1;
    if (str_starts(word, "--")) {
        const bool has_script =
            is_long(word, "command", &value) || is_long(word, "init-command", &value);

        if (value == NULL && (has_script || is_long(word, "features", &value) ||
                              is_long(word, "debug-output", &value))) {
            *ret_words = 2;
            value = next;
        }
        return has_script ? value : NULL;
    }
    value = strpbrk(word + 1, "cCdfopD");
    if (value == NULL) {
        return NULL;
    }
    *ret_words = value[1] == '\0' ? 2 : 1;
    return *value != 'c' && *value != 'C' ? NULL : value[1] != '\0' ? value + 1 : next;
}

/* -c SCRIPT and -C SCRIPT as often as they stand there; a file, or its input. */
static void
judge_fish(struct danger *d, struct words w)
{
    bool has_script = false;
    size_t i = 1;

    while (i < w.n && w.v[i].text[0] == '-' && w.v[i].text[1] != '\0' &&
           !str_eq(w.v[i].text, "--")) {
        size_t n = 1;
        const char *script = fish_script(w.v[i].text, i + 1 < w.n ? w.v[i + 1].text : NULL, &n);

        if (script != NULL) {
            danger_script(d, w, script, strlen(script));
            has_script = true;
        }
        i += n;
    }
    if (!has_script && (i >= w.n || judge_in_list("- --", w.v[i].text))) {
        judge_input(d, w);
    }
}

static void
judge_shell(struct danger *d, const char *name, struct words w)
{
    const unsigned typed = d->layers == 0 ? d->world->typed : 0;

    d->dialects = typed != 0 ? typed : dialect_of(name);
    if (typed != 0 && w.n == 3) {
        danger_script(d, w, w.v[2].text, w.v[2].len); /* it may begin with a - */
    } else if (str_eq(name, "fish")) {
        judge_fish(d, w);
    } else {
        judge_bourne(d, w);
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

/* A shell works out what stands between the brackets of `NAME[...]` where it takes a variable's
 * name, quoted or not. */
static void
judge_index(struct danger *d, struct words w)
{
    for (size_t i = 1; i < w.n; i++) {
        const char *word = w.v[i].text;
        const size_t n =
            strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

        if (n > 0 && word[n] == '[' && strpbrk(word, "$`") != NULL &&
            (w.v[i].flags & WORD_DYNAMIC) == 0) {
            danger_script(d, w, word, w.v[i].len);
        }
    }
}

/* What a shell has in itself that takes a script. */
static bool
judge_builtin(struct danger *d, const char *name, struct words w)
{
    if (judge_in_list("compgen complete mapfile readarray", name)) {
        (void)judge_option_script(d, w, 'C');
    }
    if (str_eq(name, "emulate")) {
        (void)judge_option_script(d, w, 'c');
    }
    if (judge_in_list(". source", name) && w.n > 1 && is_input(w.v[1].text)) {
        judge_input(d, w);
    }
    if (judge_in_list("test [ printf read unset let declare typeset local mapfile readarray wait",
                      name)) {
        judge_index(d, w);
    }
    return judge_in_list("compgen complete emulate", name);
}

/* Commands whose words are scripts. True: that is all they do. */
static bool
judge_script_words(struct danger *d, const char *name, struct words w)
{
    if (judge_is_shell(name)) {
        judge_shell(d, name, w);
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
    if (judge_builtin(d, name, w)) {
        return true;
    }
    d->dialects = DIALECT_ALL; /* which shell they take is not known */
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
    const unsigned outer = d->dialects;

    if (d->seen != NULL && d->depth > 0) {
        d->seen(d->arg, d->depth, w.v, w.n);
    }
    d->depth++;
    judge_command(d, w);
    d->depth--;
    d->dialects = outer;
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
