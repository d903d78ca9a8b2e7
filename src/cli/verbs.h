#ifndef SY_CLI_VERBS_H
#define SY_CLI_VERBS_H

#include "cli/cli.h"

/* One file each. */
extern const struct cli_verb verb_exec;
extern const struct cli_verb verb_mcp;
extern const struct cli_verb verb_proto;
extern const struct cli_verb verb_serve;
extern const struct cli_verb verb_list;
extern const struct cli_verb verb_attach;
extern const struct cli_verb verb_kill;
extern const struct cli_verb verb_sandbox;
extern const struct cli_verb verb_rules;
extern const struct cli_verb verb_approvals;
extern const struct cli_verb verb_metrics;
extern const struct cli_verb verb_explain;
extern const struct cli_verb verb_setup;
extern const struct cli_verb verb_doctor;
extern const struct cli_verb verb_config;
extern const struct cli_verb verb_help;
extern const struct cli_verb verb_completions;

/* Below `sandbox`, in files of their own. */
extern const struct cli_verb verb_sandbox_learn;
extern const struct cli_verb verb_sandbox_plan;

/* Changes an explanation that allows what is done to a protected name, where mounts hold these
 * (sandbox_protected.c). */
enum sy_code cli_explain_protected(struct sandbox_explanation *e, const struct cli_engine *engine,
                                   const struct sandbox_plan *plan, enum sandbox_operation op,
                                   struct sy_error *err) SY_NODISCARD;

#endif
