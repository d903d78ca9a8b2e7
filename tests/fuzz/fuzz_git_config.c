/* The reader of git configuration, and the judge of its settings. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "guard/git_config.h"

static enum sy_code
// NOLINTNEXTLINE(readability-function-cognitive-complexity): each assertion counts as a branch
on_entry(void *arg, const struct git_config_entry *e)
{
    char *roots[] = {mem_unconst("/W"), NULL};
    const struct git_config_place at = {.git_dir = "/W/.git", .roots = roots};

    SY_ASSERT(e->section != NULL && e->key[0] != '\0');
    SY_ASSERT(e->section[strcspn(e->section, "ABCDEFGHIJKLMNOPQRSTUVWXYZ \n")] == '\0');
    /* Whatever else: these are never harmless. */
    if (git_config_is_harmless(e, &at)) {
        SY_ASSERT(strcmp(e->section, "alias") != 0 && strcmp(e->section, "include") != 0);
        SY_ASSERT(strcmp(e->key, "hookspath") != 0 && strcmp(e->key, "sshcommand") != 0);
        SY_ASSERT(e->value == NULL || strcmp(e->key, "url") != 0 ||
                  strncmp(e->value, "ext::", 5) != 0);
    }
    return buf_addf(arg, "%s\n%s\n%s\n%s\n", e->section, e->subsection != NULL ? e->subsection : "",
                    e->key, e->value != NULL ? e->value : "");
}

int
// NOLINTNEXTLINE(readability-function-cognitive-complexity): each assertion counts as a branch
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct buf first = {.max = (size_t)LIMIT_GIT_CONFIG * 8};
    struct buf second = {.max = (size_t)LIMIT_GIT_CONFIG * 8};
    enum sy_code rc = git_config_read(text, size, on_entry, &first, NULL);

    /* What a mark of the byte order and the ends of lines are changes nothing. */
    struct buf other = {.max = size * 2 + 16};
    bool has_mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;

    SY_ASSERT(buf_add_str(&other, has_mark ? "" : "\xef\xbb\xbf") == SY_E_OK);
    for (size_t i = 0; i < size; i++) {
        bool is_end = text[i] == '\n' && (i == 0 || text[i - 1] != '\r');

        SY_ASSERT(buf_add(&other, is_end ? "\r\n" : text + i, is_end ? 2 : 1) == SY_E_OK);
    }
    SY_ASSERT(git_config_read(buf_view(&other), other.len, on_entry, &second, NULL) == rc);
    SY_ASSERT(first.len == second.len && strcmp(buf_view(&first), buf_view(&second)) == 0);
    buf_fini(&first);
    buf_fini(&second);
    buf_fini(&other);
    return 0;
}
