#include <string.h>

#include "approval/rules_internal.h"
#include "base/json.h"

/* JSON's strings are YAML's in double quotes. Words that YAML reads as
 * themselves stay as they are. */
static enum sy_code
add_text(struct buf *b, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./";
    struct jw w = {.out = b};

    if ((*text >= 'a' && *text <= 'z') && text[strspn(text, plain)] == '\0' &&
        strcmp(text, "null") != 0) {
        return buf_add_str(b, text);
    }
    jw_str(&w, text);
    return jw_done(&w);
}

static enum sy_code
add_list(struct buf *b, const struct strv *list)
{
    enum sy_code rc = buf_add_char(b, '[');

    for (size_t i = 0; rc == SY_E_OK && i < list->n; i++) {
        rc = buf_add_str(b, i > 0 ? ", " : "");
        if (rc == SY_E_OK) {
            rc = add_text(b, list->v[i]);
        }
    }
    return rc == SY_E_OK ? buf_add_char(b, ']') : rc;
}

/* One word by itself, several as a list. */
static enum sy_code
add_words(struct buf *b, const struct strv *list)
{
    return list->n == 1 ? add_text(b, list->v[0]) : add_list(b, list);
}

static enum sy_code
add_key(struct buf *b, size_t indent, const char *key)
{
    return buf_addf(b, "%*s%s: ", (int)indent, "", key);
}

static enum sy_code
add_key_words(struct buf *b, size_t indent, const char *key, const struct strv *list)
{
    enum sy_code rc = list->n > 0 ? add_key(b, indent, key) : SY_E_OK;

    if (rc == SY_E_OK && list->n > 0) {
        rc = add_words(b, list);
        return rc == SY_E_OK ? buf_add_char(b, '\n') : rc;
    }
    return rc;
}

static enum sy_code
add_key_text(struct buf *b, size_t indent, const char *key, const char *text)
{
    enum sy_code rc = text != NULL ? add_key(b, indent, key) : SY_E_OK;

    if (rc == SY_E_OK && text != NULL) {
        rc = add_text(b, text);
        return rc == SY_E_OK ? buf_add_char(b, '\n') : rc;
    }
    return rc;
}

static enum sy_code
add_args(struct buf *b, size_t indent, const struct rule *r)
{
    enum sy_code rc = r->args_n > 0 ? add_key(b, indent, "args") : SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->args_n; i++) {
        rc = buf_add_str(b, i > 0 ? ", " : "[");
        if (rc == SY_E_OK) {
            rc = add_words(b, &r->args[i]);
        }
    }
    return rc == SY_E_OK && r->args_n > 0 ? buf_add_str(b, "]\n") : rc;
}

static enum sy_code
add_steer(struct buf *b, size_t indent, const struct rule *r)
{
    enum sy_code rc = SY_E_OK;

    if (r->steer.n == 0) {
        return rc;
    }
    rc = buf_addf(b, "%*ssteer: {command: ", (int)indent, "");
    if (rc == SY_E_OK) {
        rc = add_list(b, &r->steer);
    }
    return rc == SY_E_OK ? buf_addf(b, ", run: %s}\n", r->steer_runs ? "true" : "false") : rc;
}

static enum sy_code
add_examples(struct buf *b, size_t indent, const struct rule *r, bool is_match)
{
    const char *key = is_match ? "match" : "not_match";
    size_t n = 0;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->examples_n; i++) {
        if (r->examples[i].is_match != is_match) {
            continue;
        }
        if (n++ == 0) {
            rc = buf_addf(b, "%*s%s:\n", (int)indent, "", key);
        }
        if (rc == SY_E_OK) {
            rc = buf_addf(b, "%*s- ", (int)indent + 2, "");
        }
        if (rc == SY_E_OK) {
            rc = add_list(b, &r->examples[i].argv);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(b, '\n');
        }
    }
    return rc;
}

/* Where entries stand, and their keys. */
#define ENTRY 2U
#define KEY   4U

enum sy_code
rules_write_rule(struct buf *b, const struct rule *r)
{
    char time[RULES_TIME_LEN];
    enum sy_code rc = add_key_words(b, ENTRY, "- program", &r->programs);

    if (rc == SY_E_OK) {
        rc = add_args(b, KEY, r);
    }
    if (rc == SY_E_OK) {
        rc = add_key_text(b, KEY, "decision", rule_decision_name(r->decision));
    }
    if (rc == SY_E_OK && r->lifts_sandbox) {
        rc = add_key_text(b, KEY, "outside_sandbox", "true");
    }
    if (rc == SY_E_OK) {
        rc = add_key_words(b, KEY, "cwd", &r->cwds);
    }
    if (rc == SY_E_OK) {
        rc = add_key_words(b, KEY, "env", &r->env);
    }
    if (rc == SY_E_OK && r->expires != 0) {
        rc = add_key_text(b, KEY, "expires", rules_time_text(time, r->expires));
    }
    if (rc == SY_E_OK) {
        rc = add_key_text(b, KEY, "reason", r->reason);
    }
    if (rc == SY_E_OK) {
        rc = add_steer(b, KEY, r);
    }
    if (rc == SY_E_OK) {
        rc = add_examples(b, KEY, r, true);
    }
    return rc == SY_E_OK ? add_examples(b, KEY, r, false) : rc;
}

enum sy_code
rules_write_program(struct buf *b, const struct rule_program *p)
{
    enum sy_code rc = add_key_text(b, ENTRY, "- name", p->name);

    if (rc == SY_E_OK) {
        rc = add_key(b, KEY, "paths");
    }
    if (rc == SY_E_OK) {
        rc = add_list(b, &p->paths);
    }
    return rc == SY_E_OK ? buf_add_char(b, '\n') : rc;
}

enum sy_code
rules_write_network(struct buf *b, const struct rule_network *n)
{
    enum sy_code rc = add_key_text(b, ENTRY, "- host", n->host);

    if (rc == SY_E_OK) {
        rc = add_key_text(b, KEY, "protocol", rule_protocol_name(n->protocol));
    }
    if (rc == SY_E_OK) {
        rc = add_key_text(b, KEY, "decision", rule_decision_name(n->decision));
    }
    return rc == SY_E_OK ? add_key_text(b, KEY, "reason", n->reason) : rc;
}

enum sy_code
rules_write(struct buf *b, const struct rules *r)
{
    enum sy_code rc = r->n > 0 ? buf_add_str(b, "rules:\n") : SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->n; i++) {
        rc = rules_write_rule(b, &r->rules[i]);
    }
    if (rc == SY_E_OK && r->programs_n > 0) {
        rc = buf_add_str(b, "programs:\n");
    }
    for (size_t i = 0; rc == SY_E_OK && i < r->programs_n; i++) {
        rc = rules_write_program(b, &r->programs[i]);
    }
    if (rc == SY_E_OK && r->network_n > 0) {
        rc = buf_add_str(b, "network:\n");
    }
    for (size_t i = 0; rc == SY_E_OK && i < r->network_n; i++) {
        rc = rules_write_network(b, &r->network[i]);
    }
    return rc;
}
