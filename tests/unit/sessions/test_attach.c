/* The server's side of a person who has joined, over a pair of sockets. The session is one in which
 * nothing runs: a screen, and what it says of itself. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <uv.h>

#include "base/fd.h"
#include "fault.h"
#include "sessions/attach.h"
#include "sessions/attach_frame.h"
#include "sessions/sessions_internal.h"

struct meeting {
    uv_loop_t loop;
    struct live live;
    struct attach *attach;
    int person;
    unsigned n_ended;
    char said[65536]; /* frames, as they came */
    size_t n_said;
};

static void
on_ended(void *arg)
{
    struct meeting *m = arg;

    m->n_ended++;
}

/* A session with this on its screen, and a person who has joined it. */
static enum sy_code
meet(struct meeting *m, const char *screen, bool is_read_only)
{
    struct terminal_options size = {.rows = 24, .cols = 80};
    int pair[2];

    memset(m, 0, sizeof(*m));
    m->person = -1;
    if (uv_loop_init(&m->loop) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return SY_E_SYS;
    }
    m->person = pair[0];

    struct attach_options options = {
        .loop = &m->loop,
        .fd = pair[1],
        .live = &m->live,
        .is_read_only = is_read_only,
        .rows = 24,
        .cols = 80,
        .ended = on_ended,
        .arg = m,
    };

    memcpy(m->live.id, "s1", 3);
    m->live.has_terminal = true;
    m->live.has_begun = true;
    m->live.transcript = transcript_new(65536);

    enum sy_code rc = m->live.transcript != NULL ? SY_E_OK : SY_E_NOMEM;

    if (rc == SY_E_OK) {
        rc = terminal_new(&m->live.screen, &size, NULL);
    }
    if (rc == SY_E_OK) {
        rc = terminal_feed(m->live.screen, screen, strlen(screen));
    }
    if (rc != SY_E_OK) {
        fd_close(&options.fd);
        return rc;
    }
    return attach_open(&m->attach, &options, NULL);
}

static void
part(struct meeting *m)
{
    fd_close(&m->person);
    (void)uv_run(&m->loop, UV_RUN_DEFAULT);
    terminal_free(m->live.screen);
    transcript_free(m->live.transcript);
    (void)uv_loop_close(&m->loop);
}

static void
say(struct meeting *m, const void *frames, size_t n)
{
    (void)!send(m->person, frames, n, MSG_NOSIGNAL);
}

#define SAY(m, frames) say(m, frames, sizeof(frames) - 1)
#define SIZE_10_40     "s\4\0\0\0\12\0\50\0"
#define TYPED_LS       "i\3\0\0\0ls\r"
#define DETACH         "d\0\0\0\0"

/* The frames of this kind that have come, their texts one after the other; the status of the last
 * ATTACH_END. -1: none came, or something that is no frame. */
static int
heard(struct meeting *m, enum attach_kind kind, char *text, size_t size)
{
    struct attach_frame f;
    size_t at = 0;
    size_t len = 0;
    int ret = -1;

    while (attach_frame_read(&f, m->said + at, m->n_said - at, false, NULL) == ATTACH_FRAME_WHOLE) {
        size_t skipped = f.kind == ATTACH_END ? 1 : 0;

        if (f.kind == kind && f.n >= skipped && f.n - skipped < size - len) {
            memcpy(text + len, f.bytes + skipped, f.n - skipped);
            len += f.n - skipped;
            ret = skipped > 0 ? (unsigned char)f.bytes[0] : 0;
        }
        at += ATTACH_FRAME_HEAD + f.n;
    }
    text[len] = '\0';
    return at == m->n_said ? ret : -1;
}

static bool
has_heard(struct meeting *m, enum attach_kind kind, const char *want)
{
    static char text[sizeof(m->said)];

    return heard(m, kind, text, sizeof(text)) >= 0 && strstr(text, want) != NULL;
}

