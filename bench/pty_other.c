/* Programs on terminals by another program, which we talk to on pipes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "pty.h"

#define LINE_MAX_BYTES ((size_t)16 << 20)

static const char initialize[] =
    "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}";
static const char initialized[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

static enum sy_code
send_line(struct pty_other *o, struct sy_error *err)
{
    return fd_write_all(o->child.in, o->request.data, o->request.len, err);
}

static enum sy_code
next_line(struct pty_other *o, struct sy_error *err)
{
    return line_read(&o->reader, &o->line, PTY_TIMEOUT_MS, err);
}

/* Sends what is in o->request and waits for its answer's line. The envelope is ours: an answer
 * begins with its id, or has it at its end; notifications have none. */
static enum sy_code
ask(struct pty_other *o, struct sy_error *err)
{
    char id[32];
    enum sy_code rc = send_line(o, err);

    (void)snprintf(id, sizeof(id), "\"id\":%llu", (unsigned long long)o->next_id);
    while (rc == SY_E_OK) {
        rc = next_line(o, err);
        if (rc == SY_E_OK && strstr(buf_view(&o->line), id) != NULL) {
            return strstr(buf_view(&o->line), "\"isError\":true") == NULL &&
                           strstr(buf_view(&o->line), "\"error\":{") == NULL
                       ? SY_E_OK
                       : sy_err_set(err, SY_E_INTERNAL, "%.200s", buf_view(&o->line));
        }
    }
    return rc;
}

static enum sy_code
begin_request(struct pty_other *o, const char *rest)
{
    buf_reset(&o->request);
    return buf_addf(&o->request, "{\"jsonrpc\":\"2.0\",\"id\":%llu,%s",
                    (unsigned long long)++o->next_id, rest);
}

/* A text as JSON has it, with its quotes. */
static enum sy_code
add_text(struct buf *b, const char *text)
{
    SY_AUTO(buf_fini) struct buf quoted = {.max = 4096};
    struct jw w = {.out = &quoted};

    jw_str(&w, text);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add(b, quoted.data, quoted.len) : rc;
}

enum sy_code
pty_other_exec(struct pty_other *o, char *const argv[], bool tty, const char *more,
               struct sy_error *err)
{
    enum sy_code rc = begin_request(o, "\"method\":\"tools/call\",\"params\":{\"name\":"
                                       "\"exec_command\",\"arguments\":{\"cmd\":[");

    for (size_t i = 0; argv[i] != NULL && rc == SY_E_OK; i++) {
        rc = i > 0 ? buf_add_char(&o->request, ',') : SY_E_OK;
        rc = rc == SY_E_OK ? add_text(&o->request, argv[i]) : rc;
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(&o->request, "],\"tty\":%s%s}}}\n", tty ? "true" : "false", more);
    }
    if (rc == SY_E_OK) {
        rc = ask(o, err);
    }

    const char *id = rc == SY_E_OK ? strstr(buf_view(&o->line), "\"session_id\":\"") : NULL;

    /* One that has ended is not typed to. */
    if (id != NULL && strstr(buf_view(&o->line), "\"status\":\"running\"") != NULL) {
        size_t n = strcspn(id + 14, "\"");

        (void)snprintf(o->session, sizeof(o->session), "%.*s", (int)n, id + 14);
    }
    return rc;
}

enum sy_code
pty_other_type(struct pty_other *o, const char *text, const char *more, struct sy_error *err)
{
    enum sy_code rc = begin_request(o, "\"method\":\"tools/call\",\"params\":{\"name\":"
                                       "\"write_stdin\",\"arguments\":{\"session_id\":\"");

    rc = rc == SY_E_OK ? buf_addf(&o->request, "%s\",\"chars\":", o->session) : rc;
    rc = rc == SY_E_OK ? add_text(&o->request, text) : rc;
    rc = rc == SY_E_OK ? buf_addf(&o->request, "%s}}}\n", more) : rc;
    return rc == SY_E_OK ? ask(o, err) : rc;
}

