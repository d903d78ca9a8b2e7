#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "store/metric.h"
#include "store/writer.h"
#include "telemetry/telemetry_internal.h"

/* The longest between two tries while the store can't be had. */
#define BACK_OFF_MS 600000U

struct keeper {
    struct metrics *metrics;
    uv_loop_t *loop;
    char *state_dir;
    telemetry_warn_fn *warn;
    uv_timer_t *timer;
    uv_poll_t *poll; /* of the writer; NULL: nothing was stored yet */
    struct store_writer *writer;
    uint64_t wait_ms; /* grows while it fails */
    bool is_timed;    /* the timer runs */
    struct told told;
};

/* What goes to the store as one. */
struct batch {
    struct keeper *keeper;
    struct metric_cell *cells;
    size_t n;
};

static void
batch_free(struct batch *b)
{
    mem_free(b->cells);
    mem_free(b);
}

static void
has_failed(struct keeper *k, const struct sy_error *why)
{
    k->wait_ms = k->wait_ms * 2 < BACK_OFF_MS ? k->wait_ms * 2 : BACK_OFF_MS;
    if (told_is_new(&k->told, ((int64_t)why->code << 32) | why->sys)) {
        k->warn("counts are not stored for shellyard metrics", why);
    }
}

/* On the writer's thread. */
static enum sy_code
run_batch(struct store *st, void *arg, struct sy_error *err)
{
    const struct batch *b = arg;

    return store_metrics_add(st, b->cells, b->n, err);
}

static void
done_batch(void *arg, enum sy_code rc, const struct sy_error *err)
{
    struct batch *b = arg;
    struct keeper *k = b->keeper;

    if (rc == SY_E_OK) {
        k->wait_ms = LIMIT_METRICS_KEEP_MS;
        k->told.n = 0;
    } else {
        metrics_give_back(k->metrics, b->cells, b->n);
        has_failed(k, err);
        keeper_news(k);
    }
    batch_free(b);
}

static void
on_ready(uv_poll_t *handle, int status, int events)
{
    const struct keeper *k = handle->data;

    (void)status;
    (void)events;
    store_writer_dispatch(k->writer);
}

static void
on_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

static enum sy_code
open_writer(struct keeper *k, struct sy_error *err)
{
    const struct store_options options = {.dir = k->state_dir, .busy_ms = LIMIT_METRICS_BUSY_MS};
    enum sy_code rc = store_writer_open_later(&k->writer, &options, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    uv_poll_t *poll = mem_alloc_zero(1, sizeof(*poll));

    if (poll == NULL || uv_poll_init(k->loop, poll, store_writer_fd(k->writer)) != 0) {
        mem_free(poll);
        store_writer_close(k->writer);
        k->writer = NULL;
        return sy_err_nomem(err);
    }
    k->poll = poll;
    poll->data = k;
    uv_unref((uv_handle_t *)poll);
    if (uv_poll_start(poll, UV_READABLE, on_ready) != 0) {
        uv_close((uv_handle_t *)poll, on_closed);
        k->poll = NULL;
        store_writer_close(k->writer);
        k->writer = NULL;
        return sy_err_nomem(err);
    }
    return SY_E_OK;
}

static enum sy_code
submit(struct keeper *k, struct sy_error *err)
{
    struct batch *b = mem_alloc_zero(1, sizeof(*b));

    if (b == NULL || metrics_take(k->metrics, &b->cells, &b->n) != SY_E_OK) {
        mem_free(b);
        return sy_err_nomem(err);
    }
    if (b->n == 0) {
        batch_free(b);
        return SY_E_OK;
    }
    b->keeper = k;

    const struct store_job job = {.run = run_batch, .done = done_batch, .arg = b};
    enum sy_code rc = k->writer != NULL ? SY_E_OK : open_writer(k, err);

    rc = rc == SY_E_OK ? store_writer_submit(k->writer, &job, err) : rc;
    if (rc != SY_E_OK) {
        metrics_give_back(k->metrics, b->cells, b->n);
        batch_free(b);
    }
    return rc;
}

static void
store_news(struct keeper *k)
{
    struct sy_error why = {0};

    if (metrics_has_news(k->metrics) && submit(k, &why) != SY_E_OK) {
        has_failed(k, &why);
        keeper_news(k);
    }
}

static void
on_timer(uv_timer_t *timer)
{
    struct keeper *k = timer->data;

    k->is_timed = false;
    store_news(k);
}

void
keeper_news(struct keeper *k)
{
    if (!k->is_timed && k->timer != NULL) {
        k->is_timed = true;
        uv_update_time(k->loop);
        uv_timer_start(k->timer, on_timer, k->wait_ms, 0);
    }
}

enum sy_code
keeper_new(struct keeper **ret, const struct keeper_options *options, struct sy_error *err)
{
    struct keeper *k = mem_alloc_zero(1, sizeof(*k));

    if (k == NULL) {
        return sy_err_nomem(err);
    }
    k->metrics = options->metrics;
    k->loop = options->loop;
    k->warn = options->warn;
    k->wait_ms = LIMIT_METRICS_KEEP_MS;
    k->state_dir = mem_strdup(options->state_dir);
    k->timer = telemetry_timer_new(options->loop, k);
    if (k->state_dir == NULL || k->timer == NULL) {
        keeper_end(k);
        keeper_free(k);
        return sy_err_nomem(err);
    }
    *ret = k;
    return SY_E_OK;
}

void
keeper_end(struct keeper *k)
{
    telemetry_timer_end(k->timer);
    k->timer = NULL; /* from now on nothing is tried again */
    if (k->state_dir != NULL) {
        store_news(k);
    }
    if (k->poll != NULL) {
        uv_close((uv_handle_t *)k->poll, on_closed);
        k->poll = NULL;
    }
}

void
keeper_free(struct keeper *k)
{
    if (k == NULL) {
        return;
    }
    store_writer_close(k->writer);
    mem_free(k->state_dir);
    mem_free(k);
}
