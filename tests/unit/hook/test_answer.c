#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "hook/hook.h"

static enum sy_code
read_n(struct hook_answer *ret, const char *text, size_t len, struct sy_error *err)
{
    return hook_answer_read(ret, text, len, err);
}

static void
expect(const char *text, enum hook_decision decision, const char *reason)
{
    struct hook_answer a;
    struct sy_error err = {0};

    assert_int_equal(read_n(&a, text, strlen(text), &err), SY_E_OK);
    assert_int_equal(a.decision, decision);
    assert_string_equal(a.reason, reason);
    assert_false(a.has_failed);
    hook_answer_fini(&a);
}

static void
refuse_n(const char *text, size_t len, const char *says)
{
    struct hook_answer a;
    struct sy_error err = {0};

    assert_int_equal(read_n(&a, text, len, &err), SY_E_PARSE);
    assert_int_equal(a.decision, HOOK_NONE);
    assert_int_equal(a.command.n, 0);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("'%s' is not in '%s'", says, err.msg);
    }
}

static void
refuse(const char *text, const char *says)
{
    refuse_n(text, strlen(text), says);
}

static void
reads_each_decision(void **state)
{
    (void)state;
    expect("{\"decision\":\"none\"}", HOOK_NONE, "");
    expect("{\"decision\":\"allow\"}", HOOK_ALLOW, "");
    expect("{\"decision\":\"ask\",\"reason\":\"why\"}\n", HOOK_ASK, "why");
    expect(" {\"reason\":\"no\",\"decision\":\"deny\"} ", HOOK_DENY, "no");
}

static void
takes_nothing_for_no_opinion(void **state)
{
    (void)state;
    expect("", HOOK_NONE, "");
    expect(" \t\r\n", HOOK_NONE, "");
}

static void
reads_a_command(void **state)
{
    static const char text[] = "{\"decision\":\"rewrite\",\"command\":[\"ls\",\"\",\"a b\"]}";
    struct hook_answer a;

    (void)state;
    assert_int_equal(hook_answer_read(&a, text, sizeof(text) - 1, NULL), SY_E_OK);
    assert_int_equal(a.decision, HOOK_REWRITE);
    assert_int_equal(a.command.n, 3);
    assert_string_equal(a.command.v[0], "ls");
    assert_string_equal(a.command.v[1], "");
    assert_string_equal(a.command.v[2], "a b");
    hook_answer_fini(&a);
}

static void
refuses_what_is_no_answer(void **state)
{
    (void)state;
    refuse("allow", "");
    refuse("{\"decision\":\"allow\"}{}", "");
    refuse("[]", "an object");
    refuse("null", "an object");
    refuse("{}", "missing");
    refuse("{\"decision\":\"Allow\"}", "\"decision\" must be");
    refuse("{\"decision\":true}", "\"decision\" must be");
    refuse("{\"decision\":\"ask\",\"reason\":1}", "\"reason\" must be");
    refuse("{\"decision\":\"ask\",\"resaon\":\"x\"}", "unknown key \"resaon\"");
    refuse("{\"decision\":\"ask\",\"\\u001b[2J\":1}", "\\x1b[2J");
}

static void
refuses_two_of_one_key(void **state)
{
    (void)state;
    refuse("{\"decision\":\"deny\",\"decision\":\"allow\"}", "");
}

static void
refuses_commands_that_are_none(void **state)
{
    (void)state;
    refuse("{\"decision\":\"rewrite\"}", "missing");
    refuse("{\"decision\":\"allow\",\"command\":[\"ls\"]}", "belongs to");
    refuse("{\"decision\":\"rewrite\",\"command\":[]}", "\"command\" must be");
    refuse("{\"decision\":\"rewrite\",\"command\":\"ls\"}", "\"command\" must be");
    refuse("{\"decision\":\"rewrite\",\"command\":[\"\"]}", "[0]");
    refuse("{\"decision\":\"rewrite\",\"command\":[\"ls\",1]}", "[1]");
    refuse("{\"decision\":\"rewrite\",\"command\":[\"ls\",\"a\\u0000b\"]}", "[1]");
}

static void
refuses_bytes_that_are_no_text(void **state)
{
    static const char nul[] = "{\"decision\":\"allow\"}\0";

    (void)state;
    refuse("{\"decision\":\"deny\",\"reason\":\"\xff\"}", "");
    refuse("\xff\xfe", "");
    refuse_n(nul, sizeof(nul), "");
    refuse_n(nul, 1, "");
}

