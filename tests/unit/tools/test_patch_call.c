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
#include <uv.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/tools.h"

/* A workspace without a sandbox's tier to wait for, and a loop. */
struct fixture {
    char work[32];
    struct config config;
    uv_loop_t loop;
    struct tool_context *context;
};

static char path_variable[] = "PATH=/usr/bin:/bin";
static char home_variable[] = "HOME=/nonexistent";
static char *const environ_list[] = {path_variable, home_variable, NULL};

static int
make(void **state)
{
    static struct fixture f;
    struct config_sources sources = {.environ_list = environ_list, .system_path = "/nonexistent"};
    struct sy_error err = {0};

    snprintf(f.work, sizeof(f.work), "/var/tmp/sy-patches-XXXXXX");
    if (mkdtemp(f.work) == NULL || uv_loop_init(&f.loop) != 0) {
        return -1;
    }
    sources.workspace = f.work;
    if (config_load(&f.config, &sources, &err) != SY_E_OK ||
        tool_context_new(&f.context, &f.config, f.work, environ_list, &f.loop, &err) != SY_E_OK) {
        print_error("%s\n", err.msg);
        return -1;
    }
    *state = &f;
    return 0;
}

static const char *
path_of(const struct fixture *f, const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", f->work, name);
    return path;
}

static int
unmake(void **state)
{
    struct fixture *f = *state;

    tool_context_free(f->context);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    config_fini(&f->config);
    (void)unlink(path_of(f, "a"));
    return uv_loop_close(&f->loop) == 0 && rmdir(f->work) == 0 ? 0 : -1;
}

static void
write_file(const struct fixture *f, const char *text)
{
    FILE *file = fopen(path_of(f, "a"), "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool
file_is(const struct fixture *f, const char *text)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1U << 16};

    return fd_read_file(path_of(f, "a"), &b, NULL) == SY_E_OK && str_eq(buf_view(&b), text);
}

struct answer {
    bool is_done;
    bool is_error;
    char text[1024];
};

static void
take(void *arg, struct tool_call *call, struct tool_output *output)
{
    struct answer *a = arg;

    (void)call;
    a->is_done = true;
    a->is_error = output->is_error;
    (void)snprintf(a->text, sizeof(a->text), "%s", buf_view(&output->text));
}

static struct tool_call *
start(struct fixture *f, struct answer *a, const char *input)
{
    struct tool_call *call = NULL;
    const struct invocation inv = {
        .context = f->context,
        .turn = tool_context_turn(f->context),
        .call_id = "c",
        .tool_name = "apply_patch",
        .payload = PAYLOAD_CUSTOM,
        .input = input,
        .input_len = strlen(input),
        .front = FRONT_PROTO,
    };

    *a = (struct answer){0};
    return tool_start(&call, &inv, take, a, NULL) == SY_E_OK ? call : NULL;
}

static void
run(struct fixture *f, struct answer *a, const char *input)
{
    if (start(f, a, input) == NULL) {
        return;
    }
    while (!a->is_done) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static const char one_to_two[] =
    "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** End Patch";

static void
free_text_is_the_patch(void **state)
{
    struct fixture *f = *state;
    struct answer a;

    write_file(f, "one\n");
    run(f, &a, one_to_two);
    assert_false(a.is_error);
    assert_string_equal(a.text, "Success. Updated the following files:\nM a\n");
    assert_true(file_is(f, "two\n"));
    run(f, &a, one_to_two);
    assert_true(a.is_error);
    assert_non_null(strstr(a.text, "Failed to find expected lines in a:\none"));
    assert_non_null(strstr(a.text, "Nothing was changed."));
}

static void
a_cancelled_patch_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct answer a;

    write_file(f, "one\n");
    tool_cancel(start(f, &a, one_to_two));
    while (!a.is_done) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_true(a.is_error);
    assert_non_null(strstr(a.text, "cancelled"));
    assert_true(file_is(f, "one\n"));
}

static void
whatever_memory_fails_the_answer_and_the_file_agree(void **state)
{
    struct fixture *f = *state;
    struct answer a;
    size_t n = 0;
    bool has_fired = true;

    write_file(f, "one\n");
    run(f, &a, one_to_two); /* what a session makes once is there then */
    while (has_fired) {
        write_file(f, "one\n");
        mem_fault_set(++n);
        run(f, &a, one_to_two);
        has_fired = mem_fault_fired();
        mem_fault_set(0);
        if (!a.is_done) {
            assert_true(file_is(f, "one\n")); /* refused at once */
        } else if (!a.is_error) {
            assert_true(file_is(f, "two\n"));
        } else if (strstr(a.text, "for the answer") == NULL) {
            assert_true(file_is(f, "one\n"));
        }
    }
    assert_true(n > 40);
    assert_false(a.is_error);
}

static const char leaves[] = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** Add File: "
                             "/sy-outside/b\n+x\n*** Add File: .envrc\n+x\n*** End Patch";

static void
whatever_memory_fails_what_is_refused_stays_so(void **state)
{
    struct fixture *f = *state;
    struct answer a;
    size_t n = 0;
    bool has_fired = true;

    write_file(f, "one\n");
    run(f, &a, leaves);
    while (has_fired) {
        mem_fault_set(++n);
        run(f, &a, leaves);
        has_fired = mem_fault_fired();
        mem_fault_set(0);
        assert_true(!a.is_done || a.is_error);
        assert_true(file_is(f, "one\n"));
    }
    assert_true(n > 40);
    assert_non_null(strstr(a.text, "/sy-outside/b: writing outside of the project"));
    assert_non_null(strstr(a.text, "write /sy-outside/b was refused by policy (exact); to allow "
                                   "it: sandbox.writable_roots: ["));
    assert_non_null(strstr(a.text, "/.envrc was refused by guard (exact); to allow it: "
                                   "sandbox.unprotected_names: [.envrc]"));
}

static bool
is_listed(const struct tool_handler *t, const char *shell_type)
{
    const struct config config = {.tools.shell_type = shell_type, .approval.policy = "never"};

    return tool_is_listed(t, &config);
}

static void
its_names_are_found_and_it_is_listed_with_any_shell(void **state)
{
    const struct tool_handler *t = tool_find("apply_patch");

    (void)state;
    assert_non_null(t);
    assert_ptr_equal(tool_find("applypatch"), t);
    assert_true(is_listed(t, "default") && is_listed(t, "shell_command"));
    assert_true(is_listed(t, "unified_exec") && is_listed(t, "all"));
    assert_false(is_listed(t, "disabled"));
    assert_false(t->is_open_world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(free_text_is_the_patch, make, unmake),
        cmocka_unit_test_setup_teardown(a_cancelled_patch_changes_nothing, make, unmake),
        cmocka_unit_test_setup_teardown(whatever_memory_fails_what_is_refused_stays_so, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(whatever_memory_fails_the_answer_and_the_file_agree, make,
                                        unmake),
        cmocka_unit_test(its_names_are_found_and_it_is_listed_with_any_shell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
