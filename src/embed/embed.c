#include "shellyard/shellyard.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "tools/tools.h"

/* Of a result that there is not, as of one that could not run. */
#define NO_RESULT_CODE 125
#define NO_RESULT      "there is no result"

struct sy_engine {
    struct config config;
    bool has_config;
    struct turn_context turn;
    struct session *session;
    struct strv environ_list;
    uint64_t runs;
};

struct sy_cancel {
    int fd; /* eventfd */
};

struct sy_result {
    struct orch_call *call; /* owns the output; its session is the engine's */
    struct buf text[SY_BOTH + 1];
    bool has_text[SY_BOTH + 1];
};

const char *
sy_version(void)
{
    return SY_VERSION;
}

static enum sy_status
tell(char *why, size_t why_size, enum sy_status status, const char *sentence)
{
    if (why != NULL && why_size > 0) {
        snprintf(why, why_size, "%s", sentence);
    }
    return status;
}

static enum sy_status
tell_error(char *why, size_t why_size, const struct sy_error *err)
{
    enum sy_status status = SY_ERR_SYSTEM;

    switch (err->code) {
    case SY_E_NOMEM:
        status = SY_ERR_MEMORY;
        break;
    case SY_E_CONFIG:
        status = SY_ERR_CONFIG;
        break;
    case SY_E_SANDBOX:
        status = SY_ERR_SANDBOX;
        break;
    case SY_E_ARG:
    case SY_E_LIMIT:
    case SY_E_CWD:
        status = SY_ERR_ARGUMENT;
        break;
    case SY_E_OK:
    case SY_E_SYS:
    case SY_E_PARSE:
    case SY_E_DENIED:
    case SY_E_NOEXEC:
    case SY_E_NOTFOUND:
    case SY_E_CANCELLED:
    case SY_E_INTERNAL:
        break;
    }
    return tell(why, why_size, status, err->msg);
}

static enum sy_code
fill_engine(struct sy_engine *e, const struct sy_engine_options *o, struct sy_error *err)
{
    char cwd[LIMIT_PATH];
    const char *workspace = o->workspace;
    struct session_options session = {0};

    e->environ_list.max = LIMIT_ENV;
    if (o->launcher != NULL && o->launcher[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "launcher '%.120s' is not an absolute path", o->launcher);
    }

    enum sy_code rc = strv_add_all(
        &e->environ_list, o->environ_list != NULL ? mem_unconst(o->environ_list) : environ);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, rc, "more than %u environment variables", LIMIT_ENV);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (workspace == NULL) {
        workspace = getcwd(cwd, sizeof(cwd));
        if (workspace == NULL) {
            return sy_err_sys(err, errno, "finding the current directory");
        }
    } else if (workspace[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "workspace '%s' is not an absolute path", workspace);
    }

    struct config_sources sources = {
        .workspace = workspace,
        .environ_list = strv_view(&e->environ_list),
        .overrides = mem_unconst(o->overrides),
    };

    rc = config_load(&e->config, &sources, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    e->has_config = true;
    rc = turn_from_config(&e->turn, &e->config, workspace, strv_view(&e->environ_list), err);
    if (rc != SY_E_OK) {
        return rc;
    }
    session_options_from_config(&session, &e->config, strv_view(&e->environ_list));
    rc = session_new(&e->session, &session, err);
    return rc == SY_E_OK && o->launcher != NULL ? session_use_launcher(e->session, o->launcher, err)
                                                : rc;
}

enum sy_status
sy_engine_new(struct sy_engine **ret, const struct sy_engine_options *options, char *why,
              size_t why_size)
{
    struct sy_engine_options o = {0};
    struct sy_error err = {0};

    if (ret == NULL) {
        return tell(why, why_size, SY_ERR_ARGUMENT, "ret must not be NULL: the engine goes there");
    }
    if (options == NULL || options->size < offsetof(struct sy_engine_options, workspace)) {
        return tell(why, why_size, SY_ERR_ARGUMENT,
                    "options.size must be sizeof(struct sy_engine_options)");
    }
    memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));

    struct sy_engine *e = mem_alloc_zero(1, sizeof(*e));

    if (e == NULL) {
        return tell(why, why_size, SY_ERR_MEMORY, "out of memory");
    }
    if (fill_engine(e, &o, &err) != SY_E_OK) {
        sy_engine_free(e);
        return tell_error(why, why_size, &err);
    }
    *ret = e;
    return SY_OK;
}

