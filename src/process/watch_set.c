#include "process/watch_set.h"

#include <poll.h>
#include <uv.h>

#include "base/fd.h"
#include "base/mem.h"

struct watch {
    uv_poll_t handle;
    struct watch_set *set; /* NULL: it is being closed */
    int fd;
    short events;
    uint64_t id;
};

static void
on_ready(uv_poll_t *handle, int status, int events)
{
    struct watch *w = handle->data;

    (void)status; /* An error is found again by the owner's own read. */
    (void)events;
    if (w->set != NULL) {
        w->set->ready(w->set->arg);
    }
}

static void
on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

/* Before the descriptor is closed or reused: libuv must forget it first. */
static void
watch_end(struct watch *w)
{
    w->set = NULL;
    uv_poll_stop(&w->handle);
    fd_leave_epoll(uv_backend_fd(w->handle.loop), w->fd);
    uv_close((uv_handle_t *)&w->handle, on_closed);
}

static bool
start(struct watch *w, short events)
{
    int wanted = (events & POLLIN) != 0 ? UV_READABLE : 0;

    wanted |= (events & POLLOUT) != 0 ? UV_WRITABLE : 0;
    w->events = events;
    return uv_poll_start(&w->handle, wanted, on_ready) == 0;
}

static struct watch *
watch_new(struct watch_set *s, const struct process_watch *wanted)
{
    struct watch *w = mem_alloc_zero(1, sizeof(*w));

    if (w == NULL) {
        return NULL;
    }
    if (uv_poll_init(s->loop, &w->handle, wanted->fd) != 0) {
        mem_free(w);
        return NULL;
    }
    w->handle.data = w;
    w->set = s;
    w->fd = wanted->fd;
    w->id = wanted->id;
    if (!start(w, wanted->events)) {
        watch_end(w);
        return NULL;
    }
    if (s->keeps_no_loop) {
        uv_unref((uv_handle_t *)&w->handle);
    }
    return w;
}

static bool
is_wanted(const struct watch *w, const struct process_watch *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (wanted[i].fd == w->fd && wanted[i].id == w->id) {
            return true;
        }
    }
    return false;
}

static struct watch *
find(const struct watch_set *s, const struct process_watch *wanted)
{
    for (size_t i = 0; i < PROCESS_WATCHES; i++) {
        if (s->watches[i] != NULL && is_wanted(s->watches[i], wanted, 1)) {
            return s->watches[i];
        }
    }
    return NULL;
}

static void
drop_unwanted(struct watch_set *s, const struct process_watch *wanted, size_t n)
{
    for (size_t i = 0; i < PROCESS_WATCHES; i++) {
        if (s->watches[i] != NULL && !is_wanted(s->watches[i], wanted, n)) {
            watch_end(s->watches[i]);
            s->watches[i] = NULL;
        }
    }
}

bool
watch_set_follow(struct watch_set *s, const struct process_watch *wanted, size_t n)
{
    drop_unwanted(s, wanted, n);
    for (size_t i = 0; i < n; i++) {
        struct watch *there = find(s, &wanted[i]);
        size_t slot = 0;

        if (there != NULL) {
            if (there->events != wanted[i].events && !start(there, wanted[i].events)) {
                return false;
            }
            continue;
        }
        while (slot < PROCESS_WATCHES && s->watches[slot] != NULL) {
            slot++;
        }
        SY_ASSERT(slot < PROCESS_WATCHES);
        s->watches[slot] = watch_new(s, &wanted[i]);
        if (s->watches[slot] == NULL) {
            return false;
        }
    }
    return true;
}

void
watch_set_end(struct watch_set *s)
{
    drop_unwanted(s, NULL, 0);
}
