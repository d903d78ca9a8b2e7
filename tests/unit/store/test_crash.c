#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/limits.h"
#include "store/store_internal.h"
#include "store/watch.h"
#include "yard.h"

/* Stores requests and tells of each once it is stored, until it is killed. */
static int
store_for_ever(const struct yard *y, void *arg)
{
    const int *fd = arg;
    struct store *st = yard_open(y);
    char id[STORE_ID_SIZE];

    for (;;) {
        struct store_answer answer;

        if (yard_create(id, st, "ls", NULL) != SY_E_OK ||
            write(*fd, id, sizeof(id)) != (ssize_t)sizeof(id) ||
            store_request_cancel(&answer, st, id, NULL) != SY_E_OK) {
            return 1;
        }
    }
}

static void
must_be_whole(struct store *st)
{
    STORE_STMT s = NULL;

    assert_int_equal(store_prepare(&s, st, "PRAGMA integrity_check", NULL), SY_E_OK);
    assert_int_equal(store_step(st, s, NULL, NULL), SY_E_OK);
    assert_string_equal((const char *)sqlite3_column_text(s, 0), "ok");
}

/* Kills the child after it told of n requests; all of them must be there. */
static void
kill_after(const struct yard *y, size_t n)
{
    char ids[64][STORE_ID_SIZE];
    int in = -1;
    int out = -1;

    assert_true(n <= 64);
    assert_int_equal(fd_pipe(&in, &out, NULL), SY_E_OK);

    pid_t pid = yard_fork(y, store_for_ever, &out);

    fd_close(&out);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(read(in, ids[i], STORE_ID_SIZE), STORE_ID_SIZE);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(yard_wait(pid), -1);
    fd_close(&in);

    struct store *st = yard_open(y);

    must_be_whole(st);
    for (size_t i = 0; i < n; i++) {
        struct store_request r = {0};

        assert_int_equal(store_request_get(&r, st, ids[i], NULL), SY_E_OK);
        assert_string_equal(r.text, "ls");
        store_request_fini(&r);
    }
    store_close(st);
}

static void
what_was_stored_outlives_a_kill_at_any_moment(void **state)
{
    const struct yard *y = *state;

    for (size_t n = 0; n <= 24; n++) {
        kill_after(y, n);
    }
}

static int
open_and_wait(const struct yard *y, void *arg)
{
    const int *fd = arg;

    (void)yard_open(y);
    (void)!write(*fd, "x", 1);
    while (getppid() != 1) {
        (void)pause();
    }
    return 0;
}

static void
the_end_of_a_killed_process_wakes_who_watches(void **state)
{
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    struct store_watch *w = NULL;
    int in = -1;
    int out = -1;
    char byte = 0;

    assert_int_equal(fd_pipe(&in, &out, NULL), SY_E_OK);

    pid_t pid = yard_fork(y, open_and_wait, &out);

    fd_close(&out);
    assert_int_equal(read(in, &byte, 1), 1);
    assert_int_equal(store_watch_open(&w, st, NULL), SY_E_OK);

    struct pollfd p = {.fd = store_watch_fd(w), .events = POLLIN};

    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(yard_wait(pid), -1);
    assert_int_equal(poll(&p, 1, 30000), 1);
    fd_close(&in);
    store_watch_close(w);
    store_close(st);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_stored_outlives_a_kill_at_any_moment, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(the_end_of_a_killed_process_wakes_who_watches, yard_setup,
                                        yard_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