void
sy_engine_free(struct sy_engine *e)
{
    if (e == NULL) {
        return;
    }
    session_free(e->session);
    turn_context_fini(&e->turn);
    if (e->has_config) {
        config_fini(&e->config);
    }
    strv_fini(&e->environ_list);
    mem_free(e);
}

struct sy_cancel *
sy_cancel_new(void)
{
    struct sy_cancel *c = mem_alloc_zero(1, sizeof(*c));

    if (c == NULL) {
        return NULL;
    }
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->fd < 0) {
        mem_free(c);
        return NULL;
    }
    return c;
}

void
sy_cancel_fire(struct sy_cancel *c)
{
    uint64_t one = 1;
    int saved = errno;

    if (c != NULL && write(c->fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: fired 2^64 - 1 times already. */
        errno = saved;
    }
    errno = saved;
}

void
sy_cancel_free(struct sy_cancel *c)
{
    if (c != NULL) {
        fd_close(&c->fd);
        mem_free(c);
    }
}

/* The caller's output function, and its wish to end the run. */
struct relay {
    sy_output_fn *fn;
    void *arg;
    int stop_fd; /* eventfd that its non-zero answer fires; -1 */
    bool is_stopped;
};

static enum sy_code
relay_output(void *arg, enum output_stream s, const char *bytes, size_t n)
{
    struct relay *r = arg;
    uint64_t one = 1;

    if (r->is_stopped) {
        return SY_E_OK;
    }
    if (r->fn(r->arg, s == STREAM_STDOUT ? SY_STDOUT : SY_STDERR, bytes, n) != 0) {
        r->is_stopped = true;
        if (write(r->stop_fd, &one, sizeof(one)) < 0) {
            return SY_E_CANCELLED;
        }
    }
    return SY_E_OK;
}

static enum sy_code
check_env(const char *const *env, struct sy_error *err)
{
    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        const char *equals = strchr(env[i], '=');

        /* What stands behind an equals sign may be a secret. */
        if (equals == NULL || equals == env[i]) {
            return sy_err_set(err, SY_E_ARG, "env[%zu] is '%.120s': right is \"NAME=value\"", i,
                              equals == NULL ? env[i] : "=...");
        }
        if (str_env_name(env[i]) == 0) {
            return sy_err_set(err, SY_E_ARG,
                              "the name of env[%zu] is '%.*s': right is one to %d visible "
                              "characters of ASCII",
                              i, equals - env[i] < 80 ? (int)(equals - env[i]) : 80, env[i],
                              ENV_NAME_MAX);
        }
    }
    return SY_E_OK;
}

static enum sy_code
fill_request(struct exec_request *ret, const struct sy_engine *e, const struct sy_command *c,
             struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf cwd = {.max = LIMIT_PATH};

    if ((c->argv == NULL) == (c->script == NULL)) {
        return sy_err_set(err, SY_E_ARG, "give exactly one of argv and script");
    }
    if (c->timeout_ms < 0 || c->timeout_ms > LIMIT_TIMEOUT_MAX_MS) {
        return sy_err_set(err, SY_E_ARG, "timeout_ms is %lld: it must be from 0 (none) to %d",
                          (long long)c->timeout_ms, LIMIT_TIMEOUT_MAX_MS);
    }
    ret->params.expiration.kind = c->timeout_ms > 0 ? EXPIRE_TIMEOUT : EXPIRE_CANCELLATION;
    ret->params.expiration.timeout_ms = (uint64_t)c->timeout_ms;
    ret->params.argv.max = LIMIT_ARGV;
    ret->params.env.max = LIMIT_ENV;
    ret->keep_bytes = (size_t)e->config.output.keep_bytes;
    ret->login = c->login != 0;

    enum sy_code rc = check_env(c->env, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = strv_add_all(&ret->params.argv, mem_unconst(c->argv));
    if (rc == SY_E_OK) {
        rc = strv_add_all(&ret->params.env, mem_unconst(c->env));
    }
    if (rc == SY_E_OK) {
        rc = path_join(&cwd, e->turn.cwd, c->cwd != NULL ? c->cwd : e->turn.cwd);
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_LIMIT, "too many arguments or variables, or a path too long");
    }
    ret->params.cwd = rc == SY_E_OK ? buf_take(&cwd) : NULL;
    ret->script = c->script != NULL ? mem_strdup(c->script) : NULL;
    if (ret->params.cwd == NULL || (c->script != NULL && ret->script == NULL)) {
        return sy_err_nomem(err);
    }
    return SY_E_OK;
}

