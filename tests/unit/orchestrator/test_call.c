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

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/orchestrator.h"

#include "../fault.h"

/* A workspace and a home of the test's own, both removed at its end. */
struct spot {
    char root[64];
    char home[96];
    char work[96];
    struct strv environ_list;
};

static int
place_make(void **state)
{
    static struct spot p;

    snprintf(p.root, sizeof(p.root), "/var/tmp/sy-call-XXXXXX");
    if (mkdtemp(p.root) == NULL) {
        return -1;
    }
    snprintf(p.home, sizeof(p.home), "%s/home", p.root);
    snprintf(p.work, sizeof(p.work), "%s/work", p.root);
    if (mkdir(p.home, 0700) != 0 || mkdir(p.work, 0700) != 0) {
        return -1;
    }
    p.environ_list = (struct strv){.max = 64};
    if (strv_addf(&p.environ_list, "HOME=%s", p.home) != SY_E_OK ||
        strv_add(&p.environ_list, "PATH=/usr/bin:/bin:/private/tools") != SY_E_OK ||
        strv_add(&p.environ_list, "LANG=C.UTF-8") != SY_E_OK) {
        return -1;
    }
    *state = &p;
    return 0;
}

static int
place_remove(void **state)
{
    struct spot *p = *state;
    char *argv[] = {mem_unconst("rm"), mem_unconst("-rf"), p->root, NULL};
    struct exec_env env = {
        .program = "/bin/rm", .argv = argv, .envp = strv_view(&p->environ_list), .cwd = "/"};
    struct output_options options = {0};
    struct output_chain *chain = output_new(&options);
    struct process *process = NULL;
    bool is_done = false;

    if (chain != NULL && process_start(&process, &env, chain, NULL) == SY_E_OK) {
        while (process_step(process, clock_mono_ns(), &is_done, NULL) == SY_E_OK && !is_done) {
        }
    }
    process_free(process);
    output_free(chain);
    strv_fini(&p->environ_list);
    return 0;
}

static void
write_file(const char *dir, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);

    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static enum sy_code
session_of(struct session **ret, const struct spot *p)
{
    struct session_options options = {
        .spare = SPARE_ALWAYS,
        .session_id = "test",
        .shell_path = "/bin/bash",
        .login_snapshot = true,
        .snapshot_timeout_ms = 1500,
        .environ_list = strv_view(&p->environ_list),
    };

    return session_new(ret, &options, NULL);
}

static enum sy_code
turn_of(struct turn_context *ret, const struct spot *p, enum sandbox_mode mode)
{
    *ret = (struct turn_context){
        .cwd = mem_strdup(p->work),
        .sandbox = {.mode = mode, .cwd = mem_strdup(p->work)},
        .approval = APPROVAL_NEVER,
        .env = {.default_excludes = true           },
        .sandbox_required = true,
    };
    return ret->cwd != NULL && ret->sandbox.cwd != NULL ? SY_E_OK : SY_E_NOMEM;
}

static enum sy_code
request_of(struct exec_request *ret, const struct spot *p, const char *script, bool login,
           uint64_t timeout_ms)
{
    *ret = (struct exec_request){
        .params = {.cwd = mem_strdup(p->work),
                   .expiration = {.kind = EXPIRE_TIMEOUT, .timeout_ms = timeout_ms}},
        .script = mem_strdup(script),
        .login = login,
        .call_id = mem_strdup("call_1"),
        .tool = "shell_command",
    };
    return ret->params.cwd != NULL && ret->script != NULL && ret->call_id != NULL ? SY_E_OK
                                                                                  : SY_E_NOMEM;
}

struct answer {
    struct exec_output output;
    struct buf text;
};

static void
answer_fini(struct answer *a)
{
    buf_fini(&a->text);
}

static void
run_in_session(struct answer *ret, // NOLINT(readability-function-size)
               struct session *session, const struct spot *p, enum sandbox_mode mode,
               const char *script, bool login, uint64_t timeout_ms)
{
    struct turn_context turn;
    struct exec_request request;
    struct orch_call *call = NULL;

    *ret = (struct answer){.text = {.max = 1U << 24}};
    assert_int_equal(turn_of(&turn, p, mode), SY_E_OK);
    assert_int_equal(request_of(&request, p, script, login, timeout_ms), SY_E_OK);
    assert_int_equal(orch_submit(&call, session, &turn, &request, NULL), SY_E_OK);
    orch_run(call, -1);
    ret->output = *orch_output(call);
    if (ret->output.output != NULL) {
        assert_int_equal(output_text_all(ret->output.output, &ret->text), SY_E_OK);
    }
    ret->output.output = NULL;
    ret->output.plan = NULL;
    orch_call_free(call);
    turn_context_fini(&turn);
}

static void
run_script(struct answer *ret, const struct spot *p, enum sandbox_mode mode, const char *script,
           bool login, uint64_t timeout_ms)
{
    struct session *session = NULL;

    assert_int_equal(session_of(&session, p), SY_E_OK);
    run_in_session(ret, session, p, mode, script, login, timeout_ms);
    session_free(session);
}

