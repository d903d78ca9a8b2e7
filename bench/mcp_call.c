/*
 * Round trips of calls on MCP servers that stay up, by a raw client faster than
 * any SDK; servers and calls are interleaved in bursts of ten of a kind, since
 * what a heavy peer does would otherwise be in front of each of our calls:
 *
 *     mcp_call [-n CALLS] [-w WARMUP] -- NAME [@LABEL BODY]... ARG... [::: ...]
 *
 * BODY is a request without its envelope, {"method":"ping"}. Prints JSON: per
 * server its calls (times, how many answers were errors, the last answer), the
 * size of its tools/list result, and its resident size after the start and
 * after all calls.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "measure.h"

#define CALLS_MAX       8U
#define BURST           10U
#define CALL_TIMEOUT_MS 60000
#define LAST_BYTES      300U

static const char usage[] =
    "usage: mcp_call [-n CALLS] [-w WARMUP] -- NAME [@LABEL BODY]... ARG... [::: ...]\n";
static const char initialize[] =
    "{\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}";
static const char initialized[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

struct call {
    const char *label;
    const char *body;
    struct series wall_us;
    size_t errors; /* JSON-RPC errors, and results with isError */
    struct buf last;
};

struct server {
    const char *name;
    char **argv;
    struct line_reader reader;
    struct buf request;
    struct buf line;
    uint64_t next_id;
    struct call calls[CALLS_MAX];
    size_t n_calls;
    size_t tools_list_bytes;
    size_t n_tools;
    uint64_t idle_rss_kb, idle_hwm_kb, end_rss_kb, end_hwm_kb;
    struct piped_child child;
    struct sy_error err;
    bool has_failed;
};

/* Sends `body` under the next id; the answer's line is then in s->line. Only
 * the round trip is in *ret_us: the line is read as JSON afterwards. */
static enum sy_code
request(struct server *s, const char *body, double *ret_us, struct json_doc *ret,
        struct sy_error *err)
{
    uint64_t id = ++s->next_id;

    buf_reset(&s->request);
    enum sy_code rc = buf_addf(&s->request, "{\"jsonrpc\":\"2.0\",\"id\":%llu,%s\n",
                               (unsigned long long)id, body + 1);

    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    uint64_t start_ns = clock_mono_ns();

    rc = fd_write_all(s->child.in, s->request.data, s->request.len, err);
    while (rc == SY_E_OK) {
        rc = line_read(&s->reader, &s->line, CALL_TIMEOUT_MS, err);
        *ret_us = (double)(clock_mono_ns() - start_ns) / 1e3;
        if (rc == SY_E_OK) {
            rc = json_parse(ret, buf_view(&s->line), s->line.len, err);
        }
        int64_t got = 0;

        if (rc == SY_E_OK && js_int(&got, js_get(ret->root, "id")) && (uint64_t)got == id &&
            js_get(ret->root, "method") == NULL) {
            return SY_E_OK;
        }
        if (rc == SY_E_OK) {
            json_doc_fini(ret); /* a notification, or a question that we leave open */
        }
    }
    return rc;
}

static enum sy_code
server_open(struct server *s, struct sy_error *err)
{
    struct json_doc doc = {0};
    double us = 0;
    enum sy_code rc = piped_start(&s->child, s->argv, true, 0, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    s->reader.fd = s->child.out;
    rc = request(s, initialize, &us, &doc, err);
    if (rc != SY_E_OK) {
        sy_err_wrap(err, "initialize");
        return rc;
    }
    json_doc_fini(&doc);
    s->idle_rss_kb = proc_tree_kb(s->child.pid, "VmRSS");
    s->idle_hwm_kb = proc_tree_kb(s->child.pid, "VmHWM");
    rc = fd_write_all(s->child.in, initialized, sizeof initialized - 1, err);
    if (rc == SY_E_OK) {
        rc = request(s, "{\"method\":\"tools/list\"}", &us, &doc, err);
    }
    if (rc != SY_E_OK) {
        sy_err_wrap(err, "tools/list");
        return rc;
    }
    const struct js *result = js_get(doc.root, "result");
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)64 << 20};

    if (result != NULL && js_dump(&text, result) == SY_E_OK) {
        s->tools_list_bytes = text.len;
        s->n_tools = js_count(js_get(result, "tools"));
    }
    json_doc_fini(&doc);
    return SY_E_OK;
}

static enum sy_code
call_once(struct server *s, struct call *c, bool is_warmup, struct sy_error *err)
{
    struct json_doc doc = {0};
    double us = 0;
    bool is_error = false;
    enum sy_code rc = request(s, c->body, &us, &doc, err);

    if (rc != SY_E_OK) {
        sy_err_wrap(err, "%s", c->label);
        return rc;
    }
    if (js_get(doc.root, "error") != NULL) {
        is_error = true;
    } else {
        bool got = js_bool(&is_error, js_get(js_get(doc.root, "result"), "isError"));

        is_error = got && is_error;
    }
    json_doc_fini(&doc);
    if (is_warmup) {
        return SY_E_OK;
    }
    series_add(&c->wall_us, us);
    c->errors += is_error ? 1 : 0;
    buf_reset(&c->last);
    return buf_add(&c->last, s->line.data, s->line.len < LAST_BYTES ? s->line.len : LAST_BYTES);
}

