#include "http/http.h"

#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/frame.h"
#include "process/process.h"
#include "process/watch_set.h"

#define NS_PER_MS  1000000ULL
#define RETRY_NS   10000000ULL /* a watch that got no memory */
#define KEEP_BYTES 4096U       /* of what the program says besides */

struct http_exchange {
    uv_loop_t *loop;
    uv_timer_t timer;
    struct watch_set watches;
    struct process *process;
    struct output_chain *chain;
    char *helper;
    char *argv[2];
    struct strv env;
    struct buf out;
    uint32_t timeout_ms;
    uint64_t deadline_ns;
    bool is_late;
    http_done_fn *done;
    void *arg;
};

/* What the program may know of our environment. No secret of ours goes this way. */
static const char *const passed[] = {"http_proxy", "https_proxy",   "HTTPS_PROXY",
                                     "all_proxy",  "ALL_PROXY",     "no_proxy",
                                     "NO_PROXY",   "SSL_CERT_FILE", "SSL_CERT_DIR"};

static enum sy_code
pass_environment(struct strv *ret, char *const *list)
{
    enum sy_code rc = SY_E_OK;

    for (; list != NULL && *list != NULL && rc == SY_E_OK; list++) {
        for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]) && rc == SY_E_OK; i++) {
            size_t n = strlen(passed[i]);

            if (strncmp(*list, passed[i], n) == 0 && (*list)[n] == '=') {
                rc = strv_add(ret, *list);
            }
        }
    }
    return rc;
}

static void
on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

/* Ends what runs and frees all but what the loop still holds. */
static void
exchange_end(struct http_exchange *x)
{
    watch_set_end(&x->watches);
    process_free(x->process);
    output_free(x->chain);
    strv_fini(&x->env);
    mem_free(x->helper);
    buf_fini(&x->out);
    uv_timer_stop(&x->timer);
    uv_close((uv_handle_t *)&x->timer, on_closed);
}

static enum sy_code
on_output(void *arg, enum output_stream s, const char *bytes, size_t n)
{
    struct http_exchange *x = arg;

    return s == STREAM_STDOUT ? buf_add(&x->out, bytes, n) : SY_E_OK;
}

static enum sy_code
code_of(enum frame_failure f)
{
    switch (f) {
    case FRAME_URL:
        return SY_E_ARG;
    case FRAME_CONNECT:
        return SY_E_NOTFOUND;
    case FRAME_TLS:
        return SY_E_DENIED;
    case FRAME_TIMEOUT:
    case FRAME_SIZE:
        return SY_E_LIMIT;
    case FRAME_ANSWER:
        return SY_E_PARSE;
    case FRAME_NONE:
    case FRAME_OTHER:
        break;
    }
    return SY_E_INTERNAL;
}

/* A sentence that may hold the server's words. */
static void
tell_failure(struct http_answer *ret, const struct frame_answer *a)
{
    SY_AUTO(buf_fini) struct buf text = {.max = SY_ERR_MSG_MAX};

    if (str_add_visible(&text, a->body, a->len, SY_ERR_MSG_MAX - 8) != SY_E_OK) {
        (void)sy_err_nomem(&ret->err);
        return;
    }
    (void)sy_err_set(&ret->err, code_of(a->failure), "%s", buf_view(&text));
}

/* With what it said besides: a loader that lacks a library says so. */
static void
tell_end(struct http_answer *ret, const struct http_exchange *x)
{
    const struct process_result *r = process_result(x->process);
    SY_AUTO(buf_fini) struct buf said = {.max = KEEP_BYTES + 64};
    SY_AUTO(buf_fini) struct buf shown = {.max = SY_ERR_MSG_MAX};
    bool is_signal = r->outcome == PROCESS_SIGNALED;

    if (output_text_stream(x->chain, STREAM_STDERR, &said) == SY_E_NOMEM ||
        str_add_visible(&shown, buf_view(&said), strcspn(buf_view(&said), "\n"),
                        SY_ERR_MSG_MAX / 2) != SY_E_OK) {
        (void)sy_err_nomem(&ret->err);
        return;
    }
    (void)sy_err_set(&ret->err, SY_E_INTERNAL, "shellyard-http ended (%s %d) without an answer%s%s",
                     is_signal ? "signal" : "exit code", is_signal ? r->signal : r->exit_code,
                     shown.len > 0 ? ": " : "", buf_view(&shown));
}

