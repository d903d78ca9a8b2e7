/* Programs on terminals by the engine, in this process. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "output/pattern.h"
#include "pty.h"
#include "sessions/sessions.h"
#include "sessions/transcript.h"

#define KEEP_BYTES ((size_t)1 << 20) /* sessions.keep_bytes by default */

struct pty_engine {
    uv_loop_t loop;
    struct session *session;
    struct turn_context turn;
    struct live_store *store;
    struct live *live;
    struct live_tap tap;
    bool has_begun;
    bool is_done;
    enum live_reason reason;
    const char *typed;
    size_t n_typed;
    struct live_typing *typing;
    bool is_refused;
    uint64_t first_ns; /* of its output */
};

static void
on_begun(void *arg, struct live *l)
{
    struct pty_engine *e = arg;

    (void)l;
    e->has_begun = true;
    uv_stop(&e->loop);
}

static void
on_over(void *arg, struct live *l)
{
    struct pty_engine *e = arg;

    (void)l;
    uv_stop(&e->loop);
}

static enum live_turn
on_turn(void *arg, struct live *l)
{
    struct pty_engine *e = arg;
    bool is_later = false;

    if (e->n_typed == 0) {
        return LIVE_TURN_TAKEN;
    }

    enum sy_code rc = live_write(l, e->typing, e->typed, e->n_typed, &is_later, NULL);

    return rc != SY_E_OK ? LIVE_TURN_REFUSED : is_later ? LIVE_TURN_LATER : LIVE_TURN_TAKEN;
}

static void
on_done(void *arg, struct live *l, enum live_reason reason)
{
    struct pty_engine *e = arg;

    transcript_mark_read(live_transcript(l), transcript_end(live_transcript(l)));
    e->is_done = true;
    e->reason = reason;
    uv_stop(&e->loop);
}

static void
on_news(void *arg, struct live *l, enum live_news news)
{
    struct pty_engine *e = arg;

    (void)l;
    if (news == LIVE_NEWS_WROTE && e->first_ns == 0) {
        e->first_ns = clock_mono_ns();
    }
}

static enum sy_code
make_turn(struct turn_context *ret)
{
    char cwd[LIMIT_PATH];

    if (getcwd(cwd, sizeof(cwd)) == NULL) {
        return SY_E_SYS;
    }
    *ret = (struct turn_context){
        .cwd = mem_strdup(cwd),
        .sandbox = {.mode = SANDBOX_WORKSPACE_WRITE, .cwd = mem_strdup(cwd)},
        .approval = APPROVAL_NEVER,
        .env = {.default_excludes = true                              },
        .sandbox_required = true,
    };
    return ret->cwd != NULL && ret->sandbox.cwd != NULL ? SY_E_OK : SY_E_NOMEM;
}

enum sy_code
pty_engine_new(struct pty_engine **ret, struct sy_error *err)
{
    struct pty_engine *e = mem_alloc_zero(1, sizeof(*e));
    struct session_options options = {
        .spare = SPARE_NONE,
        .session_id = "bench",
        .shell_path = "/bin/bash",
        .environ_list = environ,
    };

    if (e == NULL || uv_loop_init(&e->loop) != 0 || make_turn(&e->turn) != SY_E_OK) {
        return sy_err_nomem(err);
    }

    struct live_store_options store = {.loop = &e->loop, .max = 64, .keep_bytes = KEEP_BYTES};
    enum sy_code rc = session_new(&e->session, &options, err);

    if (rc == SY_E_OK) {
        rc = live_store_new(&e->store, &store, err);
    }
    e->typing = live_typing_new(false);
    *ret = e;
    return rc == SY_E_OK && e->typing == NULL ? sy_err_nomem(err) : rc;
}

void
pty_engine_free(struct pty_engine *e)
{
    if (e == NULL) {
        return;
    }
    live_store_end(e->store);
    (void)uv_run(&e->loop, UV_RUN_DEFAULT);
    live_store_free(e->store);
    session_free(e->session);
    turn_context_fini(&e->turn);
    (void)uv_loop_close(&e->loop);
    live_typing_free(e->typing);
    mem_free(e);
}

