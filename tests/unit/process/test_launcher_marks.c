/* Marks of the full tier: what is read-only, kept in its place, or hidden. The first argument is
 * the launcher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "launched.h"

static const char attack[] =
    "(echo ok > g/index.lock && mv g/index.lock g/index) && echo index=written;"
    "(echo bad > g/config) 2>/dev/null && echo config=written;"
    "(echo bad > n; mv -f n g/config) 2>/dev/null && echo config=replaced;"
    "rm -f g/config 2>/dev/null && echo config=removed;"
    "(echo bad > g/hooks/post-checkout) 2>/dev/null && echo hook=planted;"
    "mv g/hooks g/h2 2>/dev/null && echo hooks=moved; mv g g2 2>/dev/null && echo g=moved;"
    "cat secret 2>/dev/null; ls private; (echo x >> secret) 2>/dev/null && echo secret=written;"
    "true";

static void
marks_hold(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = 4096};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    SY_AUTO(buf_fini) struct buf control = {.max = 4096};
    struct command early;

    put_dir(w, "g");
    put_dir(w, "g/hooks");
    put_dir(w, "private");
    put_file(w, "g/config", "good\n");
    put_file(w, "secret", "the secret\n");
    put_file(w, "private/key", "the key\n");
    /* A command that runs already when they come. */
    start(&early, w,
          "echo up; while [ ! -e go ]; do sleep 0.01; done; (echo bad > g/config) 2>&1; "
          "cat secret");
    drive(&early, "up");
    add_mark(&marks, w, LAUNCH_MARK_PIN, "g");
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "g/config");
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "g/hooks");
    add_mark(&marks, w, LAUNCH_MARK_HIDE, "secret");
    add_mark(&marks, w, LAUNCH_MARK_HIDE, "private");
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "not/there");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w, attack, &out), 0);
    assert_string_equal(buf_view(&out), "index=written\n");
    put_file(w, "go", "");
    drive(&early, NULL);
    assert_true(has_said(&early, "Read-only file system"));
    assert_false(has_said(&early, "the secret"));
    end(&early);

    /* A person's git replaces the file: the kernel drops what lay on it, and it is marked again. */
    char from[128];
    char to[128];

    put_file(w, "g/config.lock", "newer\n");
    (void)snprintf(from, sizeof(from), "%s/g/config.lock", w->dir);
    (void)snprintf(to, sizeof(to), "%s/g/config", w->dir);
    assert_int_equal(rename(from, to), 0);
    buf_reset(&marks);
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "g/config");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w, "(echo bad > g/config) 2>/dev/null && exit 1; cat g/config", &control),
                     0);
    assert_string_equal(buf_view(&control), "newer\n");
}

static void
without_marks_the_same_attack_succeeds(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    put_dir(w, "g");
    put_dir(w, "g/hooks");
    put_dir(w, "private");
    put_file(w, "g/config", "good\n");
    put_file(w, "secret", "the secret\n");
    put_file(w, "private/key", "the key\n");
    assert_int_equal(run(w, attack, &out), 0);
    assert_string_equal(
        buf_view(&out),
        "index=written\nconfig=written\nconfig=replaced\nconfig=removed\nhook=planted\nhooks=moved\n"
        "g=moved\nthe secret\nkey\nsecret=written\n");
}

/* The names of events, each with the number of what it is of; the directory itself is "". */
static void
read_events(struct buf *ret, int fd)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t got = read(fd, events, sizeof(events));

    for (ssize_t i = 0; i < got;) {
        struct inotify_event event;

        memcpy(&event, events + i, sizeof(event));
        i += (ssize_t)sizeof(event);
        assert_int_equal(buf_addf(ret, "%d:%s ", event.wd, event.len > 0 ? events + i : ""),
                         SY_E_OK);
        i += (ssize_t)event.len;
    }
}

static void
what_is_hidden_keeps_its_names_where_they_are_asked_for(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = 4096};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    SY_AUTO(buf_fini) struct buf events = {.max = 4096};

    put_dir(w, "shown");
    put_dir(w, "shown/deep");
    put_file(w, "shown/deep/key", "the deep key\n");
    put_file(w, "shown/key", "the key\n");
    put_dir(w, "many");
    for (unsigned i = 0; i < LIMIT_HIDDEN_NAMES + 8; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "many/%u", i);
        put_file(w, name, "");
    }
    put_dir(w, "private");
    put_file(w, "private/key", "the key\n");
    assert_int_equal(run(w, "ln -s key shown/link; mkfifo shown/pipe", NULL), 0);
    add_mark(&marks, w, LAUNCH_MARK_HIDE_NAMED, "shown");
    add_mark(&marks, w, LAUNCH_MARK_HIDE, "private");
    add_mark(&marks, w, LAUNCH_MARK_HIDE_NAMED, "many");
    add_mark(&marks, w, LAUNCH_MARK_HIDE_NAMED, "not/there");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w,
                         "cat shown/key; cat shown/link; test -d shown/deep; cat shown/deep/key "
                         "private/key 2>/dev/null; echo x 2>/dev/null >shown/key; "
                         "rm -rf shown/key 2>/dev/null; touch shown/new 2>/dev/null; true",
                         &out),
                     0);
    assert_string_equal(buf_view(&out), "");
    read_events(&events, template_watch_fd(w->template));
    assert_non_null(strstr(buf_view(&events), "1:key 1:link "));
    assert_null(strstr(buf_view(&events), "2:"));
    assert_int_equal(run(w, "ls shown private; ls many | wc -l", &out), 0);
    assert_string_equal(buf_view(&out), "private:\n\nshown:\ndeep\nkey\nlink\n64\n");
    buf_reset(&events);
    read_events(&events, template_watch_fd(w->template));
    assert_string_equal(buf_view(&events), "2: 1: 3: ");
}

static void
marks_that_are_none_end_the_template(void **state)
{
    struct world *w = *state;
    static const char no_end[] = {'r', '/', 'x'};
    static const char no_kind[] = "x/etc";
    struct sy_error err = {0};

    assert_int_equal(launcher_add_marks(w->template, no_end, sizeof(no_end), &err), SY_E_SANDBOX);
    assert_int_equal(launcher_add_marks(w->template, no_kind, sizeof(no_kind), &err),
                     SY_E_NOTFOUND);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LAUNCHED(marks_hold),
        LAUNCHED(without_marks_the_same_attack_succeeds),
        LAUNCHED(what_is_hidden_keeps_its_names_where_they_are_asked_for),
        LAUNCHED(marks_that_are_none_end_the_template),
    };

    return launched_by(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
