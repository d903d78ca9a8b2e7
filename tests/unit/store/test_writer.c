#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/limits.h"
#include "fault.h"
#include "store/store_internal.h"
#include "store/watch.h"
#include "store/writer.h"
#include "yard.h"

/* A job that stores a request, and what became of it. */
struct job {
    size_t done_n;
    char id[STORE_ID_SIZE];
    bool must_fail; /* after it has written */
    enum sy_code rc;
    struct sy_error err;
};

static enum sy_code
run(struct store *st, void *arg, struct sy_error *err)
{
    struct job *j = arg;
    enum sy_code rc = yard_create(j->id, st, "ls", err);

    return rc == SY_E_OK && j->must_fail ? sy_err_set(err, SY_E_ARG, "by wish") : rc;
}

static void
done(void *arg, enum sy_code rc, const struct sy_error *err)
{
    struct job *j = arg;

    j->done_n++;
    j->rc = rc;
    j->err = *err;
}

static struct store_writer *
open_writer(const struct yard *y, uint32_t busy_ms)
{
    const struct store_options options = {.dir = y->dir, .busy_ms = busy_ms};
    struct store_writer *w = NULL;
    struct sy_error err = {0};

    if (store_writer_open(&w, &options, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return w;
}

static enum sy_code
submit(struct store_writer *w, struct job *j)
{
    const struct store_job job = {.run = run, .done = done, .arg = j};

    return store_writer_submit(w, &job, NULL);
}

static void
wait_for(struct store_writer *w, const struct job *last)
{
    while (last->done_n == 0) {
        struct pollfd p = {.fd = store_writer_fd(w), .events = POLLIN};

        assert_int_equal(poll(&p, 1, 30000), 1);
        store_writer_dispatch(w);
    }
}

static size_t
count(struct store *st)
{
    struct store_requests list = {0};

    assert_int_equal(store_requests_pending(&list, st, NULL), SY_E_OK);

    size_t n = list.n;

    store_requests_fini(&list);
    return n;
}

static void
a_job_that_ended_is_there_for_readers(void **state)
{
    const struct yard *y = *state;
    struct store_writer *w = open_writer(y, 0);
    struct store *st = yard_open(y);
    struct job j = {0};
    struct store_request r = {0};
    struct store_watch *watch = NULL;

    assert_int_equal(store_watch_open(&watch, st, NULL), SY_E_OK);
    assert_int_equal(submit(w, &j), SY_E_OK);
    wait_for(w, &j);

    struct pollfd p = {.fd = store_watch_fd(watch), .events = POLLIN};

    assert_int_equal(poll(&p, 1, 30000), 1);
    store_watch_close(watch);
    assert_int_equal(j.rc, SY_E_OK);
    assert_int_equal(j.done_n, 1);
    assert_int_equal(store_request_get(&r, st, j.id, NULL), SY_E_OK);
    store_request_fini(&r);
    store_close(st);
    store_writer_close(w);
}

static void
a_job_that_fails_takes_back_its_own_part_alone(void **state)
{
    const struct yard *y = *state;
    struct store_writer *w = open_writer(y, 0);
    struct store *st = yard_open(y);
    struct store_txn txn;
    struct job jobs[3] = {{.must_fail = false}, {.must_fail = true}, {.must_fail = false}};

    /* Held up until all three wait. */
    assert_int_equal(store_begin(&txn, st, NULL), SY_E_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(submit(w, &jobs[i]), SY_E_OK);
    }
    assert_int_equal(store_end(&txn, SY_E_OK, NULL), SY_E_OK);
    wait_for(w, &jobs[2]);
    assert_int_equal(jobs[0].rc, SY_E_OK);
    assert_int_equal(jobs[1].rc, SY_E_ARG);
    assert_string_equal(jobs[1].err.msg, "by wish");
    assert_int_equal(jobs[2].rc, SY_E_OK);
    assert_int_equal(count(st), 2);
    store_close(st);
    store_writer_close(w);
}

static void
a_full_queue_refuses_and_takes_again_after_a_dispatch(void **state)
{
    static struct job jobs[LIMIT_STORE_QUEUE + 1];
    const struct yard *y = *state;
    struct store_writer *w = open_writer(y, 20000);
    struct store *st = yard_open(y);
    struct store_txn txn;

    assert_int_equal(store_begin(&txn, st, NULL), SY_E_OK);
    (void)memset(jobs, 0, sizeof(jobs));
    for (size_t i = 0; i < LIMIT_STORE_QUEUE; i++) {
        assert_int_equal(submit(w, &jobs[i]), SY_E_OK);
    }
    assert_int_equal(submit(w, &jobs[LIMIT_STORE_QUEUE]), SY_E_LIMIT);
    assert_int_equal(store_end(&txn, SY_E_OK, NULL), SY_E_OK);
    wait_for(w, &jobs[LIMIT_STORE_QUEUE - 1]);
    for (size_t i = 0; i < LIMIT_STORE_QUEUE; i++) {
        assert_int_equal(jobs[i].rc, SY_E_OK);
        assert_int_equal(jobs[i].done_n, 1);
    }
    assert_int_equal(count(st), LIMIT_STORE_QUEUE);
    /* Taken, and told that as many requests wait as may. */
    assert_int_equal(submit(w, &jobs[LIMIT_STORE_QUEUE]), SY_E_OK);
    wait_for(w, &jobs[LIMIT_STORE_QUEUE]);
    assert_int_equal(jobs[LIMIT_STORE_QUEUE].rc, SY_E_LIMIT);
    store_close(st);
    store_writer_close(w);
}

static void
a_held_database_fails_the_batch_and_not_the_writer(void **state)
{
    const struct yard *y = *state;
    struct store_writer *w = open_writer(y, 30);
    struct store *st = yard_open(y);
    struct store_txn txn;
    struct job held = {0};
    struct job later = {0};

    assert_int_equal(store_begin(&txn, st, NULL), SY_E_OK);
    assert_int_equal(submit(w, &held), SY_E_OK);
    wait_for(w, &held);
    assert_int_equal(held.rc, SY_E_SYS);
    assert_int_equal(held.err.sys, EBUSY);
    assert_int_equal(store_end(&txn, SY_E_OK, NULL), SY_E_OK);
    assert_int_equal(submit(w, &later), SY_E_OK);
    wait_for(w, &later);
    assert_int_equal(later.rc, SY_E_OK);
    assert_int_equal(count(st), 1);
    store_close(st);
    store_writer_close(w);
}

static enum sy_code
store_much(struct store *st, void *arg, struct sy_error *err)
{
    static char text[LIMIT_STORE_TEXT];
    struct job *j = arg;

    (void)memset(text, 'x', sizeof(text) - 1);
    return yard_create(j->id, st, text, err);
}

/* 0: as it should be; else which check was not. */
static int
write_beyond_limit(const struct yard *y, void *arg)
{
    const struct rlimit low = {.rlim_cur = 200000, .rlim_max = 8000000};
    const struct rlimit high = {.rlim_cur = 8000000, .rlim_max = 8000000};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct store_writer *w = open_writer(y, 0);
    struct job refused = {0};
    struct job taken = {0};
    const struct store_job job = {.run = store_much, .done = done, .arg = &refused};

    (void)arg;
    (void)sigaction(SIGXFSZ, &ignore, NULL);
    (void)setrlimit(RLIMIT_FSIZE, &low);
    if (store_writer_submit(w, &job, NULL) != SY_E_OK) {
        return 1;
    }
    wait_for(w, &refused);
    if (refused.rc != SY_E_SYS || refused.err.sys != ENOSPC) {
        return 2;
    }
    (void)setrlimit(RLIMIT_FSIZE, &high);
    if (submit(w, &taken) != SY_E_OK) {
        return 3;
    }
    wait_for(w, &taken);
    store_writer_close(w);
    return taken.rc == SY_E_OK ? 0 : 4;
}

static void
a_full_disk_fails_the_batch_and_not_the_writer(void **state)
{
    const struct yard *y = *state;

    assert_int_equal(yard_wait(yard_fork(y, write_beyond_limit, NULL)), 0);

    struct store *st = yard_open(y);

    assert_int_equal(count(st), 1);
    store_close(st);
}

static void
closing_lets_all_jobs_end(void **state)
{
    const struct yard *y = *state;
    struct store_writer *w = open_writer(y, 0);
    struct job jobs[100] = {0};

    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(submit(w, &jobs[i]), SY_E_OK);
    }
    store_writer_close(w);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(jobs[i].done_n, 1);
        assert_int_equal(jobs[i].rc, SY_E_OK);
    }
}

