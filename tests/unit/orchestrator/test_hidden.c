/* Which of the opens of hidden things belong to which run, by what inotify(7) tells. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "orchestrator/orchestrator_internal.h"

/* As the launcher makes it: the first watch is of a file, the second of a directory. */
struct world {
    char dir[64];
    int fd;
    struct hidden_state hidden;
};

enum { A_FILE, A_DIRECTORY, HIDDEN };

static void
put(const struct world *w, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);

    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
}

static int
watch(const struct world *w, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    return inotify_add_watch(w->fd, path, IN_OPEN);
}

static int
setup(void **state)
{
    static struct world w;
    char path[128];

    w = (struct world){.dir = "/var/tmp/sy-hidden-XXXXXX"};
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(path, sizeof(path), "%s/d", w.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    put(&w, "f");
    put(&w, "d/one");
    put(&w, "d/two");
    w.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_int_equal(watch(&w, "f"), A_FILE + 1);
    assert_int_equal(watch(&w, "d"), A_DIRECTORY + 1);
    assert_int_equal(hidden_init(&w.hidden, HIDDEN), SY_E_OK);
    *state = &w;
    return 0;
}

static void
remove_name(const struct world *w, const char *name, int how)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    (void)unlinkat(AT_FDCWD, path, how);
}

static int
teardown(void **state)
{
    struct world *w = *state;

    hidden_fini(&w->hidden);
    fd_close(&w->fd);
    for (unsigned i = 0; i <= LIMIT_HIDDEN_OPENED; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "d/%u", i);
        remove_name(w, name, 0);
    }
    remove_name(w, "d/one", 0);
    remove_name(w, "d/two", 0);
    remove_name(w, "d", AT_REMOVEDIR);
    remove_name(w, "f", 0);
    return rmdir(w->dir);
}

static void
look_into(const struct world *w, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);

    SY_FD fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
}

/* "0 1/one? " : the first itself, "one" in the second, which may have been another run. */
static void
write_down(void *arg, size_t i, const char *name, bool is_alone)
{
    struct buf *out = arg;

    assert_int_equal(buf_addf(out, "%zu%s%s%s ", i, name != NULL ? "/" : "",
                              name != NULL ? name : "", is_alone ? "" : "?"),
                     SY_E_OK);
}

static void
expect_end(struct world *w, uint64_t since, const char *told)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 16384};

    hidden_end(&w->hidden, w->fd, since, write_down, &out);
    assert_string_equal(buf_view(&out), told);
}

static void
a_run_is_told_what_was_opened_while_it_ran(void **state)
{
    struct world *w = *state;
    uint64_t since = 0;

    look_into(w, "f"); /* before: nobody's */
    hidden_begin(&w->hidden, w->fd, &since);
    expect_end(w, since, "");
    hidden_begin(&w->hidden, w->fd, &since);
    look_into(w, "f");
    look_into(w, "d/two");
    look_into(w, "d/one");
    look_into(w, "d/two");
    expect_end(w, since, "0 1/two 1/one ");
    hidden_begin(&w->hidden, w->fd, &since);
    look_into(w, "d");
    expect_end(w, since, "1 ");
}

static void
runs_beside_each_other_can_not_be_told_apart(void **state)
{
    struct world *w = *state;
    uint64_t first = 0;
    uint64_t second = 0;
    uint64_t third = 0;

    hidden_begin(&w->hidden, w->fd, &first);
    look_into(w, "d/one");
    hidden_begin(&w->hidden, w->fd, &second);
    look_into(w, "f");
    expect_end(w, second, "0? ");
    expect_end(w, first, "0? 1/one? ");
    hidden_begin(&w->hidden, w->fd, &third);
    look_into(w, "f");
    expect_end(w, third, "0 ");
}

static void
names_beyond_the_limit_are_told_by_their_directory(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf out = {.max = 16384};
    uint64_t since = 0;

    hidden_begin(&w->hidden, w->fd, &since);
    for (unsigned i = 0; i <= LIMIT_HIDDEN_OPENED; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "d/%u", i);
        put(w, name);
    }
    hidden_end(&w->hidden, w->fd, since, write_down, &out);
    assert_int_equal(strncmp(buf_view(&out), "1 1/0 1/1 ", 10), 0);
    assert_non_null(strstr(buf_view(&out), "1/255 "));
    assert_null(strstr(buf_view(&out), "1/256 "));
    /* They are gone with the last run that could have opened them. */
    hidden_begin(&w->hidden, w->fd, &since);
    look_into(w, "d/256");
    expect_end(w, since, "1/256 ");
}

static void
without_a_watch_nothing_is_told(void **state)
{
    struct world *w = *state;
    uint64_t since = 0;

    hidden_begin(&w->hidden, -1, &since);
    look_into(w, "f");
    hidden_end(&w->hidden, -1, since, write_down, NULL);
    hidden_begin(&w->hidden, w->fd, &since);
    look_into(w, "f");
    hidden_end(&w->hidden, w->fd, since, NULL, NULL); /* nobody asks */
    assert_int_equal(w->hidden.running, 0);
}

/* Where no name can be kept the directory is told: something is, always. */
static enum sy_code
open_one(void *arg)
{
    struct world *w = arg;
    SY_AUTO(buf_fini) struct buf out = {.max = 64};
    struct hidden_state h = {0};
    uint64_t since = 0;
    enum sy_code rc = hidden_init(&h, HIDDEN);

    if (rc == SY_E_OK) {
        hidden_begin(&h, w->fd, &since);
        look_into(w, "d/one");
        rc = buf_reserve(&out, 32);
        hidden_end(&h, w->fd, since, write_down, &out);
        if (rc == SY_E_OK && strcmp(buf_view(&out), "1/one ") != 0 &&
            strcmp(buf_view(&out), "1 ") != 0) {
            rc = SY_E_SYS;
        }
    }
    hidden_fini(&h);
    return rc;
}

static void
an_open_is_told_whichever_allocation_fails(void **state)
{
    fault_run_lenient(open_one, *state);
}

int
main(void)
{
#define WATCHED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        WATCHED(a_run_is_told_what_was_opened_while_it_ran),
        WATCHED(runs_beside_each_other_can_not_be_told_apart),
        WATCHED(names_beyond_the_limit_are_told_by_their_directory),
        WATCHED(without_a_watch_nothing_is_told),
        WATCHED(an_open_is_told_whichever_allocation_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