/* One turn of the loop, when there is something for it or for the person. */
static void
turn(struct meeting *m)
{
    struct pollfd fds[] = {
        {.fd = uv_backend_fd(&m->loop), .events = POLLIN},
        {.fd = m->person,               .events = POLLIN}
    };

    int wait_ms = uv_backend_timeout(&m->loop);

    /* What a callback has begun to watch is watched by the next run alone. */
    (void)poll(fds, 2, wait_ms < 0 || wait_ms > 10 ? 10 : wait_ms);
    (void)uv_run(&m->loop, UV_RUN_NOWAIT);
}

/* Runs until the person has heard this, or nothing more will be said. */
static bool
hear(struct meeting *m, enum attach_kind kind, const char *want)
{
    while (!has_heard(m, kind, want)) {
        ssize_t n = recv(m->person, m->said + m->n_said, sizeof(m->said) - m->n_said, MSG_DONTWAIT);

        if (n > 0) {
            m->n_said += (size_t)n;
        } else if (m->n_ended > 0) {
            return false;
        } else {
            turn(m);
        }
    }
    return true;
}

static void
a_person_sees_the_screen_and_leaves(void **state)
{
    struct meeting m;

    (void)state;
    assert_int_equal(meet(&m, "hello", false), SY_E_OK);
    assert_true(hear(&m, ATTACH_OUTPUT, "hello"));
    assert_int_equal(terminal_feed(m.live.screen, "\r\nmore", 6), SY_E_OK);
    live_tell_taps(&m.live, LIVE_NEWS_WROTE);
    assert_true(hear(&m, ATTACH_OUTPUT, "more"));
    SAY(&m, DETACH);
    assert_true(hear(&m, ATTACH_END, ""));
    part(&m);
    assert_int_equal(m.n_ended, 1);
    assert_null(m.live.taps);
}

static void
another_size_is_fitted_and_painted_anew(void **state)
{
    struct meeting m;

    (void)state;
    assert_int_equal(meet(&m, "hello", false), SY_E_OK);
    assert_int_equal(m.live.taps->rows, 24);
    assert_true(hear(&m, ATTACH_OUTPUT, "hello"));
    m.n_said = 0;
    SAY(&m, SIZE_10_40);
    assert_true(hear(&m, ATTACH_OUTPUT, "hello"));
    assert_int_equal(m.live.taps->rows, 10);
    assert_int_equal(m.live.taps->cols, 40);
    part(&m);
    assert_int_equal(m.n_ended, 1);
}

static void
one_that_watches_is_told_once_that_it_only_does(void **state)
{
    struct meeting m;
    char text[1024];

    (void)state;
    assert_int_equal(meet(&m, "hello", true), SY_E_OK);
    assert_int_equal(m.live.taps->rows, 0);
    SAY(&m, TYPED_LS TYPED_LS SIZE_10_40 DETACH);
    assert_true(hear(&m, ATTACH_END, ""));
    assert_int_equal(heard(&m, ATTACH_NOTE, text, sizeof(text)), 0);
    assert_string_equal(text, "what was typed is not taken: this one only watches");
    part(&m);
}

static void
what_can_not_be_typed_is_said_and_not_the_end(void **state)
{
    struct meeting m;

    (void)state;
    assert_int_equal(meet(&m, "hello", false), SY_E_OK);
    SAY(&m, TYPED_LS);
    assert_true(hear(&m, ATTACH_NOTE, "s1"));
    assert_int_equal(m.n_ended, 0);
    part(&m);
}

static void
the_end_of_the_session_is_the_last_word(void **state)
{
    struct meeting m;
    char text[1024];

    (void)state;
    assert_int_equal(meet(&m, "hello", false), SY_E_OK);
    assert_true(hear(&m, ATTACH_OUTPUT, "hello"));
    m.live.is_over = true;
    m.live.status = EXEC_EXITED;
    m.live.exit_code = 7;
    live_tell_taps(&m.live, LIVE_NEWS_ENDED);
    assert_true(hear(&m, ATTACH_END, "session s1 exited with code 7"));
    assert_int_equal(heard(&m, ATTACH_END, text, sizeof(text)), 0);
    part(&m);
    assert_int_equal(m.n_ended, 1);
}

