#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/http.h"
#include "telemetry/telemetry_internal.h"

#define METRICS_PATH "/v1/metrics"
#define INSTANCE_LEN 33U
#define FIRST_RETRY  1000U

struct exporter {
    struct metrics *metrics;
    uv_loop_t *loop;
    const struct config *config;
    telemetry_warn_fn *warn;
    char *http_path;
    char *url;
    char instance[INSTANCE_LEN];
    struct http_client client;
    struct http_exchange *exchange; /* NULL: none goes on */
    uv_timer_t *timer;
    bool has_begun;
    bool is_ending;
    uint64_t retry_ms; /* 0: the last one went well */
    struct told told;
};

static void send_now(struct exporter *x, uint64_t timeout_ms);

static uint64_t
interval_ms(const struct exporter *x)
{
    return (uint64_t)x->config->telemetry.otlp_interval_ms;
}

static void
on_timer(uv_timer_t *timer)
{
    struct exporter *x = timer->data;
    uint64_t most = interval_ms(x);

    send_now(x, most < LIMIT_EXPORT_MS ? most : LIMIT_EXPORT_MS);
}

/* The next one: after the interval, or sooner while the last one may be repeated. */
static void
plan(struct exporter *x)
{
    uint64_t most = interval_ms(x);

    if (!x->is_ending) {
        uv_update_time(x->loop);
        uv_timer_start(x->timer, on_timer,
                       x->retry_ms > 0 && x->retry_ms < most ? x->retry_ms : most, 0);
    }
}

/* What was counted since the start goes again with the next one, so nothing waits in a queue. */
static void
has_failed(struct exporter *x, int64_t kind, bool is_passing, const struct sy_error *why)
{
    metrics_count(x->metrics, METRIC_EXPORTS, "failed", NULL, 1);
    if (!is_passing) {
        x->retry_ms = UINT64_MAX;
    } else if (x->retry_ms == 0 || x->retry_ms == UINT64_MAX) {
        x->retry_ms = FIRST_RETRY;
    } else if (x->retry_ms < interval_ms(x)) {
        x->retry_ms *= 2;
    }
    if (told_is_new(&x->told, kind)) {
        x->warn("metrics are not exported", why);
    }
}

/* A collector may take a part: the numbers that it refused, and why, in its own words. */
static void
look_at_answer(struct exporter *x, const struct http_answer *a)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    SY_AUTO(buf_fini) struct buf said = {.max = SY_ERR_MSG_MAX};
    struct sy_error why = {0};
    const char *message = NULL;

    x->retry_ms = 0;
    if (a->len == 0 || json_parse(&doc, a->body, a->len, NULL) != SY_E_OK) {
        metrics_count(x->metrics, METRIC_EXPORTS, "ok", NULL, 1);
        x->told.n = 0;
        return;
    }

    const struct js *part = js_get(doc.root, "partialSuccess");
    const struct js *rejected = js_get(part, "rejectedDataPoints");
    bool is_partial = js_type(rejected) != JS_NULL &&
                      !(js_type(rejected) == JS_STRING && str_eq(js_str(rejected), "0"));

    message = js_str(js_get(part, "errorMessage"));
    metrics_count(x->metrics, METRIC_EXPORTS, is_partial ? "partial" : "ok", NULL, 1);
    if (!is_partial) {
        x->told.n = 0;
    } else if (told_is_new(&x->told, INT64_MIN)) {
        if (message == NULL ||
            str_add_visible(&said, message, strlen(message), SY_ERR_MSG_MAX / 2) != SY_E_OK) {
            buf_reset(&said);
        }
        (void)sy_err_set(&why, SY_E_PARSE, "the collector refused a part: %s", buf_view(&said));
        x->warn("metrics are not exported whole", &why);
    }
}

static void
on_answer(void *arg, const struct http_answer *a)
{
    struct exporter *x = arg;
    SY_AUTO(buf_fini) struct buf said = {.max = SY_ERR_MSG_MAX};
    struct sy_error why = {0};
    bool is_passing = a->status == 429 || a->status == 502 || a->status == 503 || a->status == 504;

    x->exchange = NULL;
    if (a->err.code != SY_E_OK) {
        has_failed(x, a->err.code, a->err.code != SY_E_ARG, &a->err);
    } else if (a->status >= 200 && a->status < 300) {
        look_at_answer(x, a);
    } else {
        if (str_add_visible(&said, a->body, a->len, SY_ERR_MSG_MAX / 3) != SY_E_OK) {
            buf_reset(&said);
        }
        (void)sy_err_set(&why, SY_E_PARSE, "status %d of HTTP: %s", a->status, buf_view(&said));
        has_failed(x, 1000 + (int64_t)a->status, is_passing, &why);
    }
    plan(x);
}

