#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/host.h"

/* What a host has, for `list` and `kill`. */

#define OWNER 16U

static void
owner_name(char ret[OWNER], const struct host_guest *c)
{
    (void)snprintf(ret, OWNER, "c%u", c->id);
}

struct live_store *
host_sessions(const struct host_guest *c)
{
    return c->engine.context != NULL ? tool_context_sessions(c->engine.context) : NULL;
}

/* The next of all its sessions, whichever subagent began it. */
static struct live *
next_session(const struct host_guest *c, const struct live *l)
{
    struct live_store *s = host_sessions(c);

    return s != NULL ? live_next(s, tool_context_session(c->engine.context), l) : NULL;
}

size_t
host_running(const struct host *h)
{
    size_t n = 0;

    for (const struct host_guest *c = h->guests; c != NULL; c = c->next) {
        n += c->state == HOST_GUEST_KEPT ? live_store_running(host_sessions(c)) : 0;
    }
    return n;
}

size_t
host_clients(const struct host *h)
{
    size_t n = 0;

    for (const struct host_guest *c = h->guests; c != NULL; c = c->next) {
        n += host_guest_is_served(c) ? 1 : 0;
    }
    return n;
}

static void
write_client(struct jw *w, const struct host_guest *c)
{
    char id[OWNER];

    owner_name(id, c);
    jw_object(w);
    jw_key_str(w, "id", id);
    jw_key_str(w, "kind", c->hello.protocol);
    jw_key_int(w, "pid", c->pid);
    jw_key_int(w, "host", getpid());
    jw_key_str(w, "cwd", c->state == HOST_GUEST_SERVING ? c->engine.base.cwd : c->hello.cwd);
    jw_key_int(w, "age_ms", (int64_t)((clock_mono_ns() - c->since_ns) / 1000000));
    jw_end_object(w);
}

static void
write_session(struct jw *w, const struct host_guest *c, const struct live *l)
{
    struct live_state state;
    char owner[OWNER];
    char text[LIVE_STATE_TEXT];

    owner_name(owner, c);
    live_get_state(l, &state);
    live_state_text(text, l);
    jw_object(w);
    jw_key_str(w, "id", live_id(l));
    jw_key_str(w, "owner", owner);
    jw_key_str(w, "kind", state.has_terminal ? "terminal" : "pipe");
    jw_key_bool(w, "running", state.is_running);
    jw_key_bool(w, "kept", c->state == HOST_GUEST_KEPT);
    jw_key_str(w, "state", text);
    jw_key_str(w, "command", state.command);
    jw_key_str(w, "cwd", state.cwd);
    jw_key_int(w, "host", getpid());
    jw_key_int(w, "age_ms", (int64_t)((clock_mono_ns() - state.began_ns) / 1000000));
    jw_end_object(w);
}

enum sy_code
host_list(struct host *h, struct buf *out)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key(&w, "clients");
    jw_array(&w);
    for (const struct host_guest *c = h->guests; c != NULL; c = c->next) {
        if (host_guest_is_served(c) || c->state == HOST_GUEST_ATTACHED) {
            write_client(&w, c);
        }
    }
    jw_end_array(&w);
    jw_key(&w, "sessions");
    jw_array(&w);
    for (const struct host_guest *c = h->guests; c != NULL; c = c->next) {
        for (const struct live *l = next_session(c, NULL); l != NULL; l = next_session(c, l)) {
            write_session(&w, c, l);
        }
    }
    jw_end_array(&w);
    jw_end_object(&w);
    return jw_done(&w);
}

/* The client of "c2", or of "c2/1234" with the session's part. */
static struct host_guest *
find_owner(const struct host *h, const char *id, const char **ret_rest)
{
    const char *slash = strchr(id, '/');
    size_t n = slash != NULL ? (size_t)(slash - id) : strlen(id);

    *ret_rest = slash != NULL ? slash + 1 : NULL;
    for (struct host_guest *c = h->guests; c != NULL; c = c->next) {
        char owner[OWNER];

        owner_name(owner, c);
        if (str_is(owner, id, n)) {
            return c;
        }
    }
    return NULL;
}

struct live *
host_find_session(struct host *h, const char *id)
{
    const char *rest = NULL;
    const struct host_guest *c = find_owner(h, id, &rest);
    struct live *l = c != NULL && rest != NULL ? next_session(c, NULL) : NULL;

    while (l != NULL && !str_eq(live_id(l), rest)) {
        l = next_session(c, l);
    }
    return l;
}

void
host_kill(struct host *h, const char *id)
{
    const char *rest = NULL;
    struct host_guest *c = find_owner(h, id, &rest);

    if (c != NULL && rest == NULL) {
        host_guest_stop(c);
    } else if (c != NULL) {
        struct live *l = host_find_session(h, id);

        if (l != NULL) {
            live_kill(l);
        }
    }
}