static void
a_thread_that_opens_the_store_tries_again_with_the_next_job(void **state)
{
    const struct yard *y = *state;
    const struct store_options options = {.dir = y->dir};
    struct store_writer *w = NULL;
    struct job first = {0};
    struct job second = {0};
    struct sy_error err = {0};
    FILE *f = fopen(y->dir, "w"); /* where the directory should be */

    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(store_writer_open_later(&w, &options, &err), SY_E_OK);
    assert_int_equal(submit(w, &first), SY_E_OK);
    wait_for(w, &first);
    assert_int_not_equal(first.rc, SY_E_OK);
    assert_non_null(strstr(first.err.msg, y->dir));
    assert_int_equal(remove(y->dir), 0);
    assert_int_equal(submit(w, &second), SY_E_OK);
    wait_for(w, &second);
    assert_int_equal(second.rc, SY_E_OK);
    store_writer_close(w);

    struct store *st = yard_open(y);
    struct store_request r = {0};

    assert_int_equal(store_request_get(&r, st, second.id, &err), SY_E_OK);
    store_request_fini(&r);
    store_close(st);
}

static void
a_writer_that_opens_later_opens_again_what_was_removed(void **state)
{
    const struct yard *y = *state;
    const struct store_options options = {.dir = y->dir};
    struct store_writer *w = NULL;
    struct sy_error err = {0};
    struct job first = {0};
    struct job second = {0};
    struct store_request r = {0};

    assert_int_equal(store_writer_open_later(&w, &options, &err), SY_E_OK);
    assert_int_equal(submit(w, &first), SY_E_OK);
    wait_for(w, &first);
    assert_int_equal(first.rc, SY_E_OK);
    assert_int_equal(unlink(y->db), 0);
    assert_int_equal(submit(w, &second), SY_E_OK);
    wait_for(w, &second);
    assert_int_equal(second.rc, SY_E_OK);
    store_writer_close(w);

    struct store *st = yard_open(y);

    assert_int_equal(store_request_get(&r, st, second.id, &err), SY_E_OK);
    store_request_fini(&r);
    assert_int_equal(store_request_get(&r, st, first.id, &err), SY_E_NOTFOUND);
    store_close(st);
}

