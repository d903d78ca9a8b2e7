#include "peer.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "fake_tools.h"

/* What was said is kept outside of the counted and failing heap of the unit
 * under test: a fixed pool. */
static char pool[4U * 1024 * 1024];
static size_t pool_used;

static enum sy_code
on_send(void *arg, const char *json, size_t len)
{
    struct peer *p = arg;
    struct json_doc doc = {0};
    enum sy_code rc = json_parse(&doc, json, len, NULL);

    /* The check itself may run out of memory under fault injection. */
    if ((rc != SY_E_OK && rc != SY_E_NOMEM) || memchr(json, '\n', len) != NULL) {
        p->is_broken = true;
    }
    json_doc_fini(&doc);
    if (p->n < sizeof(p->said) / sizeof(p->said[0]) && pool_used + len + 1 <= sizeof(pool)) {
        p->said[p->n] = pool + pool_used;
        memcpy(p->said[p->n], json, len);
        p->said[p->n][len] = '\0';
        pool_used += len + 1;
        p->n++;
    }
    return SY_E_OK;
}

static size_t
on_backlog(void *arg)
{
    return ((struct peer *)arg)->backlog;
}

static void
on_finished(void *arg)
{
    struct peer *p = arg;

    p->has_finished = true;
    protocol_free(p->protocol);
    p->protocol = NULL;
}

enum sy_code
peer_open(struct peer *p, protocol_new_fn *front, uint64_t progress_ms)
{
    struct tool_context *context = fake_tools_new();

    if (context == NULL) {
        return SY_E_NOMEM;
    }
    *p = (struct peer){0};
    SY_ASSERT(uv_loop_init(&p->loop) == 0);

    const struct protocol_options options = {
        .context = context,
        .loop = &p->loop,
        .send = on_send,
        .backlog = on_backlog,
        .finished = on_finished,
        .arg = p,
        .progress_ms = progress_ms,
    };
    enum sy_code rc = front(&p->protocol, &options, NULL);

    pool_used = 0;
    if (rc != SY_E_OK) {
        fake_tools_free();
        SY_ASSERT(uv_loop_close(&p->loop) == 0);
    }
    return rc;
}

void
peer_close(struct peer *p)
{
    if (p->protocol != NULL) {
        protocol_on_gone(p->protocol);
    }
    fake_finish_all();
    uv_run(&p->loop, UV_RUN_DEFAULT);
    SY_ASSERT(p->has_finished);
    SY_ASSERT(uv_loop_close(&p->loop) == 0);
    SY_ASSERT(!p->is_broken);
    fake_tools_free();
}

void
peer_forget(struct peer *p)
{
    p->n = 0;
    pool_used = 0;
}

void
peer_line(struct peer *p, const char *line)
{
    protocol_on_line(p->protocol, line, strlen(line));
}

const char *
peer_ask(struct peer *p, const char *line)
{
    peer_forget(p);
    peer_line(p, line);
    return peer_said(p, 0);
}

static void
on_idle(uv_idle_t *idle)
{
    (void)idle;
}

/* The front's timers don't keep the loop alive by themselves. */
static void
turn_once(struct peer *p)
{
    uv_idle_t idle;

    SY_ASSERT(uv_idle_init(&p->loop, &idle) == 0 && uv_idle_start(&idle, on_idle) == 0);
    uv_run(&p->loop, UV_RUN_NOWAIT);
    uv_close((uv_handle_t *)&idle, NULL);
    uv_run(&p->loop, UV_RUN_NOWAIT);
}

void
peer_turn(struct peer *p, unsigned n)
{
    for (; n > 0; n--) {
        turn_once(p);
    }
}

void
peer_wait(struct peer *p, size_t n)
{
    uint64_t give_up = clock_mono_ns() + 10U * 1000000000ULL;

    while (p->n < n) {
        SY_ASSERT(clock_mono_ns() < give_up);
        turn_once(p);
    }
}

const char *
peer_said(const struct peer *p, size_t i)
{
    return i < p->n ? p->said[i] : "";
}