/* What a command did to a root is no reason to run the next one without a sandbox. */
static void
a_root_that_is_gone_lifts_no_sandbox(void **state)
{
    struct spot *p = *state;
    struct session *session = NULL;
    struct turn_context turn;
    struct exec_request request;
    struct orch_call *call = NULL;

    assert_int_equal(session_of(&session, p), SY_E_OK);
    assert_int_equal(turn_of(&turn, p, SANDBOX_WORKSPACE_WRITE), SY_E_OK);
    turn.sandbox_required = false;
    turn.sandbox.writable_roots.max = 1;
    assert_int_equal(strv_addf(&turn.sandbox.writable_roots, "%s/gone", p->work), SY_E_OK);
    assert_int_equal(request_of(&request, p, "touch ran", false, 5000), SY_E_OK);
    assert_int_equal(orch_submit(&call, session, &turn, &request, NULL), SY_E_OK);
    orch_run(call, -1);
    assert_int_equal(orch_output(call)->status, EXEC_FAILED);
    assert_non_null(strstr(orch_output(call)->err.msg, "can't be used"));
    orch_call_free(call);
    turn_context_fini(&turn);
    session_free(session);
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
    assert_string_equal(buf_view(&a.text), "STEP-1\nSTEP-2\n");
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
    struct spot *p = *state;
    struct session *session = NULL;
    struct turn_context turn;
    struct exec_request request;
    struct orch_call *call = NULL;

    assert_int_equal(session_of(&session, p), SY_E_OK);
    assert_int_equal(turn_of(&turn, p, SANDBOX_WORKSPACE_WRITE), SY_E_OK);
    assert_int_equal(request_of(&request, p, "echo x", false, 1000), SY_E_OK);
    mem_free(request.params.cwd);
    request.params.cwd = mem_strdup("/nonexistent/gone");
    assert_int_equal(orch_submit(&call, session, &turn, &request, NULL), SY_E_OK);
    orch_run(call, -1);
    assert_int_equal(orch_output(call)->status, EXEC_FAILED);
    assert_int_equal(orch_output(call)->err.code, SY_E_CWD);
    assert_non_null(strstr(orch_output(call)->err.msg, "'/nonexistent/gone' does not exist"));
    orch_call_free(call);
    turn_context_fini(&turn);
    session_free(session);
}

static void
the_login_environment_is_read_once_and_again_after_a_change(void **state)
{
    struct spot *p = *state;
    struct session *session = NULL;
    SY_AUTO(answer_fini) struct answer first;
    SY_AUTO(answer_fini) struct answer second;
    SY_AUTO(answer_fini) struct answer third;

    write_file(
        p->home, ".bash_profile",
        "echo noise; echo noise >&2; date +%s%N > $HOME/../work/ran; export FROM_PROFILE=one; "
        "PATH=/usr/bin:/bin\n");
    assert_int_equal(session_of(&session, p), SY_E_OK);
    run_in_session(&first, session, p, SANDBOX_WORKSPACE_WRITE,
                   "echo $FROM_PROFILE $PATH; cat ran > ran1", true, 5000);
    run_in_session(
        &second, session, p, SANDBOX_WORKSPACE_WRITE,
        "echo $FROM_PROFILE; cmp ran ran1 && shopt -q login_shell || echo same-and-no-login", true,
        5000);
    write_file(p->home, ".bash_profile", "export FROM_PROFILE=changed-now\n");
    run_in_session(&third, session, p, SANDBOX_WORKSPACE_WRITE, "echo $FROM_PROFILE", true, 5000);
    session_free(session);
    assert_string_equal(buf_view(&first.text), "one /usr/bin:/bin:/private/tools\n");
    assert_string_equal(buf_view(&second.text), "one\nsame-and-no-login\n");
    assert_string_equal(buf_view(&third.text), "changed-now\n");
}

static void
a_profile_may_print_much_and_end_slowly(void **state)
{
    static const char *const profiles[] = {
        "export FROM_PROFILE=here\nhead -c 6000000 /dev/zero | tr '\\0' x\n",
        "export FROM_PROFILE=here\nprintf 'SHELLYARD-'; head -c 40000 /dev/zero\n",
        "export FROM_PROFILE=here\ntrap 'sleep 1000' EXIT\n",
    };
    struct spot *p = *state;

    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        write_file(p->home, ".bash_profile", profiles[i]);
        run_script(&a, p, SANDBOX_WORKSPACE_WRITE, "echo $FROM_PROFILE", true, 5000);
        assert_string_equal(a.output.note, "");
        assert_string_equal(buf_view(&a.text), "here\n");
    }
}

