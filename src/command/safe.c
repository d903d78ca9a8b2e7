#include "command/safe.h"

#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/dialect.h"
#include "command/safe_internal.h"

/* One judgement on its way. */
struct safe {
    struct safe_verdict *out;
    const struct judge_world *world;
    struct places places;
    safe_fn *fn;
    void *arg;
    unsigned layers;
    bool in_shell; /* its builtins are meant */
    bool in_powershell;
    uint64_t trusted;  /* rows of the table whose program, by its bare name, was found trusted */
    size_t tame_until; /* places before this one were found tame */
};

/* Scripts hold scripts, to LIMIT_SCRIPT_LAYERS: hence the recursion. */
static enum sy_code judge_words(struct safe *s, struct words w);

static void
tell(struct safe *s, bool is_safe, struct words w, struct objection o)
{
    struct verdict v;

    verdict_set(&v, o.rule, w, o.argument, o.why);
    if (s->fn != NULL) {
        s->fn(s->arg, is_safe, &v);
    }
    if (s->out->is_safe) {
        s->out->verdict = v;
        s->out->is_safe = is_safe;
    }
}

static void
refuse(struct safe *s, struct words w, const char *rule, const char *argument, const char *why)
{
    tell(s, false, w, (struct objection){rule, argument, why});
}

static enum sy_code
judge_script(struct safe *s, // NOLINT(misc-no-recursion)
             struct words w, enum script_language language, const char *text)
{
    struct script script = {0};
    struct sy_error err = {.code = SY_E_OK};
    bool was_shell = s->in_shell;
    bool was_powershell = s->in_powershell;
    enum sy_code rc =
        s->layers < LIMIT_SCRIPT_LAYERS
            ? script_read(s->world->reader, &script, language, text, strlen(text), &err)
            : SY_E_OK;

    if (s->layers >= LIMIT_SCRIPT_LAYERS) {
        refuse(s, w, "script.layers", NULL, "scripts inside scripts, too deep to look into");
    } else if (rc == SY_E_LIMIT || rc == SY_E_PARSE) {
        refuse(s, w, "script.refused", NULL, err.msg);
        rc = SY_E_OK;
    } else if (rc == SY_E_OK && script.form != SCRIPT_PLAIN) {
        refuse(s, w, "script.not-plain", NULL, script.reason);
    } else if (rc == SY_E_OK) {
        s->layers++;
        s->in_shell = language == SCRIPT_BASH;
        s->in_powershell = language == SCRIPT_POWERSHELL;
        for (size_t i = 0; i < script.n_commands && rc == SY_E_OK; i++) {
            if (!s->out->is_safe && s->fn == NULL) {
                break; /* no more is asked */
            }
            places_next(&s->places, script.commands[i].flags);
            rc = judge_words(s, (struct words){script.commands[i].words, script.commands[i].n});
        }
        s->in_powershell = was_powershell;
        s->in_shell = was_shell;
        s->layers--;
    }
    script_fini(&script);
    return rc;
}

/* *ret: the program is one that nobody but the administrator could have put there. */
static enum sy_code
check_program(struct safe *s, struct words w, bool *ret)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    enum sy_code rc = SY_E_NOTFOUND;

    *ret = false;
    if (s->world->find_program != NULL) {
        rc = s->world->find_program(s->world->arg, &path, ret, w.v[0].text, s->world);
    }
    if (rc == SY_E_NOMEM) {
        return rc;
    }
    if (rc == SY_E_OK && strchr(w.v[0].text, '/') != NULL && w.v[0].text[0] != '/' &&
        !s->world->is_windows) {
        *ret = false; /* a path that is one thing here and another after cd */
    }
    if (rc != SY_E_OK) {
        *ret = false;
        refuse(s, w, "program.missing", w.v[0].text, "no such program was found");
    } else if (!*ret) {
        refuse(s, w, "program.untrusted", buf_view(&path),
               "the file that would run is not in a directory that only root can change");
    }
    return SY_E_OK;
}

