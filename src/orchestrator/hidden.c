/*
 * What the sandbox hides and a call opened all the same: an empty file that lay over it
 * (process/template.h). All calls of one sandbox have the same ones, so a call that ran beside
 * another can't be told from it.
 */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/mem.h"
#include "orchestrator/call_internal.h"
#include "process/template.h"

/* Takes in what was opened up to now. */
static void
drain(struct sandbox_entry *e)
{
    _Alignas(struct inotify_event) char events[4096];
    struct hidden_state *h = &e->hidden;
    int fd = e->template != NULL ? template_watch_fd(e->template) : -1;
    ssize_t got = 0;

    if (fd < 0 || h->opened == NULL) {
        return;
    }
    h->clock++;
    while ((got = read(fd, events, sizeof(events))) > 0 || (got < 0 && errno == EINTR)) {
        for (ssize_t i = 0; i < got;) {
            struct inotify_event event;

            memcpy(&event, events + i, sizeof(event));
            if (event.wd > 0 && (size_t)event.wd <= h->n) {
                h->opened[event.wd - 1] = h->clock;
            }
            i += (ssize_t)(sizeof(event) + event.len);
        }
    }
}

enum sy_code
call_hidden_begin(struct orch_call *c)
{
    struct sandbox_entry *e = c->entry;
    struct hidden_state *h = &e->hidden;

    if (e->template == NULL || e->ready == NULL) {
        return SY_E_OK;
    }
    if (h->opened == NULL) {
        while (sandbox_ready_hidden(e->ready, h->n) != NULL) {
            h->n++;
        }
        h->opened = mem_alloc_zero(h->n + 1, sizeof(h->opened[0]));
        if (h->opened == NULL) {
            h->n = 0;
            return SY_E_NOMEM;
        }
    }
    drain(e);
    c->hidden_since = h->clock;
    c->watches_hidden = true;
    if (h->running++ > 0) {
        h->overlap = h->clock;
    }
    return SY_E_OK;
}

static enum sy_code
tell(struct orch_call *c, size_t i, bool is_alone)
{
    const char *path = sandbox_ready_hidden(c->entry->ready, i);
    struct sandbox_explanation why = {0};

    if (sandbox_explain(&why, c->entry->plan, OPERATION_READ, path, NULL) != SY_E_OK ||
        why.is_allowed) {
        why.rule[0] = '\0'; /* gone, or another by now */
        why.fix[0] = '\0';
    }

    const struct denial d = {
        .layer = DENIAL_MOUNT,
        .confidence = is_alone ? DENIAL_EXACT : DENIAL_INFERRED,
        .operation = sandbox_operation_name(OPERATION_READ),
        .object = mem_unconst(path),
        .rule = why.rule[0] != '\0' ? why.rule : NULL,
        .fix = why.fix[0] != '\0' ? why.fix : NULL,
    };

    return denial_add(&c->output.denials, &d);
}

void
call_hidden_end(struct orch_call *c, bool tells)
{
    if (!c->watches_hidden) {
        return;
    }

    struct hidden_state *h = &c->entry->hidden;

    c->watches_hidden = false;
    drain(c->entry);
    /* Where another one ran meanwhile it may have been that one. */
    bool is_alone = h->running == 1 && (h->overlap == 0 || h->overlap < c->hidden_since);

    h->running--;
    for (size_t i = 0; i < h->n && tells; i++) {
        if (h->opened[i] > c->hidden_since && tell(c, i, is_alone) != SY_E_OK) {
            c->output.denials.more++;
        }
    }
}