static enum sy_code
open_mcp(struct pty_other *o, struct sy_error *err)
{
    char more[128];
    enum sy_code rc = begin_request(o, initialize);

    rc = rc == SY_E_OK ? buf_add_char(&o->request, '\n') : rc;
    rc = rc == SY_E_OK ? ask(o, err) : rc;
    if (rc == SY_E_OK) {
        rc = fd_write_all(o->child.in, initialized, sizeof(initialized) - 1, err);
    }
    if (rc != SY_E_OK || o->task == NULL) {
        return rc;
    }
    (void)snprintf(more, sizeof(more),
                   ",\"env\":{\"PS1\":\"ready> \"},\"pattern\":\"%s\",\"yield_time_ms\":20000",
                   o->task->ready);
    return pty_other_exec(o, o->task->argv, true, more, err);
}

/* Until a line of output has that text; the program's own lines are as its protocol has them. */
static enum sy_code
tmux_await(struct pty_other *o, const char *text, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    do {
        rc = next_line(o, err);
    } while (rc == SY_E_OK && (!str_starts(buf_view(&o->line), "%output") ||
                               strstr(buf_view(&o->line), text) == NULL));
    return rc;
}

enum sy_code
pty_other_open(struct pty_other *o, enum pty_kind kind, char **argv, const struct pty_task *task,
               struct sy_error *err)
{
    *o = (struct pty_other){
        .kind = kind, .argv = argv, .task = task, .child = {.in = -1, .out = -1}
    };
    o->request.max = o->line.max = LINE_MAX_BYTES;

    enum sy_code rc = piped_start(&o->child, argv, true, 0, err);

    o->reader.fd = o->child.out;
    if (rc != SY_E_OK) {
        return rc;
    }
    switch (kind) {
    case PTY_MCP:
        return open_mcp(o, err);
    case PTY_TMUX:
        return task != NULL && task->ready != NULL ? tmux_await(o, task->ready, err) : SY_E_OK;
    case PTY_PEER:
        break;
    }
    rc = next_line(o, err); /* "ready", or what it lacks */
    return rc == SY_E_OK && !str_eq(buf_view(&o->line), "ready")
               ? sy_err_set(err, SY_E_NOTFOUND, "%.200s", buf_view(&o->line))
               : rc;
}

void
pty_other_close(struct pty_other *o)
{
    piped_end(&o->child);
    buf_fini(&o->reader.rest);
    buf_fini(&o->request);
    buf_fini(&o->line);
}

static enum sy_code
tmux_trip(struct pty_other *o, unsigned number, const char *wanted, struct sy_error *err)
{
    buf_reset(&o->request);

    enum sy_code rc = o->task->is_shell
                          ? buf_addf(&o->request, "send-keys 'echo R$((%u))Z' Enter\n", number)
                          : buf_addf(&o->request, "send-keys %u Enter\n", number);

    rc = rc == SY_E_OK ? send_line(o, err) : rc;
    return rc == SY_E_OK ? tmux_await(o, wanted, err) : rc;
}

enum sy_code
pty_other_trip(struct pty_other *o, unsigned number, double *ret_us, struct sy_error *err)
{
    char typed[PTY_TYPED];
    char wanted[PTY_TYPED];
    char more[160];
    enum sy_code rc = SY_E_OK;

    (void)pty_typed(typed, o->task, number);
    (void)pty_wanted(wanted, number);
    (void)snprintf(more, sizeof(more), ",\"pattern\":\"%s\",\"yield_time_ms\":20000", wanted);

    uint64_t start_ns = clock_mono_ns();

    if (o->kind == PTY_TMUX) {
        rc = tmux_trip(o, number, wanted, err);
    } else {
        rc = pty_other_type(o, typed, more, err);
    }
    *ret_us = (double)(clock_mono_ns() - start_ns) / 1e3;
    if (rc == SY_E_OK && strstr(buf_view(&o->line), wanted) == NULL) {
        return sy_err_set(err, SY_E_INTERNAL, "no '%s' in %.200s", wanted, buf_view(&o->line));
    }
    return rc;
}

