/*
 * The whole table of decisions: each policy, sandbox, escalation, rule and
 * class. golden/decisions.txt is what people read to see what happens when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "approval/approval.h"
#include "approval/rules.h"
#include "base/str.h"
#include "golden_text.h"

static const char *golden_dir;

struct policy {
    const char *name;
    enum approval_policy policy;
    struct approval_granular granular;
    bool asks_for_all;
};

static const struct policy policies[] = {
    {"never",            APPROVAL_NEVER,          {0},                                       false},
    {"on-failure",       APPROVAL_ON_FAILURE,     {0},                                       false},
    {"on-request",       APPROVAL_ON_REQUEST,     {0},                                       false},
    {"on-request all",   APPROVAL_ON_REQUEST,     {0},                                       true },
    {"unless-trusted",   APPROVAL_UNLESS_TRUSTED, {0},                                       false},
    {"granular nothing", APPROVAL_GRANULAR,       {0},                                       false},
    {"granular sandbox", APPROVAL_GRANULAR,       {.sandbox_approval = true},                false},
    {"granular rules",   APPROVAL_GRANULAR,       {.rules = true},                           false},
    {"granular both",    APPROVAL_GRANULAR,       {.sandbox_approval = true, .rules = true}, false},
};

static const enum sandbox_mode modes[] = {SANDBOX_READ_ONLY, SANDBOX_WORKSPACE_WRITE,
                                          SANDBOX_EXTERNAL, SANDBOX_DANGER_FULL_ACCESS};

/* As rules_decide() gives them. */
static const struct {
    const char *name;
    struct rule_verdict verdict;
} rules[] = {
    {"-",         {.decision = RULE_NONE}                                                            },
    {"allow",     {.decision = RULE_ALLOW, .reason = "the command is allowed by a rule"}             },
    {"allow out",
     {.decision = RULE_ALLOW, .lifts_sandbox = true, .reason = "the command is allowed by a rule"}   },
    {"ask",       {.decision = RULE_ASK, .reason = "the command needs a person's approval by a rule"}},
    {"forbid",    {.decision = RULE_FORBID, .reason = "the command is forbidden by a rule"}          },
};

#define POLICIES (sizeof(policies) / sizeof(policies[0]))
#define MODES    (sizeof(modes) / sizeof(modes[0]))
#define RULES    (sizeof(rules) / sizeof(rules[0]))
#define CLASSES  4

/* One case of the table. */
struct which {
    size_t policy;
    size_t mode;
    size_t escalates;
    size_t rule;
    size_t class;
};

static struct requirement_input
input_of(const struct which *w)
{
    return (struct requirement_input){
        .policy = policies[w->policy].policy,
        .granular = policies[w->policy].granular,
        .asks_for_all = policies[w->policy].asks_for_all,
        .mode = modes[w->mode],
        .class = (enum approval_class)w->class,
        .escalates = w->escalates != 0,
        .rule = w->rule == 0 ? NULL : &rules[w->rule].verdict,
    };
}

static struct requirement
decide(const struct which *w)
{
    const struct requirement_input in = input_of(w);
    struct requirement r;

    requirement_decide(&r, &in);
    return r;
}

/* The next case; false behind the last. The class changes fastest. */
static bool
step(struct which *w)
{
    size_t *const wheels[] = {&w->class, &w->rule, &w->escalates, &w->mode, &w->policy};
    const size_t sizes[] = {CLASSES, RULES, 2, MODES, POLICIES};

    for (size_t i = 0; i < 5; i++) {
        if (++*wheels[i] < sizes[i]) {
            return true;
        }
        *wheels[i] = 0;
    }
    return false;
}

static void
add_cell(struct buf *out, const struct requirement *r)
{
    static const char *const kinds[] = {
        [REQUIREMENT_SKIP] = "run",
        [REQUIREMENT_NEEDS_APPROVAL] = "ASK",
        [REQUIREMENT_FORBIDDEN] = "no",
    };
    static const char *const causes[] = {
        [REQUIREMENT_BY_POLICY] = "policy",
        [REQUIREMENT_BY_RULE] = "rule",
        [REQUIREMENT_BY_CLASS] = "class",
        [REQUIREMENT_BY_ESCALATION] = "escalation",
    };

    assert_int_equal(buf_addf(out, " | %-3s %s%-*s", kinds[r->kind],
                              r->bypass_sandbox ? "OUTSIDE " : "", r->bypass_sandbox ? 4 : 12,
                              causes[r->cause]),
                     SY_E_OK);
}

static void
add_row_name(struct buf *out, const struct which *w)
{
    if (w->mode == 0 && w->escalates == 0 && w->rule == 0) {
        assert_int_equal(
            buf_addf(out,
                     "\n%-17s| %-19s| %-9s | %-9s | safe             | other            "
                     "| dangerous        | catastrophic\n",
                     policies[w->policy].name, "sandbox", "escalates", "rule"),
            SY_E_OK);
    }
    assert_int_equal(buf_addf(out, "%-17s| %-19s| %-9s | %-9s", "",
                              sandbox_mode_name(modes[w->mode]), w->escalates != 0 ? "yes" : "-",
                              rules[w->rule].name),
                     SY_E_OK);
}