static void
makes_a_reason_visible_and_short(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 100000};
    struct hook_answer a;

    (void)state;
    expect("{\"decision\":\"deny\",\"reason\":\"a\\u001b[31mb\\nc\\u0000d\"}", HOOK_DENY,
           "a\\x1b[31mb\\x0ac\\x00d");
    assert_int_equal(buf_add_str(&text, "{\"decision\":\"deny\",\"reason\":\""), SY_E_OK);
    for (int i = 0; i < 60000; i++) {
        assert_int_equal(buf_add_char(&text, 'x'), SY_E_OK);
    }
    assert_int_equal(buf_add_str(&text, "\"}"), SY_E_OK);
    assert_int_equal(hook_answer_read(&a, buf_view(&text), text.len, NULL), SY_E_OK);
    assert_true(strlen(a.reason) < SY_ERR_MSG_MAX);
    assert_true(str_starts(a.reason, "xxxx"));
    hook_answer_fini(&a);
}

static void
survives_a_megabyte(void **state)
{
    enum { SIZE = 1024 * 1024 };
    char *text = mem_alloc(SIZE + 1);

    (void)state;
    assert_non_null(text);
    memset(text, 'x', SIZE);
    text[SIZE] = '\0';
    refuse_n(text, SIZE, "");
    memset(text, '[', SIZE);
    refuse_n(text, SIZE, "");
    memset(text, ' ', SIZE);
    expect(text, HOOK_NONE, "");
    mem_free(text);
}

static enum sy_code
read_all(void *arg)
{
    struct hook_answer a;
    const char *text = arg;
    enum sy_code rc = hook_answer_read(&a, text, strlen(text), NULL);

    hook_answer_fini(&a);
    return rc;
}

static void
fails_whole_without_memory(void **state)
{
    static char text[] = "{\"decision\":\"rewrite\",\"reason\":\"r\",\"command\":[\"ls\",\"-l\"]}";

    (void)state;
    fault_run(read_all, text);
}

static void
tells_a_call_without_its_environment(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = LIMIT_HOOK_INPUT};
    char *argv[] = {(char[]){"rm"}, (char[]){"-rf"}, (char[]){"a"}, NULL};
    struct assessment a = {.class = APPROVAL_CLASS_DANGEROUS, .finding = "f"};
    struct sandbox_policy policy = {.mode = SANDBOX_READ_ONLY, .cwd = (char[]){"/w"}};
    const struct hook_call call = {
        .event = HOOK_PRE_EXEC,
        .session = "s",
        .call_id = "c",
        .tool = "shell",
        .argv = argv,
        .cwd = "/w/sub",
        .sandbox = &policy,
        .policy = APPROVAL_ON_REQUEST,
        .justification = "j",
        .assessment = &a,
    };

    (void)state;
    a.need.kind = REQUIREMENT_NEEDS_APPROVAL;
    memcpy(a.need.reason, "why", 4);
    assert_int_equal(hook_call_write(&b, &call), SY_E_OK);
    assert_string_equal(
        buf_view(&b),
        "{\"event\":\"pre_exec\",\"version\":1,\"session\":\"s\",\"call_id\":\"c\",\"tool\":"
        "\"shell\",\"argv\":[\"rm\",\"-rf\",\"a\"],\"cwd\":\"/w/sub\",\"workspace\":\"/w\","
        "\"sandbox\":\"read-only\",\"approval\":\"on-request\",\"escalated\":false,"
        "\"justification\":\"j\",\"requirement\":{\"kind\":\"ask\",\"reason\":\"why\"},"
        "\"danger\":{\"class\":\"dangerous\",\"finding\":\"f\"}}");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_decision),
        cmocka_unit_test(takes_nothing_for_no_opinion),
        cmocka_unit_test(reads_a_command),
        cmocka_unit_test(refuses_what_is_no_answer),
        cmocka_unit_test(refuses_two_of_one_key),
        cmocka_unit_test(refuses_commands_that_are_none),
        cmocka_unit_test(refuses_bytes_that_are_no_text),
        cmocka_unit_test(makes_a_reason_visible_and_short),
        cmocka_unit_test(survives_a_megabyte),
        cmocka_unit_test(fails_whole_without_memory),
        cmocka_unit_test(tells_a_call_without_its_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
