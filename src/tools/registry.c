#include <string.h>

#include "base/str.h"
#include "tools/tools.h"

#define TOOL(name) extern const struct tool_handler tool_##name;
#include "tools/tools.def"
#undef TOOL

static const struct tool_handler *const handlers[] = {
#define TOOL(name) &tool_##name,
#include "tools/tools.def"
#undef TOOL
    NULL,
};

const struct tool_handler *const *
tool_handlers(void)
{
    return handlers;
}

const struct tool_handler *
tool_find(const char *name)
{
    for (const struct tool_handler *const *t = handlers; *t != NULL; t++) {
        if (str_eq((*t)->name, name)) {
            return *t;
        }
        for (const char *const *alias = (*t)->aliases; *alias != NULL; alias++) {
            if (str_eq(*alias, name)) {
                return *t;
            }
        }
    }
    return NULL;
}

static bool
may_ask(const struct config *config)
{
    const struct approval_granular granular = turn_granular(config);
    enum approval_policy policy = APPROVAL_NEVER;

    return approval_policy_parse(&policy, config->approval.policy) &&
           approval_may_ask(policy, &granular, REQUIREMENT_BY_ESCALATION);
}

bool
tool_is_listed(const struct tool_handler *t, const struct config *config)
{
    const char *shell_type = config->tools.shell_type;
    size_t n = strlen(shell_type);

    if (t->needs_person && !may_ask(config)) {
        return false;
    }

    for (const char *word = t->shell_types; word != NULL; word = strchr(word, '|')) {
        word += *word == '|' ? 1 : 0;
        if (strncmp(word, shell_type, n) == 0 && (word[n] == '|' || word[n] == '\0')) {
            return true;
        }
    }
    return false;
}