/* Without the blanks at its end. */
static void
end_row(struct buf *out)
{
    while (out->data[out->len - 1] == ' ') {
        out->data[--out->len] = '\0';
    }
    assert_int_equal(buf_add_char(out, '\n'), SY_E_OK);
}

static void
remember(struct strv *reasons, const char *reason)
{
    for (size_t i = 0; i < reasons->n; i++) {
        if (str_eq(reasons->v[i], reason)) {
            return;
        }
    }
    assert_int_equal(strv_add(reasons, reason), SY_E_OK);
}

static void
the_table_of_decisions_is_as_it_was_agreed(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 1 << 20};
    SY_AUTO(strv_fini) struct strv reasons = {.max = 256};
    struct which w = {0};

    (void)state;
    assert_int_equal(
        buf_add_str(&out, "What a call needs before it may run: run, ASK a person, or no; and what "
                          "decided.\nOUTSIDE: without the sandbox.\n"),
        SY_E_OK);
    do {
        struct requirement r = decide(&w);

        if (w.class == 0) {
            add_row_name(&out, &w);
        }
        add_cell(&out, &r);
        if (w.class == CLASSES - 1) {
            end_row(&out);
        }
        assert_true(r.reason[0] != '\0');
        remember(&reasons, r.reason);
    } while (step(&w));
    assert_int_equal(buf_add_str(&out, "\nReasons\n"), SY_E_OK);
    for (size_t i = 0; i < reasons.n; i++) {
        assert_int_equal(buf_addf(&out, "%s\n", reasons.v[i]), SY_E_OK);
    }
    golden_check(golden_dir, "decisions.txt", &out);
}

/* What holds in all of the table, whatever its text says. */
static void
no_decision_is_weaker_than_what_it_has_to_heed(void **state)
{
    struct which w = {0};

    (void)state;
    do {
        const struct requirement_input in = input_of(&w);
        struct requirement r = decide(&w);
        enum rule_decision rule = rules[w.rule].verdict.decision;
        bool is_enforced = sandbox_mode_is_enforced(in.mode);

        assert_true(rule != RULE_FORBID || r.kind == REQUIREMENT_FORBIDDEN);
        assert_true(rule != RULE_ASK || r.kind != REQUIREMENT_SKIP);
        assert_true(in.class != APPROVAL_CLASS_CATASTROPHIC || r.kind != REQUIREMENT_SKIP);
        assert_true(in.policy != APPROVAL_NEVER || r.kind != REQUIREMENT_NEEDS_APPROVAL);
        assert_true(!in.escalates || in.policy == APPROVAL_ON_REQUEST ||
                    r.kind == REQUIREMENT_FORBIDDEN);
        assert_true(in.class != APPROVAL_CLASS_DANGEROUS || rule == RULE_ALLOW ||
                    r.kind != REQUIREMENT_SKIP);
        /* Nobody leaves the sandbox unasked but by a rule that says so. */
        assert_true(!(in.escalates && is_enforced && r.kind == REQUIREMENT_SKIP) ||
                    rules[w.rule].verdict.lifts_sandbox);
        assert_true(!r.bypass_sandbox ||
                    (r.kind == REQUIREMENT_SKIP && is_enforced && rule == RULE_ALLOW &&
                     rules[w.rule].verdict.lifts_sandbox));
    } while (step(&w));
}

static void
a_worse_class_is_never_treated_better(void **state)
{
    struct which w = {0};

    (void)state;
    do {
        struct which worse = w;

        if (w.class + 1 < CLASSES) {
            worse.class ++;
            assert_true(decide(&worse).kind >= decide(&w).kind);
        }
    } while (step(&w));
}

static void
a_stricter_rule_is_never_treated_better(void **state)
{
    struct which w = {0};

    (void)state;
    do {
        struct which none = w;

        none.rule = 0;
        if (rules[w.rule].verdict.decision > RULE_ALLOW) {
            assert_true(decide(&w).kind >= decide(&none).kind);
        }
        if (rules[w.rule].verdict.decision == RULE_ALLOW) {
            assert_true(decide(&w).kind <= decide(&none).kind);
        }
    } while (step(&w));
}

static void
a_long_reason_of_a_rule_is_cut_and_still_says_what_became_of_it(void **state)
{
    struct rule_verdict rule = {.decision = RULE_ASK};
    struct requirement_input in = {.policy = APPROVAL_NEVER, .rule = &rule};
    struct requirement r;

    (void)state;
    memset(rule.reason, 'x', sizeof(rule.reason) - 1);
    requirement_decide(&r, &in);
    assert_int_equal(r.kind, REQUIREMENT_FORBIDDEN);
    assert_true(str_ends(r.reason, "x, and nobody is asked under approval.policy never: not run"));
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_decisions_is_as_it_was_agreed),
        cmocka_unit_test(no_decision_is_weaker_than_what_it_has_to_heed),
        cmocka_unit_test(a_worse_class_is_never_treated_better),
        cmocka_unit_test(a_stricter_rule_is_never_treated_better),
        cmocka_unit_test(a_long_reason_of_a_rule_is_cut_and_still_says_what_became_of_it),
    };

    golden_dir = argc > 1 ? argv[1] : "golden";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