static void
a_writer_that_had_no_job_makes_no_store(void **state)
{
    const struct yard *y = *state;
    const struct store_options options = {.dir = y->dir};
    struct store_writer *w = NULL;
    struct sy_error err = {0};

    assert_int_equal(store_writer_open_later(&w, &options, &err), SY_E_OK);
    store_writer_close(w);
    assert_false(store_exists(y->dir));
}

static enum sy_code
one_round(void *arg)
{
    const struct yard *y = arg;
    const struct store_options options = {.dir = y->dir};
    struct store_writer *w = NULL;
    struct job j = {0};
    enum sy_code rc = store_writer_open(&w, &options, NULL);

    if (rc == SY_E_OK) {
        rc = submit(w, &j);
    }
    store_writer_close(w);
    return rc == SY_E_OK ? j.rc : rc;
}

static void
each_allocation_may_fail(void **state)
{
    fault_run(one_round, *state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_that_ended_is_there_for_readers, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_job_that_fails_takes_back_its_own_part_alone, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses_and_takes_again_after_a_dispatch,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_held_database_fails_the_batch_and_not_the_writer,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_fails_the_batch_and_not_the_writer, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(closing_lets_all_jobs_end, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_thread_that_opens_the_store_tries_again_with_the_next_job,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_writer_that_opens_later_opens_again_what_was_removed,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_writer_that_had_no_job_makes_no_store, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(each_allocation_may_fail, yard_setup, yard_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
