#ifndef SY_APPROVAL_RULES_IMPORT_H
#define SY_APPROVAL_RULES_IMPORT_H

#include "approval/rules.h"

/*
 * Rules out of the `.rules` files of Codex: calls of prefix_rule,
 * host_executable and network_rule with strings and lists, which are a small
 * part of Starlark. What else stands there, and what has no equal here, is
 * SY_E_CONFIG with line and column; nothing is left out.
 */
struct rules_import_options {
    bool lifts_sandbox; /* rules that allow lift the sandbox too, as they do in Codex */
};

/* Behind what `into` has. On failure some of it may be there. */
enum sy_code rules_import(struct rules *into, const struct place_text *in,
                          const struct rules_import_options *options,
                          struct sy_error *err) SY_NODISCARD;

#endif
