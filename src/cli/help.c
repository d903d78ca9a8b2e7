#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/verbs.h"

const struct cli_option cli_common_options[] = {
    {'h', "help", NULL, NULL, "print the help of the command"},
    CLI_OPTION_END,
};

const struct cli_option cli_program_options[] = {
    {'h', "help",    NULL, NULL, "print this help"  },
    {'V', "version", NULL, NULL, "print the version"},
    CLI_OPTION_END,
};

#define OPTION_COLUMN 27

static enum sy_code
add_option(struct buf *out, const struct cli_option *o)
{
    size_t start = out->len;
    enum sy_code rc = o->letter != '\0' ? buf_addf(out, "  -%c, --%s", o->letter, o->name)
                                        : buf_addf(out, "      --%s", o->name);

    if (rc == SY_E_OK && o->arg != NULL) {
        rc = buf_addf(out, " %s", o->arg);
    }

    size_t width = out->len - start;
    int pad = width < OPTION_COLUMN ? (int)(OPTION_COLUMN - width) : 1;

    if (rc == SY_E_OK) {
        rc = buf_addf(out, "%*s%s", pad, "", o->help);
    }
    if (rc == SY_E_OK && o->choices != NULL && strchr(o->choices, '|') != NULL) {
        rc = buf_addf(out, "\n%*s%s", OPTION_COLUMN, "", o->choices);
    }
    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static enum sy_code
add_options(struct buf *out, const struct cli_option *options)
{
    for (size_t i = 0; options[i].name != NULL; i++) {
        enum sy_code rc = add_option(out, &options[i]);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
add_verbs(struct buf *out, const struct cli_verb *const *verbs)
{
    for (size_t i = 0; verbs[i] != NULL; i++) {
        enum sy_code rc = buf_addf(out, "  %-13s %s\n", verbs[i]->name, verbs[i]->summary);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
add_usage(struct buf *out, const struct cli_verb *verb, const char *path)
{
    const char *space = verb->operands[0] != '\0' ? " " : "";
    const char *options = verb->options[0].name != NULL ? " [OPTION...]" : "";

    return buf_addf(out, "Usage: shellyard %s%s%s%s\n\n%s.\n", path, options, space, verb->operands,
                    verb->summary);
}

enum sy_code
cli_help_verb(struct buf *out, const struct cli_verb *verb, const char *path)
{
    enum sy_code rc = add_usage(out, verb, path);

    if (rc == SY_E_OK && verb->text != NULL) {
        rc = buf_addf(out, "\n%s", verb->text);
    }
    if (rc == SY_E_OK && verb->verbs != NULL) {
        rc = buf_add_str(out, "\nCommands:\n");
        if (rc == SY_E_OK) {
            rc = add_verbs(out, verb->verbs);
        }
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "\nOptions:\n");
    }
    if (rc == SY_E_OK) {
        rc = add_options(out, verb->options);
    }
    if (rc == SY_E_OK) {
        rc = add_options(out, cli_common_options);
    }
    if (rc == SY_E_OK && verb->examples != NULL) {
        rc = buf_addf(out, "\nExamples:\n%s", verb->examples);
    }
    if (rc == SY_E_OK) {
        const char *dot = strrchr(verb->page, '.');

        rc = buf_addf(out, "\nMore: man %.*s\n", (int)(dot - verb->page), verb->page);
    }
    return rc;
}

enum sy_code
cli_help_program(struct buf *out)
{
    enum sy_code rc = buf_add_str(out, "Usage: shellyard COMMAND [OPTION...]\n\n"
                                       "A terminal for AI agents: commands run in a sandbox and "
                                       "answer with the truth.\n\nCommands:\n");

    if (rc == SY_E_OK) {
        rc = add_verbs(out, cli_verbs);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "\nOptions:\n");
    }
    if (rc == SY_E_OK) {
        rc = add_options(out, cli_program_options);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "\n'shellyard help COMMAND' tells more about a command.\n");
    }
    return rc;
}

static void
json_options(struct jw *w, const struct cli_option *options)
{
    jw_array(w);
    for (size_t i = 0; options[i].name != NULL; i++) {
        const struct cli_option *o = &options[i];
        char letter[2] = {o->letter, '\0'};

        jw_object(w);
        jw_key_str(w, "name", o->name);
        if (o->letter != '\0') {
            jw_key_str(w, "letter", letter);
        }
        if (o->arg != NULL) {
            jw_key_str(w, "argument", o->arg);
        }
        if (o->choices != NULL && strchr(o->choices, '|') != NULL) {
            jw_key_str(w, "choices", o->choices);
        }
        jw_key_str(w, "help", o->help);
        jw_end_object(w);
    }
    jw_end_array(w);
}

/* Leaves alone: "sandbox check" is a verb of its own, "sandbox" is none. */
static void
json_verb(struct jw *w, const struct cli_verb *parent, const struct cli_verb *verb)
{
    jw_object(w);
    jw_key(w, "name");
    if (parent != NULL) {
        char path[64];
        size_t a = strlen(parent->name);
        size_t b = strlen(verb->name);

        SY_ASSERT(a + b + 2 <= sizeof(path));
        memcpy(path, parent->name, a);
        path[a] = ' ';
        memcpy(path + a + 1, verb->name, b + 1);
        jw_str(w, path);
    } else {
        jw_str(w, verb->name);
    }
    jw_key_str(w, "summary", verb->summary);
    jw_key_str(w, "operands", verb->operands);
    jw_key_str(w, "page", verb->page);
    jw_key(w, "options");
    json_options(w, verb->options);
    jw_end_object(w);
}

enum sy_code
cli_help_json(struct buf *out)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_str(&w, "name", "shellyard");
    jw_key_str(&w, "version", SY_VERSION);
    jw_key(&w, "program_options");
    json_options(&w, cli_program_options);
    jw_key(&w, "common_options");
    json_options(&w, cli_common_options);
    jw_key(&w, "verbs");
    jw_array(&w);
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        const struct cli_verb *const *subs = cli_verbs[i]->verbs;

        if (subs == NULL) {
            json_verb(&w, NULL, cli_verbs[i]);
        }
        for (size_t k = 0; subs != NULL && subs[k] != NULL; k++) {
            json_verb(&w, cli_verbs[i], subs[k]);
        }
    }
    jw_end_array(&w);
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static enum sy_code
help_text(struct buf *out, const struct cli_args *args, struct sy_error *err)
{
    if (cli_get(args, "json") != NULL) {
        return cli_help_json(out);
    }
    if (args->n_operands == 0) {
        return cli_help_program(out);
    }

    const char *name = args->operands[0];
    const struct cli_verb *verb = cli_verb_find(cli_verbs, name);

    if (verb == NULL) {
        const char *near = cli_verb_nearest(cli_verbs, name);

        return sy_err_set(err, SY_E_ARG, "help: no command '%s'%s%s%s", name,
                          near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                          near != NULL ? "'?" : "");
    }
    if (args->n_operands == 1) {
        return cli_help_verb(out, verb, verb->name);
    }

    const struct cli_verb *sub =
        verb->verbs != NULL ? cli_verb_find(verb->verbs, args->operands[1]) : NULL;

    if (sub == NULL) {
        return sy_err_set(err, SY_E_ARG, "help: no command '%s %s'", name, args->operands[1]);
    }

    SY_AUTO(buf_fini) struct buf path = {.max = 128};
    enum sy_code rc = buf_addf(&path, "%s %s", verb->name, sub->name);

    return rc == SY_E_OK ? cli_help_verb(out, sub, buf_view(&path)) : rc;
}

static int
help_run(const struct cli_args *args)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc = help_text(&text, args, &err);

    if (rc != SY_E_OK) {
        if (err.code == SY_E_OK) {
            sy_err_set(&err, rc, "help: %s", sy_code_text(rc));
        }
        return cli_fail(&err);
    }
    return cli_out(&text, 0);
}

static const struct cli_option help_options[] = {
    {0, "json", NULL, NULL, "print all commands and options as JSON"},
    CLI_OPTION_END,
};

const struct cli_verb verb_help = {
    .name = "help",
    .summary = "Tell what a command does, its options and examples",
    .operands = "[COMMAND [SUBCOMMAND]]",
    .page = "shellyard.1",
    .options = help_options,
    .max_operands = 2,
    .examples = "  shellyard help exec\n"
                "  shellyard help sandbox explain\n",
    .run = help_run,
};