enum sy_code
pty_other_burst(struct pty_other *o, unsigned first, unsigned count, struct series *us,
                struct sy_error *err)
{
    buf_reset(&o->request);

    enum sy_code rc = buf_addf(&o->request, "trip %u %u\n", first, count);

    rc = rc == SY_E_OK ? send_line(o, err) : rc;
    rc = rc == SY_E_OK ? next_line(o, err) : rc;
    if (rc != SY_E_OK) {
        return rc;
    }

    const char *at = buf_view(&o->line);

    for (unsigned i = 0; i < count; i++) {
        char *end = NULL;
        double value = strtod(at, &end);

        if (end == at) {
            return sy_err_set(err, SY_E_INTERNAL, "%.200s", buf_view(&o->line));
        }
        if (us != NULL) {
            series_add(us, value);
        }
        at = end;
    }
    return SY_E_OK;
}

/* Bytes of "%output %0 TEXT", in which four characters (\015) stand for one control. */
static uint64_t
tmux_bytes(const char *line)
{
    const char *at = strchr(line + 8, ' ');
    uint64_t n = 0;

    for (at = at != NULL ? at + 1 : ""; *at != '\0'; n++) {
        at += at[0] == '\\' && strlen(at) >= 4 ? 4 : 1;
    }
    return n;
}

static enum sy_code
tmux_drain(struct pty_other *o, double *ret_s, uint64_t *ret_bytes, struct sy_error *err)
{
    uint64_t first_ns = 0;

    *ret_bytes = 0;
    for (;;) {
        enum sy_code rc = next_line(o, err);

        if (rc != SY_E_OK || str_starts(buf_view(&o->line), "%exit")) {
            *ret_s = (double)(clock_mono_ns() - first_ns) / 1e9;
            return rc;
        }
        if (str_starts(buf_view(&o->line), "%output")) {
            first_ns = first_ns == 0 ? clock_mono_ns() : first_ns;
            *ret_bytes += tmux_bytes(buf_view(&o->line));
        }
    }
}

enum sy_code
pty_other_drain(struct pty_other *o, double *ret_s, uint64_t *ret_bytes, struct sy_error *err)
{
    char *end = NULL;

    if (o->kind == PTY_TMUX) {
        return tmux_drain(o, ret_s, ret_bytes, err);
    }
    buf_reset(&o->request);

    enum sy_code rc = buf_add(&o->request, "drain\n", 6);

    rc = rc == SY_E_OK ? send_line(o, err) : rc;
    rc = rc == SY_E_OK ? next_line(o, err) : rc;
    if (rc != SY_E_OK) {
        return rc;
    }
    *ret_s = strtod(buf_view(&o->line), &end);
    if (end == buf_view(&o->line) || *end != ' ') {
        return sy_err_set(err, SY_E_INTERNAL, "%.200s", buf_view(&o->line));
    }
    *ret_bytes = strtoull(end + 1, NULL, 10);
    return SY_E_OK;
}

bool
pty_stamp(const char *text, uint64_t *ret_ns)
{
    for (const char *at = strchr(text, 'T'); at != NULL; at = strchr(at + 1, 'T')) {
        char *end = NULL;
        unsigned long long whole = strtoull(at + 1, &end, 10);
        unsigned long long micros = 0;

        if (end < at + 8) {
            continue;
        }
        if (*end == ';') {
            *ret_ns = whole;
            return true;
        }
        if (*end == '.') {
            const char *fraction = end + 1;

            micros = strtoull(fraction, &end, 10);
            if (*end == ';' && end == fraction + 6) {
                *ret_ns = whole * 1000000000ULL + micros * 1000ULL;
                return true;
            }
        }
    }
    return false;
}
