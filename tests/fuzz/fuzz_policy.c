/*
 * The policy that another program hands to shellyard-launch. What is read is written again as a
 * policy that is the same, byte by byte; what is refused is told and leaves nothing.
 */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "sandbox/document.h"

static void
check_written(const struct sandbox_policy *p)
{
    struct buf text = {.max = LIMIT_CLI_TEXT};
    struct jw w = {.out = &text};
    struct sandbox_policy again;

    jw_object(&w);
    sandbox_policy_write(&w, p);
    jw_key_exact_list(&w, "deny_read", strv_view(&p->deny_read));
    jw_key_exact_list(&w, "protected_names", strv_view(&p->protected_names));
    jw_end_object(&w);
    CHECK(jw_done(&w) == SY_E_OK);
    CHECK(sandbox_policy_read(&again, buf_view(&text), text.len, NULL) == SY_E_OK);
    CHECK(sandbox_policy_equal(p, &again));
    CHECK(strv_eq(&p->protected_names, &again.protected_names));
    sandbox_policy_fini(&again);
    buf_fini(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();
    struct sy_error err = {0};
    struct sandbox_policy p;
    char *text = mem_alloc(size + 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (sandbox_policy_read(&p, text, size, &err) == SY_E_OK) {
        CHECK(p.cwd != NULL && p.cwd[0] == '/');
        check_written(&p);
        sandbox_policy_fini(&p);
    } else {
        CHECK(err.code != SY_E_OK && err.msg[0] != '\0');
    }
    mem_free(text);
    CHECK(mem_live() == live);
    return 0;
}
