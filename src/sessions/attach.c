#include "sessions/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <uv.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "sessions/attach_frame.h"
#include "terminal/paint.h"

enum attach_state {
    ATTACH_JOINED,
    ATTACH_ENDING, /* the last word waits to be taken */
    ATTACH_CLOSED  /* until its handles are */
};

struct attach {
    struct attach_options options;
    enum attach_state state;
    struct live_tap tap;
    struct paint *paint;
    uv_poll_t poll;
    uv_timer_t timer; /* the next painting; once it ends, how long the last word may take */
    unsigned n_handles;
    struct buf in;
    struct buf out; /* from out_at on */
    size_t out_at;
    struct buf piece; /* what is painted, before it is in frames */
    uint64_t painted_ns;
    uint64_t cost_ns; /* of the last painting */
    bool has_begun;   /* who opened it has got it */
    bool is_stale;    /* there may be something to paint */
    bool has_noted;   /* that what is typed is refused */
};

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_timer(uv_timer_t *timer);

static void
on_handle_closed(uv_handle_t *handle)
{
    struct attach *a = handle->data;

    if (--a->n_handles > 0) {
        return;
    }

    struct attach_options options = a->options;

    fd_close(&a->options.fd);
    paint_free(a->paint);
    buf_fini(&a->in);
    buf_fini(&a->out);
    buf_fini(&a->piece);
    mem_free(a);
    if (options.ended != NULL) {
        options.ended(options.arg);
    }
}

static void
leave_session(struct attach *a)
{
    if (a->options.live != NULL) {
        struct live *l = a->options.live;

        a->options.live = NULL;
        live_untap(l, &a->tap);
    }
}

static void
attach_close(struct attach *a)
{
    if (a->state != ATTACH_CLOSED) {
        a->state = ATTACH_CLOSED;
        leave_session(a);
        uv_close((uv_handle_t *)&a->poll, on_handle_closed);
        uv_close((uv_handle_t *)&a->timer, on_handle_closed);
    }
}

static bool
is_waiting(const struct attach *a)
{
    return a->out_at < a->out.len;
}

static void
watch(struct attach *a)
{
    int events = (a->state == ATTACH_JOINED ? UV_READABLE : 0) | UV_DISCONNECT |
                 (is_waiting(a) ? UV_WRITABLE : 0);

    if (uv_poll_start(&a->poll, events, on_poll) != 0) {
        attach_close(a);
    }
}

/* As much as the other side takes. */
static void
flush(struct attach *a)
{
    while (is_waiting(a)) {
        ssize_t n = send(a->options.fd, a->out.data + a->out_at, a->out.len - a->out_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            a->out_at += (size_t)n;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            attach_close(a);
            return;
        }
    }
    if (!is_waiting(a)) {
        buf_reset(&a->out);
        a->out_at = 0;
        if (a->state == ATTACH_ENDING) {
            attach_close(a);
            return;
        }
    }
    watch(a);
}

static void
end(struct attach *a, enum sy_code code, const char *sentence)
{
    unsigned status = code == SY_E_OK ? 0 : (unsigned)sy_code_status(code);

    if (a->state != ATTACH_JOINED) {
        return;
    }
    a->state = ATTACH_ENDING;
    leave_session(a);
    if (attach_frame_write_end(&a->out, status, sentence) != SY_E_OK) {
        attach_close(a);
        return;
    }
    SY_ASSERT(uv_timer_start(&a->timer, on_timer, LIMIT_DRAIN_MS, 0) == 0);
    flush(a);
}

/* Puts what is to be painted into frames. False: no memory, or no session. */
static bool
paint_now(struct attach *a)
{
    struct terminal *screen = live_screen(a->options.live);
    bool is_whole = false;
    enum sy_code rc = SY_E_OK;

    a->painted_ns = clock_mono_ns();
    buf_reset(&a->piece);
    rc = paint_add(a->paint, screen, &a->piece, &is_whole);
    if (rc == SY_E_OK && a->piece.len > 0) {
        rc = attach_frame_write(&a->out, ATTACH_OUTPUT, a->piece.data, a->piece.len);
    }
    if (rc != SY_E_OK) {
        paint_lose(a->paint);
    }
    a->is_stale = rc != SY_E_OK || !is_whole;
    a->cost_ns = clock_mono_ns() - a->painted_ns;
    return rc == SY_E_OK;
}

