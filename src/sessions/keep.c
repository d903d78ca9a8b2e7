/* Sessions that outlive who began them, and pass to another. */
#include "sessions/sessions_internal.h"

static bool
runs(const struct live *l)
{
    return l->has_begun && !l->is_over;
}

void
live_store_keep(struct live_store *s, bool keeps_pipes)
{
    bool keeps_some = false;
    struct live *next = NULL;

    for (struct live *l = s->first; l != NULL; l = next) {
        next = l->next;
        if (l->is_over) {
            continue;
        }
        if (runs(l) && (l->has_terminal || keeps_pipes)) {
            keeps_some = true;
        } else {
            live_remove(l, NULL);
        }
    }
    if (!keeps_some) {
        /* What has ended is nobody's alone. */
        while (s->first != NULL) {
            live_remove(s->first, NULL);
        }
    }
}

bool
live_store_has_settled(const struct live_store *s)
{
    return s->leaving == NULL;
}

bool
live_has_settled_within(const struct live_store *s, const struct session *who)
{
    const struct live *l = s->leaving;

    while (l != NULL && !live_is_of(l, who)) {
        l = l->next;
    }
    return l == NULL;
}

static void
take(struct live_store *to, struct session *who, struct live_store *from, struct live *l)
{
    live_store_forget(from, l);
    if (l->home == NULL) {
        l->home = from;
        from->lent++;
    }
    session_ref(who);
    session_unref(l->heir);
    l->heir = who;
    l->store = to;
    live_store_add(to, l);
    if (runs(l)) {
        from->running--;
        to->running++;
    }
}

void
live_store_lend(struct live_store *to, struct session *who, struct live_store *from)
{
    struct live *next = NULL;

    for (struct live *l = from->first; l != NULL; l = next) {
        next = l->next;
        if (l->session != NULL && to->n < to->options.max && live_store_find(to, l->id) == NULL) {
            take(to, who, from, l);
        }
    }
}
