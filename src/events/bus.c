#include "events/events.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"

struct subscriber {
    uint64_t id;
    unsigned kinds;
    event_fn *fn; /* NULL: unsubscribed during an event, not yet removed */
    void *arg;
};

struct event_bus {
    struct subscriber *list;
    size_t n;
    size_t cap;
    uint64_t last_id;
    unsigned depth; /* events under way: a callback may emit another */
    bool has_gaps;
};

struct event_bus *
event_bus_new(void)
{
    return mem_alloc_zero(1, sizeof(struct event_bus));
}

void
event_bus_free(struct event_bus *bus)
{
    if (bus == NULL) {
        return;
    }
    /* Freed by a callback, the bus would go on in freed memory. */
    SY_ASSERT(bus->depth == 0);
    mem_free(bus->list);
    mem_free(bus);
}

uint64_t
event_subscribe(struct event_bus *bus, event_fn *fn, void *arg)
{
    return event_subscribe_to(bus, EVENT_ALL, fn, arg);
}

uint64_t
event_subscribe_to(struct event_bus *bus, unsigned kinds, event_fn *fn, void *arg)
{
    if (bus->n == LIMIT_SUBSCRIBERS) {
        return 0;
    }
    if (bus->n == bus->cap) {
        size_t cap = bus->cap > 0 ? bus->cap * 2 : 4;
        struct subscriber *grown = mem_realloc(bus->list, cap * sizeof(*grown));

        if (grown == NULL) {
            return 0;
        }
        bus->list = grown;
        bus->cap = cap;
    }
    bus->list[bus->n++] = (struct subscriber){++bus->last_id, kinds, fn, arg};
    return bus->last_id;
}

/* Keeps the order of subscription. */
static void
remove_gaps(struct event_bus *bus)
{
    size_t kept = 0;

    for (size_t i = 0; i < bus->n; i++) {
        if (bus->list[i].fn != NULL) {
            bus->list[kept++] = bus->list[i];
        }
    }
    bus->n = kept;
    bus->has_gaps = false;
}

void
event_unsubscribe(struct event_bus *bus, uint64_t id)
{
    for (size_t i = 0; i < bus->n; i++) {
        if (bus->list[i].id == id) {
            bus->list[i].fn = NULL;
            bus->has_gaps = true;
            break;
        }
    }
    if (bus->has_gaps && bus->depth == 0) {
        remove_gaps(bus);
    }
}

void
event_emit(struct event_bus *bus, const struct event *e)
{
    /* By index and only those of now: a callback may subscribe, which can
     * move the list, or unsubscribe, which leaves a gap until the end. */
    size_t n = bus->n;

    bus->depth++;
    for (size_t i = 0; i < n; i++) {
        struct subscriber s = bus->list[i];

        if (s.fn != NULL && (s.kinds & EVENT_BIT(e->kind)) != 0) {
            s.fn(s.arg, e);
        }
    }
    bus->depth--;
    if (bus->has_gaps && bus->depth == 0) {
        remove_gaps(bus);
    }
}

bool
event_bus_wants(const struct event_bus *bus, enum event_kind kind)
{
    for (size_t i = 0; i < bus->n; i++) {
        if (bus->list[i].fn != NULL && (bus->list[i].kinds & EVENT_BIT(kind)) != 0) {
            return true;
        }
    }
    return false;
}
