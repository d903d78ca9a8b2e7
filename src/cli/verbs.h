#ifndef SY_CLI_VERBS_H
#define SY_CLI_VERBS_H

#include "cli/cli.h"

/* One file each. */
extern const struct cli_verb verb_exec;
extern const struct cli_verb verb_mcp;
extern const struct cli_verb verb_proto;
extern const struct cli_verb verb_sandbox;
extern const struct cli_verb verb_setup;
extern const struct cli_verb verb_doctor;
extern const struct cli_verb verb_config;
extern const struct cli_verb verb_help;
extern const struct cli_verb verb_completions;

/* Below `sandbox`, in files of their own. */
extern const struct cli_verb verb_sandbox_learn;
extern const struct cli_verb verb_sandbox_plan;

#endif