static void
read_answer(struct http_answer *ret, struct http_exchange *x)
{
    const struct process_result *r = process_result(x->process);
    struct frame_answer a = {0};
    struct sy_error err = {0};

    if (x->is_late) {
        (void)sy_err_set(&ret->err, SY_E_LIMIT, "no answer within %u ms", x->timeout_ms);
    } else if (r->outcome == PROCESS_FAILED) {
        ret->err = r->err;
    } else if (frame_read_answer(&a, &x->out, &err) != SY_E_OK) {
        tell_end(ret, x);
    } else if (a.failure != FRAME_NONE) {
        tell_failure(ret, &a);
    } else {
        ret->status = a.status;
        ret->type = a.type;
        ret->body = a.body;
        ret->len = a.len;
    }
}

static void
finish(struct http_exchange *x, const struct sy_error *failed)
{
    struct http_answer answer = {.type = "", .body = ""};

    if (failed != NULL) {
        answer.err = *failed;
    } else {
        read_answer(&answer, x);
    }
    watch_set_end(&x->watches);
    uv_timer_stop(&x->timer);
    x->done(x->arg, &answer);
    exchange_end(x);
}

static void step(void *arg);

static void
on_timer(uv_timer_t *timer)
{
    step(timer->data);
}

static void
rearm(struct http_exchange *x, bool is_watching)
{
    uint64_t now = clock_mono_ns();
    uint64_t at = process_deadline_ns(x->process);

    if (!x->is_late && x->deadline_ns < at) {
        at = x->deadline_ns;
    }
    if (!is_watching && now + RETRY_NS < at) {
        at = now + RETRY_NS;
    }
    uv_update_time(x->loop);
    if (at == UINT64_MAX) {
        uv_timer_stop(&x->timer);
    } else {
        uv_timer_start(&x->timer, on_timer, at > now ? (at - now + NS_PER_MS - 1) / NS_PER_MS : 0,
                       0);
    }
}

static void
step(void *arg)
{
    struct http_exchange *x = arg;
    struct process_watch wanted[PROCESS_WATCHES];
    struct sy_error err = {0};
    uint64_t now = clock_mono_ns();
    bool is_done = false;

    if (!x->is_late && now >= x->deadline_ns) {
        x->is_late = true;
        process_kill(x->process);
    }
    if (process_step(x->process, now, &is_done, &err) != SY_E_OK) {
        finish(x, &err);
        return;
    }
    if (is_done) {
        finish(x, NULL);
        return;
    }

    size_t n = process_watches(x->process, wanted);

    rearm(x, watch_set_follow(&x->watches, wanted, n));
}

/* The request as a file in memory: it is there whole, whenever the program reads it. */
static enum sy_code
write_request(int *ret, const struct http_request *request, struct sy_error *err)
{
    const struct frame_request r = {
        .url = request->url,
        .headers = request->headers,
        .body = request->body,
        .len = request->len,
        .timeout_ms = request->timeout_ms,
        .max_bytes = request->max_bytes,
    };
    struct buf text = {.max = (size_t)LIMIT_HTTP_BODY + LIMIT_HTTP_HEAD};
    /* At once: what grows leaves copies behind. */
    enum sy_code rc = request->len <= LIMIT_HTTP_BODY
                          ? buf_reserve(&text, request->len + LIMIT_HTTP_HEAD)
                          : SY_E_OK;

    rc = rc == SY_E_OK ? frame_write_request(&text, &r, err) : sy_err_nomem(err);
    if (rc == SY_E_OK) {
        rc = fd_memory_file(ret, "shellyard-http", text.data, text.len, err);
    }
    if (rc == SY_E_OK && lseek(*ret, 0, SEEK_SET) != 0) {
        rc = sy_err_set(err, SY_E_SYS, "a file in memory that can't be read from its beginning");
    }
    mem_free_secret(text.data, text.cap);
    return rc;
}

