#include "call_yard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"

int
spot_make(void **state)
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

int
spot_remove(void **state)
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

void
write_file(const char *dir, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);

    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

enum sy_code
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

enum sy_code
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

enum sy_code
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

void
answer_fini(struct answer *a)
{
    buf_fini(&a->text);
}

void
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

void
run_script(struct answer *ret, const struct spot *p, enum sandbox_mode mode, const char *script,
           bool login, uint64_t timeout_ms)
{
    struct session *session = NULL;

    assert_int_equal(session_of(&session, p), SY_E_OK);
    run_in_session(ret, session, p, mode, script, login, timeout_ms);
    session_free(session);
}
