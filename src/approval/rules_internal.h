#ifndef SY_APPROVAL_RULES_INTERNAL_H
#define SY_APPROVAL_RULES_INTERNAL_H

#include "approval/rules_read.h"
#include "base/yaml_walk.h"

/* Inside the room: between the files that read rules. */

/* --- rules_read.c: moving over the text --- */

struct rules_reader {
    struct yaml_walk y;
    const char *name; /* of the file, owned by rules->files */
    const char *home;
    struct rules *rules;
    struct sy_error *err;
};

/* The current event begins the value; `into` is what the mapping is read into. */
typedef enum sy_code rules_read_fn(struct rules_reader *r, void *into);

struct rules_key {
    const char *name;
    rules_read_fn *read;
};

/* The keys that a mapping may have. */
#define RULES_KEYS_MAX 16
struct rules_schema {
    const char *what; /* "a rule" */
    const struct rules_key *keys;
    size_t n;
};

/* The value as a mapping; each key at most once. */
enum sy_code rules_read_mapping(struct rules_reader *r, const struct rules_schema *schema,
                                void *into) SY_NODISCARD;
/* The value as a list; `read` for each entry. */
enum sy_code rules_read_list(struct rules_reader *r, const char *what, rules_read_fn *read,
                             void *into) SY_NODISCARD;
/* The value as text, none of it deceptive; "" only if `takes_empty`. The caller frees. */
enum sy_code rules_read_text(struct rules_reader *r, char **ret, const char *what,
                             bool takes_empty) SY_NODISCARD;
/* The same as one more word of the list; or, with `_words`, as a list of them or one. */
enum sy_code rules_read_word(struct rules_reader *r, struct strv *list, const char *what,
                             bool takes_empty) SY_NODISCARD;
enum sy_code rules_read_words(struct rules_reader *r, struct strv *list, const char *what,
                              bool takes_empty) SY_NODISCARD;
enum sy_code rules_read_bool(struct rules_reader *r, bool *ret) SY_NODISCARD;
enum sy_code rules_read_decision(struct rules_reader *r, enum rule_decision *ret) SY_NODISCARD;
/* At the current event. */
struct place rules_here(const struct rules_reader *r);

/* --- rules_fields.c: the entries of the sections --- */

enum sy_code rules_read_rule(struct rules_reader *r, void *unused) SY_NODISCARD;
enum sy_code rules_read_program(struct rules_reader *r, void *unused) SY_NODISCARD;
enum sy_code rules_read_network(struct rules_reader *r, void *unused) SY_NODISCARD;

/* --- rules_check.c: what is wrong with what was read, beside its form --- */

/* A rule is shown to people, who must see what it says. `what`: "an argument". */
enum sy_code rules_check_text(const char *text, size_t len, const char *what,
                              const struct place *at, struct sy_error *err) SY_NODISCARD;
/* What a rule can't be, at its place or that of the part. */
enum sy_code rules_check_rule(const struct rule *rule, struct sy_error *err) SY_NODISCARD;
/* Names and paths of programs, "~" expanded before. */
enum sy_code rules_check_programs(const struct strv *programs, const struct place *at,
                                  struct sy_error *err) SY_NODISCARD;
/* By itself and beside those of the same file. */
enum sy_code rules_check_program(const struct rules *r, const struct rule_program *p,
                                 struct sy_error *err) SY_NODISCARD;
/* SY_E_CONFIG where it is no host alone. */
enum sy_code rules_check_host(const char *host, const struct place *at,
                              struct sy_error *err) SY_NODISCARD;
/* The examples of the rules from `first` on, by these rules. */
enum sy_code rules_check_examples(const struct rules *r, size_t first,
                                  struct sy_error *err) SY_NODISCARD;
enum sy_code rules_check_steers(const struct rules *r, struct sy_error *err) SY_NODISCARD;

/* --- rules_words.c: texts with a grammar of their own --- */

/*
 * Splits as a shell does into words: blanks, quotes, backslashes. *ret_fault is
 * a phrase that goes on from the quoted text, or NULL. What a shell would act on
 * otherwise is a fault, unless `is_literal`.
 */
enum sy_code rules_split(struct strv *ret, const char *text, bool is_literal,
                         const char **ret_fault) SY_NODISCARD;
/* "2026-12-31" (its end) or "2026-12-31T12:00:00Z" in seconds since 1970. */
bool rules_parse_time(int64_t *ret, const char *text) SY_NODISCARD;
/* The same as text, of RULES_TIME_LEN. */
#define RULES_TIME_LEN 48
const char *rules_time_text(char out[RULES_TIME_LEN], int64_t seconds);

#endif