/* When the next painting is due: not more often than eyes see, and not for more than a part of the
 * engine's time. */
static uint64_t
due_ms(const struct attach *a, bool is_in_frame)
{
    uint64_t pause_ns = (uint64_t)LIMIT_ATTACH_PAINT_MS * 1000000;
    uint64_t since_ns = clock_mono_ns() - a->painted_ns;

    pause_ns = a->cost_ns * 4 > pause_ns ? a->cost_ns * 4 : pause_ns;
    pause_ns = is_in_frame ? (uint64_t)LIMIT_ATTACH_WHOLE_MS * 1000000 : pause_ns;
    return since_ns >= pause_ns ? 0 : (pause_ns - since_ns) / 1000000 + 1;
}

/* Paints as soon as it may; what waits for the other side comes first. */
static void
refresh(struct attach *a)
{
    uint64_t wait_ms = 0;

    if (a->state != ATTACH_JOINED || !a->has_begun || !a->is_stale || is_waiting(a)) {
        return;
    }
    wait_ms = due_ms(a, terminal_state(live_screen(a->options.live))->is_in_frame);
    if (wait_ms == 0 && !paint_now(a)) {
        wait_ms = LIMIT_ATTACH_WHOLE_MS;
    }
    if (wait_ms > 0) {
        SY_ASSERT(uv_timer_start(&a->timer, on_timer, wait_ms, 0) == 0);
        return;
    }
    flush(a);
    if (a->state == ATTACH_JOINED && a->is_stale && !is_waiting(a)) {
        SY_ASSERT(uv_timer_start(&a->timer, on_timer, 0, 0) == 0);
    }
}

static void
on_timer(uv_timer_t *timer)
{
    struct attach *a = timer->data;

    a->has_begun = true;
    if (a->state == ATTACH_JOINED) {
        refresh(a);
    } else {
        attach_close(a); /* it does not take its last word */
    }
}

static void
note(struct attach *a, const char *sentence)
{
    /* One that does not fit is not worth more than what waits. */
    if (attach_frame_write(&a->out, ATTACH_NOTE, sentence, strlen(sentence)) == SY_E_OK) {
        flush(a);
    }
}

static void
on_news(void *arg, struct live *l, enum live_news news)
{
    struct attach *a = arg;
    char state[LIVE_STATE_TEXT];
    char sentence[LIVE_STATE_TEXT + LIMIT_SESSION_ID + 16];

    if (news != LIVE_NEWS_ENDED) {
        a->is_stale = true;
        refresh(a);
        return;
    }
    live_state_text(state, l);
    (void)snprintf(sentence, sizeof(sentence), "session %s %s", live_id(l), state);
    /* What it wrote last. */
    if (a->state == ATTACH_JOINED && !is_waiting(a) && live_screen(l) != NULL) {
        (void)paint_now(a);
    }
    a->options.live = NULL;
    end(a, SY_E_OK, sentence);
}

static void
take_input(struct attach *a, const struct attach_frame *f)
{
    struct sy_error err = {0};

    if (a->options.is_read_only) {
        if (!a->has_noted) {
            a->has_noted = true;
            note(a, "what was typed is not taken: this one only watches");
        }
        return;
    }
    if (live_type(a->options.live, f->bytes, f->n, &err) != SY_E_OK) {
        note(a, err.msg);
    }
}

static void
take_size(struct attach *a, const struct attach_frame *f)
{
    struct sy_error err = {0};
    unsigned rows = 0;
    unsigned cols = 0;

    attach_frame_size(f, &rows, &cols);
    if (rows == 0 || cols == 0) {
        return; /* a terminal that does not know it */
    }
    if (paint_resize(a->paint, rows, cols, &err) != SY_E_OK) {
        end(a, err.code, err.msg);
        return;
    }
    a->is_stale = true;
    if (!a->options.is_read_only) {
        a->tap.rows = rows;
        a->tap.cols = cols;
        live_fit(a->options.live);
    }
    refresh(a);
}

