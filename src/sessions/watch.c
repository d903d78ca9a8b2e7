/* Who is told what happens to sessions. */
#include "sessions/sessions_internal.h"

void
live_store_watch(struct live_store *s, struct live_watch *w)
{
    w->next = s->watches;
    s->watches = w;
}

void
live_store_unwatch(struct live_store *s, struct live_watch *w)
{
    struct live_watch **at = &s->watches;

    while (*at != NULL && *at != w) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = w->next;
    }
}

void
live_tell(const struct live *l, enum live_change change)
{
    if (!l->has_begun || (l->is_removed && change != LIVE_GONE)) {
        return; /* not known yet, or no more: its id may be another's by now */
    }
    for (struct live_watch *w = l->store->watches; w != NULL; w = w->next) {
        if (w->changed != NULL) {
            w->changed(w->arg, l, change);
        }
    }
}

void
live_tell_settled(const struct live_store *s)
{
    for (struct live_watch *w = s->watches; w != NULL; w = w->next) {
        if (w->settled != NULL) {
            w->settled(w->arg);
        }
    }
}
