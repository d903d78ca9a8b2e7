#include "cli/verbs.h"
#include "base/str.h"
#include "cli/cli.h"

/* In the order in which `help` lists them. */
const struct cli_verb *const cli_verbs[] = {
    &verb_exec,  &verb_mcp,     &verb_proto,   &verb_serve, &verb_list,        &verb_attach,
    &verb_kill,  &verb_sandbox, &verb_explain, &verb_rules, &verb_approvals,   &verb_metrics,
    &verb_setup, &verb_doctor,  &verb_config,  &verb_help,  &verb_completions, NULL,
};

const struct cli_verb *
cli_verb_find(const struct cli_verb *const *verbs, const char *name)
{
    for (size_t i = 0; verbs[i] != NULL; i++) {
        if (str_eq(verbs[i]->name, name)) {
            return verbs[i];
        }
    }
    return NULL;
}

const char *
cli_verb_nearest(const struct cli_verb *const *verbs, const char *name)
{
    const char *names[32];
    size_t n = 0;

    for (; verbs[n] != NULL && n < sizeof(names) / sizeof(names[0]); n++) {
        names[n] = verbs[n]->name;
    }
    return str_nearest(name, names, n);
}