static void
write_server(struct jw *w, const struct server *s)
{
    jw_object(w);
    jw_key_str(w, "name", s->name);
    jw_key_str(w, "why", s->has_failed ? s->err.msg : "");
    jw_key_int(w, "tools_list_bytes", (int64_t)s->tools_list_bytes);
    jw_key_int(w, "tools", (int64_t)s->n_tools);
    jw_key_int(w, "idle_rss_kb", (int64_t)s->idle_rss_kb);
    jw_key_int(w, "idle_hwm_kb", (int64_t)s->idle_hwm_kb);
    jw_key_int(w, "end_rss_kb", (int64_t)s->end_rss_kb);
    jw_key_int(w, "end_hwm_kb", (int64_t)s->end_hwm_kb);
    jw_key(w, "calls");
    jw_array(w);
    for (size_t i = 0; i < s->n_calls; i++) {
        const struct call *c = &s->calls[i];

        jw_object(w);
        jw_key_str(w, "label", c->label);
        series_write(w, "wall_us", &c->wall_us);
        jw_key_int(w, "errors", (int64_t)c->errors);
        jw_key_strn(w, "last", buf_view(&c->last), c->last.len);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_end_object(w);
}

static void
server_init(struct server *s, const struct variant *v, size_t rounds)
{
    char **a = v->argv;

    *s = (struct server){
        .name = v->name, .child = {.in = -1, .out = -1}
    };
    s->request.max = s->line.max = 1U << 20;
    for (; a[0] != NULL && a[0][0] == '@' && a[1] != NULL; a += 2) {
        struct call *c = &s->calls[s->n_calls];

        if (s->n_calls == CALLS_MAX || a[1][0] != '{') {
            bench_usage(usage);
        }
        *c = (struct call){.label = a[0] + 1, .body = a[1], .last = {.max = LAST_BYTES}};
        if (series_init(&c->wall_us, rounds) != SY_E_OK) {
            bench_usage("mcp_call: out of memory\n");
        }
        s->n_calls++;
    }
    s->argv = a;
    if (*a == NULL) {
        bench_usage(usage);
    }
}

static void
server_fini(struct server *s)
{
    piped_end(&s->child);
    buf_fini(&s->reader.rest);
    buf_fini(&s->request);
    buf_fini(&s->line);
    for (size_t i = 0; i < s->n_calls; i++) {
        series_fini(&s->calls[i].wall_us);
        buf_fini(&s->calls[i].last);
    }
}

/* `count` calls of each kind on each server. */
static void
run_burst(struct server *servers, size_t n, size_t count, bool is_warmup)
{
    for (size_t i = 0; i < n; i++) {
        struct server *s = &servers[i];

        for (size_t k = 0; k < s->n_calls * count && !s->has_failed; k++) {
            struct call *c = &s->calls[k / count];

            s->has_failed = call_once(s, c, is_warmup, &s->err) != SY_E_OK;
        }
    }
}

static void
run_all(struct server *servers, size_t n, size_t rounds, size_t warmup)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 4U << 20};
    struct jw w = {.out = &b};

    for (size_t i = 0; i < n; i++) {
        servers[i].has_failed = server_open(&servers[i], &servers[i].err) != SY_E_OK;
    }
    run_burst(servers, n, warmup, true);
    for (size_t left = rounds; left > 0;) {
        size_t count = left < BURST ? left : BURST;

        run_burst(servers, n, count, false);
        left -= count;
    }
    jw_object(&w);
    jw_key(&w, "servers");
    jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        servers[i].end_rss_kb = proc_tree_kb(servers[i].child.pid, "VmRSS");
        servers[i].end_hwm_kb = proc_tree_kb(servers[i].child.pid, "VmHWM");
        write_server(&w, &servers[i]);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    bench_print(STDOUT_FILENO, &w);
}

int
main(int argc, char **argv)
{
    static struct server servers[BENCH_VARIANTS_MAX];
    struct variant variants[BENCH_VARIANTS_MAX];
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    size_t rounds = 300;
    size_t warmup = 20;
    size_t n = rounds_parse(variants, &rounds, &warmup, argv + 1, usage);

    (void)argc;
    if (n == 0) {
        return 2;
    }
    sigaction(SIGPIPE, &ignore, NULL);
    for (size_t i = 0; i < n; i++) {
        server_init(&servers[i], &variants[i], rounds);
    }
    run_all(servers, n, rounds, warmup);
    for (size_t i = 0; i < n; i++) {
        server_fini(&servers[i]);
    }
    return 0;
}
