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

enum sy_code
rules_write_rule(struct buf *b, const struct rule *r, size_t indent)
{
    char time[RULES_TIME_LEN];
    size_t in = indent + 2;
    enum sy_code rc = buf_addf(b, "%*s- program: ", (int)indent, "");

    if (rc == SY_E_OK) {
        rc = add_words(b, &r->programs);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_char(b, '\n');
    }
    if (rc == SY_E_OK) {
        rc = add_args(b, in, r);
    }
    if (rc == SY_E_OK) {
        rc = add_key_text(b, in, "decision", rule_decision_name(r->decision));
    }
    if (rc == SY_E_OK && r->lifts_sandbox) {
        rc = buf_addf(b, "%*soutside_sandbox: true\n", (int)in, "");
    }
    if (rc == SY_E_OK) {
        rc = add_key_words(b, in, "cwd", &r->cwds);
    }
    if (rc == SY_E_OK) {
        rc = add_key_words(b, in, "env", &r->env);
    }
    if (rc == SY_E_OK && r->expires != 0) {
        rc = add_key_text(b, in, "expires", rules_time_text(time, r->expires));
    }
    if (rc == SY_E_OK) {
        rc = add_key_text(b, in, "reason", r->reason);
    }
    if (rc == SY_E_OK) {
        rc = add_steer(b, in, r);
    }
    if (rc == SY_E_OK) {
        rc = add_examples(b, in, r, true);
    }
    return rc == SY_E_OK ? add_examples(b, in, r, false) : rc;
}

static enum sy_code
write_programs(struct buf *b, const struct rules *r)
{
    enum sy_code rc = r->programs_n > 0 ? buf_add_str(b, "programs:\n") : SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->programs_n; i++) {
        rc = add_key_text(b, 2, "- name", r->programs[i].name);
        if (rc == SY_E_OK) {
            rc = buf_add_str(b, "    paths: ");
        }
        if (rc == SY_E_OK) {
            rc = add_list(b, &r->programs[i].paths);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(b, '\n');
        }
    }
    return rc;
}

static enum sy_code
write_network(struct buf *b, const struct rules *r)
{
    enum sy_code rc = r->network_n > 0 ? buf_add_str(b, "network:\n") : SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->network_n; i++) {
        const struct rule_network *n = &r->network[i];

        rc = add_key_text(b, 2, "- host", n->host);
        if (rc == SY_E_OK) {
            rc = add_key_text(b, 4, "protocol", rule_protocol_name(n->protocol));
        }
        if (rc == SY_E_OK) {
            rc = add_key_text(b, 4, "decision", rule_decision_name(n->decision));
        }
        if (rc == SY_E_OK) {
            rc = add_key_text(b, 4, "reason", n->reason);
        }
    }
    return rc;
}

enum sy_code
rules_write(struct buf *b, const struct rules *r)
{
    enum sy_code rc = r->n > 0 ? buf_add_str(b, "rules:\n") : SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->n; i++) {
        rc = rules_write_rule(b, &r->rules[i], 2);
    }
    if (rc == SY_E_OK) {
        rc = write_programs(b, r);
    }
    return rc == SY_E_OK ? write_network(b, r) : rc;
}
