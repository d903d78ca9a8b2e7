#ifndef SY_CLI_RULES_H
#define SY_CLI_RULES_H

#include "approval/rules_read.h"
#include "cli/verbs.h"

/* What the verbs below `rules` share. */

/* Where rules are looked for, for this user. Owns the strings. */
struct cli_rules_place {
    char *user_path; /* NULL: no home */
    char *home;      /* NULL: not known */
};

void cli_rules_place_fini(struct cli_rules_place *p);
enum sy_code cli_rules_place_find(struct cli_rules_place *ret, char *const *environ_list,
                                  struct sy_error *err) SY_NODISCARD;

/* rules_import.c */
extern const struct cli_verb verb_rules_import;

/* Appends what answers let commands do for good, as lines or as a JSON array; `st` NULL: there is
 * none. */
struct store;
enum sy_code cli_rules_list_accesses(struct buf *out, bool is_json, struct store *st,
                                     struct sy_error *err) SY_NODISCARD;

#endif
