/*
 * The import of `.rules` files: what is accepted must be written as text that
 * reads as the same rules.
 */
#include <stdint.h>
#include <string.h>

#include "approval/rules_import.h"
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
    CHECK(str_starts(err->msg, "a.rules:"));
    CHECK(utf8_is_valid(err->msg, strlen(err->msg)));
    for (const char *s = err->msg; *s != '\0'; s++) {
        CHECK((unsigned char)*s >= 0x20U && *s != 0x7F);
    }
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
    rules_fini(&read);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules r = {0};
    struct sy_error err = {0};
    size_t live = mem_live();
    const struct place_text in = {.name = "a.rules", .text = (const char *)data, .len = size};
    const struct rules_import_options options = {.lifts_sandbox = size % 2 == 0};

    if (size > LIMIT_RULES_FILE) {
        return 0;
    }

    enum sy_code rc = rules_import(&r, &in, &options, &err);

    if (rc == SY_E_OK) {
        check_rules(&r);
    } else {
        check_error(&err, rc);
    }
    rules_fini(&r);
    CHECK(mem_live() == live);
    return 0;
}
