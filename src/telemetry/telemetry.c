#include "base/mem.h"
#include "telemetry/telemetry_internal.h"

struct telemetry {
    struct metrics *metrics;
    struct event_bus *bus; /* NULL: it has ended */
    uint64_t subscription;
    struct keeper *keeper;     /* NULL: nothing is stored */
    struct exporter *exporter; /* NULL: nothing is exported */
};

bool
told_is_new(struct told *told, int64_t kind)
{
    for (size_t i = 0; i < told->n; i++) {
        if (told->kinds[i] == kind) {
            return false;
        }
    }
    if (told->n == TOLD_MAX) {
        return false;
    }
    told->kinds[told->n++] = kind;
    return true;
}

uv_timer_t *
telemetry_timer_new(uv_loop_t *loop, void *data)
{
    uv_timer_t *timer = mem_alloc_zero(1, sizeof(*timer));

    if (timer == NULL) {
        return NULL;
    }
    SY_ASSERT(uv_timer_init(loop, timer) == 0);
    timer->data = data;
    uv_unref((uv_handle_t *)timer);
    return timer;
}

static void
on_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

void
telemetry_timer_end(uv_timer_t *timer)
{
    if (timer != NULL) {
        uv_close((uv_handle_t *)timer, on_closed);
    }
}

static void
on_event(void *arg, const struct event *e)
{
    struct telemetry *t = arg;

    metrics_on_event(t->metrics, e);
    if (t->keeper != NULL) {
        keeper_news(t->keeper);
    }
    if (t->exporter != NULL) {
        exporter_news(t->exporter);
    }
}

static enum sy_code
make_parts(struct telemetry *t, const struct telemetry_options *o, struct sy_error *err)
{
    const struct keeper_options keeper = {
        .metrics = t->metrics,
        .loop = o->loop,
        .state_dir = o->state_dir,
        .warn = o->warn,
    };
    const struct exporter_options exporter = {
        .metrics = t->metrics,
        .loop = o->loop,
        .config = o->config,
        .http_path = o->http_path,
        .environ_list = o->environ_list,
        .warn = o->warn,
    };
    enum sy_code rc = SY_E_OK;

    if (o->config->telemetry.metrics && o->state_dir != NULL) {
        rc = keeper_new(&t->keeper, &keeper, err);
    }
    if (rc == SY_E_OK && o->config->telemetry.otlp_endpoint[0] != '\0') {
        rc = exporter_new(&t->exporter, &exporter, err);
    }
    return rc;
}

enum sy_code
telemetry_new(struct telemetry **ret, const struct telemetry_options *options, struct sy_error *err)
{
    bool is_wanted = (options->config->telemetry.metrics && options->state_dir != NULL) ||
                     options->config->telemetry.otlp_endpoint[0] != '\0';

    if (!is_wanted) {
        return SY_E_OK;
    }

    struct telemetry *t = mem_alloc_zero(1, sizeof(*t));

    if (t == NULL) {
        return sy_err_nomem(err);
    }
    t->metrics = metrics_new();

    enum sy_code rc = t->metrics != NULL ? make_parts(t, options, err) : sy_err_nomem(err);

    if (rc == SY_E_OK) {
        t->subscription = event_subscribe_to(options->bus, METRICS_EVENTS, on_event, t);
        rc = t->subscription != 0 ? SY_E_OK : sy_err_nomem(err);
    }
    if (rc != SY_E_OK) {
        telemetry_end(t);
        telemetry_free(t);
        return rc;
    }
    t->bus = options->bus;
    *ret = t;
    return SY_E_OK;
}

void
telemetry_end(struct telemetry *t)
{
    if (t == NULL) {
        return;
    }
    if (t->bus != NULL) {
        event_unsubscribe(t->bus, t->subscription);
        t->bus = NULL;
    }
    /* The export first: how it ends is known too late to be stored, however it ends. */
    if (t->exporter != NULL) {
        exporter_end(t->exporter);
    }
    if (t->keeper != NULL) {
        keeper_end(t->keeper);
    }
}

void
telemetry_free(struct telemetry *t)
{
    if (t == NULL) {
        return;
    }
    exporter_free(t->exporter);
    keeper_free(t->keeper);
    metrics_free(t->metrics);
    mem_free(t);
}
