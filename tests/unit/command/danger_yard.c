#include "danger_yard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

struct danger_verdict
danger_of(const struct judge_world *world, char *const *argv)
{
    struct danger_verdict v;

    assert_int_equal(danger_judge(&v, world, argv, NULL, NULL, NULL), SY_E_OK);
    assert_non_null(v.verdict.rule);
    return v;
}

void
expect_verdict(struct danger_verdict v, const char *what, enum danger_level level, const char *rule)
{
    if (v.level != level || (rule != NULL && strcmp(v.verdict.rule, rule) != 0)) {
        fail_msg("%s: %s, not %s: %s %s (%s), wanted rule %s", what, danger_level_name(v.level),
                 danger_level_name(level), v.verdict.rule, v.verdict.argument, v.verdict.why,
                 rule != NULL ? rule : "any");
    }
    assert_true(v.level == DANGER_NONE || v.verdict.why[0] != '\0');
}

void
expect_words(const struct judge_world *world, const char *line, enum danger_level level,
             const char *rule)
{
    struct strv argv = {.max = 64};

    for (const char *s = line + strspn(line, " "); *s != '\0'; s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");

        assert_int_equal(strv_addn(&argv, s, len), SY_E_OK);
        s += len;
    }
    expect_verdict(danger_of(world, strv_view(&argv)), line, level, rule);
    strv_fini(&argv);
}

void
expect(const char *script, enum danger_level level, const char *rule)
{
    struct judge_world world = test_world(test_reader);
    char *argv[] = {mem_unconst("bash"), mem_unconst("-lc"), mem_unconst(script), NULL};

    expect_verdict(danger_of(&world, argv), script, level, rule);
}
