#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/host.h"
#include "orchestrator/network.h"

static int
print_text(enum sy_code rc, const struct buf *text)
{
    struct sy_error err = {0};

    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "printing help: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(text, 0);
}

static int
unknown_verb(const struct cli_verb *const *verbs, const char *parent, const char *word)
{
    struct sy_error err = {0};
    const char *near = cli_verb_nearest(verbs, word);
    const char *kind = word[0] == '-' ? "option" : "command";

    if (near != NULL) {
        sy_err_set(&err, SY_E_ARG, "unknown %s '%s%s%s'; did you mean '%s'?", kind, parent,
                   parent[0] != '\0' ? " " : "", word, near);
    } else {
        sy_err_set(&err, SY_E_ARG, "unknown %s '%s%s%s' (see 'shellyard help%s%s')", kind, parent,
                   parent[0] != '\0' ? " " : "", word, parent[0] != '\0' ? " " : "", parent);
    }
    return cli_fail(&err);
}

static int
run_leaf(const struct cli_verb *verb, const char *path, char **argv)
{
    SY_AUTO(cli_args_fini) struct cli_args args;
    struct sy_error err = {0};

    if (cli_parse(&args, verb, path, argv, &err) != SY_E_OK) {
        return verb->fail != NULL ? verb->fail(&args, &err) : cli_fail(&err);
    }
    if (args.wants_help) {
        SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};

        return print_text(cli_help_verb(&text, verb, path), &text);
    }
    return verb->run(&args);
}

/* `sandbox check`: the verb of a verb. */
static int
run_verb(const struct cli_verb *verb, char **argv)
{
    if (verb->verbs == NULL) {
        return run_leaf(verb, verb->name, argv);
    }
    if (argv[0] == NULL || str_eq(argv[0], "--help") || str_eq(argv[0], "-h")) {
        SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};

        if (argv[0] != NULL) {
            return print_text(cli_help_verb(&text, verb, verb->name), &text);
        }

        struct sy_error err = {0};

        sy_err_set(&err, SY_E_ARG, "%s: expected %s (see 'shellyard help %s')", verb->name,
                   verb->operands, verb->name);
        return cli_fail(&err);
    }

    const struct cli_verb *sub = cli_verb_find(verb->verbs, argv[0]);

    if (sub == NULL) {
        return unknown_verb(verb->verbs, verb->name, argv[0]);
    }

    char path[64];
    size_t parent = strlen(verb->name);
    size_t child = strlen(sub->name);

    SY_ASSERT(parent + child + 2 <= sizeof(path));
    memcpy(path, verb->name, parent);
    path[parent] = ' ';
    memcpy(path + parent + 1, sub->name, child + 1);
    return run_leaf(sub, path, argv + 1);
}

/* A name that nobody asks for any more must not keep us from exiting. */
static int
leave(int status)
{
    if (network_is_waiting()) {
        (void)fflush(NULL);
        _exit(status);
    }
    return status;
}

int
main(int argc, char **argv)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};

    cli_touch_memory();
    cli_touch_heap();
    cli_start();
    if (argc < 2) {
        (void)print_text(cli_help_program(&text), &text);
        return sy_code_status(SY_E_ARG);
    }
    if (str_eq(argv[1], "--version") || str_eq(argv[1], "-V")) {
        return print_text(buf_add_str(&text, "shellyard " SY_VERSION "\n"), &text);
    }
    if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")) {
        return print_text(cli_help_program(&text), &text);
    }

    if (str_eq(argv[1], HOST_VERB)) {
        return leave(host_main(argv + 2));
    }

    const struct cli_verb *verb = cli_verb_find(cli_verbs, argv[1]);

    if (verb == NULL) {
        return unknown_verb(cli_verbs, "", argv[1]);
    }
    return leave(run_verb(verb, argv + 2));
}