static enum sy_code
spawn(struct http_exchange *x, int in_fd, struct sy_error *err)
{
    const struct output_options options = {.keep_bytes = KEEP_BYTES, .on_raw = on_output, .arg = x};
    const int stdio[3] = {in_fd, -1, -1};

    x->argv[0] = x->helper;
    x->chain = output_new(&options);
    if (x->chain == NULL) {
        return sy_err_nomem(err);
    }

    const struct exec_env env = {
        .program = x->helper,
        .argv = x->argv,
        .envp = strv_view(&x->env),
        .cwd = "/",
    };
    const struct sandbox_base base = process_base(&env);
    enum sy_code rc = process_prepare_on(&x->process, &base, stdio, err);

    return rc == SY_E_OK ? process_go(x->process, &env, x->chain, err) : rc;
}

static enum sy_code
exchange_new(struct http_exchange **ret, const struct http_client *client,
             const struct http_request *request, struct sy_error *err)
{
    struct http_exchange *x = mem_alloc_zero(1, sizeof(*x));

    if (x == NULL) {
        return sy_err_nomem(err);
    }

    int rc = uv_timer_init(client->loop, &x->timer);

    if (rc != 0) {
        mem_free(x);
        return sy_err_set(err, SY_E_INTERNAL, "event loop: %s", uv_strerror(rc));
    }
    x->timer.data = x;
    x->loop = client->loop;
    x->watches = (struct watch_set){
        .loop = client->loop,
        .ready = step,
        .arg = x,
        .keeps_no_loop = client->keeps_no_loop,
    };
    if (client->keeps_no_loop) {
        uv_unref((uv_handle_t *)&x->timer);
    }
    x->env.max = sizeof(passed) / sizeof(passed[0]);
    x->out.max = request->max_bytes + LIMIT_HTTP_HEAD;
    x->timeout_ms = request->timeout_ms;
    x->helper = mem_strdup(client->helper);
    if (x->helper == NULL || pass_environment(&x->env, client->environ_list) == SY_E_NOMEM) {
        exchange_end(x);
        return sy_err_nomem(err);
    }
    *ret = x;
    return SY_E_OK;
}

enum sy_code
http_post(struct http_exchange **ret, const struct http_client *client,
          const struct http_request *request, http_done_fn *done, void *arg, struct sy_error *err)
{
    SY_FD in_fd = -1;
    struct http_exchange *x = NULL;

    if (client->helper == NULL || access(client->helper, X_OK) != 0) {
        return sy_err_set(err, SY_E_NOTFOUND,
                          "the program shellyard-http is missing: it makes connections; install "
                          "Shellyard whole (libexec/shellyard)");
    }

    enum sy_code rc = write_request(&in_fd, request, err);

    if (rc == SY_E_OK) {
        rc = exchange_new(&x, client, request, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    SY_ASSERT(x != NULL);
    x->done = done;
    x->arg = arg;
    x->deadline_ns = clock_mono_ns() + request->timeout_ms * NS_PER_MS;
    rc = spawn(x, in_fd, err);
    if (rc != SY_E_OK) {
        exchange_end(x);
        return rc;
    }
    /* The first step comes from the loop, never from inside the caller. */
    uv_timer_start(&x->timer, on_timer, 0, 0);
    *ret = x;
    return SY_E_OK;
}

void
http_cancel(struct http_exchange *x)
{
    if (x != NULL) {
        exchange_end(x);
    }
}
