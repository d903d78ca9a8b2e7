/* Those who look on at a session. */
#include "sessions/sessions_internal.h"

void
live_tap(struct live *l, struct live_tap *tap)
{
    tap->next = l->taps;
    l->taps = tap;
    live_fit(l);
}

void
live_untap(struct live *l, struct live_tap *tap)
{
    for (struct live_tap **at = &l->taps; *at != NULL; at = &(*at)->next) {
        if (*at == tap) {
            *at = tap->next;
            break;
        }
    }
    live_fit(l);
}

void
live_fit(struct live *l)
{
    unsigned rows = LIMIT_TERMINAL_ROWS;
    unsigned cols = LIMIT_TERMINAL_COLS;
    bool counts = false;

    for (const struct live_tap *t = l->taps; t != NULL; t = t->next) {
        if (t->rows == 0 || t->cols == 0) {
            continue;
        }
        counts = true;
        rows = t->rows < rows ? t->rows : rows;
        cols = t->cols < cols ? t->cols : cols;
    }
    if (counts) {
        cols = cols < 2 ? 2 : cols; /* as few as a terminal can have */
        /* One that can't be resized has ended. */
        (void)live_resize(l, rows, cols);
    }
}

void
live_tell_taps(struct live *l, enum live_news news)
{
    struct live_tap *next = NULL;
    struct live_tap *tap = l->taps;

    if (news == LIVE_NEWS_ENDED) {
        l->taps = NULL;
    }
    for (; tap != NULL; tap = next) {
        next = tap->next;
        tap->fn(tap->arg, l, news);
    }
}
