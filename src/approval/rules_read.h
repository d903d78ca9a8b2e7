#ifndef SY_APPROVAL_RULES_READ_H
#define SY_APPROVAL_RULES_READ_H

#include "approval/rules.h"

/*
 * Rules out of YAML: /etc/shellyard/rules.yaml and ~/.config/shellyard/rules.yaml,
 * as shellyard-rules(1) describes them. A file inside the workspace is never
 * read. Every error is SY_E_CONFIG and names file, line and column and what
 * would be right.
 */

#define RULES_SYSTEM_PATH "/etc/shellyard/rules.yaml"

struct rules_sources {
    const char *system_path; /* NULL: RULES_SYSTEM_PATH, which has to belong to root */
    const char *user_path;   /* NULL: none */
    const char *workspace;   /* absolute; may be NULL */
    const char *home;        /* for "~"; may be NULL */
};

/* Reads and checks both, as far as they exist; *ret is zeroed before. On failure it is empty. */
enum sy_code rules_load(struct rules *ret, const struct rules_sources *sources,
                        struct sy_error *err) SY_NODISCARD;

/* Reads one text behind what `into` has, and checks its examples and that no steered
 * commands lead in a circle. On failure some of it may be there. */
enum sy_code rules_read(struct rules *into, const struct place_text *in, const char *home,
                        struct sy_error *err) SY_NODISCARD;

/* Appends them as the sections of such a file. What stands there is read back
 * as the same rules. */
enum sy_code rules_write(struct buf *b, const struct rules *r) SY_NODISCARD;
/* One entry of its list, two blanks in front of each line. */
enum sy_code rules_write_rule(struct buf *b, const struct rule *r) SY_NODISCARD;
enum sy_code rules_write_program(struct buf *b, const struct rule_program *p) SY_NODISCARD;
enum sy_code rules_write_network(struct buf *b, const struct rule_network *n) SY_NODISCARD;

#endif
