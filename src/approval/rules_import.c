#include "approval/rules_import.h"

#include <string.h>

#include "approval/rules_internal.h"
#include "approval/starlark.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

struct import {
    struct rules *rules;
    const struct rules_import_options *options;
    const char *name; /* of the file, owned by rules->files */
    struct sy_error *err;
};

#define PARAMETERS_MAX 5

/* What a function takes; the first may come by position. */
struct signature {
    const char *function;
    const char *names[PARAMETERS_MAX + 1]; /* ended by NULL */
    size_t required;                       /* the first ones */
    enum sy_code (*convert)(struct import *im, const struct starlark_call *call,
                            const struct starlark_value *const *values);
};

static enum sy_code
check_word(const struct import *im, const char *word, const struct place *at)
{
    return rules_check_text(word, strlen(word), "a string", at, im->err);
}

static enum sy_code
copy_words(const struct import *im, struct strv *ret, const struct starlark_item *item)
{
    ret->max = LIMIT_RULE_WORDS;
    for (size_t i = 0; i < item->words.n; i++) {
        enum sy_code rc = check_word(im, item->words.v[i], &item->at);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (strv_add(ret, item->words.v[i]) != SY_E_OK) {
            return sy_err_nomem(im->err);
        }
    }
    return SY_E_OK;
}

/* NULL where the argument is not there; checked to be a string. */
static enum sy_code
string_of(const struct import *im, const struct starlark_value *v, const char *name,
          const char **ret)
{
    *ret = NULL;
    if (v == NULL || v->type == STARLARK_NONE) {
        return SY_E_OK;
    }
    if (v->type != STARLARK_STRING) {
        return place_error(im->err, &v->at, "'%s' has to be a string", name);
    }
    *ret = v->items[0].words.v[0];
    return check_word(im, *ret, &v->at);
}

static enum sy_code
copy_reason(const struct import *im, char **ret, const struct starlark_value *v)
{
    const char *text = NULL;
    enum sy_code rc = string_of(im, v, "justification", &text);

    if (rc != SY_E_OK || text == NULL) {
        return rc;
    }
    if (text[strspn(text, " \t\n")] == '\0') {
        return place_error(im->err, &v->at, "an empty justification");
    }
    *ret = mem_strdup(text);
    return *ret != NULL ? SY_E_OK : sy_err_nomem(im->err);
}

static enum sy_code
decision_of(const struct import *im, const struct starlark_value *v, bool is_network,
            enum rule_decision *ret)
{
    const char *text = NULL;
    enum sy_code rc = string_of(im, v, "decision", &text);
    struct place_shown shown;

    if (rc != SY_E_OK) {
        return rc;
    }
    if (text == NULL || str_eq(text, "allow")) {
        *ret = RULE_ALLOW;
    } else if (str_eq(text, "prompt")) {
        *ret = RULE_ASK;
    } else if (str_eq(text, "forbidden") || (is_network && str_eq(text, "deny"))) {
        *ret = RULE_FORBID;
    } else {
        return place_error(im->err, &v->at, "expected allow, prompt%s or forbidden, got '%s'",
                           is_network ? ", deny" : "", place_visible(&shown, text, strlen(text)));
    }
    return SY_E_OK;
}

