/*
 * What the sandbox hides and a call opened all the same: something empty that lay over it
 * (process/template.h). All calls of one sandbox have the same, so a call that ran beside
 * another can't be told from it.
 */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/call_internal.h"
#include "process/launch_wire.h"
#include "process/launcher.h"
#include "process/template.h"

enum sy_code
hidden_init(struct hidden_state *h, size_t n)
{
    if (h->opened == NULL) {
        h->opened = mem_alloc_zero(n + 1, sizeof(h->opened[0]));
        h->n = h->opened != NULL ? n : 0;
    }
    return h->opened != NULL ? SY_E_OK : SY_E_NOMEM;
}

static void
forget_names(struct hidden_state *h)
{
    for (size_t i = 0; i < h->n_names; i++) {
        mem_free(h->names[i].name);
    }
    mem_free(h->names);
    h->names = NULL;
    h->n_names = 0;
}

void
hidden_fini(struct hidden_state *h)
{
    forget_names(h);
    mem_free(h->opened);
    h->opened = NULL;
    h->n = 0;
}

/* NULL: no room, or no memory. */
static struct hidden_name *
name_of(struct hidden_state *h, size_t i, const char *name)
{
    for (size_t k = 0; k < h->n_names; k++) {
        if (h->names[k].i == i && str_eq(h->names[k].name, name)) {
            return &h->names[k];
        }
    }
    if (h->names == NULL) {
        h->names = mem_alloc_zero(LIMIT_HIDDEN_OPENED, sizeof(h->names[0]));
    }
    if (h->names == NULL || h->n_names == LIMIT_HIDDEN_OPENED) {
        return NULL;
    }

    struct hidden_name *n = &h->names[h->n_names];

    *n = (struct hidden_name){.i = i, .name = mem_strdup(name)};
    h->n_names += n->name != NULL ? 1 : 0;
    return n->name != NULL ? n : NULL;
}

static void
take(struct hidden_state *h, size_t i, const char *name)
{
    struct hidden_name *n = name != NULL ? name_of(h, i, name) : NULL;

    if (n != NULL) {
        n->opened = h->clock;
    } else {
        /* Also where the name can't be kept: it was in here. */
        h->opened[i] = h->clock;
    }
}

/* Takes in what was opened up to now. */
static void
drain(struct hidden_state *h, int fd)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t got = 0;

    if (fd < 0 || h->opened == NULL) {
        return;
    }
    h->clock++;
    while ((got = read(fd, events, sizeof(events))) > 0 || (got < 0 && errno == EINTR)) {
        for (ssize_t i = 0; i < got;) {
            struct inotify_event event;

            memcpy(&event, events + i, sizeof(event));
            i += (ssize_t)sizeof(event);
            if (event.wd > 0 && (size_t)event.wd <= h->n) {
                take(h, (size_t)event.wd - 1, event.len > 0 ? events + i : NULL);
            }
            i += (ssize_t)event.len;
        }
    }
}

void
hidden_begin(struct hidden_state *h, int fd, uint64_t *ret_since)
{
    drain(h, fd);
    *ret_since = h->clock;
    if (h->running++ > 0) {
        h->overlap = h->clock;
    } else {
        forget_names(h);
    }
}

void
hidden_end(struct hidden_state *h, int fd, uint64_t since, hidden_fn *fn, void *arg)
{
    drain(h, fd);
    /* Where another one ran meanwhile it may have been that one. */
    bool is_alone = h->running == 1 && (h->overlap == 0 || h->overlap < since);

    h->running--;
    if (fn == NULL) {
        return;
    }
    for (size_t i = 0; i < h->n; i++) {
        if (h->opened[i] > since) {
            fn(arg, i, NULL, is_alone);
        }
    }
    for (size_t i = 0; i < h->n_names; i++) {
        if (h->names[i].opened > since) {
            fn(arg, h->names[i].i, h->names[i].name, is_alone);
        }
    }
}

enum sy_code
hidden_put_over(const struct sandbox_entry *e, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};

    for (size_t i = 0; sandbox_ready_hidden(e->ready, i) != NULL; i++) {
        char kind =
            sandbox_ready_hidden_has_names(e->ready, i) ? LAUNCH_MARK_HIDE_NAMED : LAUNCH_MARK_HIDE;
        enum sy_code rc = launcher_mark_add(&marks, kind, sandbox_ready_hidden(e->ready, i));

        if (rc != SY_E_OK) {
            return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                    : sy_err_set(err, SY_E_SANDBOX, "too much is denied to read");
        }
    }
    return marks.len > 0 ? launcher_add_marks(e->template, marks.data, marks.len, err) : SY_E_OK;
}

static int
watch_fd(const struct orch_call *c)
{
    return c->entry->template != NULL ? template_watch_fd(c->entry->template) : -1;
}

enum sy_code
call_hidden_begin(struct orch_call *c)
{
    struct sandbox_entry *e = c->entry;
    size_t n = 0;

    if (e->template == NULL || e->ready == NULL) {
        return SY_E_OK;
    }
    while (e->hidden.opened == NULL && sandbox_ready_hidden(e->ready, n) != NULL) {
        n++;
    }
    if (hidden_init(&e->hidden, n) != SY_E_OK) {
        return SY_E_NOMEM;
    }
    hidden_begin(&e->hidden, watch_fd(c), &c->hidden_since);
    c->watches_hidden = true;
    return SY_E_OK;
}

static enum sy_code
add(struct orch_call *c, const char *path, bool is_alone)
{
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

static void
tell(void *arg, size_t i, const char *name, bool is_alone)
{
    struct orch_call *c = arg;
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)LIMIT_PATH * 2};
    const char *hidden = sandbox_ready_hidden(c->entry->ready, i);
    enum sy_code rc =
        buf_addf(&path, "%s%s%s", hidden, name != NULL ? "/" : "", name != NULL ? name : "");

    if (rc == SY_E_OK) {
        rc = add(c, buf_view(&path), is_alone);
    }
    if (rc != SY_E_OK) {
        c->output.denials.more++;
    }
}

void
call_hidden_end(struct orch_call *c, bool tells)
{
    if (!c->watches_hidden) {
        return;
    }
    c->watches_hidden = false;
    hidden_end(&c->entry->hidden, watch_fd(c), c->hidden_since, tells ? tell : NULL, c);
}