static enum sy_code
post(struct exporter *x, const struct buf *body, uint64_t timeout_ms, struct sy_error *err)
{
    struct headers headers;
    enum sy_code rc = headers_read(&headers, x->config, x->client.environ_list, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    const struct http_request request = {
        .url = x->url,
        .headers = headers.list,
        .body = buf_view(body),
        .len = body->len,
        .timeout_ms = (uint32_t)timeout_ms,
        .max_bytes = LIMIT_EXPORT_ANSWER,
    };

    rc = http_post(&x->exchange, &x->client, &request, on_answer, x, err);
    headers_fini(&headers);
    return rc;
}

static void
send_now(struct exporter *x, uint64_t timeout_ms)
{
    SY_AUTO(buf_fini) struct buf body = {.max = LIMIT_HTTP_BODY};
    const struct metrics_otlp about = {
        .version = SY_VERSION,
        .instance = x->instance,
        .now_ns = clock_wall_ns(),
    };
    struct sy_error why = {0};
    enum sy_code rc = metrics_write_otlp(&body, x->metrics, &about);

    rc = rc == SY_E_OK ? post(x, &body, timeout_ms, &why) : sy_err_nomem(&why);
    if (rc != SY_E_OK) {
        has_failed(x, rc, false, &why);
        plan(x);
    }
}

void
exporter_news(struct exporter *x)
{
    if (!x->has_begun) {
        x->has_begun = true;
        plan(x);
    }
}

static enum sy_code
fill(struct exporter *x, const struct exporter_options *o, struct sy_error *err)
{
    unsigned char random[(INSTANCE_LEN - 1) / 2];
    const char *base = o->config->telemetry.otlp_endpoint;
    SY_AUTO(buf_fini) struct buf url = {.max = LIMIT_PATH};
    size_t len = strlen(base);

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return sy_err_set(err, SY_E_SYS, "making an id for exports: no random bytes");
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        (void)snprintf(x->instance + 2 * i, 3, "%02x", (unsigned)random[i]);
    }
    while (len > 0 && base[len - 1] == '/') {
        len--;
    }
    if (buf_add(&url, base, len) != SY_E_OK || buf_add_str(&url, METRICS_PATH) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    x->url = buf_take(&url);
    x->http_path = o->http_path != NULL ? mem_strdup(o->http_path) : NULL;
    x->timer = telemetry_timer_new(o->loop, x);
    if (x->url == NULL || x->timer == NULL || (o->http_path != NULL && x->http_path == NULL)) {
        return sy_err_nomem(err);
    }
    return SY_E_OK;
}

enum sy_code
exporter_new(struct exporter **ret, const struct exporter_options *options, struct sy_error *err)
{
    struct exporter *x = mem_alloc_zero(1, sizeof(*x));

    if (x == NULL) {
        return sy_err_nomem(err);
    }
    x->metrics = options->metrics;
    x->loop = options->loop;
    x->config = options->config;
    x->warn = options->warn;

    enum sy_code rc = fill(x, options, err);

    if (rc != SY_E_OK) {
        telemetry_timer_end(x->timer);
        exporter_free(x);
        return rc;
    }
    x->client = (struct http_client){
        .loop = options->loop,
        .helper = x->http_path,
        .environ_list = options->environ_list,
        .keeps_no_loop = true,
    };
    *ret = x;
    return SY_E_OK;
}

void
exporter_end(struct exporter *x)
{
    x->is_ending = true;
    telemetry_timer_end(x->timer);
    x->timer = NULL;
    http_cancel(x->exchange); /* the last one says all that it would have said */
    x->exchange = NULL;
    if (x->has_begun) {
        x->client.keeps_no_loop = false;
        send_now(x, LIMIT_EXPORT_END_MS);
    }
}

void
exporter_free(struct exporter *x)
{
    if (x == NULL) {
        return;
    }
    http_cancel(x->exchange);
    mem_free(x->http_path);
    mem_free(x->url);
    mem_free(x);
}