static void
a_login_environment_that_can_not_be_read_is_told_exactly(void **state)
{
    static const struct {
        const char *profile;
        const char *sentence;
    } cases[] = {
        {"exec >/dev/null\n",                                                         "sends standard output elsewhere"},
        {"exec >&-\n",                                                                "sends standard output elsewhere"},
        {"exit 9\n",                                                                  "ended the shell (status 9)"     },
        {"exec sh\n",                                                                 "ended the shell (status 0)"     },
        {"kill -9 $$\n",                                                              "ended the shell (signal 9)"     },
        {"sleep 1000\n",                                                              "did not end within 1500 ms"     },
        {"printf () { command printf '%s\\0' \"$2\"; head -c 3000000 /dev/zero; }\n",
         "longer than 1048576 bytes"                                                                                   },
    };
    struct spot *p = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        write_file(p->home, ".bash_profile", cases[i].profile);
        run_script(&a, p, SANDBOX_WORKSPACE_WRITE, "echo hi", true, 5000);
        assert_string_equal(buf_view(&a.text), "hi\n");
        if (strstr(a.output.note, cases[i].sentence) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", cases[i].profile, cases[i].sentence, a.output.note);
        }
    }
}

static void
profiles_that_misbehave_break_nothing(void **state)
{
    static const char *const profiles[] = {
        "exec sh\n",
        "sleep 1000\n",
        "exit 9\n",
        "while :; do echo flood; done\n",
        "trap '' TERM; setsid sleep 1000 & exec sleep 1000\n",
        "kill -9 $$\n",
    };
    struct spot *p = *state;

    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        write_file(p->home, ".bash_profile", profiles[i]);
        run_script(&a, p, SANDBOX_WORKSPACE_WRITE, "echo hi; exit 3", true, 5000);
        assert_int_equal(a.output.status, EXEC_EXITED);
        assert_int_equal(a.output.exit_code, 3);
        assert_string_equal(buf_view(&a.text), "hi\n");
        assert_non_null(strstr(a.output.note, "login environment not used"));
    }
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
        struct session *session = NULL;
        struct turn_context turn;
        struct exec_request request;
        struct orch_call *call = NULL;

        assert_int_equal(session_of(&session, p), SY_E_OK);
        assert_int_equal(turn_of(&turn, p, SANDBOX_WORKSPACE_WRITE), SY_E_OK);
        turn.approval = policies[i];
        assert_int_equal(request_of(&request, p, "touch escalated", false, 1000), SY_E_OK);
        request.params.permissions = PERMISSIONS_REQUIRE_ESCALATED;
        assert_int_equal(orch_submit(&call, session, &turn, &request, NULL), SY_E_OK);
        orch_run(call, -1);
        assert_int_equal(orch_output(call)->status, EXEC_DENIED);
        assert_non_null(strstr(orch_output(call)->err.msg, reasons[i]));
        orch_call_free(call);
        turn_context_fini(&turn);
        session_free(session);
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
            struct session *session = NULL;
            struct turn_context turn;
            struct exec_request request;
            struct orch_call *call = NULL;
            struct watcher w = {0};
            uint64_t start = clock_mono_ns();

            assert_int_equal(session_of(&session, p), SY_E_OK);
            assert_true(event_subscribe(session_bus(session), watch, &w) > 0);
            assert_int_equal(turn_of(&turn, p, SANDBOX_WORKSPACE_WRITE), SY_E_OK);
            assert_int_equal(request_of(&request, p, "echo a; sleep 1000", login == 1, 60000),
                             SY_E_OK);
            assert_int_equal(orch_submit(&call, session, &turn, &request, NULL), SY_E_OK);
            for (unsigned i = 0; i < steps; i++) {
                assert_false(orch_step(call, clock_mono_ns()));
            }
            orch_cancel(call);
            orch_run(call, -1);
            assert_int_equal(orch_output(call)->status, EXEC_CANCELLED);
            assert_int_equal(orch_output(call)->exit_code, 130);
            assert_int_equal(w.ends, 1);
            assert_string_equal(w.status, "cancelled");
            assert_true(clock_mono_ns() - start < 3000000000ULL);
            orch_call_free(call);
            turn_context_fini(&turn);
            session_free(session);
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
        cmocka_unit_test(a_signal_gives_128_and_its_number),
        cmocka_unit_test(a_missing_working_directory_is_named),
        cmocka_unit_test(the_login_environment_is_read_once_and_again_after_a_change),
        cmocka_unit_test(a_profile_may_print_much_and_end_slowly),
        cmocka_unit_test(a_login_environment_that_can_not_be_read_is_told_exactly),
        cmocka_unit_test(profiles_that_misbehave_break_nothing),
        cmocka_unit_test(escalation_is_refused_with_the_reason),
        cmocka_unit_test(a_call_can_be_cancelled_in_every_state),
        cmocka_unit_test(events_come_as_begin_deltas_end),
        cmocka_unit_test(the_next_command_gets_the_process_that_was_made_ready),
        cmocka_unit_test(a_call_survives_each_failing_allocation),
    };

    return cmocka_run_group_tests(tests, place_make, place_remove);
}
