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

#include "base/mem.h"
#include "base/str.h"
#include "tools/tools.h"

/* A workspace, a configuration with no files behind it, and a loop. */
struct fixture {
    char work[32];
    struct config config;
    uv_loop_t loop;
    struct tool_context *context;
};

static char path_variable[] = "PATH=/usr/bin:/bin";
static char home_variable[] = "HOME=/nonexistent";
static char lang_variable[] = "LANG=C.UTF-8";
static char *const environ_list[] = {path_variable, home_variable, lang_variable, NULL};

static int
make(void **state)
{
    static struct fixture f;
    struct config_sources sources = {.environ_list = environ_list, .system_path = "/nonexistent"};
    struct sy_error err = {0};

    snprintf(f.work, sizeof(f.work), "/var/tmp/sy-tools-XXXXXX");
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

static int
unmake(void **state)
{
    struct fixture *f = *state;

    tool_context_free(f->context);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    config_fini(&f->config);
    return uv_loop_close(&f->loop) == 0 && rmdir(f->work) == 0 ? 0 : -1;
}

/* What came back from a call. */
struct answer {
    bool is_done;
    bool is_error;
    bool is_success;
    struct buf text;
    struct buf content;
    struct json_doc structured;
    unsigned order;
};

static unsigned answers;

static void
take(void *arg, struct tool_call *call, struct tool_output *output)
{
    struct answer *a = arg;

    (void)call;
    assert_false(a->is_done);
    a->is_done = true;
    a->order = ++answers;
    a->is_error = output->is_error;
    a->is_success = output->is_success;
    a->text.max = a->content.max = 1U << 24;
    assert_int_equal(buf_add(&a->text, buf_view(&output->text), output->text.len), SY_E_OK);
    assert_int_equal(buf_add(&a->content, buf_view(&output->content), output->content.len),
                     SY_E_OK);
    assert_int_equal(
        json_parse(&a->structured, buf_view(&output->structured), output->structured.len, NULL),
        SY_E_OK);
}

static void
answer_fini(struct answer *a)
{
    buf_fini(&a->text);
    buf_fini(&a->content);
    json_doc_fini(&a->structured);
}

static struct tool_call *
begin(struct fixture *f, struct answer *a, const char *tool, const char *arguments,
      enum tool_front front)
{
    struct json_doc doc = {0};
    struct tool_call *call = NULL;
    struct invocation inv = {
        .context = f->context,
        .turn = tool_context_turn(f->context),
        .call_id = "call_1",
        .tool_name = tool,
        .payload = PAYLOAD_FUNCTION,
        .front = front,
    };

    assert_int_equal(json_parse(&doc, arguments, strlen(arguments), NULL), SY_E_OK);
    inv.arguments = doc.root;
    *a = (struct answer){0};
    assert_int_equal(tool_start(&call, &inv, take, a, NULL), SY_E_OK);
    /* Never from inside tool_start. */
    assert_false(a->is_done);
    json_doc_fini(&doc);
    return call;
}

static void
finish(struct fixture *f, const struct answer *a)
{
    while (!a->is_done) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void
call_tool(struct fixture *f, struct answer *a, const char *tool, const char *arguments)
{
    begin(f, a, tool, arguments, FRONT_MCP);
    finish(f, a);
}

static const char *
member(const struct answer *a, const char *key)
{
    const char *text = js_str(js_get(a->structured.root, key));

    return text != NULL ? text : "";
}

static int64_t
number(const struct answer *a, const char *key)
{
    int64_t v = -1;

    assert_true(js_int(&v, js_get(a->structured.root, key)));
    return v;
}

static void
a_result_says_everything_once_in_each_form(void **state)
{
    SY_AUTO(answer_fini) struct answer a;

    call_tool(*state, &a, "shell_command", "{\"command\":\"echo out; echo err >&2; exit 3\"}");
    assert_false(a.is_error);
    assert_false(a.is_success);
    assert_string_equal(member(&a, "status"), "exited");
    assert_int_equal(number(&a, "exit_code"), 3);
    assert_string_equal(member(&a, "output"), "out\nerr\n");
    assert_int_equal(number(&a, "total_bytes"), 8);
    assert_int_equal(number(&a, "total_lines"), 2);
    assert_null(js_get(a.structured.root, "signal"));
    assert_null(js_get(a.structured.root, "error"));
    assert_null(js_get(a.structured.root, "stdout"));

    const struct js *sandbox = js_get(a.structured.root, "sandbox");

    assert_string_equal(js_str(js_get(sandbox, "mode")), "workspace-write");
    assert_string_equal(js_str(js_get(js_get(sandbox, "features"), "fs_write")), "enforced");
    assert_non_null(strstr(buf_view(&a.text), "Exit code: 3\n"));
    assert_non_null(strstr(buf_view(&a.text), "Sandbox: workspace-write (no-namespace)"));
    assert_non_null(strstr(buf_view(&a.text), "Output:\nout\nerr\n"));
}

static void
the_content_of_a_success_is_the_output_alone(void **state)
{
    SY_AUTO(answer_fini) struct answer a;

    call_tool(*state, &a, "shell", "{\"command\":[\"printf\",\"a b\\\\n\"]}");
    assert_true(a.is_success);
    assert_string_equal(buf_view(&a.content), "a b\n");
}

static void
a_signal_and_a_timeout_are_results(void **state)
{
    SY_AUTO(answer_fini) struct answer killed;
    SY_AUTO(answer_fini) struct answer late;

    call_tool(*state, &killed, "shell_command", "{\"command\":\"echo before; kill -9 $$\"}");
    assert_false(killed.is_error);
    assert_int_equal(number(&killed, "exit_code"), 137);
    assert_int_equal(number(&killed, "signal"), 9);
    assert_string_equal(member(&killed, "signal_name"), "SIGKILL");
    assert_string_equal(member(&killed, "output"), "before\n");

    call_tool(*state, &late, "shell_command",
              "{\"command\":\"echo early; sleep 30\",\"timeout_ms\":300}");
    assert_false(late.is_error);
    assert_string_equal(member(&late, "status"), "timed_out");
    assert_int_equal(number(&late, "exit_code"), 124);
    assert_string_equal(member(&late, "output"), "early\n");
    assert_non_null(strstr(buf_view(&late.text), "command timed out after 300 milliseconds\n"));
}

static void
programs_that_cannot_run_give_126_and_127(void **state)
{
    SY_AUTO(answer_fini) struct answer missing;
    SY_AUTO(answer_fini) struct answer directory;

    call_tool(*state, &missing, "shell", "{\"command\":[\"no-such-program\"]}");
    assert_false(missing.is_error);
    assert_int_equal(number(&missing, "exit_code"), 127);
    assert_non_null(strstr(member(&missing, "error"), "no-such-program"));
    call_tool(*state, &directory, "shell", "{\"command\":[\"/usr\"]}");
    assert_int_equal(number(&directory, "exit_code"), 126);
}

static void
wrong_arguments_are_errors_that_name_them(void **state)
{
    static const struct {
        const char *tool;
        const char *arguments;
        const char *says;
    } cases[] = {
        {"shell",         "{}",                                                     "'command' must be an array"    },
        {"shell",         "{\"command\":\"ls\"}",                                   "for a script use shell_command"},
        {"shell",         "{\"command\":[]}",                                       "not an empty one"              },
        {"shell",         "{\"command\":[\"ls\",1]}",                               "'command[1]' must be a string" },
        {"shell",         "{\"command\":[\"l\\u0000s\"]}",                          "not one with a NUL"            },
        {"shell_command", "{\"command\":[\"ls\"]}",                                 "for an argument list use shell"},
        {"shell_command", "{\"command\":\"\"}",                                     "is empty"                      },
        {"shell_command", "{\"command\":\"true\",\"timeout_ms\":0}",                "from 1 to 86400000"            },
        {"shell_command", "{\"command\":\"true\",\"timeout_ms\":-1}",               "from 1 to 86400000"            },
        {"shell_command", "{\"command\":\"true\",\"timeout_ms\":86400001}",         "from 1 to 86400000"            },
        {"shell_command", "{\"command\":\"true\",\"timeout_ms\":\"1\"}",            "whole number"                  },
        {"shell_command", "{\"command\":\"true\",\"timeout_ms\":300.5}",
         "must be a whole number, not 300.5"                                                                        },
        {"shell_command", "{\"command\":\"true\",\"timout_ms\":1}",                 "did you mean 'timeout_ms'"     },
        {"shell_command", "{\"command\":\"true\",\"cwd\":1}",                       "'workdir' must be a string"    },
        {"shell_command", "{\"command\":\"true\",\"cwd\":\"a\",\"workdir\":\"b\"}",
         "mean the same"                                                                                            },
        {"shell_command", "{\"command\":\"true\",\"login\":\"yes\"}",
         "'login' must be true or false"                                                                            },
        {"shell_command", "{\"command\":\"true\",\"env\":{\"A\":1}}",               "'env' member 'A'"              },
        {"shell_command", "{\"command\":\"true\",\"env\":{\"A=B\":\"1\"}}",         "bad variable name"             },
        {"shell_command", "{\"command\":\"true\",\"env\":{\"\":\"1\"}}",
         "'env' has a bad variable name"                                                                            },
        {"shell_command", "{\"command\":\"true\",\"env\":{\"A B\":\"1\"}}",
         "bad variable name 'A B'"                                                                                  },
        {"shell_command", "{\"command\":\"true\",\"sandbox_permissions\":\"no\"}",
         "require_escalated"                                                                                        },
        {"shell_command", "{\"command\":\"true\",\"max_output_tokens\":0}",
         "'max_output_tokens' must be a whole number, at least 1; more than 10000 counts as 10000"                  },
        {"shell_command", "[]",                                                     "must be a JSON object"         },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        call_tool(*state, &a, cases[i].tool, cases[i].arguments);
        assert_true(a.is_error);
        if (strstr(buf_view(&a.text), cases[i].says) == NULL) {
            fail_msg("%s %s: %s", cases[i].tool, cases[i].arguments, buf_view(&a.text));
        }
        assert_string_equal(member(&a, "status"), "failed");
    }
}

static void
a_nul_in_an_argument_is_told_with_its_place(void **state)
{
    static const struct {
        const char *arguments;
        const char *says;
    } cases[] = {
        {"{\"command\":\"\\u0000ls\"}",
         "the script, e.g. \"ls -la | head\", not one with a NUL at byte 0"                       },
        {"{\"command\":\"a\",\"env\":{\"A\":\"x\\u0000y\"}}",
         "'A' must be a string, not one with a NUL at byte 1"                                     },
        {"{\"command\":\"a\",\"env\":{\"A\":1}}",              "'A' must be a string, not integer"},
        {"{\"command\":\"a\",\"cwd\":\"/x\\u0000\"}",
         "'workdir' must be a string, not one with a NUL at byte 2"                               },
        {"{\"command\":\"a\",\"prefix_rule\":[\"a\\u0000\"]}", "'prefix_rule[0]' must be a string"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        call_tool(*state, &a, "shell_command", cases[i].arguments);
        assert_true(a.is_error);
        if (strstr(buf_view(&a.text), cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].arguments, buf_view(&a.text));
        }
    }
}

static void
escalation_is_refused_as_an_error_with_the_reason(void **state)
{
    SY_AUTO(answer_fini) struct answer a;

    call_tool(*state, &a, "shell_command",
              "{\"command\":\"true\",\"sandbox_permissions\":\"require_escalated\"}");
    assert_true(a.is_error);
    assert_string_equal(member(&a, "status"), "denied");
    assert_non_null(strstr(member(&a, "error"), "approval"));
    assert_non_null(strstr(buf_view(&a.text), member(&a, "error")));
}

static void
the_model_text_keeps_to_its_budget(void **state)
{
    SY_AUTO(answer_fini) struct answer small;
    SY_AUTO(answer_fini) struct answer large;
    SY_AUTO(answer_fini) struct answer proto;

    call_tool(*state, &small, "shell_command", "{\"command\":\"seq 1 100000\"}");
    assert_true(js_str_len(js_get(small.structured.root, "output")) <= 10000);
    assert_int_equal(number(&small, "total_bytes"), 588895);
    assert_true(str_starts(member(&small, "output"), "1\n2\n"));
    assert_true(str_ends(member(&small, "output"), "\n100000\n"));
    call_tool(*state, &large, "shell_command",
              "{\"command\":\"seq 1 100000\",\"max_output_tokens\":99999}");

    size_t len = js_str_len(js_get(large.structured.root, "output"));

    assert_true(len > 39000 && len <= 40000);
    begin(*state, &proto, "shell_command", "{\"command\":\"seq 1 100000\"}", FRONT_PROTO);
    finish(*state, &proto);
    len = js_str_len(js_get(proto.structured.root, "output"));
    assert_true(len > 39000 && len <= 40000);
}

static void
calls_that_may_write_run_one_after_the_other(void **state)
{
    SY_AUTO(answer_fini) struct answer first;
    SY_AUTO(answer_fini) struct answer second;
    SY_AUTO(answer_fini) struct answer third;
    struct tool_call *waiting = NULL;

    begin(*state, &first, "shell_command", "{\"command\":\"echo 1 > f; sleep 0.2; cat f\"}",
          FRONT_MCP);
    begin(*state, &second, "shell_command", "{\"command\":\"echo 2 > f; cat f; rm f\"}", FRONT_MCP);
    waiting = begin(*state, &third, "shell_command", "{\"command\":\"echo never\"}", FRONT_MCP);
    tool_cancel(waiting);
    finish(*state, &third);
    finish(*state, &first);
    finish(*state, &second);
    assert_string_equal(member(&first, "output"), "1\n");
    assert_string_equal(member(&second, "output"), "2\n");
    assert_true(first.order < second.order);
    assert_true(third.is_error);
}

static void
a_cancelled_call_still_answers(void **state)
{
    struct fixture *f = *state;
    SY_AUTO(answer_fini) struct answer a;
    struct tool_call *call =
        begin(f, &a, "shell_command", "{\"command\":\"echo up; sleep 30\"}", FRONT_MCP);

    while (!str_eq(tool_last_line(call), "up")) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    tool_cancel(call);
    finish(f, &a);
    assert_string_equal(member(&a, "status"), "cancelled");
    assert_string_equal(member(&a, "output"), "up\n");
}

/* What is told of the only session: "b" began, "c" changed, "e" ended, "g" gone. How often output
 * comes is up to the system. */
static void
note_change(void *arg, const char *id, enum tool_session_change change)
{
    char *told = arg;
    size_t n = strlen(told);

    if (change == TOOL_SESSION_SETTLED) {
        assert_string_equal(id, "");
        return;
    }
    assert_string_equal(id, "s1");
    if (n < 8 && !(n > 0 && told[n - 1] == "bceg"[change])) {
        told[n] = "bceg"[change];
        told[n + 1] = '\0';
    }
}

static void
run_once(struct fixture *f, const char *arguments)
{
    SY_AUTO(answer_fini) struct answer a;

    call_tool(f, &a, "shell", arguments);
    assert_false(a.is_error);
}

static void
a_session_is_shown_and_its_changes_are_told(void **state)
{
    struct fixture *f = *state;
    struct tool_watch *watch = NULL;
    char told[16] = "";
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};
    struct tool_session s = {0};
    struct sy_error err = {0};

    assert_int_equal(tool_watch_new(&watch, f->context, note_change, told, &err), SY_E_OK);
    assert_false(tool_session_next(&s, f->context, NULL));
    run_once(
        f,
        "{\"action\":\"spawn\",\"command\":[\"sh\",\"-c\",\"printf 'a\\\\033[1mb\\\\n'; read x; echo $x\"],"
        "\"tty\":true,\"session_id\":\"s1\",\"pattern\":\"ab\",\"yield_time_ms\":30000}");
    assert_string_equal(told, "bc");
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
    run_once(f, "{\"action\":\"send_text\",\"session_id\":\"s1\",\"text\":\"hi\",\"enter\":true,"
                "\"yield_time_ms\":30000}");
    assert_string_equal(told, "bce");
    run_once(f, "{\"action\":\"spawn\",\"command\":[\"true\"],\"session_id\":\"s1\","
                "\"yield_time_ms\":30000}");
    assert_memory_equal(told, "bcegb", 5);
    buf_reset(&text);
    assert_int_equal(tool_session_read(&text, f->context, "s1", TOOL_SESSION_SCREEN, &err),
                     SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "no terminal"));
    tool_watch_free(watch);
    tool_context_end_sessions(f->context);
    while (!tool_context_is_over(f->context)) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static bool
is_listed(const char *name, const char *shell_type, const char *policy)
{
    const struct config config = {.tools.shell_type = shell_type, .approval.policy = policy};

    return tool_is_listed(tool_find(name), &config);
}

static void
aliases_are_found_but_not_listed(void **state)
{
    (void)state;
    assert_ptr_equal(tool_find("container.exec"), tool_find("shell"));
    assert_ptr_equal(tool_find("local_shell"), tool_find("shell"));
    assert_null(tool_find("nope"));
    assert_true(is_listed("shell", "default", "on-request"));
    assert_true(is_listed("shell", "all", "on-request"));
    assert_false(is_listed("shell", "shell_command", "on-request"));
    assert_false(is_listed("shell", "disabled", "on-request"));
    assert_true(is_listed("shell_command", "shell_command", "on-request"));
    assert_false(is_listed("shell_command", "unified_exec", "on-request"));
}

static void
what_needs_a_person_is_listed_where_one_can_be_asked(void **state)
{
    (void)state;
    assert_true(is_listed("request_access", "default", "on-request"));
    assert_true(is_listed("request_access", "shell_command", "unless-trusted"));
    assert_false(is_listed("request_access", "default", "never"));
    assert_true(is_listed("shell", "default", "never"));
    assert_false(is_listed("request_access", "disabled", "on-request"));
}

/* What is told of a tool: its description, then its schema. */
static void
tell(struct buf *out, const char *name, const struct told_for *who)
{
    struct jw w = {.out = out};

    buf_reset(out);
    tool_write_description(&w, tool_find(name), who);
    tool_write_input_schema(&w, tool_find(name), who);
    assert_int_equal(jw_done(&w), SY_E_OK);
}

static void
assert_tells(struct buf *out, const char *name, const struct told_for *who, const char *part)
{
    tell(out, name, who);
    if (strstr(buf_view(out), part) == NULL) {
        fail_msg("no '%s' in %s", part, buf_view(out));
    }
}

static void
what_a_model_is_told_holds_under_its_configuration(void **state)
{
    const struct fixture *f = *state;
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};
    struct config config = f->config;
    struct told_for who = {&config, FRONT_MCP};

    assert_tells(&out, "shell_command", &who, "to completion, in the sandbox, and return");
    assert_tells(&out, "shell_command", &who, "after that. Default 10000.");
    assert_tells(&out, "shell_command", &who, "user's shell. Default true.");
    assert_tells(&out, "shell", &who, "\"Default 2500, at most 10000 (of 4 bytes).\"");
    assert_tells(&out, "shell", &who,
                 "\"require_escalated: ask a person to run it outside the sandbox.\"");
    assert_tells(&out, "exec_command", &who, "\"Why; shown to that person.\"");
    who.front = FRONT_PROTO;
    assert_tells(&out, "shell", &who, "\"Default 10000, at most 10000 (of 4 bytes).\"");

    who.front = FRONT_MCP;
    config.tools.timeout_ms = 30000;
    config.shell.login = false;
    config.output.max_bytes = 1000;
    config.output.max_tokens = 300;
    assert_tells(&out, "shell_command", &who, "after that. Default 30000.");
    assert_tells(&out, "shell_command", &who, "user's shell. Default false.");
    assert_tells(&out, "shell", &who, "\"Default 250, at most 300 (of 4 bytes).\"");

    config.approval.policy = "never";
    assert_tells(&out, "shell", &who, "\"Of no use here: leave it out.\"");
    config.approval.policy = "on-request";
    config.sandbox.mode = "danger-full-access";
    assert_tells(&out, "shell", &who, "\"Of no use here: leave it out.\"");
    assert_tells(&out, "shell_command", &who, "to completion and return");
    tell(&out, "exec_command", &who);
    assert_null(strstr(buf_view(&out), "sandbox;"));
}