/* Types that (n 0: nothing) and waits for the pattern (NULL: for the end). */
static enum sy_code
await(struct pty_engine *e, const char *typed, size_t n, struct pattern *pattern,
      struct sy_error *err)
{
    struct pattern_scan *scan = pattern != NULL ? pattern_scan_new(pattern) : NULL;
    struct live_wait wait = {
        .yield_ms = PTY_TIMEOUT_MS, .scan = scan, .begin = on_turn, .done = on_done, .arg = e};

    e->typed = typed;
    e->n_typed = n;
    e->is_done = false;
    live_wait(e->live, &wait);
    while (!e->is_done) {
        (void)uv_run(&e->loop, UV_RUN_DEFAULT);
    }
    pattern_scan_free(scan);

    enum live_reason wanted = pattern != NULL ? LIVE_PATTERN : LIVE_EXIT;

    return e->reason == wanted ? SY_E_OK
                               : sy_err_set(err, SY_E_INTERNAL, "the wait ended by %s",
                                            live_reason_name(e->reason));
}

static enum sy_code
fill_request(struct exec_request *ret, const struct pty_engine *e, char *const argv[])
{
    *ret = (struct exec_request){
        .params = {.cwd = mem_strdup(e->turn.cwd),
                   .argv = {.max = LIMIT_ARGV},
                   .env = {.max = LIMIT_ENV},
                   .expiration = {.kind = EXPIRE_CANCELLATION}},
        .call_id = mem_strdup("call"),
        .tool = "exec_command",
        .input = {.kind = INPUT_TERMINAL     },
    };
    return ret->params.cwd != NULL && ret->call_id != NULL ? strv_add_all(&ret->params.argv, argv)
                                                           : SY_E_NOMEM;
}

enum sy_code
pty_engine_open(struct pty_engine *e, char *const argv[], const char *ready, struct sy_error *err)
{
    struct exec_request request;
    const struct live_options options = {.begun = on_begun, .over = on_over, .arg = e};
    enum sy_code rc = live_new(&e->live, e->store, &options, err);

    e->has_begun = false;
    e->first_ns = 0;
    if (rc == SY_E_OK && fill_request(&request, e, argv) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = live_submit(e->live, e->session, &e->turn, &request, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    e->tap = (struct live_tap){.fn = on_news, .arg = e};
    live_tap(e->live, &e->tap);
    while (!e->has_begun && (orch_state(live_call(e->live)) != ORCH_DONE)) {
        (void)uv_run(&e->loop, UV_RUN_DEFAULT);
    }
    if (!e->has_begun) {
        *err = orch_output(live_call(e->live))->err;
        sy_err_wrap(err, "the engine");
        return err->code;
    }
    live_detach(e->live);
    if (ready == NULL) {
        return SY_E_OK;
    }

    struct pattern *p = NULL;

    rc = pattern_new(&p, ready, strlen(ready), NULL, err);
    if (rc == SY_E_OK) {
        rc = await(e, NULL, 0, p, err);
    }
    pattern_free(p);
    return rc;
}

enum sy_code
pty_engine_trip(struct pty_engine *e, const struct pty_task *task, unsigned number, double *ret_us,
                struct sy_error *err)
{
    char typed[PTY_TYPED];
    char wanted[PTY_TYPED];
    struct pattern *p = NULL;
    size_t n = pty_typed(typed, task, number);
    /* Compiled before: a program that waits for a prompt does so once. */
    enum sy_code rc = pattern_new(&p, wanted, pty_wanted(wanted, number), NULL, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    uint64_t start_ns = clock_mono_ns();

    rc = await(e, typed, n, p, err);
    *ret_us = (double)(clock_mono_ns() - start_ns) / 1e3;
    pattern_free(p);
    return rc;
}

enum sy_code
pty_engine_drain(struct pty_engine *e, double *ret_s, uint64_t *ret_bytes, struct sy_error *err)
{
    enum sy_code rc = await(e, NULL, 0, NULL, err);

    *ret_s = (double)(clock_mono_ns() - e->first_ns) / 1e9;
    *ret_bytes = transcript_end(live_transcript(e->live));
    live_remove(e->live, NULL);
    e->live = NULL;
    return rc;
}