static void
take_frame(struct attach *a, const struct attach_frame *f)
{
    switch (f->kind) {
    case ATTACH_INPUT:
        take_input(a, f);
        break;
    case ATTACH_SIZE:
        take_size(a, f);
        break;
    case ATTACH_DETACH:
        end(a, SY_E_OK, "");
        break;
    case ATTACH_OUTPUT:
    case ATTACH_NOTE:
    case ATTACH_END:
        break; /* attach_frame_read does not give them */
    }
}

static void
take_frames(struct attach *a)
{
    struct attach_frame f;
    struct sy_error err = {0};
    enum attach_frame_state state = ATTACH_FRAME_WHOLE;

    while (a->state == ATTACH_JOINED && state == ATTACH_FRAME_WHOLE) {
        state = attach_frame_read(&f, buf_view(&a->in), a->in.len, true, &err);
        if (state == ATTACH_FRAME_WHOLE) {
            take_frame(a, &f);
            buf_drop(&a->in, ATTACH_FRAME_HEAD + f.n);
        }
    }
    if (state == ATTACH_FRAME_BAD) {
        end(a, SY_E_PARSE, err.msg);
    }
    if (a->in.len == 0) {
        buf_fini(&a->in);
    }
}

/* One piece a turn of the loop. */
static void
read_frames(struct attach *a)
{
    char piece[4096];
    ssize_t n = recv(a->options.fd, piece, sizeof(piece), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0 || buf_add(&a->in, piece, (size_t)n) != SY_E_OK) {
        attach_close(a); /* the person's side has ended */
        return;
    }
    take_frames(a);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct attach *a = poll->data;

    if (status != 0 || ((events & UV_DISCONNECT) != 0 && a->state != ATTACH_JOINED)) {
        attach_close(a);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        flush(a);
        refresh(a);
    }
    if ((events & (UV_READABLE | UV_DISCONNECT)) != 0 && a->state == ATTACH_JOINED) {
        read_frames(a);
    }
}

static enum sy_code
check(const struct live *l, struct sy_error *err)
{
    struct live_state state;
    char text[LIVE_STATE_TEXT];

    live_get_state(l, &state);
    if (!state.is_running) {
        live_state_text(text, l);
        return sy_err_set(err, SY_E_CANCELLED, "session %s %s: there is nothing to join",
                          live_id(l), text);
    }
    return state.has_terminal
               ? SY_E_OK
               : sy_err_set(err, SY_E_ARG, "session %s has no terminal: there is no screen to join",
                            live_id(l));
}

enum sy_code
attach_open(struct attach **ret, const struct attach_options *options, struct sy_error *err)
{
    SY_FD fd = options->fd;
    enum sy_code rc = check(options->live, err);
    struct attach *a = rc == SY_E_OK ? mem_alloc_zero(1, sizeof(*a)) : NULL;

    if (rc != SY_E_OK) {
        return rc;
    }
    if (a == NULL ||
        paint_new(&a->paint, options->rows, options->cols, options->is_read_only, err) != SY_E_OK) {
        mem_free(a);
        return sy_err_nomem(err);
    }
    a->options = *options;
    a->in.max = ATTACH_FRAME_HEAD + LIMIT_ATTACH_FRAME + 4096;
    a->out.max = LIMIT_ATTACH_QUEUE;
    a->piece.max = LIMIT_PAINT_MOST;
    a->is_stale = true;

    int uv = uv_poll_init(options->loop, &a->poll, fd);

    if (uv != 0) {
        paint_free(a->paint);
        mem_free(a);
        return sy_err_sys(err, -uv, "watching the connection of a person");
    }
    SY_ASSERT(uv_timer_init(options->loop, &a->timer) == 0);
    a->n_handles = 2;
    a->poll.data = a;
    a->timer.data = a;
    a->options.fd = fd_take(&fd);
    a->tap = (struct live_tap){.fn = on_news, .arg = a};
    if (!options->is_read_only) {
        a->tap.rows = options->rows;
        a->tap.cols = options->cols;
    }
    /* From the loop: whoever opens it has not got it yet. */
    SY_ASSERT(uv_timer_start(&a->timer, on_timer, 0, 0) == 0);
    *ret = a;
    watch(a);
    if (a->state == ATTACH_JOINED) {
        live_tap(a->options.live, &a->tap);
    }
    return SY_E_OK;
}

void
attach_stop(struct attach *a, const char *sentence)
{
    end(a, SY_E_OK, sentence);
}