static enum sy_code
convert_pattern(struct import *im, struct rule *rule, const struct starlark_value *v)
{
    if (v->type != STARLARK_LIST || v->n == 0) {
        return place_error(im->err, &v->at, "'pattern' has to be a list of at least one word");
    }
    rule->args = v->n > 1 ? mem_alloc_zero(v->n - 1, sizeof(*rule->args)) : NULL;
    if (v->n > 1 && rule->args == NULL) {
        return sy_err_nomem(im->err);
    }
    for (size_t i = 0; i < v->n; i++) {
        struct strv *to = i == 0 ? &rule->programs : &rule->args[i - 1];

        rule->args_n = i;
        if (v->items[i].words.n == 0) {
            return place_error(im->err, &v->items[i].at,
                               "a word of 'pattern' without alternatives");
        }

        enum sy_code rc = copy_words(im, to, &v->items[i]);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return rules_check_programs(&rule->programs, &v->items[0].at, im->err);
}

static enum sy_code
convert_example(struct import *im, struct rule_example *to, const struct starlark_item *item)
{
    const char *fault = NULL;
    struct place_shown shown;

    if (item->is_list) {
        return item->words.n > 0 ? copy_words(im, &to->argv, item)
                                 : place_error(im->err, &item->at, "an example without words");
    }

    const char *text = item->words.v[0];
    enum sy_code rc = check_word(im, text, &item->at);

    if (rc != SY_E_OK) {
        return rc;
    }
    to->argv.max = LIMIT_RULE_WORDS;
    rc = rules_split(&to->argv, text, true, &fault);
    if (rc == SY_E_LIMIT) {
        return place_error(im->err, &item->at, "more than %u words", LIMIT_RULE_WORDS);
    }
    if (rc == SY_E_OK && fault != NULL) {
        return place_error(im->err, &item->at, "'%s' %s", place_visible(&shown, text, strlen(text)),
                           fault);
    }
    return rc != SY_E_OK ? sy_err_nomem(im->err) : SY_E_OK;
}

static enum sy_code
convert_examples(struct import *im, struct rule *rule, const struct starlark_value *v,
                 bool is_match)
{
    if (v == NULL || v->type == STARLARK_NONE) {
        return SY_E_OK;
    }
    if (v->type != STARLARK_LIST) {
        return place_error(im->err, &v->at, "'%s' has to be a list of commands",
                           is_match ? "match" : "not_match");
    }
    for (size_t i = 0; i < v->n; i++) {
        if (rule->examples_n == LIMIT_RULE_EXAMPLES) {
            return place_error(im->err, &v->at, "more than %u examples", LIMIT_RULE_EXAMPLES);
        }

        struct rule_example *more =
            mem_realloc(rule->examples, (rule->examples_n + 1) * sizeof(*more));

        if (more == NULL) {
            return sy_err_nomem(im->err);
        }
        rule->examples = more;
        more += rule->examples_n++;
        *more = (struct rule_example){.at = v->items[i].at, .is_match = is_match};

        enum sy_code rc = convert_example(im, more, &v->items[i]);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
added(const struct import *im, enum sy_code rc, const struct place *at)
{
    return rc == SY_E_LIMIT ? place_error(im->err, at, "more than %u rules", LIMIT_RULES)
           : rc != SY_E_OK  ? sy_err_nomem(im->err)
                            : SY_E_OK;
}

/* pattern, decision, match, not_match, justification */
static enum sy_code
convert_prefix_rule(struct import *im, const struct starlark_call *call,
                    const struct starlark_value *const *values)
{
    SY_AUTO(rule_fini) struct rule rule = {.at = call->at};
    enum sy_code rc = convert_pattern(im, &rule, values[0]);

    if (rc == SY_E_OK) {
        rc = decision_of(im, values[1], false, &rule.decision);
    }
    rule.lifts_sandbox = rule.decision == RULE_ALLOW && im->options->lifts_sandbox;
    if (rc == SY_E_OK) {
        rc = convert_examples(im, &rule, values[2], true);
    }
    if (rc == SY_E_OK) {
        rc = convert_examples(im, &rule, values[3], false);
    }
    if (rc == SY_E_OK) {
        rc = copy_reason(im, &rule.reason, values[4]);
    }
    if (rc == SY_E_OK) {
        rc = rules_check_rule(&rule, im->err);
    }
    return rc == SY_E_OK ? added(im, rules_add(im->rules, &rule), &call->at) : rc;
}

/* name, paths */
static enum sy_code
convert_host_executable(struct import *im, const struct starlark_call *call,
                        const struct starlark_value *const *values)
{
    SY_AUTO(rule_program_fini)
    struct rule_program p = {.at = call->at, .paths = {.max = LIMIT_RULE_WORDS}};
    const char *name = NULL;
    enum sy_code rc = string_of(im, values[0], "name", &name);

    if (rc == SY_E_OK && name == NULL) {
        rc = place_error(im->err, &values[0]->at, "'name' has to be a string");
    }
    if (rc == SY_E_OK && values[1]->type != STARLARK_LIST) {
        rc = place_error(im->err, &values[1]->at, "'paths' has to be a list of absolute paths");
    }
    if (rc == SY_E_OK) {
        p.name = mem_strdup(name);
        rc = p.name != NULL ? SY_E_OK : sy_err_nomem(im->err);
    }
    for (size_t i = 0; rc == SY_E_OK && i < values[1]->n; i++) {
        const struct starlark_item *item = &values[1]->items[i];

        rc = item->is_list ? place_error(im->err, &item->at, "a path has to be a string")
                           : copy_words(im, &p.paths, item);
    }
    if (rc == SY_E_OK) {
        rc = rules_check_program(im->rules, &p, im->err);
    }
    return rc == SY_E_OK ? added(im, rules_add_program(im->rules, &p), &call->at) : rc;
}

static enum sy_code
protocol_of(const struct import *im, const struct starlark_value *v, enum rule_protocol *ret)
{
    static const struct {
        const char *name;
        enum rule_protocol protocol;
    } names[] = {
        {"http",          RULE_PROTOCOL_HTTP      },
        {"https",         RULE_PROTOCOL_HTTPS     },
        {"https_connect", RULE_PROTOCOL_HTTPS     },
        {"http-connect",  RULE_PROTOCOL_HTTPS     },
        {"socks5_tcp",    RULE_PROTOCOL_SOCKS5_TCP},
        {"socks5_udp",    RULE_PROTOCOL_SOCKS5_UDP},
    };
    const char *text = NULL;
    enum sy_code rc = string_of(im, v, "protocol", &text);
    struct place_shown shown;

    for (size_t i = 0; text != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eq(text, names[i].name)) {
            *ret = names[i].protocol;
            return rc;
        }
    }
    return rc != SY_E_OK
               ? rc
               : place_error(im->err, &v->at,
                             "expected http, https, socks5_tcp or socks5_udp, got '%s'",
                             text != NULL ? place_visible(&shown, text, strlen(text)) : "None");
}

/* In lower case, without the port and the last dot. */
static enum sy_code
host_of(const struct import *im, const struct starlark_value *v, char **ret)
{
    const char *text = NULL;
    enum sy_code rc = string_of(im, v, "host", &text);

    if (rc != SY_E_OK || text == NULL) {
        return rc != SY_E_OK ? rc : place_error(im->err, &v->at, "'host' has to be a string");
    }

    const char *colon = strchr(text, ':');
    bool has_port =
        colon != NULL && colon[1] != '\0' && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
    size_t len = has_port ? (size_t)(colon - text) : strlen(text);

    len -= len > 1 && text[len - 1] == '.' ? 1 : 0;
    *ret = mem_strndup(text, len);
    if (*ret == NULL) {
        return sy_err_nomem(im->err);
    }
    for (char *s = *ret; *s != '\0'; s++) {
        if (*s >= 'A' && *s <= 'Z') {
            *s = (char)(*s - 'A' + 'a');
        }
    }
    return rules_check_host(*ret, &v->at, im->err);
}

/* Of several for one host the last counts there, the strictest here. */
static enum sy_code
check_twice(const struct import *im, const struct rule_network *n)
{
    for (size_t i = 0; i < im->rules->network_n; i++) {
        const struct rule_network *other = &im->rules->network[i];

        if (other->at.name == im->name && other->protocol == n->protocol &&
            str_eq(other->host, n->host) && other->decision != n->decision) {
            return place_error(im->err, &n->at,
                               "'%.64s' stands twice (first at line %zu): the last decides there, "
                               "the strictest here; keep one",
                               n->host, other->at.line);
        }
    }
    return SY_E_OK;
}

/* host, protocol, decision, justification */
static enum sy_code
convert_network_rule(struct import *im, const struct starlark_call *call,
                     const struct starlark_value *const *values)
{
    SY_AUTO(rule_network_fini) struct rule_network n = {.at = call->at};
    enum sy_code rc = host_of(im, values[0], &n.host);

    if (rc == SY_E_OK) {
        rc = protocol_of(im, values[1], &n.protocol);
    }
    if (rc == SY_E_OK) {
        rc = decision_of(im, values[2], true, &n.decision);
    }
    if (rc == SY_E_OK) {
        rc = copy_reason(im, &n.reason, values[3]);
    }
    if (rc == SY_E_OK) {
        rc = check_twice(im, &n);
    }
    return rc == SY_E_OK ? added(im, rules_add_network(im->rules, &n), &call->at) : rc;
}

static const struct signature signatures[] = {
    {"prefix_rule",
     {"pattern", "decision", "match", "not_match", "justification", NULL},
     1,                                                                       convert_prefix_rule    },
    {"host_executable", {"name", "paths", NULL},                           2, convert_host_executable},
    {"network_rule",
     {"host", "protocol", "decision", "justification", NULL},
     3,                                                                       convert_network_rule   },
};

#define SIGNATURES (sizeof(signatures) / sizeof(signatures[0]))

static enum sy_code
unknown_function(const struct import *im, const struct starlark_call *call)
{
    const char *names[SIGNATURES];

    for (size_t i = 0; i < SIGNATURES; i++) {
        names[i] = signatures[i].function;
    }

    const char *near = str_nearest(call->name, names, SIGNATURES);

    return near != NULL
               ? place_error(im->err, &call->at, "unknown function '%s' (did you mean '%s'?)",
                             call->name, near)
               : place_error(im->err, &call->at,
                             "unknown function '%s' (rules are prefix_rule, host_executable and "
                             "network_rule)",
                             call->name);
}

/* The parameter that an argument means; `i` is its place. */
static enum sy_code
find_parameter(const struct import *im, const struct signature *sig, const struct starlark_arg *arg,
               size_t i, size_t *ret)
{
    size_t n = 0;

    for (; sig->names[n] != NULL; n++) {
        if (str_eq(arg->name, sig->names[n])) {
            *ret = n;
            return SY_E_OK;
        }
    }
    if (arg->name[0] == '\0' && i == 0) {
        *ret = 0;
        return SY_E_OK;
    }
    if (arg->name[0] == '\0') {
        return place_error(im->err, &arg->at, "an argument without a name: write '%s = ...'",
                           sig->names[i < n ? i : n - 1]);
    }

    const char *near = str_nearest(arg->name, sig->names, n);

    return place_error(im->err, &arg->at, "%s has no argument '%s'%s%s%s", sig->function, arg->name,
                       near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?)" : "");
}

static enum sy_code
convert(struct import *im, const struct starlark_call *call)
{
    const struct starlark_value *values[PARAMETERS_MAX] = {NULL};
    size_t f = 0;

    while (f < SIGNATURES && !str_eq(signatures[f].function, call->name)) {
        f++;
    }
    if (f == SIGNATURES) {
        return unknown_function(im, call);
    }
    for (size_t i = 0; i < call->n; i++) {
        size_t p = 0;
        enum sy_code rc = find_parameter(im, &signatures[f], &call->args[i], i, &p);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (values[p] != NULL) {
            return place_error(im->err, &call->args[i].at, "'%s' stands twice",
                               signatures[f].names[p]);
        }
        values[p] = &call->args[i].value;
    }
    for (size_t i = 0; i < signatures[f].required; i++) {
        if (values[i] == NULL) {
            return place_error(im->err, &call->at, "%s needs '%s'", call->name,
                               signatures[f].names[i]);
        }
    }
    return signatures[f].convert(im, call, values);
}

enum sy_code
rules_import(struct rules *into, const struct place_text *in,
             const struct rules_import_options *options, struct sy_error *err)
{
    struct import im = {.rules = into, .options = options, .err = err};
    struct starlark s = {.in = in, .err = err};
    size_t first = into->n;
    bool is_over = false;
    enum sy_code rc = place_check_utf8(in, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    into->files.max = LIMIT_RULES;
    if (strv_add(&into->files, in->name) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    im.name = s.name = into->files.v[into->files.n - 1];
    while (rc == SY_E_OK && !is_over) {
        struct starlark_call call;

        rc = starlark_next(&s, &call, &is_over);
        if (rc == SY_E_OK && !is_over) {
            rc = convert(&im, &call);
        }
        starlark_call_fini(&call);
    }
    return rc == SY_E_OK ? rules_check_examples(into, first, err) : rc;
}
