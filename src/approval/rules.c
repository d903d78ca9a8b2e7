#include "approval/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

const char *
rule_decision_name(enum rule_decision d)
{
    static const char *const names[] = {
        [RULE_NONE] = "none", [RULE_ALLOW] = "allow", [RULE_ASK] = "ask", [RULE_FORBID] = "forbid"};

    return names[d];
}

const char *
rule_protocol_name(enum rule_protocol p)
{
    static const char *const names[] = {
        [RULE_PROTOCOL_HTTP] = "http",
        [RULE_PROTOCOL_HTTPS] = "https",
        [RULE_PROTOCOL_SOCKS5_TCP] = "socks5_tcp",
        [RULE_PROTOCOL_SOCKS5_UDP] = "socks5_udp",
    };

    return names[p];
}

void
rule_fini(struct rule *r)
{
    strv_fini(&r->programs);
    for (size_t i = 0; i < r->args_n; i++) {
        strv_fini(&r->args[i]);
    }
    mem_free(r->args);
    strv_fini(&r->cwds);
    strv_fini(&r->env);
    strv_fini(&r->steer);
    mem_free(r->reason);
    for (size_t i = 0; i < r->examples_n; i++) {
        strv_fini(&r->examples[i].argv);
    }
    mem_free(r->examples);
    *r = (struct rule){0};
}

void
rule_program_fini(struct rule_program *p)
{
    mem_free(p->name);
    strv_fini(&p->paths);
    *p = (struct rule_program){0};
}

void
rule_network_fini(struct rule_network *n)
{
    mem_free(n->host);
    mem_free(n->reason);
    *n = (struct rule_network){0};
}

void
rules_fini(struct rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        rule_fini(&r->rules[i]);
    }
    for (size_t i = 0; i < r->programs_n; i++) {
        rule_program_fini(&r->programs[i]);
    }
    for (size_t i = 0; i < r->network_n; i++) {
        rule_network_fini(&r->network[i]);
    }
    mem_free(r->rules);
    mem_free(r->programs);
    mem_free(r->network);
    strv_fini(&r->files);
    *r = (struct rules){0};
}

/* Room for one more of `size` bytes behind n; sizes double. NULL: *ret_rc says why. */
static void *
grown(void *list, size_t n, size_t size, enum sy_code *ret_rc)
{
    size_t bytes = 0;

    *ret_rc = SY_E_LIMIT;
    if (n >= LIMIT_RULES) {
        return NULL;
    }
    *ret_rc = SY_E_OK;
    if (n != 0 && (n & (n - 1)) != 0) {
        return list;
    }

    void *more = size_mul(&bytes, n == 0 ? 1 : 2 * n, size) ? mem_realloc(list, bytes) : NULL;

    *ret_rc = more != NULL ? SY_E_OK : SY_E_NOMEM;
    return more;
}

enum sy_code
rules_add(struct rules *r, struct rule *take)
{
    enum sy_code rc = SY_E_OK;
    struct rule *list = grown(r->rules, r->n, sizeof(*list), &rc);

    if (list == NULL) {
        return rc;
    }
    r->rules = list;
    list[r->n++] = *take;
    *take = (struct rule){0};
    return SY_E_OK;
}

enum sy_code
rules_add_program(struct rules *r, struct rule_program *take)
{
    enum sy_code rc = SY_E_OK;
    struct rule_program *list = grown(r->programs, r->programs_n, sizeof(*list), &rc);

    if (list == NULL) {
        return rc;
    }
    r->programs = list;
    list[r->programs_n++] = *take;
    *take = (struct rule_program){0};
    return SY_E_OK;
}

enum sy_code
rules_add_network(struct rules *r, struct rule_network *take)
{
    enum sy_code rc = SY_E_OK;
    struct rule_network *list = grown(r->network, r->network_n, sizeof(*list), &rc);

    if (list == NULL) {
        return rc;
    }
    r->network = list;
    list[r->network_n++] = *take;
    *take = (struct rule_network){0};
    return SY_E_OK;
}

/* Appends within the title, marking what is cut. */
static void
title_add(struct rule_title *t, const char *text)
{
    static const char dots[] = "...";
    size_t used = strlen(t->text);
    size_t len = strlen(text);
    size_t room = sizeof(t->text) - sizeof(dots) - used;

    if (used >= sizeof(dots) - 1 && str_ends(t->text, dots)) {
        return;
    }
    if (len <= room) {
        memcpy(t->text + used, text, len + 1);
    } else {
        memcpy(t->text + used, dots, sizeof(dots));
    }
}

static void
title_add_words(struct rule_title *t, const struct strv *words)
{
    struct place_shown shown;

    title_add(t, words->n > 1 ? "{" : "");
    for (size_t i = 0; i < words->n; i++) {
        title_add(t, i > 0 ? "|" : "");
        title_add(t, place_visible(&shown, words->v[i], strlen(words->v[i])));
    }
    title_add(t, words->n > 1 ? "}" : "");
}

const char *
rule_title(struct rule_title *ret, const struct rule *r)
{
    ret->text[0] = '\0';
    title_add_words(ret, &r->programs);
    for (size_t i = 0; i < r->args_n; i++) {
        title_add(ret, " ");
        title_add_words(ret, &r->args[i]);
    }
    return ret->text;
}
