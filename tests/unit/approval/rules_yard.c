#include "rules_yard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

#define COMMANDS_MAX 8

void
yard_words(struct strv *ret, const char *line)
{
    *ret = (struct strv){.max = 64};
    while (*line != '\0') {
        size_t len = strcspn(line, " ");

        assert_int_equal(strv_addn(ret, line, len), SY_E_OK);
        line += len + (line[len] == ' ' ? 1 : 0);
    }
}

static void
alternatives(struct strv *ret, const char *word)
{
    ret->max = 16;
    for (;;) {
        size_t len = strcspn(word, "|");

        assert_int_equal(strv_addn(ret, word, len), SY_E_OK);
        if (word[len] == '\0') {
            return;
        }
        word += len + 1;
    }
}

struct rule *
yard_rule(struct rules *r, enum rule_decision decision, const char *prefix)
{
    struct rule rule = {
        .at = {.name = "/etc/rules.yaml", .line = r->n + 1, .column = 1},
          .decision = decision
    };
    struct strv words;

    yard_words(&words, prefix);
    alternatives(&rule.programs, words.v[0]);
    rule.args_n = words.n - 1;
    rule.args = mem_alloc_zero(words.n, sizeof(*rule.args));
    assert_non_null(rule.args);
    for (size_t i = 1; i < words.n; i++) {
        alternatives(&rule.args[i - 1], words.v[i]);
    }
    rule.cwds.max = rule.env.max = rule.steer.max = 16;
    strv_fini(&words);
    assert_int_equal(rules_add(r, &rule), SY_E_OK);
    return &r->rules[r->n - 1];
}

/* Whoever keeps the verdict keeps the rules, and no words. */
struct rule_verdict
yard_decide_as(const struct rules *r, const char *script, const struct rule_script *as)
{
    struct strv commands[COMMANDS_MAX] = {0};
    struct rule_script s = *as;
    struct rule_verdict v;
    size_t n = 0;

    while (*script != '\0') {
        const char *end = strstr(script, " ; ");
        size_t len = end != NULL ? (size_t)(end - script) : strlen(script);
        char *line = mem_strndup(script, len);

        assert_non_null(line);
        assert_true(n < COMMANDS_MAX);
        yard_words(&commands[n++], line);
        mem_free(line);
        script += len + (end != NULL ? 3 : 0);
    }
    s.commands = commands;
    s.n = n;
    rules_decide(&v, r, &s);
    for (size_t i = 0; i < n; i++) {
        strv_fini(&commands[i]);
    }
    return v;
}

struct rule_verdict
yard_decide(const struct rules *r, const char *script)
{
    static const bool all[COMMANDS_MAX] = {true, true, true, true, true, true, true, true};
    const struct rule_script as = {
        .is_whole = true, .has_assignments = true, .is_trusted = all, .cwd = "/work"};

    return yard_decide_as(r, script, &as);
}
