/*
 * Regular expressions: the first line is one, the rest a text, which is searched whole and
 * in pieces. What is found lies in the text and in order; in pieces something is found no
 * later than in the whole.
 */
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "output/pattern.h"

/* Where the first match ends; UINT64_MAX: none, or no answer. */
static uint64_t
search(struct pattern *p, const char *text, size_t n, size_t piece, bool *ret_has_failed)
{
    struct pattern_scan *s = pattern_scan_new(p);
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;

    CHECK(s != NULL);
    for (size_t i = 0; i < n; i += piece) {
        size_t len = piece < n - i ? piece : n - i;
        bool found = true;

        CHECK(pattern_scan_feed(s, text + i, len) == SY_E_OK);
        while (found) {
            struct pattern_match m = {0, 0};
            struct sy_error err = {0};
            enum sy_code rc = pattern_scan_next(s, &m, &found, &err);

            if (rc != SY_E_OK) {
                CHECK(rc == SY_E_LIMIT && !found && err.msg[0] != '\0');
                *ret_has_failed = true;
            }
            if (found) {
                CHECK(m.start <= m.end && m.end <= i + len && m.end >= last);
                last = m.end;
                first = first == UINT64_MAX ? m.end : first;
            }
        }
    }
    pattern_scan_free(s);
    return first;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();
    const char *bytes = (const char *)data;
    const char *newline = size > 1 ? memchr(bytes + 1, '\n', size - 1) : NULL;
    struct pattern *p = NULL;
    struct sy_error err = {0};

    if (newline == NULL || size > 4096) {
        return 0;
    }

    size_t n = (size_t)(newline - bytes) - 1;
    enum sy_code rc = pattern_new(&p, bytes + 1, n, NULL, &err);

    if (rc == SY_E_OK) {
        bool has_failed = false;
        size_t left = size - n - 2;
        uint64_t whole = search(p, newline + 1, left, LIMIT_PATTERN_WINDOW, &has_failed);
        uint64_t cut = search(p, newline + 1, left, 1 + data[0] % 32U, &has_failed);

        /* A look behind \G, or a verb, is about the search and not about the text. */
        CHECK(has_failed || cut <= whole || memchr(bytes, '(', n + 1) != NULL ||
              memchr(bytes, '\\', n + 1) != NULL || memchr(bytes, '$', n + 1) != NULL);
        pattern_free(p);
    } else {
        CHECK(rc == SY_E_ARG && err.msg[0] != '\0');
    }
    CHECK(mem_live() == live);
    return 0;
}