static void
schemas_are_json_objects(void **state)
{
    const struct fixture *f = *state;
    const struct told_for who = {&f->config, FRONT_MCP};

    for (const struct tool_handler *const *t = tool_handlers(); *t != NULL; t++) {
        SY_AUTO(buf_fini) struct buf told = {.max = 8192};
        struct jw w = {.out = &told};
        struct json_doc in = {0};
        struct json_doc out = {0};

        tool_write_input_schema(&w, *t, &who);
        assert_int_equal(jw_done(&w), SY_E_OK);
        assert_int_equal(json_parse(&in, buf_view(&told), told.len, NULL), SY_E_OK);
        assert_int_equal(json_parse(&out, (*t)->output_schema, strlen((*t)->output_schema), NULL),
                         SY_E_OK);
        assert_string_equal(js_str(js_get(in.root, "type")), "object");
        assert_string_equal(js_str(js_get(out.root, "type")), "object");
        json_doc_fini(&in);
        json_doc_fini(&out);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_says_everything_once_in_each_form),
        cmocka_unit_test(the_content_of_a_success_is_the_output_alone),
        cmocka_unit_test(a_signal_and_a_timeout_are_results),
        cmocka_unit_test(programs_that_cannot_run_give_126_and_127),
        cmocka_unit_test(wrong_arguments_are_errors_that_name_them),
        cmocka_unit_test(a_nul_in_an_argument_is_told_with_its_place),
        cmocka_unit_test(escalation_is_refused_as_an_error_with_the_reason),
        cmocka_unit_test(the_model_text_keeps_to_its_budget),
        cmocka_unit_test(a_session_is_shown_and_its_changes_are_told),
        cmocka_unit_test(calls_that_may_write_run_one_after_the_other),
        cmocka_unit_test(a_cancelled_call_still_answers),
        cmocka_unit_test(aliases_are_found_but_not_listed),
        cmocka_unit_test(what_needs_a_person_is_listed_where_one_can_be_asked),
        cmocka_unit_test(what_a_model_is_told_holds_under_its_configuration),
        cmocka_unit_test(schemas_are_json_objects),
    };

    return cmocka_run_group_tests(tests, make, unmake);
}
