/*
 * The reader of rules: what is accepted must be written as text that reads as
 * the same rules, and must decide about the input's own words.
 */
#include <stdint.h>
#include <string.h>

#include "approval/rules_read.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fuzz_check.h"

static void
check_error(const struct sy_error *err, enum sy_code rc)
{
    CHECK(rc == SY_E_CONFIG);
    CHECK(err->code == rc);
    CHECK(str_starts(err->msg, "rules.yaml:"));
    CHECK(utf8_is_valid(err->msg, strlen(err->msg)));
    for (const char *s = err->msg; *s != '\0'; s++) {
        CHECK((unsigned char)*s >= 0x20U && *s != 0x7F);
    }
}

static void
check_verdict(const struct rules *r, const struct strv *argv)
{
    const bool is_trusted = true;
    const struct rule_script s = {.commands = argv,
                                  .n = 1,
                                  .is_whole = true,
                                  .has_assignments = true,
                                  .is_trusted = &is_trusted,
                                  .cwd = "/"};
    struct rule_verdict v;

    rules_decide(&v, r, &s);
    CHECK((v.by == NULL) == (v.decision == RULE_NONE));
    CHECK((v.reason[0] == '\0') == (v.by == NULL));
    CHECK(!v.lifts_sandbox || v.decision == RULE_ALLOW);
    CHECK(!v.steer_runs || v.steers);
    CHECK(v.by == NULL || rules_fits(r, v.by, argv, &s));
    /* More commands are never allowed more. */
    CHECK(utf8_is_valid(v.reason, strlen(v.reason)));
}

static void
check_rules(const struct rules *r)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 64 * (size_t)LIMIT_RULES_FILE};
    SY_AUTO(buf_fini) struct buf again = {.max = 64 * (size_t)LIMIT_RULES_FILE};
    struct rules read = {0};
    struct sy_error err = {0};

    CHECK(rules_write(&text, r) == SY_E_OK);

    const struct place_text in = {.name = "rules.yaml", .text = buf_view(&text), .len = text.len};

    CHECK(rules_read(&read, &in, "/home/u", &err) == SY_E_OK);
    CHECK(rules_write(&again, &read) == SY_E_OK);
    CHECK(str_eq(buf_view(&text), buf_view(&again)));
    for (size_t i = 0; i < r->n && i < 16; i++) {
        for (size_t k = 0; k < r->rules[i].examples_n && k < 16; k++) {
            check_verdict(r, &r->rules[i].examples[k].argv);
        }
    }
    rules_fini(&read);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules r = {0};
    struct sy_error err = {0};
    size_t live = mem_live();
    const struct place_text in = {.name = "rules.yaml", .text = (const char *)data, .len = size};

    if (size > LIMIT_RULES_FILE) {
        return 0;
    }

    enum sy_code rc = rules_read(&r, &in, "/home/u", &err);

    if (rc == SY_E_OK) {
        check_rules(&r);
    } else {
        check_error(&err, rc);
    }
    rules_fini(&r);
    CHECK(mem_live() == live);
    return 0;
}
