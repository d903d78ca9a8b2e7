#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/mem.h"
#include "fault.h"
#include "tools/live_show.h"
#include "tools/tools.h"

static const char *
last(struct buf *out, const char *text)
{
    assert_int_equal(live_show_last_line_of(out, text, strlen(text)), SY_E_OK);
    return buf_view(out);
}

static void
the_last_line_is_the_last_that_says_something(void **state)
{
    static const char *const rows[][2] = {
        {"",                               ""             },
        {"\n \r\n",                        ""             },
        {"one\ntwo\n",                     "two"          },
        {"one\r\ntwo\r\n\r\n",             "two"          },
        {"10%\r20%\r30%\r",                "30%"          },
        {"one\n\033[1mtwo\033[0m\n\033[K", "two"          },
        {"\033]0;title\007name\n",         "name"         },
        {"  kept blanks \n",               "  kept blanks"},
    };
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(last(&out, rows[i][0]), rows[i][1]);
    }
}

static void
a_long_text_costs_no_more_than_its_end(void **state)
{
    static char text[100000];
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_in_range(strlen(last(&out, text)), 1, 8191);
    memcpy(text + sizeof(text) - 6, "\nend\n", 5);
    assert_string_equal(last(&out, text), "end");
}

static enum sy_code
find_line(void *arg)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};

    (void)arg;
    return live_show_last_line_of(&out, "\033[1mone\n", 8);
}

static void
a_last_line_survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(find_line, NULL);
}

/* An engine, and what it tells of its sessions: "b" began, "c" changed, "e" ended, "g" gone. */
struct fixture {
    char work[32];
    struct config config;
    uv_loop_t loop;
    struct tool_context *context;
    struct tool_watch *watch;
    char told[256];
    size_t n_done;
};

static char path_variable[] = "PATH=/usr/bin:/bin";
static char home_variable[] = "HOME=/nonexistent";
static char *const environ_list[] = {path_variable, home_variable, NULL};

static void
on_session(void *arg, const char *id, enum tool_session_change change)
{
    struct fixture *f = arg;
    size_t n = strlen(f->told);

    assert_string_equal(id, "s1");
    /* How often output comes is up to the system. */
    if (n + 1 < sizeof(f->told) && !(n > 0 && f->told[n - 1] == "bceg"[change])) {
        f->told[n] = "bceg"[change];
        f->told[n + 1] = '\0';
    }
}

static int
make(void **state)
{
    static struct fixture f;
    struct config_sources sources = {.environ_list = environ_list, .system_path = "/nonexistent"};
    struct sy_error err = {0};

    f = (struct fixture){.n_done = 0};
    (void)snprintf(f.work, sizeof(f.work), "/var/tmp/sy-tools-XXXXXX");
    if (mkdtemp(f.work) == NULL || uv_loop_init(&f.loop) != 0) {
        return -1;
    }
    sources.workspace = f.work;
    if (config_load(&f.config, &sources, &err) != SY_E_OK ||
        tool_context_new(&f.context, &f.config, f.work, environ_list, &f.loop, &err) != SY_E_OK ||
        tool_watch_new(&f.watch, f.context, on_session, &f, &err) != SY_E_OK) {
        print_error("%s\n", err.msg);
        return -1;
    }
    *state = &f;
    return 0;
}

static int
unmake(void **state)
{
    struct fixture *f = *state;

    tool_watch_free(f->watch);
    tool_context_end_sessions(f->context);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    tool_context_free(f->context);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    config_fini(&f->config);
    return uv_loop_close(&f->loop) == 0 && rmdir(f->work) == 0 ? 0 : -1;
}

static void
on_done(void *arg, struct tool_call *call, struct tool_output *output)
{
    struct fixture *f = arg;

    (void)call;
    assert_false(output->is_error);
    f->n_done++;
}

static void
run(struct fixture *f, const char *tool, const char *arguments)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    struct tool_call *call = NULL;
    size_t before = f->n_done;
    struct invocation inv = {
        .context = f->context,
        .turn = tool_context_turn(f->context),
        .call_id = "c",
        .tool_name = tool,
        .payload = PAYLOAD_MCP,
        .front = FRONT_MCP,
    };

    assert_int_equal(json_parse(&doc, arguments, strlen(arguments), NULL), SY_E_OK);
    inv.arguments = doc.root;
    assert_int_equal(tool_start(&call, &inv, on_done, f, NULL), SY_E_OK);
    while (f->n_done == before) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void
a_session_is_shown_and_its_changes_are_told(void **state)
{
    struct fixture *f = *state;
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};
    struct tool_session s = {0};
    struct sy_error err = {0};

    assert_false(tool_session_next(&s, f->context, NULL));
    run(f, "shell",
        "{\"action\":\"spawn\",\"command\":[\"sh\",\"-c\",\"printf 'a\\\\033[1mb\\\\n'; read x; echo $x\"],"
        "\"tty\":true,\"session_id\":\"s1\",\"pattern\":\"ab\",\"yield_time_ms\":30000}");
    assert_string_equal(f->told, "bc");
    assert_true(tool_session_next(&s, f->context, NULL));
    assert_string_equal(s.id, "s1");
    assert_string_equal(s.state, "runs");
    assert_true(s.has_terminal);
    assert_false(tool_session_next(&s, f->context, "s1"));
    assert_false(tool_session_next(&s, f->context, "s2"));
    assert_int_equal(tool_session_read(&text, f->context, "s1", TOOL_SESSION_SCREEN, &err),
                     SY_E_OK);
    assert_string_equal(buf_view(&text), "ab\n");
    buf_reset(&text);
    assert_int_equal(tool_session_read(&text, f->context, "s1", TOOL_SESSION_LOG, &err), SY_E_OK);
    assert_string_equal(buf_view(&text), "ab\n");
    assert_int_equal(tool_session_read(&text, f->context, "s2", TOOL_SESSION_LOG, &err),
                     SY_E_NOTFOUND);
    run(f, "shell",
        "{\"action\":\"send_text\",\"session_id\":\"s1\",\"text\":\"hi\",\"enter\":true,"
        "\"yield_time_ms\":30000}");
    assert_string_equal(f->told, "bce");
    run(f, "shell",
        "{\"action\":\"spawn\",\"command\":[\"true\"],\"session_id\":\"s1\","
        "\"yield_time_ms\":30000}");
    assert_memory_equal(f->told, "bcegb", 5);
    buf_reset(&text);
    assert_int_equal(tool_session_read(&text, f->context, "s1", TOOL_SESSION_SCREEN, &err),
                     SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "no terminal"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_line_is_the_last_that_says_something),
        cmocka_unit_test(a_long_text_costs_no_more_than_its_end),
        cmocka_unit_test(a_last_line_survives_each_failed_allocation),
        cmocka_unit_test_setup_teardown(a_session_is_shown_and_its_changes_are_told, make, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
