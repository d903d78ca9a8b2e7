#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/verbs.h"
#include "command/command.h"
#include "command/danger.h"
#include "command/safe.h"
#include "guard/git_tame.h"
#include "tools/tools.h"

/* What was found, as text or as elements of a JSON array. */
struct findings {
    struct buf text;
    struct buf json;
    enum sy_code rc; /* the first failure */
};

struct explain {
    struct cli_engine engine;
    struct script_reader *reader;
    struct judge_world world;
    struct strv roots;
    char *home; /* of passwd(5) */
    struct strv argv;
    struct script script; /* of argv, if it is a shell's */
    bool has_script;
    struct safe_verdict safe;
    struct findings safe_found;
    struct danger_verdict danger;
    struct findings danger_found;
};

static void
explain_fini(struct explain *e)
{
    judge_programs_free(e->world.programs);
    script_fini(&e->script);
    script_reader_free(e->reader);
    strv_fini(&e->roots);
    strv_fini(&e->argv);
    mem_free(e->home);
    buf_fini(&e->safe_found.text);
    buf_fini(&e->safe_found.json);
    buf_fini(&e->danger_found.text);
    buf_fini(&e->danger_found.json);
    cli_engine_fini(&e->engine);
}

static bool
git_is_tame(void *arg, const char *cwd)
{
    (void)arg;
    return git_tame_check(cwd);
}

static void
add_finding(struct findings *f, const char *key, const char *level, const struct verdict *v)
{
    struct jw w = {.out = &f->json};

    if (f->rc == SY_E_OK && f->json.len > 0) {
        f->rc = buf_add_char(&f->json, ',');
    }
    jw_object(&w);
    jw_key_str(&w, key, level);
    jw_key_str(&w, "rule", v->rule);
    jw_key_str(&w, "command", v->command);
    jw_key_str(&w, "argument", v->argument);
    jw_key_str(&w, "why", v->why);
    jw_end_object(&w);
    f->rc = f->rc == SY_E_OK ? jw_done(&w) : f->rc;
    if (f->rc == SY_E_OK) {
        f->rc = buf_addf(&f->text, "  %-12s %-22s %s\n%36s%s%s%s\n", level, v->rule, v->command, "",
                         v->argument, v->argument[0] != '\0' ? ": " : "", v->why);
    }
}

static void
on_safe(void *arg, bool is_safe, const struct verdict *v)
{
    add_finding(arg, "verdict", is_safe ? "safe" : "not safe", v);
}

static void
on_danger(void *arg, enum danger_level level, const struct verdict *v)
{
    add_finding(arg, "level", danger_level_name(level), v);
}

