/* The reader of the journal of placeholders: what it takes can be written and read again. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "fuzz_check.h"
#include "guard/journal.h"

int
// NOLINTNEXTLINE(readability-function-cognitive-complexity): each assertion counts as a branch
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct journal_entries first = {0};
    struct journal_entries second = {0};
    struct buf text = {.max = LIMIT_GUARD_JOURNAL};

    if (journal_parse(&first, (const char *)data, size, NULL) != SY_E_OK) {
        SY_ASSERT(first.n == 0);
        return 0;
    }
    SY_ASSERT(journal_format(&text, &first) == SY_E_OK);
    SY_ASSERT(journal_parse(&second, buf_view(&text), text.len, NULL) == SY_E_OK);
    SY_ASSERT(first.n == second.n);
    for (size_t i = 0; i < first.n; i++) {
        const struct journal_entry *e = &first.v[i];

        SY_ASSERT(strcmp(e->path, second.v[i].path) == 0 && e->ino == second.v[i].ino &&
                  e->owners.n == second.v[i].owners.n);
        /* Nothing is removed by a name that is not ours, or through "..". */
        SY_ASSERT(strncmp(e->temp, ".shellyard-", 11) == 0 && strchr(e->temp, '/') == NULL);
        SY_ASSERT(e->path[0] == '/' && strstr(e->path, "/../") == NULL);
    }
    journal_entries_fini(&first);
    journal_entries_fini(&second);
    buf_fini(&text);
    return 0;
}