static bool
is_builtin(const struct safe *s, const char *name)
{
    return s->in_shell && judge_in_list("cd echo pwd true false", name);
}

/* git, and nothing in its repository that it would start. */
static void
judge_git(struct safe *s, struct words w)
{
    if (s->world->git_is_tame == NULL || s->places.is_unknown) {
        refuse(s, w, "git.repository", NULL,
               s->places.is_unknown ? "it is not known in which directory it runs"
                                    : "its repository's settings were not looked at");
        return;
    }
    for (size_t i = s->tame_until; i < s->places.dirs.n; i++) {
        if (!s->world->git_is_tame(s->world->arg, s->places.dirs.v[i])) {
            refuse(s, w, "git.repository", s->places.dirs.v[i],
                   "the settings of the repository there may make git start programs");
            return;
        }
        s->tame_until = i + 1;
    }
    s->out->env = safe_git_env();
    tell(s, true, w, (struct objection){"git.looks", NULL, "it only looks, given its environment"});
}

static enum sy_code
judge_listed(struct safe *s, struct words w, const char *name, const struct safe_program *row)
{
    const uint64_t bit = UINT64_C(1) << safe_program_index(row);
    bool is_bare = str_eq(w.v[0].text, name);
    bool is_trusted = is_bare && (is_builtin(s, name) || (s->trusted & bit) != 0);
    enum sy_code rc = is_trusted ? SY_E_OK : check_program(s, w, &is_trusted);
    struct objection o = {0};

    if (rc != SY_E_OK || !is_trusted) {
        return rc;
    }
    s->trusted |= is_bare ? bit : 0;
    if (row->words != NULL) {
        o = row->words(words_from(w, 1));
    }
    if (o.rule != NULL) {
        tell(s, false, w, o);
    } else if (str_eq(name, "git")) {
        judge_git(s, w);
    } else {
        if (str_eq(name, "cd")) {
            rc = places_cd(&s->places, s->world->home, w);
        }
        tell(s, true, w, (struct objection){"safe.listed", NULL, "it only looks"});
    }
    return rc;
}

static enum sy_code
judge_powershell(struct safe *s, struct words w) // NOLINT(misc-no-recursion)
{
    SY_AUTO(buf_fini) struct buf script = {.max = LIMIT_SCRIPT};
    bool is_trusted = false;
    enum sy_code rc = check_program(s, w, &is_trusted);
    char name[PROGRAM_NAME_MAX];

    if (rc != SY_E_OK || !is_trusted) {
        return rc;
    }
    rc = safe_powershell_script(words_from(w, 1), &script);
    if (rc == SY_E_ARG) {
        refuse(s, w, "powershell.option", NULL, "its words are not one plain -Command");
        return SY_E_OK;
    }
    judge_program_name(name, w.v[0].text, s->world->is_windows);
    if (rc == SY_E_OK && str_eq(name, "powershell") && strstr(buf_view(&script), "&&") != NULL) {
        refuse(s, w, "powershell.syntax", "&&", "Windows PowerShell has no &&");
        return SY_E_OK;
    }
    return rc != SY_E_OK ? rc : judge_script(s, w, SCRIPT_POWERSHELL, buf_view(&script));
}

/* A command of a PowerShell script; *ret_done: nothing is left to judge of it. */
static void
judge_cmdlet(struct safe *s, struct words w, bool *ret_done)
{
    *ret_done = true;
    for (size_t i = 0; i < w.n; i++) {
        if (safe_powershell_is_bad_word(w.v[i].text)) {
            refuse(s, w, "powershell.writes", w.v[i].text, "it changes something");
            return;
        }
    }
    if (safe_powershell_command(w.v[0].text, s->world->is_windows)) {
        tell(s, true, w, (struct objection){"powershell.listed", NULL, "it only looks"});
        return;
    }
    *ret_done = false;
}