static enum sy_code
make_world(struct explain *e, struct sy_error *err)
{
    const char *home = getenv("HOME");
    SY_AUTO(mem_free_charp) char *shell = NULL;
    enum sy_code rc = SY_E_OK;

    e->roots.max = LIMIT_ROOTS + 1;
    if (home == NULL || home[0] != '/') {
        rc = passwd_lookup(getuid(), &shell, &e->home, err);
        home = e->home;
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (strv_add(&e->roots, e->engine.cwd) != SY_E_OK ||
        strv_add_all(&e->roots, strv_view(&e->engine.config.sandbox.writable_roots)) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    e->reader = script_reader_new();
    e->world = (struct judge_world){
        .reader = e->reader,
        .cwd = e->engine.cwd,
        .home = home,
        .path_list = getenv("PATH"),
        .roots = mem_unconst(strv_view(&e->roots)),
        .find_program = judge_find_program,
        .has_file = judge_has_file,
        .git_is_tame = git_is_tame,
        .programs = judge_programs_new(),
    };
    return e->reader != NULL && e->world.programs != NULL ? SY_E_OK : sy_err_nomem(err);
}

/* The words of the command line, or those of the user's shell for a script. */
static enum sy_code
make_argv(struct explain *e, const struct cli_args *args, struct sy_error *err)
{
    struct shell shell = {0};
    SY_AUTO(mem_free_charp) char *passwd_shell = NULL;
    SY_AUTO(mem_free_charp) char *passwd_home = NULL;
    enum sy_code rc = SY_E_OK;

    e->argv.max = LIMIT_ARGV;
    if (cli_get(args, "script") == NULL) {
        return strv_add_all(&e->argv, args->operands) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
    }
    if (args->n_operands > 1) {
        return sy_err_set(err, SY_E_ARG,
                          "explain: --script takes one word, the script; '%.80s' is another",
                          args->operands[1]);
    }
    rc = passwd_lookup(getuid(), &passwd_shell, &passwd_home, err);
    if (rc == SY_E_OK) {
        rc = shell_detect(&shell, e->engine.config.shell.path, passwd_shell, err);
    }
    if (rc == SY_E_CONFIG) {
        struct session_options options;

        session_options_from_config(&options, &e->engine.config, environ);
        sy_err_wrap(err, "%s", options.shell_from);
    }
    if (rc == SY_E_OK && shell_derive(&e->argv, &shell, args->operands[0], true) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    shell_fini(&shell);
    return rc;
}

/* Reads argv's script, if it is one of a Bourne shell. */
static enum sy_code
read_script(struct explain *e, struct sy_error *err)
{
    const char *text = shell_script_of(strv_view(&e->argv));

    e->has_script = text != NULL;
    if (text == NULL) {
        return SY_E_OK;
    }

    enum sy_code rc = script_read(e->reader, &e->script, SCRIPT_BASH, text, strlen(text), err);

    return rc == SY_E_NOMEM ? rc : SY_E_OK; /* what was refused, the verdicts tell */
}

static enum sy_code
judge(struct explain *e, struct sy_error *err)
{
    char *const *argv = strv_view(&e->argv);
    enum sy_code rc = SY_E_OK;

    e->safe_found.text.max = LIMIT_CLI_TEXT;
    e->safe_found.json.max = LIMIT_CLI_TEXT;
    e->danger_found.text.max = LIMIT_CLI_TEXT;
    e->danger_found.json.max = LIMIT_CLI_TEXT;
    rc = read_script(e, err);
    if (rc == SY_E_OK) {
        rc = safe_judge(&e->safe, &e->world, argv, on_safe, &e->safe_found, err);
    }
    if (rc == SY_E_OK) {
        rc = danger_judge(&e->danger, &e->world, argv, on_danger, &e->danger_found, err);
    }
    if (rc == SY_E_OK && (e->safe_found.rc != SY_E_OK || e->danger_found.rc != SY_E_OK)) {
        rc = sy_err_set(err, SY_E_LIMIT, "explain: too much to tell");
    }
    return rc;
}

static const char *
form_name(const struct explain *e)
{
    static const char *const names[] = {[SCRIPT_PLAIN] = "plain",
                                        [SCRIPT_HEREDOC] = "here-document",
                                        [SCRIPT_COMPLEX] = "complex",
                                        [SCRIPT_UNREADABLE] = "unreadable"};

    return e->has_script ? names[e->script.form] : "words";
}

static enum sy_code
text_words(struct buf *out, const char *const *words, size_t n)
{
    enum sy_code rc = buf_add_str(out, " ");

    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        rc = buf_add_str(out, " [");
        if (rc == SY_E_OK) {
            rc = str_add_visible(out, words[i], strlen(words[i]), LIMIT_ARG_STRLEN);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, ']');
        }
    }
    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

/* fn for each command's words. */
static enum sy_code
each_command(const struct explain *e, void *arg,
             enum sy_code (*fn)(void *arg, const char *const *words, size_t n))
{
    enum sy_code rc = SY_E_OK;

    if (!e->has_script) {
        return fn(arg, (const char *const *)strv_view(&e->argv), e->argv.n);
    }
    for (size_t i = 0; i < e->script.n_commands && rc == SY_E_OK; i++) {
        const struct script_command *c = &e->script.commands[i];
        const char **words = mem_alloc_zero(c->n, sizeof(*words));

        for (size_t k = 0; words != NULL && k < c->n; k++) {
            words[k] = c->words[k].text;
        }
        rc = words != NULL ? fn(arg, words, c->n) : SY_E_NOMEM;
        mem_free(words);
    }
    return rc;
}

static enum sy_code
on_text_words(void *arg, const char *const *words, size_t n)
{
    return text_words(arg, words, n);
}

static enum sy_code
on_json_words(void *arg, const char *const *words, size_t n)
{
    struct jw *w = arg;

    jw_array(w);
    for (size_t i = 0; i < n; i++) {
        jw_str(w, words[i]);
    }
    jw_end_array(w);
    return w->rc;
}

static enum sy_code
explain_text(struct buf *out, const struct explain *e)
{
    enum sy_code rc = buf_addf(out, "commands (%s%s%s):\n", form_name(e),
                               e->script.reason[0] != '\0' ? ": " : "", e->script.reason);

    if (rc == SY_E_OK) {
        rc = each_command(e, out, on_text_words);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "safe: %s\n%s", e->safe.is_safe ? "yes" : "no",
                      buf_view(&e->safe_found.text));
    }
    for (size_t i = 0; rc == SY_E_OK && e->safe.env != NULL && e->safe.env[i] != NULL; i++) {
        rc = buf_addf(out, "  %s %s\n", i == 0 ? "with" : "    ", e->safe.env[i]);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "danger: %s\n%s", danger_level_name(e->danger.level),
                      buf_view(&e->danger_found.text));
    }
    return rc;
}

