#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "call_yard.h"
#include "fault.h"

/* One call of a session of its own. Between make and submit turn and request may be changed. */
struct single {
    struct session *session;
    struct turn_context turn;
    struct exec_request request;
    struct orch_call *call;
};

static void
single_make(struct single *ret, const struct spot *p, const char *script, bool login,
            uint64_t timeout_ms)
{
    *ret = (struct single){0};
    assert_int_equal(session_of(&ret->session, p), SY_E_OK);
    assert_int_equal(turn_of(&ret->turn, p, SANDBOX_WORKSPACE_WRITE), SY_E_OK);
    assert_int_equal(request_of(&ret->request, p, script, login, timeout_ms), SY_E_OK);
}

static void
single_submit(struct single *c)
{
    assert_int_equal(orch_submit(&c->call, c->session, &c->turn, &c->request, NULL), SY_E_OK);
}

static void
single_fini(struct single *c)
{
    orch_call_free(c->call);
    turn_context_fini(&c->turn);
    session_free(c->session);
}

/* What a command did to a root is no reason to run the next one without a sandbox. */
static void
a_root_that_is_gone_lifts_no_sandbox(void **state)
{
    struct spot *p = *state;
    struct single c;

    single_make(&c, p, "touch ran", false, 5000);
    c.turn.sandbox_required = false;
    c.turn.sandbox.writable_roots.max = 1;
    assert_int_equal(strv_addf(&c.turn.sandbox.writable_roots, "%s/gone", p->work), SY_E_OK);
    single_submit(&c);
    orch_run(c.call, -1);
    assert_int_equal(orch_output(c.call)->status, EXEC_FAILED);
    assert_non_null(strstr(orch_output(c.call)->err.msg, "can't be used"));
    single_fini(&c);
}

static void
a_script_runs_in_the_workspace(void **state)
{
    struct spot *p = *state;
    SY_AUTO(answer_fini) struct answer a;

    run_script(&a, p, SANDBOX_WORKSPACE_WRITE, "pwd; echo x > here && cat here; exit 3", false,
               5000);
    assert_int_equal(a.output.status, EXEC_EXITED);
    assert_int_equal(a.output.exit_code, 3);
    assert_non_null(strstr(buf_view(&a.text), p->work));
    assert_true(str_ends(buf_view(&a.text), "x\n"));
}

static void
a_write_outside_is_refused_and_allowed_with_full_access(void **state)
{
    struct spot *p = *state;
    SY_AUTO(answer_fini) struct answer denied;
    SY_AUTO(answer_fini) struct answer allowed;

    run_script(&denied, p, SANDBOX_WORKSPACE_WRITE, "echo x > ../outside", false, 5000);
    assert_int_equal(denied.output.exit_code, 1);
    run_script(&allowed, p, SANDBOX_DANGER_FULL_ACCESS, "echo x > ../outside", false, 5000);
    assert_int_equal(allowed.output.exit_code, 0);
}

static void
a_timeout_keeps_the_output_and_ends_the_tree(void **state)
{
    struct spot *p = *state;
    SY_AUTO(answer_fini) struct answer a;
    uint64_t start = clock_mono_ns();

    run_script(&a, p, SANDBOX_WORKSPACE_WRITE,
               "echo STEP-1; echo STEP-2 >&2; setsid sleep 30 & sleep 30", false, 400);
    assert_true(clock_mono_ns() - start < 3000000000ULL);
    assert_int_equal(a.output.status, EXEC_TIMED_OUT);
    assert_int_equal(a.output.exit_code, 124);
    assert_true(a.output.is_timed_out);
    assert_int_equal(a.output.ended_background, 0); /* it had not ended by itself */
    assert_string_equal(buf_view(&a.text), "STEP-1\nSTEP-2\n");
}

