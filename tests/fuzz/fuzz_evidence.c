/*
 * What a text complains about. Whatever a command prints: each name that is told
 * is a piece of the text as it stands there, unless something is quoted for a shell ('a'$'\\n''b'),
 * and their number is bounded.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "sandbox/evidence.h"

struct told {
    const char *text;
    size_t n;
    unsigned names;
    bool is_quoted; /* a name may be told that is no piece of it */
};

static bool
on_name(void *arg, const struct named *n)
{
    struct told *t = arg;
    size_t len = strlen(n->text);

    t->names++;
    CHECK(len > 0 && len <= t->n);
    CHECK(t->is_quoted || memmem(t->text, t->n, n->text, len) != NULL);
    CHECK(t->is_quoted || memchr(n->text, '\n', len) == NULL);
    CHECK(n->port <= 65535 && (n->is_host || n->port == 0));
    CHECK(!n->is_host || (len <= 253 && n->intent == NAMED_ANY));
    return t->names < 100;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size, so that a look beyond it is found. */
    char *text = mem_alloc(size > 0 ? size : 1);
    struct told told = {.text = text, .n = size};

    CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    told.is_quoted = memmem(text, size, "'$'", 3) != NULL || memmem(text, size, "'\\''", 4) != NULL;
    evidence_scan(text, size, on_name, &told);
    CHECK(told.names <= EVIDENCE_NAMES);
    mem_free(text);
    return 0;
}