static enum sy_code
explain_json(struct buf *out, const struct explain *e)
{
    struct jw w = {.out = out};
    enum sy_code rc = SY_E_OK;

    jw_object(&w);
    jw_key_str(&w, "form", form_name(e));
    jw_key_str(&w, "reason", e->script.reason);
    jw_key(&w, "commands");
    jw_array(&w);
    rc = each_command(e, &w, on_json_words);
    jw_end_array(&w);
    jw_key_bool(&w, "safe", e->safe.is_safe);
    jw_key(&w, "environment");
    jw_array(&w);
    for (size_t i = 0; e->safe.env != NULL && e->safe.env[i] != NULL; i++) {
        jw_str(&w, e->safe.env[i]);
    }
    jw_end_array(&w);
    jw_key(&w, "verdicts");
    jw_array(&w);
    jw_raw(&w, buf_view(&e->safe_found.json), e->safe_found.json.len);
    jw_end_array(&w);
    jw_key_str(&w, "danger", danger_level_name(e->danger.level));
    jw_key(&w, "findings");
    jw_array(&w);
    jw_raw(&w, buf_view(&e->danger_found.json), e->danger_found.json.len);
    jw_end_array(&w);
    jw_end_object(&w);
    rc = rc == SY_E_OK ? jw_done(&w) : rc;
    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static int
explain_main(const struct cli_args *args)
{
    SY_AUTO(explain_fini) struct explain e = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_CLI_TEXT * 2};
    struct sy_error err = {0};
    enum sy_code rc = cli_engine_load(&e.engine, args, cli_get(args, "cwd"), NULL, &err);

    if (rc == SY_E_OK) {
        rc = make_world(&e, &err);
    }
    if (rc == SY_E_OK) {
        rc = make_argv(&e, args, &err);
    }
    if (rc == SY_E_OK) {
        rc = judge(&e, &err);
    }
    if (rc != SY_E_OK) {
        return cli_fail_judging(&err);
    }
    rc = cli_get(args, "json") != NULL ? explain_json(&text, &e) : explain_text(&text, &e);
    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "printing the result: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(&text, 0);
}

static const struct cli_option explain_options[] = {
    CLI_OPTION_JSON,
    {0,   "script", NULL,  NULL,  "COMMAND is a script for your shell, in one word"},
    {'C', "cwd",    "DIR", "DIR", "as if it ran in DIR"                            },
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

const struct cli_verb verb_explain = {
    .name = "explain",
    .summary =
        "Tell what a command would run, whether it is known to be safe, and what it may destroy",
    .operands = "[--] COMMAND [ARGUMENT...]",
    .text =
        "Nothing is run. Each verdict names its rule, the command and the argument behind it.\n",
    .examples = "  shellyard explain -- git log -p\n"
                "  shellyard explain --script 'cd build && rm -rf *'\n",
    .page = "shellyard-explain.1",
    .options = explain_options,
    .min_operands = 1,
    .max_operands = LIMIT_ARGV,
    .ends_options = true,
    .run = explain_main,
};
