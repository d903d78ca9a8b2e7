/*
 * Names of keys: each is an error with a sentence, or bytes that are not the name itself;
 * and a pasted text never leaves its brackets.
 */
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "fuzz_check.h"
#include "terminal/key.h"

static void
check_name(const char *name, const struct key_modes *modes)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 64};
    struct sy_error err = {0};
    enum sy_code rc = key_encode(&out, name, modes, &err);
    uint32_t c = 0;
    size_t n = strlen(name);

    if (rc != SY_E_OK) {
        CHECK(rc == SY_E_ARG && err.code == rc && out.len == 0);
        CHECK(err.msg[0] != '\0' && utf8_is_valid(err.msg, strlen(err.msg)));
        return;
    }
    CHECK(out.len > 0 && out.len < 24);
    /* Typed as it stands is a single character alone. */
    CHECK(out.len != n || memcmp(out.data, name, n) != 0 || utf8_decode(&c, name, n) == n);
}

static void
check_paste(const char *text, size_t n)
{
    static const char close[] = "\x1b[201~";
    struct key_modes modes = {.bracketed_paste = true};
    SY_AUTO(buf_fini) struct buf out = {.max = n + 64};
    const char *found = NULL;

    CHECK(key_paste(&out, text, n, &modes) == SY_E_OK);
    found = memmem(out.data, out.len, close, sizeof(close) - 1);
    CHECK(found == out.data + out.len - (sizeof(close) - 1));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();

    if (size == 0) {
        return 0;
    }

    struct key_modes modes = {.app_cursor = (data[0] & 1U) != 0,
                              .app_keypad = (data[0] & 2U) != 0,
                              .other_keys = (data[0] & 4U) != 0};
    char *name = mem_strndup((const char *)data + 1, size - 1);

    CHECK(name != NULL);
    check_name(name, &modes);
    mem_free(name);
    check_paste((const char *)data + 1, size - 1);
    CHECK(mem_live() == live);
    return 0;
}
