#include "base/clock.h"
#include "cli/daemon.h"

static bool
is_client(const struct guest *c)
{
    return c->state == GUEST_SERVING || c->state == GUEST_ATTACHED;
}

static void
list_clients(struct daemon *d, struct jw *w)
{
    for (const struct guest *c = d->guests; c != NULL; c = c->next) {
        char id[16];

        if (!is_client(c)) {
            continue;
        }
        (void)snprintf(id, sizeof(id), "c%u", c->id);
        jw_object(w);
        jw_key_str(w, "id", id);
        jw_key_str(w, "kind", c->hello.protocol);
        jw_key_int(w, "pid", c->peer.pid);
        jw_key_str(w, "cwd", c->state == GUEST_SERVING ? c->engine.base.cwd : c->hello.cwd);
        jw_key_int(w, "age_ms", (int64_t)((clock_mono_ns() - c->since_ns) / 1000000));
        jw_end_object(w);
    }
}

static bool
kill_client(struct daemon *d, unsigned number)
{
    for (struct guest *c = d->guests; c != NULL; c = c->next) {
        if (is_client(c) && c->id == number) {
            guest_stop(c);
            return true;
        }
    }
    return false;
}

static size_t
count_guests(const struct daemon *d)
{
    return d->n_guests;
}

const struct daemon_kind daemon_kinds[] = {
    {"clients", 'c', list_clients, kill_client, count_guests},
};
const size_t daemon_kinds_n = sizeof(daemon_kinds) / sizeof(daemon_kinds[0]);
