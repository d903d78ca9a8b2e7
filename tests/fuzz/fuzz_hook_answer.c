/*
 * The reader of a hook's answer: what is accepted is one decision with all that belongs to it,
 * and its words can be shown.
 */
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "fuzz_check.h"
#include "hook/hook.h"

static void
check_shown(const char *text)
{
    CHECK(utf8_is_valid(text, strlen(text)));
    for (const char *s = text; *s != '\0'; s++) {
        CHECK((unsigned char)*s >= 0x20U && *s != 0x7F);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hook_answer a;
    struct sy_error err = {0};
    size_t live = mem_live();
    enum sy_code rc = hook_answer_read(&a, (const char *)data, size, &err);

    if (rc == SY_E_OK) {
        CHECK((a.decision == HOOK_REWRITE) == (a.command.n > 0));
        CHECK(a.command.n == 0 || a.command.v[0][0] != '\0');
        CHECK(!a.has_failed);
    } else {
        CHECK(rc == SY_E_PARSE && err.code == rc && err.msg[0] != '\0');
        CHECK(a.decision == HOOK_NONE && a.command.n == 0);
        check_shown(err.msg);
    }
    check_shown(a.reason);
    hook_answer_fini(&a);
    CHECK(mem_live() == live);
    return 0;
}
