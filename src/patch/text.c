#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "patch/patch_internal.h"

enum sy_code
text_split(struct text *ret, const char *bytes, size_t len)
{
    struct buf *store = &ret->store;
    size_t at = 0;

    *ret = (struct text){.bytes = bytes, .len = len};
    store->max = (size_t)LIMIT_PATCH_FILE_LINES * sizeof(struct text_line);
    while (at < len) {
        const char *end = memchr(bytes + at, '\n', len - at);
        size_t n = end != NULL ? (size_t)(end - (bytes + at)) : len - at;
        bool has_cr = end != NULL && n > 0 && bytes[at + n - 1] == '\r';
        const struct text_line line = {(uint32_t)at, (uint32_t)(n - (has_cr ? 1 : 0))};
        enum sy_code rc = buf_add(store, &line, sizeof(line));

        if (rc != SY_E_OK) {
            text_fini(ret);
            return rc;
        }
        ret->ends_open = end == NULL;
        at += n + (end != NULL ? 1 : 0);
    }
    ret->v = (const void *)store->data;
    ret->n = store->len / sizeof(struct text_line);
    return SY_E_OK;
}

void
text_fini(struct text *t)
{
    for (int i = 0; i < MATCH_LEVELS; i++) {
        mem_free(t->sums[i]);
        mem_free(t->seen[i]);
    }
    buf_fini(&t->store);
    *t = (struct text){0};
}