static void
what_is_left_in_the_background_is_counted(void **state)
{
    SY_AUTO(answer_fini) struct answer a;

    run_script(&a, *state, SANDBOX_WORKSPACE_WRITE, "sleep 30 >/dev/null 2>&1 & echo x", false,
               5000);
    assert_int_equal(a.output.status, EXEC_EXITED);
    assert_int_equal(a.output.ended_background, 1);
    assert_non_null(strstr(a.output.note, "1 background process was still running"));
    assert_non_null(strstr(a.output.note, "to keep one, run it in the foreground of a call of its "
                                          "own with a long enough timeout"));
}

/* The kernel takes no longer argument; who gave a script knows of none. */
static void
a_command_that_is_too_long_is_called_so(void **state)
{
    SY_AUTO(answer_fini) struct answer a;
    SY_AUTO(buf_fini) struct buf script = {.max = 140001};
    struct single c;

    for (int i = 0; i < 14000; i++) {
        assert_int_equal(buf_add_str(&script, "true true;"), SY_E_OK);
    }
    run_script(&a, *state, SANDBOX_WORKSPACE_WRITE, buf_view(&script), false, 5000);
    assert_int_equal(a.output.err.code, SY_E_LIMIT);
    assert_true(str_starts(a.output.err.msg, "the command has 140000 bytes; the kernel takes at "
                                             "most 131071"));

    single_make(&c, *state, "", false, 5000);
    mem_free(c.request.script);
    c.request.script = NULL;
    c.request.params.argv.max = 2;
    assert_int_equal(strv_add(&c.request.params.argv, "echo"), SY_E_OK);
    assert_int_equal(strv_add(&c.request.params.argv, buf_view(&script)), SY_E_OK);
    single_submit(&c);
    orch_run(c.call, -1);
    assert_true(str_starts(orch_output(c.call)->err.msg, "argument 1 has 140000 bytes; "));
    single_fini(&c);
}

static void
notes_end_with_whole_parts(void **state)
{
    static const char sentence[] = "something of the machine is missing and can't be had; mend it "
                                   "by a kernel that has it, or by another one";
    struct exec_output o = {0};

    (void)state;
    assert_int_equal(exec_sentence_room(sentence, 200), sizeof(sentence) - 1);
    assert_int_equal(exec_sentence_room(sentence, 80), strcspn(sentence, ";"));
    assert_int_equal(exec_sentence_room(sentence, strcspn(sentence, ";")), strcspn(sentence, ";"));
    assert_int_equal(exec_sentence_room(sentence, 20), 20);
    exec_add_note(&o, "first");
    exec_add_note(&o, "");
    exec_add_note(&o, "second");
    assert_string_equal(o.note, "first; second");
    while (sizeof(o.note) - strlen(o.note) > sizeof(sentence) + 2) {
        exec_add_note(&o, sentence);
    }
    exec_add_note(&o, sentence);
    assert_true(strlen(o.note) < sizeof(o.note) - 1);
    assert_true(str_ends(o.note, "can't be had"));
}

static void
a_signal_gives_128_and_its_number(void **state)
{
    SY_AUTO(answer_fini) struct answer a;

    run_script(&a, *state, SANDBOX_WORKSPACE_WRITE, "kill -TERM $$", false, 5000);
    assert_int_equal(a.output.status, EXEC_SIGNALED);
    assert_int_equal(a.output.exit_code, 143);
    assert_int_equal(a.output.signal, 15);
}

static void
a_missing_working_directory_is_named(void **state)
{
    struct single c;

    single_make(&c, *state, "echo x", false, 1000);
    mem_free(c.request.params.cwd);
    c.request.params.cwd = mem_strdup("/nonexistent/gone");
    single_submit(&c);
    orch_run(c.call, -1);
    assert_int_equal(orch_output(c.call)->status, EXEC_FAILED);
    assert_int_equal(orch_output(c.call)->err.code, SY_E_CWD);
    assert_non_null(strstr(orch_output(c.call)->err.msg, "'/nonexistent/gone' does not exist"));
    single_fini(&c);
}