static void
a_frame_that_is_none_ends_it_with_a_sentence(void **state)
{
    static const char *const frames[] = {"x\1\0\0\0y", "o\1\0\0\0y", "i\377\377\377\377y"};

    (void)state;
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        struct meeting m;
        char text[1024];

        assert_int_equal(meet(&m, "hello", false), SY_E_OK);
        say(&m, frames[i], 6);
        assert_true(hear(&m, ATTACH_END, ""));
        assert_int_not_equal(heard(&m, ATTACH_END, text, sizeof(text)), 0);
        assert_true(strlen(text) > 0);
        part(&m);
        assert_int_equal(m.n_ended, 1);
    }
}

static void
whoever_stops_it_says_why(void **state)
{
    struct meeting m;

    (void)state;
    assert_int_equal(meet(&m, "hello", false), SY_E_OK);
    attach_stop(m.attach, "the daemon ends");
    attach_stop(m.attach, "and again");
    assert_true(hear(&m, ATTACH_END, "the daemon ends"));
    assert_false(has_heard(&m, ATTACH_END, "again"));
    part(&m);
    assert_int_equal(m.n_ended, 1);
}

static void
nobody_joins_what_has_ended_or_has_no_terminal(void **state)
{
    struct meeting m;
    struct attach *none = NULL;
    struct sy_error err = {0};
    struct attach_options options = {.live = &m.live, .loop = &m.loop, .rows = 24, .cols = 80};

    (void)state;
    assert_int_equal(meet(&m, "hello", false), SY_E_OK);
    options.fd = dup(m.person);
    m.live.has_terminal = false;
    assert_int_equal(attach_open(&none, &options, &err), SY_E_ARG);
    options.fd = dup(m.person);
    m.live.is_over = true;
    assert_int_equal(attach_open(&none, &options, &err), SY_E_CANCELLED);
    assert_null(none);
    part(&m);
}

/* Whatever is missing, it goes on or ends, once, and the descriptor is closed. */
static enum sy_code
visit_typing(struct meeting *m, const char *screen, const char *frames, size_t n)
{
    enum sy_code rc = meet(m, screen, false);
    bool has_joined = rc == SY_E_OK;

    if (has_joined) {
        say(m, frames, n);
        if (hear(m, ATTACH_OUTPUT, "hello")) {
            SAY(m, DETACH);
            (void)hear(m, ATTACH_END, "nobody says so");
        }
    }
    part(m);
    return has_joined && m->n_ended != 1 ? SY_E_SYS : rc;
}

static enum sy_code
visit(void *arg)
{
    static const char frames[] = TYPED_LS SIZE_10_40;

    return visit_typing(arg, "hello", frames, sizeof(frames) - 1);
}

/* Nothing makes it paint anew but itself. */
static enum sy_code
visit_in_silence(void *arg)
{
    static const char screen[] = "hello, said the one\r\n\033[31mhello, said the other\033[m\r\n"
                                 "\033[1mand all of them said it\033[m\r\nonce more at the end";

    return visit_typing(arg, screen, "", 0);
}

static void
each_allocation_may_fail(void **state)
{
    static struct meeting m;

    (void)state;
    fault_run_lenient(visit, &m);
    fault_run_lenient(visit_in_silence, &m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_sees_the_screen_and_leaves),
        cmocka_unit_test(another_size_is_fitted_and_painted_anew),
        cmocka_unit_test(one_that_watches_is_told_once_that_it_only_does),
        cmocka_unit_test(what_can_not_be_typed_is_said_and_not_the_end),
        cmocka_unit_test(the_end_of_the_session_is_the_last_word),
        cmocka_unit_test(a_frame_that_is_none_ends_it_with_a_sentence),
        cmocka_unit_test(whoever_stops_it_says_why),
        cmocka_unit_test(nobody_joins_what_has_ended_or_has_no_terminal),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
