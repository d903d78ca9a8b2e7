/*
 * Start of an MCP server on stdio: spawn, send `initialize`, take the answer,
 * kill; the servers interleaved, the first one being what ratios are to.
 *
 *     start_mcp [-n ROUNDS] [-w WARMUP] -- NAME ARG... [::: NAME ARG...]
 *
 * Prints JSON: time from posix_spawn to the whole answer, and the resident
 * size (now and highest, of the process and its descendants) right after it.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "measure.h"

/* Node servers on a loaded machine have been seen to need more than 5 s. */
#define START_TIMEOUT_MS 60000

static const char usage[] =
    "usage: start_mcp [-n ROUNDS] [-w WARMUP] -- NAME ARG... [::: NAME ARG...]\n";
static const char initialize[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";

struct server {
    struct variant variant;
    struct series wall_ms;
    struct series rss_kb;
    struct series hwm_kb;
    size_t failures;
    char why[SY_ERR_MSG_MAX];
};

/* The first line that is the answer; servers may send notifications before. */
static enum sy_code
await_answer(struct piped_child *c, struct sy_error *err)
{
    struct line_reader reader = {.fd = c->out};
    SY_AUTO(buf_fini) struct buf line = {.max = 1};
    enum sy_code rc = fd_write_all(c->in, initialize, sizeof initialize - 1, err);

    while (rc == SY_E_OK) {
        rc = line_read(&reader, &line, START_TIMEOUT_MS, err);
        if (rc == SY_E_OK && strstr(buf_view(&line), "\"result\"") != NULL) {
            break;
        }
    }
    buf_fini(&reader.rest);
    return rc;
}

static void
server_run(struct server *s, bool is_warmup)
{
    struct piped_child c = {.in = -1, .out = -1};
    struct sy_error err = {0};
    uint64_t start_ns = clock_mono_ns();
    enum sy_code rc = piped_start(&c, s->variant.argv, true, 0, &err);

    if (rc == SY_E_OK) {
        rc = await_answer(&c, &err);
    }
    uint64_t end_ns = clock_mono_ns();

    if (rc != SY_E_OK) {
        s->failures++;
        memcpy(s->why, err.msg, sizeof s->why);
    } else if (!is_warmup) {
        series_add(&s->wall_ms, (double)(end_ns - start_ns) / 1e6);
        series_add(&s->rss_kb, (double)proc_tree_kb(c.pid, "VmRSS"));
        series_add(&s->hwm_kb, (double)proc_tree_kb(c.pid, "VmHWM"));
    }
    piped_end(&c);
}

static void
write_json(const struct server *servers, size_t n)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1U << 20};
    struct jw w = {.out = &b};

    jw_object(&w);
    jw_key(&w, "variants");
    jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        const struct server *s = &servers[i];

        variant_open(&w, s->variant.name, &s->wall_ms, &servers[0].wall_ms);
        series_write(&w, "wall_ms", &s->wall_ms);
        series_write(&w, "rss_kb", &s->rss_kb);
        series_write(&w, "hwm_kb", &s->hwm_kb);
        jw_key_int(&w, "failures", (int64_t)s->failures);
        jw_key_str(&w, "why", s->why);
        jw_end_object(&w);
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
    size_t rounds = 15;
    size_t warmup = 1;
    size_t n = rounds_parse(variants, &rounds, &warmup, argv + 1, usage);

    (void)argc;
    if (n == 0) {
        return 2;
    }
    sigaction(SIGPIPE, &ignore, NULL);
    for (size_t i = 0; i < n; i++) {
        servers[i].variant = variants[i];
        if (series_init(&servers[i].wall_ms, rounds) != SY_E_OK ||
            series_init(&servers[i].rss_kb, rounds) != SY_E_OK ||
            series_init(&servers[i].hwm_kb, rounds) != SY_E_OK) {
            return 1;
        }
    }
    for (size_t round = 0; round < warmup + rounds; round++) {
        /* One that failed is out: each failure may have cost a whole timeout. */
        for (size_t i = 0; i < n; i++) {
            if (servers[i].failures > 0) {
                continue;
            }
            server_run(&servers[i], round < warmup);
        }
    }
    write_json(servers, n);
    for (size_t i = 0; i < n; i++) {
        series_fini(&servers[i].wall_ms);
        series_fini(&servers[i].rss_kb);
        series_fini(&servers[i].hwm_kb);
    }
    return 0;
}
