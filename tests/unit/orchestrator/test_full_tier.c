/* Which failures of the full tier are the machine's and which are of the moment. The launcher is
 * the real one behind a script that dies as often as it is told to. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "orchestrator/orchestrator_internal.h"
#include "process/template.h"

static const char *program;

struct world {
    char dir[64];
    char script[96];
    char count[96];
    struct full_tier full;
    struct sandbox_entry entry;
    struct sandbox_caps caps;
};

static void
write_file(const char *path, mode_t mode, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

/* A launcher that ends at once, `deaths` times. */
static void
begin(struct world *w, unsigned deaths)
{
    char text[1024];

    *w = (struct world){.dir = "/var/tmp/sy-full-XXXXXX"};
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->script, sizeof(w->script), "%s/launcher", w->dir);
    (void)snprintf(w->count, sizeof(w->count), "%s/count", w->dir);
    (void)snprintf(text, sizeof(text),
                   "#!/bin/sh\n"
                   "read n < %s\n"
                   "echo $((n + 1)) > %s\n"
                   "[ $n -lt %u ] && exit 1\n"
                   "exec %s \"$@\"\n",
                   w->count, w->count, deaths, program);
    write_file(w->count, 0600, "0\n");
    write_file(w->script, 0700, text);
    w->full.launcher_path = mem_strdup(w->script);
    w->entry.policy = (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE, .cwd = mem_strdup(w->dir), .max_tier = TIER_FULL};
    sandbox_probe(&w->caps);
}

static void
finish(struct world *w)
{
    template_unref(w->entry.template);
    sandbox_policy_fini(&w->entry.policy);
    full_tier_fini(&w->full);
    (void)unlink(w->script);
    (void)unlink(w->count);
    assert_int_equal(rmdir(w->dir), 0);
}

static void
is_had_though_the_launcher_is_killed_again_and_again(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 2);
    assert_int_equal(full_tier_try(&w.full, &w.entry, &w.caps), SY_E_OK);
    assert_string_equal(w.caps.full_reason, "");
    assert_true(w.caps.has_full_tier);
    assert_non_null(w.entry.template);
    assert_false(w.entry.is_stopgap);
    finish(&w);
}

/* What a command does to a directory says nothing about the machine. */
static void
is_there_though_one_policy_can_not_have_it(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 0);
    mem_free(w.entry.policy.cwd);
    w.entry.policy.cwd = mem_strdup("/var/tmp/sy-full-that-is-gone");
    assert_int_equal(full_tier_try(&w.full, &w.entry, &w.caps), SY_E_OK);
    assert_false(w.caps.has_full_tier);
    assert_string_not_equal(w.caps.full_reason, "");
    assert_null(w.entry.template);
    assert_true(w.full.is_there);
    assert_true(w.entry.is_stopgap);
    finish(&w);
}

static void
is_not_there_without_a_launcher(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 1000);
    assert_int_equal(full_tier_try(&w.full, &w.entry, &w.caps), SY_E_OK);
    assert_false(w.caps.has_full_tier);
    assert_true(w.full.is_known);
    assert_false(w.full.is_there);
    assert_false(w.entry.is_stopgap);
    finish(&w);
}

static enum sy_code
try_once(void *arg)
{
    struct world *w = arg;
    struct full_tier full = {.launcher_path = mem_strdup("/var/tmp/sy-full-no-launcher")};
    enum sy_code rc =
        full.launcher_path != NULL ? full_tier_try(&full, &w->entry, &w->caps) : SY_E_NOMEM;

    full_tier_fini(&full);
    return rc;
}

static void
survives_each_failed_allocation(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 0);
    fault_run(try_once, &w);
    assert_false(w.caps.has_full_tier);
    finish(&w);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_had_though_the_launcher_is_killed_again_and_again),
        cmocka_unit_test(is_there_though_one_policy_can_not_have_it),
        cmocka_unit_test(is_not_there_without_a_launcher),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s LAUNCHER\n", argv[0]);
        return 2;
    }
    program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