/* The script of a shell, if that may have no other reading of it than ours. */
static enum sy_code
judge_shell_script(struct safe *s, struct words w, const char *name) // NOLINT(misc-no-recursion)
{
    bool differs = true;
    enum sy_code rc = dialect_differs(&differs, w.v[2].text, w.v[2].len, dialect_of(name));

    if (rc == SY_E_OK && !differs) {
        return judge_script(s, w, SCRIPT_BASH, w.v[2].text);
    }
    refuse(s, w, "script.not-plain", NULL, "its shell may read it in another way than bash");
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

static bool
is_shell_script(struct words w)
{
    bool is_literal = w.n == 3 && (w.v[1].flags & ~(unsigned)WORD_QUOTED) == 0 &&
                      (w.v[2].flags & ~(unsigned)WORD_QUOTED) == 0;

    return is_literal && judge_in_list("-c -lc", w.v[1].text);
}

static enum sy_code
judge_words(struct safe *s, struct words w) // NOLINT(misc-no-recursion)
{
    char name[PROGRAM_NAME_MAX];
    bool is_done = false;

    judge_program_name(name, w.v[0].text, s->world->is_windows);
    if (s->in_powershell) {
        judge_cmdlet(s, w, &is_done);
        if (is_done) {
            return SY_E_OK;
        }
    }

    const struct safe_program *row = safe_program_find(name);
    bool is_elsewhere = row != NULL && row->linux_only && s->world->is_windows;

    if (row != NULL && !is_elsewhere &&
        (!s->in_powershell || judge_in_list("git rg", name) || !s->world->is_windows)) {
        return judge_listed(s, w, name, row);
    }
    if (judge_in_list("bash zsh sh", name) && is_shell_script(w)) {
        bool is_trusted = false;
        enum sy_code rc = check_program(s, w, &is_trusted);

        return rc != SY_E_OK || !is_trusted ? rc : judge_shell_script(s, w, name);
    }
    if (judge_in_list("pwsh powershell", name)) {
        return judge_powershell(s, w);
    }
    refuse(s, w, "program.unknown", w.v[0].text, "it is not among the programs that only look");
    return SY_E_OK;
}

/* Variables that change what programs print, and nothing else. */
static bool
is_harmless_variable(const char *text)
{
    char name[PROGRAM_NAME_MAX];
    size_t len = strcspn(text, "=");

    if (len >= sizeof(name)) {
        return false;
    }
    memcpy(name, text, len);
    name[len] = '\0';
    return judge_in_list("LANG LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME TERM "
                         "COLUMNS LINES NO_COLOR CI",
                         name);
}

enum sy_code
safe_judge(struct safe_verdict *ret, const struct judge_world *world, char *const *argv,
           safe_fn *fn, void *arg, struct sy_error *err)
{
    struct safe s = {.out = ret, .world = world, .fn = fn, .arg = arg};
    struct words w = {0};
    struct script_word *words = words_of_argv(argv, &w.n);
    enum sy_code rc = words != NULL ? places_init(&s.places, world->cwd) : SY_E_NOMEM;

    *ret = (struct safe_verdict){.is_safe = true, .verdict = {.rule = "none"}};
    w.v = words;
    if (rc == SY_E_OK && w.n == 0) {
        refuse(&s, w, "program.unknown", NULL, "there is no command");
    }
    for (char *const *e = world->env; rc == SY_E_OK && e != NULL && *e != NULL; e++) {
        if (!is_harmless_variable(*e)) {
            refuse(&s, w, "environment.set", *e, "a variable may change what a program does");
        }
    }
    if (rc == SY_E_OK && w.n > 0) {
        rc = judge_words(&s, w);
    }
    places_fini(&s.places);
    mem_free(words);
    if (rc != SY_E_OK || !ret->is_safe) {
        ret->is_safe = false;
        ret->env = NULL;
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}
