#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "hook/hook.h"
#include "process/env.h"

#define NS_PER_MS 1000000ULL

struct hook_run {
    const char *program;
    struct process *process;
    struct output_chain *chain;
    struct buf text; /* its standard output */
    struct strv env;
    struct strv argv;
    uint64_t timeout_ms;
    uint64_t give_up_ns;
    bool is_over_time;
    bool is_too_long;
    struct hook_answer answer;
};

void
hook_run_free(struct hook_run *r)
{
    if (r == NULL) {
        return;
    }
    process_free(r->process);
    output_free(r->chain);
    buf_fini(&r->text);
    strv_fini(&r->env);
    strv_fini(&r->argv);
    hook_answer_fini(&r->answer);
    mem_free(r);
}

static enum sy_code
collect(void *arg, enum output_stream stream, const char *bytes, size_t n)
{
    struct hook_run *r = arg;

    if (stream != STREAM_STDOUT || r->is_too_long) {
        return SY_E_OK;
    }

    enum sy_code rc = buf_add(&r->text, bytes, n);

    if (rc == SY_E_LIMIT) {
        r->is_too_long = true;
        return SY_E_OK;
    }
    return rc;
}

/* A file of memory instead of a pipe: a hook that reads nothing can't keep us from writing. */
static enum sy_code
open_input(int *ret, const char *text, struct sy_error *err)
{
    SY_FD fd = -1;
    enum sy_code rc = fd_memory_file(&fd, "hook", text, strlen(text), err);

    if (rc == SY_E_OK && lseek(fd, 0, SEEK_SET) != 0) {
        rc = sy_err_sys(err, errno, "writing a hook's input");
    }
    if (rc == SY_E_OK) {
        *ret = fd_take(&fd);
    }
    return rc;
}

/* What each command inherits at the least, and nothing that a call asks for. */
static enum sy_code
prepare(struct hook_run *r, const struct hook_run_options *options)
{
    const struct env_policy core = {.inherit = ENV_INHERIT_CORE, .default_excludes = true};
    const struct env_facts facts = {.has_network = true};
    const struct output_options output = {.keep_bytes = 1, .on_raw = collect, .arg = r};

    r->env.max = LIMIT_ENV;
    r->argv.max = 1;
    r->text.max = LIMIT_HOOK_OUTPUT;
    r->chain = output_new(&output);
    if (r->chain == NULL) {
        return SY_E_NOMEM;
    }

    enum sy_code rc = env_build(&r->env, &core, options->environ_list, NULL, &facts);

    return rc == SY_E_OK ? strv_add(&r->argv, r->program) : rc;
}

static enum sy_code
start(struct hook_run *r, const char *input, struct sy_error *err)
{
    SY_FD in = -1;
    const struct exec_env env = {
        .program = r->program,
        .argv = strv_view(&r->argv),
        .envp = strv_view(&r->env),
        .cwd = "/",
    };
    const struct sandbox_base base = process_base(&env);
    enum sy_code rc = open_input(&in, input, err);

    if (rc == SY_E_OK) {
        rc = process_prepare_on(&r->process, &base, (const int[3]){in, -1, -1}, err);
    }
    return rc == SY_E_OK ? process_go(r->process, &env, r->chain, err) : rc;
}

enum sy_code
hook_run_new(struct hook_run **ret, const struct hook_run_options *options, struct sy_error *err)
{
    struct hook_run *r = mem_alloc_zero(1, sizeof(*r));

    if (r == NULL) {
        return sy_err_nomem(err);
    }
    r->program = options->program;
    r->timeout_ms = options->timeout_ms;

    enum sy_code rc = prepare(r, options);

    if (rc != SY_E_OK) {
        (void)sy_err_nomem(err);
    } else {
        rc = start(r, options->input, err);
    }
    if (rc != SY_E_OK) {
        hook_run_free(r);
        return rc;
    }
    r->give_up_ns = clock_mono_ns() + r->timeout_ms * NS_PER_MS;
    *ret = r;
    return SY_E_OK;
}

size_t
hook_run_watches(const struct hook_run *r, struct process_watch out[PROCESS_WATCHES])
{
    return process_watches(r->process, out);
}

uint64_t
hook_run_deadline_ns(const struct hook_run *r)
{
    uint64_t of_process = process_deadline_ns(r->process);
    uint64_t own = r->is_over_time ? UINT64_MAX : r->give_up_ns;

    return own < of_process ? own : of_process;
}

static void SY_PRINTF(2, 3) fail(struct hook_run *r, const char *fmt, ...)
{
    va_list ap;

    hook_answer_fini(&r->answer);
    r->answer.decision = HOOK_ASK;
    r->answer.has_failed = true;
    va_start(ap, fmt);
    if (vsnprintf(r->answer.reason, sizeof(r->answer.reason), fmt, ap) < 0) {
        r->answer.reason[0] = '\0';
    }
    va_end(ap);
}

static void
judge_exit(struct hook_run *r, const struct process_result *result)
{
    struct sy_error err = {0};

    if (result->outcome != PROCESS_EXITED) {
        fail(r, "it was ended by signal %d", result->signal);
    } else if (result->exit_code != 0) {
        fail(r, "it ended with status %d", result->exit_code);
    } else if (hook_answer_read(&r->answer, buf_view(&r->text), r->text.len, &err) != SY_E_OK) {
        fail(r, "it gave no answer that can be read: %.190s", err.msg);
    }
}

static void
finish(struct hook_run *r)
{
    const struct process_result *result = process_result(r->process);
    bool is_whole = output_finish(r->chain) == SY_E_OK; /* what it held back comes now */

    if (r->is_too_long) {
        fail(r, "it printed more than %u bytes", LIMIT_HOOK_OUTPUT);
    } else if (r->is_over_time) {
        fail(r, "it did not end within %llu ms", (unsigned long long)r->timeout_ms);
    } else if (result->outcome == PROCESS_FAILED) {
        fail(r, "it could not run: %.200s", result->err.msg);
    } else if (!is_whole) {
        fail(r, "it answered, but memory was out");
    } else {
        judge_exit(r, result);
    }
}

bool
hook_run_step(struct hook_run *r, uint64_t now_ns)
{
    bool is_done = false;

    if (!r->is_over_time && process_result(r->process)->outcome == PROCESS_RUNNING &&
        now_ns >= r->give_up_ns) {
        r->is_over_time = true;
        process_kill(r->process);
    }
    if (process_step(r->process, now_ns, &is_done, NULL) != SY_E_OK) {
        fail(r, "it answered, but memory was out");
        return true;
    }
    if (!is_done && r->is_too_long) {
        process_kill(r->process);
    }
    if (is_done) {
        finish(r);
    }
    return is_done;
}

const struct hook_answer *
hook_run_answer(const struct hook_run *r)
{
    return &r->answer;
}