/* The descriptor that ends the run: the token's, or one of our own. */
static int
stop_descriptor(const struct sy_command *c, int *ret_own)
{
    if (c->cancel != NULL) {
        return c->cancel->fd;
    }
    if (c->on_output != NULL) {
        *ret_own = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    return *ret_own;
}

static enum sy_code
run(struct sy_engine *e, const struct sy_command *c, struct orch_call **ret, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = "libshellyard"};
    SY_FD own_fd = -1;
    struct relay relay = {.fn = c->on_output, .arg = c->arg};
    char id[32];
    enum sy_code rc = fill_request(&request, e, c, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    snprintf(id, sizeof(id), "run-%llu", (unsigned long long)++e->runs);
    request.call_id = mem_strdup(id);
    if (request.call_id == NULL) {
        return sy_err_nomem(err);
    }
    relay.stop_fd = stop_descriptor(c, &own_fd);
    if (c->on_output != NULL) {
        request.on_raw = relay_output;
        request.on_raw_arg = &relay;
    }

    struct orch_call *call = NULL;

    rc = orch_submit(&call, e->session, &e->turn, &request, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    orch_run(call, relay.stop_fd);

    const struct exec_output *out = orch_output(call);

    /* No sandbox, no run: that is not a result. */
    if (out->status == EXEC_FAILED &&
        (out->err.code == SY_E_SANDBOX || out->err.code == SY_E_NOMEM)) {
        *err = out->err;
        orch_call_free(call);
        return err->code;
    }
    *ret = call;
    return SY_E_OK;
}

enum sy_status
sy_run(struct sy_engine *engine, const struct sy_command *command, struct sy_result **ret,
       char *why, size_t why_size)
{
    struct sy_command c = {0};
    struct sy_error err = {0};

    if (engine == NULL || ret == NULL) {
        return tell(why, why_size, SY_ERR_ARGUMENT,
                    engine == NULL ? "engine must not be NULL: sy_engine_new makes one"
                                   : "ret must not be NULL: the result goes there");
    }
    if (command == NULL || command->size < offsetof(struct sy_command, argv)) {
        return tell(why, why_size, SY_ERR_ARGUMENT,
                    "command.size must be sizeof(struct sy_command)");
    }
    memcpy(&c, command, command->size < sizeof(c) ? command->size : sizeof(c));

    struct sy_result *result = mem_alloc_zero(1, sizeof(*result));

    if (result == NULL) {
        return tell(why, why_size, SY_ERR_MEMORY, "out of memory");
    }
    if (run(engine, &c, &result->call, &err) != SY_E_OK) {
        sy_result_free(result);
        return tell_error(why, why_size, &err);
    }
    for (size_t i = 0; i <= SY_BOTH; i++) {
        result->text[i].max = 4 * (size_t)LIMIT_STREAM_KEEP;
    }
    *ret = result;
    return SY_OK;
}

void
sy_result_free(struct sy_result *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i <= SY_BOTH; i++) {
        buf_fini(&r->text[i]);
    }
    orch_call_free(r->call);
    mem_free(r);
}

enum sy_outcome
sy_result_outcome(const struct sy_result *r)
{
    if (r == NULL) {
        return SY_FAILED;
    }
    switch (orch_output(r->call)->status) {
    case EXEC_EXITED:
        return SY_EXITED;
    case EXEC_SIGNALED:
        return SY_SIGNALED;
    case EXEC_TIMED_OUT:
        return SY_TIMED_OUT;
    case EXEC_CANCELLED:
        return SY_CANCELLED;
    case EXEC_DENIED:
    case EXEC_PENDING:
        return SY_DENIED;
    case EXEC_FAILED:
        break;
    }
    return SY_FAILED;
}

int
sy_result_exit_code(const struct sy_result *r)
{
    return r != NULL ? orch_output(r->call)->exit_code : NO_RESULT_CODE;
}

int
sy_result_signal(const struct sy_result *r)
{
    return r != NULL ? orch_output(r->call)->signal : 0;
}

uint64_t
sy_result_duration_ms(const struct sy_result *r)
{
    return r != NULL ? orch_output(r->call)->duration_ns / 1000000 : 0;
}

/* A caller's number may be none of ours. */
static bool
is_stream(enum sy_stream stream)
{
    switch (stream) {
    case SY_STDOUT:
    case SY_STDERR:
    case SY_BOTH:
        return true;
    }
    return false;
}

uint64_t
sy_result_total_bytes(const struct sy_result *r, enum sy_stream stream)
{
    const struct output_chain *chain = r != NULL ? orch_output(r->call)->output : NULL;
    struct output_stats stats = {0};

    if (chain == NULL || !is_stream(stream)) {
        return 0;
    }
    if (stream == SY_BOTH) {
        output_stats_all(chain, &stats);
    } else {
        output_stats_stream(chain, stream == SY_STDOUT ? STREAM_STDOUT : STREAM_STDERR, &stats);
    }
    return stats.total_bytes;
}

const char *
sy_result_text(struct sy_result *r, enum sy_stream stream, size_t *ret_size)
{
    const struct output_chain *chain = r != NULL ? orch_output(r->call)->output : NULL;

    if (r == NULL || !is_stream(stream)) {
        if (ret_size != NULL) {
            *ret_size = 0;
        }
        return NULL;
    }

    struct buf *text = &r->text[stream];

    if (!r->has_text[stream] && chain != NULL) {
        enum sy_code rc =
            stream == SY_BOTH
                ? output_text_all(chain, text)
                : output_text_stream(chain, stream == SY_STDOUT ? STREAM_STDOUT : STREAM_STDERR,
                                     text);

        if (rc != SY_E_OK) {
            buf_fini(text);
            return NULL;
        }
        r->has_text[stream] = true;
    }
    if (ret_size != NULL) {
        *ret_size = text->len;
    }
    return buf_view(text);
}

const char *
sy_result_error(const struct sy_result *r)
{
    return r != NULL ? orch_output(r->call)->err.msg : NO_RESULT;
}

const char *
sy_result_note(const struct sy_result *r)
{
    return r != NULL ? orch_output(r->call)->note : "";
}

size_t
sy_result_denials(const struct sy_result *r)
{
    return r != NULL ? orch_output(r->call)->denials.n : 0;
}

int
sy_result_denial(const struct sy_result *r, size_t index, struct sy_denial *ret)
{
    if (index >= sy_result_denials(r) || ret == NULL ||
        ret->size < offsetof(struct sy_denial, operation)) {
        return 0;
    }

    struct sy_denial made = {.size = ret->size};
    const struct denial *d = &orch_output(r->call)->denials.v[index];

    made.operation = d->operation;
    made.object = d->object;
    made.layer = denial_layer_name(d->layer);
    made.is_exact = d->confidence == DENIAL_EXACT;
    made.count = d->count;
    made.rule = d->rule != NULL ? d->rule : "";
    made.fix = d->fix != NULL ? d->fix : "";
    memcpy(ret, &made, ret->size < sizeof(made) ? ret->size : sizeof(made));
    return 1;
}

const char *
sy_result_tier(const struct sy_result *r)
{
    const struct sandbox_plan *plan = r != NULL ? orch_output(r->call)->plan : NULL;

    return plan != NULL ? sandbox_tier_name(sandbox_plan_tier(plan)) : "none";
}

static const struct sandbox_plan *
enforced_plan(const struct sy_result *r)
{
    const struct sandbox_plan *plan = r != NULL ? orch_output(r->call)->plan : NULL;

    return plan != NULL && sandbox_plan_tier(plan) != TIER_NONE ? plan : NULL;
}

const char *
sy_result_tier_reason(const struct sy_result *r)
{
    const struct sandbox_plan *plan = enforced_plan(r);

    return plan != NULL ? sandbox_plan_tier_reason(plan) : "";
}

size_t
sy_result_features(const struct sy_result *r)
{
    return enforced_plan(r) != NULL ? FEATURE_COUNT : 0;
}

int
sy_result_feature(const struct sy_result *r, size_t index, struct sy_feature *ret)
{
    if (index >= sy_result_features(r) || ret == NULL ||
        ret->size < offsetof(struct sy_feature, name)) {
        return 0;
    }

    struct sy_feature made = {.size = ret->size};
    enum sandbox_feature f = (enum sandbox_feature)index;

    made.name = sandbox_feature_name(f);
    made.text = sandbox_feature_text(f);
    made.state = feature_state_name(sandbox_plan_feature(enforced_plan(r), f));
    memcpy(ret, &made, ret->size < sizeof(made) ? ret->size : sizeof(made));
    return 1;
}