static void
escalation_is_refused_with_the_reason(void **state)
{
    struct spot *p = *state;
    enum approval_policy policies[] = {APPROVAL_NEVER, APPROVAL_ON_REQUEST, APPROVAL_ON_FAILURE,
                                       APPROVAL_UNLESS_TRUSTED};
    const char *reasons[] = {"only possible when approval.policy is on-request",
                             "nobody can be asked here",
                             "only possible when approval.policy is on-request",
                             "only possible when approval.policy is on-request"};

    for (size_t i = 0; i < 4; i++) {
        struct single c;

        single_make(&c, p, "touch escalated", false, 1000);
        c.turn.approval = policies[i];
        c.request.params.permissions = PERMISSIONS_REQUIRE_ESCALATED;
        single_submit(&c);
        orch_run(c.call, -1);
        assert_int_equal(orch_output(c.call)->status, EXEC_DENIED);
        assert_non_null(strstr(orch_output(c.call)->err.msg, reasons[i]));
        single_fini(&c);
    }

    char path[256];

    snprintf(path, sizeof(path), "%s/escalated", p->work);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Events of one call, and a cancel at a chosen point. */
struct watcher {
    unsigned begins;
    unsigned deltas;
    unsigned ends;
    const char *status;
};

static void
watch(void *arg, const struct event *e)
{
    struct watcher *w = arg;

    assert_string_equal(e->call_id, "call_1");
    switch (e->kind) {
    case EVENT_EXEC_BEGIN:
        assert_int_equal(w->ends, 0);
        w->begins++;
        break;
    case EVENT_EXEC_OUTPUT_DELTA:
        assert_int_equal(w->begins, 1);
        w->deltas++;
        break;
    case EVENT_EXEC_END:
        w->ends++;
        w->status = e->u.end.status;
        break;
    case EVENT_EXEC_INPUT:
    case EVENT_APPROVAL_REQUESTED:
    case EVENT_APPROVAL_COMMENTED:
    case EVENT_APPROVAL_DECIDED:
    case EVENT_TOOL_DONE:
        fail_msg("an event of kind %d, and nobody is asked here", (int)e->kind);
        break;
    }
}

static void
a_call_can_be_cancelled_in_every_state(void **state)
{
    struct spot *p = *state;

    write_file(p->home, ".bash_profile", "sleep 1000\n");
    /* n steps, then the cancel: from before the first to well into the run. */
    for (unsigned steps = 0; steps < 5; steps++) {
        for (int login = 0; login < 2; login++) {
            struct single c;
            struct watcher w = {0};
            uint64_t start = clock_mono_ns();

            single_make(&c, p, "echo a; sleep 1000", login == 1, 60000);
            assert_true(event_subscribe(session_bus(c.session), watch, &w) > 0);
            single_submit(&c);
            for (unsigned i = 0; i < steps; i++) {
                assert_false(orch_step(c.call, clock_mono_ns()));
            }
            orch_cancel(c.call);
            orch_run(c.call, -1);
            assert_int_equal(orch_output(c.call)->status, EXEC_CANCELLED);
            assert_int_equal(orch_output(c.call)->exit_code, 130);
            assert_int_equal(w.ends, 1);
            assert_string_equal(w.status, "cancelled");
            assert_true(clock_mono_ns() - start < 3000000000ULL);
            single_fini(&c);
        }
    }
}

static void
events_come_as_begin_deltas_end(void **state)
{
    struct spot *p = *state;
    struct session *session = NULL;
    struct watcher w = {0};
    SY_AUTO(answer_fini) struct answer a;

    assert_int_equal(session_of(&session, p), SY_E_OK);
    assert_true(event_subscribe(session_bus(session), watch, &w) > 0);
    run_in_session(&a, session, p, SANDBOX_READ_ONLY, "echo one; echo two >&2", false, 5000);
    session_free(session);
    assert_int_equal(w.begins, 1);
    assert_true(w.deltas >= 2);
    assert_int_equal(w.ends, 1);
    assert_string_equal(w.status, "exited");
}

/* The child that a task got last; 0 if it has none. */
static pid_t
last_child(pid_t task)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    char path[64];
    char *at = NULL;
    pid_t last = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)task, (int)task);
    assert_int_equal(fd_read_file(path, &text, NULL), SY_E_OK);
    at = text.data;
    while (at != NULL && *at >= '0' && *at <= '9') {
        last = (pid_t)strtol(at, &at, 10); // NOLINT(cert-err34-c): the kernel wrote it
        at += *at == ' ';
    }
    return last;
}

