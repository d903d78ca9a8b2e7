#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "orchestrator/orchestrator_internal.h"

/* Which requests were told and are not yet decided: one event of each kind for one request,
 * however many calls come back to it. */

struct asked {
    char id[STORE_ID_SIZE];
    uint64_t since_ns;
};

void
asked_fini(struct asked_list *list)
{
    mem_free(list->v);
    *list = (struct asked_list){0};
}

static size_t
find(const struct asked_list *list, const char *id)
{
    size_t i = 0;

    while (i < list->n && strcmp(list->v[i].id, id) != 0) {
        i++;
    }
    return i;
}

static void
drop(struct asked_list *list, size_t i)
{
    memmove(&list->v[i], &list->v[i + 1], (list->n - i - 1) * sizeof(*list->v));
    list->n--;
}

bool
asked_add(struct asked_list *list, const char *id, uint64_t now_ns)
{
    if (find(list, id) < list->n) {
        return false;
    }
    if (list->v == NULL) {
        list->v = mem_alloc_zero(LIMIT_ASKED, sizeof(*list->v));
    }
    if (list->v == NULL) {
        return true;
    }
    if (list->n == LIMIT_ASKED) {
        drop(list, 0);
    }

    struct asked *a = &list->v[list->n++];
    size_t len = strnlen(id, sizeof(a->id) - 1);

    memcpy(a->id, id, len);
    a->id[len] = '\0';
    a->since_ns = now_ns;
    return true;
}

bool
asked_take(struct asked_list *list, const char *id, uint64_t *ret_since_ns)
{
    size_t i = find(list, id);

    if (i == list->n) {
        return false;
    }
    *ret_since_ns = list->v[i].since_ns;
    drop(list, i);
    return true;
}