static void
the_next_command_gets_the_process_that_was_made_ready(void **state)
{
    struct spot *p = *state;
    struct session *session = NULL;
    SY_AUTO(answer_fini) struct answer first;
    SY_AUTO(answer_fini) struct answer second;
    SY_AUTO(answer_fini) struct answer third;
    pid_t spare = 0;
    char expected[32];
    uint64_t give_up = clock_mono_ns() + 5000000000ULL;

    assert_int_equal(session_of(&session, p), SY_E_OK);
    run_in_session(&first, session, p, SANDBOX_WORKSPACE_WRITE, "echo $$", false, 5000);
    /* The spare's keeper is the last that was made, and makes it at its leisure. */
    while (spare == 0) {
        assert_true(clock_mono_ns() < give_up);
        spare = last_child(last_child(getpid()));
    }
    run_in_session(&second, session, p, SANDBOX_WORKSPACE_WRITE, "echo $$", false, 5000);
    /* One of another kind is no use to it. */
    run_in_session(&third, session, p, SANDBOX_DANGER_FULL_ACCESS,
                   "grep Seccomp: /proc/self/status", false, 5000);
    session_free(session);
    snprintf(expected, sizeof(expected), "%d\n", (int)spare);
    assert_string_equal(buf_view(&second.text), expected);
    assert_string_not_equal(buf_view(&first.text), expected);
    assert_string_equal(buf_view(&third.text), "Seccomp:\t0\n");
}

static enum sy_code
one_call(void *arg)
{
    const struct spot *p = arg;
    struct session *session = NULL;
    struct turn_context turn = {0};
    struct exec_request request = {0};
    struct orch_call *call = NULL;
    enum sy_code rc = session_of(&session, p);

    if (rc == SY_E_OK) {
        rc = turn_of(&turn, p, SANDBOX_WORKSPACE_WRITE);
    }
    if (rc == SY_E_OK) {
        rc = request_of(&request, p, "echo hi", false, 5000);
    }
    if (rc == SY_E_OK) {
        rc = orch_submit(&call, session, &turn, &request, NULL);
    }
    if (rc == SY_E_OK) {
        orch_run(call, -1);
        if (orch_output(call)->status == EXEC_FAILED) {
            rc = orch_output(call)->err.code;
        }
    }
    orch_call_free(call);
    exec_request_fini(&request);
    turn_context_fini(&turn);
    session_free(session);
    return rc;
}

static void
a_call_survives_each_failing_allocation(void **state)
{
    fault_run_lenient(one_call, *state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_that_is_gone_lifts_no_sandbox),
        cmocka_unit_test(a_script_runs_in_the_workspace),
        cmocka_unit_test(a_write_outside_is_refused_and_allowed_with_full_access),
        cmocka_unit_test(a_timeout_keeps_the_output_and_ends_the_tree),
        cmocka_unit_test(what_is_left_in_the_background_is_counted),
        cmocka_unit_test(a_command_that_is_too_long_is_called_so),
        cmocka_unit_test(notes_end_with_whole_parts),
        cmocka_unit_test(a_signal_gives_128_and_its_number),
        cmocka_unit_test(a_missing_working_directory_is_named),
        cmocka_unit_test(escalation_is_refused_with_the_reason),
        cmocka_unit_test(a_call_can_be_cancelled_in_every_state),
        cmocka_unit_test(events_come_as_begin_deltas_end),
        cmocka_unit_test(the_next_command_gets_the_process_that_was_made_ready),
        cmocka_unit_test(a_call_survives_each_failing_allocation),
    };

    return cmocka_run_group_tests(tests, spot_make, spot_remove);
}
