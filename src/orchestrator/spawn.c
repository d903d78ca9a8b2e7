#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "guard/guard.h"
#include "orchestrator/call_internal.h"
#include "process/template.h"

static enum sy_code
check_cwd(const char *cwd, struct sy_error *err)
{
    struct stat st;

    if (stat(cwd, &st) != 0) {
        if (errno == ENOENT) {
            return sy_err_set(err, SY_E_CWD, "working directory '%s' does not exist", cwd);
        }
        return sy_err_set(err, SY_E_CWD, "can't use working directory '%s': %s", cwd,
                          sy_errno_text(errno));
    }
    if (!S_ISDIR(st.st_mode)) {
        return sy_err_set(err, SY_E_CWD, "working directory '%s' is not a directory", cwd);
    }
    return SY_E_OK;
}

/* As root in the full tier commands run as the workspace's owner (launcher): with root's home they
 * could do nothing. False: as ourselves. */
static bool
find_owner(const struct orch_call *c, unsigned *ret)
{
    const struct sandbox_policy *p = &c->turn.sandbox;
    struct stat st;

    if (c->entry == NULL || c->entry->template == NULL || geteuid() != 0 || p->runs_as_self ||
        stat(p->cwd, &st) != 0 || st.st_uid == 0) {
        return false;
    }
    *ret = st.st_uid;
    return true;
}

static enum sy_code
set_owner(struct strv *env, unsigned uid)
{
    SY_AUTO(mem_free_charp) char *shell = NULL;
    SY_AUTO(mem_free_charp) char *home = NULL;
    SY_AUTO(mem_free_charp) char *name = NULL;
    enum sy_code rc = passwd_lookup(uid, &shell, &home, NULL);

    if (rc == SY_E_OK) {
        rc = passwd_name(uid, &name, NULL);
    }
    if (rc == SY_E_OK && home != NULL && home[0] == '/') {
        rc = strv_env_set(env, "HOME", home);
    }
    if (rc == SY_E_OK && name != NULL) {
        rc = strv_env_set(env, "USER", name);
    }
    return rc == SY_E_OK && name != NULL ? strv_env_set(env, "LOGNAME", name) : rc;
}

/* What the judgement relied on. */
static enum sy_code
add_overlay(struct orch_call *c)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; c->overlay != NULL && c->overlay[i] != NULL && rc == SY_E_OK; i++) {
        char name[64];
        const char *value = strchr(c->overlay[i], '=');

        SY_ASSERT(value != NULL && (size_t)(value - c->overlay[i]) < sizeof(name));
        memcpy(name, c->overlay[i], (size_t)(value - c->overlay[i]));
        name[value - c->overlay[i]] = '\0';
        rc = strv_env_set(&c->env, name, value + 1);
    }
    return rc;
}

#define LEFT_OUT_NAMES 8U
#define LEFT_OUT_NAME  40U

/* Who set variables would look in vain for why they are not there. The environment may be built
 * more than once. */
static void
tell_left_out(struct orch_call *c)
{
    const struct strv *env = &c->request.params.env;
    char names[LEFT_OUT_NAMES * (LEFT_OUT_NAME + 4) + 1] = "";
    char more[40] = "";
    char note[sizeof(names) + sizeof(more) + 80];
    size_t n = 0;
    size_t len = 0;

    for (size_t i = 0; i < env->n; i++) {
        size_t n_name = strcspn(env->v[i], "=");

        if (!env_never_passes(env->v[i]) || n++ >= LEFT_OUT_NAMES) {
            continue;
        }
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s'%.*s'", n > 1 ? ", " : "",
                                (int)utf8_cut(env->v[i], n_name, LEFT_OUT_NAME), env->v[i]);
    }
    if (n == 0) {
        return;
    }
    if (n > LEFT_OUT_NAMES) {
        (void)snprintf(more, sizeof(more), " and %zu more", n - LEFT_OUT_NAMES);
    }
    (void)snprintf(note, sizeof(note),
                   "variable%s %s%s %s never passed to commands: set %s within the command",
                   n > 1 ? "s" : "", names, more, n > 1 ? "are" : "is", n > 1 ? "them" : "it");
    if (strstr(c->output.note, note) == NULL) {
        call_add_note(c, note);
    }
}

static enum sy_code
build_environment(struct orch_call *c)
{
    SY_AUTO(strv_fini) struct strv merged = {.max = LIMIT_ENV};
    char *const *base = session_environ(c->session);
    unsigned owner = 0;
    struct env_facts facts = {
        .is_session = c->request.input.is_session,
        .has_terminal = c->request.input.kind == INPUT_TERMINAL,
        .has_network = sandbox_policy_has_network(&c->turn.sandbox),
        .tmpdir = c->turn.sandbox.tmpdir,
        .cwd = c->request.params.cwd,
    };

    if (c->has_login_env) {
        enum sy_code rc =
            env_merge_login(&merged, base, strv_view(snapshot_env(session_snapshot(c->session))));

        if (rc != SY_E_OK) {
            return rc;
        }
        base = strv_view(&merged);
    }
    if (find_owner(c, &owner)) {
        enum sy_code rc = merged.n > 0 ? SY_E_OK : strv_add_all(&merged, base);

        rc = rc == SY_E_OK ? set_owner(&merged, owner) : rc;
        if (rc != SY_E_OK) {
            return rc;
        }
        base = strv_view(&merged);
    }

    enum sy_code rc =
        env_build(&c->env, &c->turn.env, base, strv_view(&c->request.params.env), &facts);

    if (rc == SY_E_OK) {
        tell_left_out(c);
    }
    if (rc == SY_E_OK && c->request.input.on_environment != NULL) {
        rc = c->request.input.on_environment(c->request.input.on_environment_arg, c, &c->env);
    }
    return rc == SY_E_OK ? add_overlay(c) : rc;
}

enum sy_code
call_make_environment(struct orch_call *c, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    strv_fini(&c->env);
    c->env.max = LIMIT_ENV;
    rc = build_environment(c);
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, rc, "more than %u environment variables", LIMIT_ENV);
    }
    if (rc == SY_E_ARG) {
        return sy_err_set(err, rc, "a variable of the environment has no name that can be passed");
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

void
call_forget_environment(struct orch_call *c)
{
    struct strv left = {.max = LIMIT_ENV};
    const char *path = strv_env_get(&c->env, "PATH");

    if (c->env.n <= 1 || !process_has_executed(c->process)) {
        return;
    }
    if (path != NULL && strv_env_add(&left, "PATH", path) != SY_E_OK) {
        strv_fini(&left);
        return; /* it may stay */
    }
    strv_fini(&c->env);
    c->env = left;
}

/* Who gave a script knows nothing of the arguments that it becomes. */
static enum sy_code
refuse_long(const struct orch_call *c, size_t i, size_t len, struct sy_error *err)
{
    char what[40] = "the command";

    if (c->request.script == NULL) {
        (void)snprintf(what, sizeof(what), "argument %zu", i);
    }
    return sy_err_set(err, SY_E_LIMIT,
                      "%s has %zu bytes; the kernel takes at most %u for one argument "
                      "(MAX_ARG_STRLEN): put the text in a file",
                      what, len, LIMIT_ARG_STRLEN - 1);
}

enum sy_code
call_make_argv(struct orch_call *c, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (c->argv.n > 0) {
        return rc;
    }
    if (c->request.script != NULL) {
        /* With the login environment in place the shell needs no `-l`; without
         * snapshots it reads its profiles itself. */
        bool login = c->request.login &&
                     !(session_uses_snapshot(c->session) && c->shell->kind->has_login_env);

        rc = shell_derive(&c->argv, c->shell, c->request.script, login);
    } else {
        rc = strv_add_all(&c->argv, strv_view(&c->request.params.argv));
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, rc, "more than %u arguments", LIMIT_ARGV);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (c->argv.n == 0 || c->argv.v[0][0] == '\0') {
        return sy_err_set(err, SY_E_ARG, "the command is empty");
    }
    for (size_t i = 0; i < c->argv.n && c->request.work.run == NULL; i++) {
        size_t len = strlen(c->argv.v[i]);

        if (len >= LIMIT_ARG_STRLEN) {
            return refuse_long(c, i, len, err);
        }
    }
    return SY_E_OK;
}

enum sy_code
call_replace_command(struct orch_call *c, const struct strv *command)
{
    struct exec_request *r = &c->request;
    struct strv copy = {.max = LIMIT_ARGV};

    if (strv_add_all(&copy, strv_view(command)) != SY_E_OK) {
        strv_fini(&copy);
        return SY_E_NOMEM;
    }
    /* Another script for the same shell. */
    r->is_derived = (r->is_derived || r->script != NULL) && copy.n == c->argv.n && copy.n > 2 &&
                    str_eq(copy.v[0], c->argv.v[0]) && str_eq(copy.v[1], c->argv.v[1]);
    strv_fini(&r->params.argv);
    r->params.argv = copy;
    mem_free(r->script);
    r->script = NULL;
    mem_free(r->params.arg0);
    r->params.arg0 = NULL;
    strv_fini(&r->keys);
    strv_fini(&r->prefix); /* it was proposed for another one */
    strv_fini(&c->argv);
    c->argv.max = LIMIT_ARGV;
    r->is_mutating = true;
    c->is_mutating = true;
    return SY_E_OK;
}

static enum sy_code
pass_raw(void *arg, enum output_stream s, const char *bytes, size_t n)
{
    struct orch_call *c = arg;

    return c->request.on_raw(c->request.on_raw_arg, s, bytes, n);
}

/* A name that mounts hold. Asked while the command runs, when the guard is there. */
static bool
is_held(void *arg, struct sandbox_explanation *ret, enum sandbox_operation op, const char *path)
{
    const struct orch_call *c = arg;

    return c->is_protected && c->entry->template != NULL &&
           guard_holds(c->entry->guard, ret, op, path);
}

static enum sy_code
make_process(struct orch_call *c, const struct sandbox_base *base, struct sy_error *err)
{
    const struct orch_input *input = &c->request.input;
    const struct process_input_way way = {
        .kind = input->kind,
        .rows = input->rows,
        .columns = input->columns,
        .pool = session_pool(c->session),
    };

    if (c->request.stdio != NULL) {
        return process_prepare_on(&c->process, base, c->request.stdio, err);
    }
    if (input->kind == INPUT_NONE) {
        return process_pool_take(session_pool(c->session), &c->process, base, err);
    }
    return process_prepare_input(&c->process, base, &way, err);
}

static struct exec_env
make_exec_env(struct orch_call *c)
{
    struct exec_env env = {
        .program = buf_view(&c->program),
        .argv = strv_view(c->bare_argv.n > 0 ? &c->bare_argv : &c->argv),
        .envp = strv_view(&c->env),
        .cwd = c->request.params.cwd,
        .sandbox = c->entry->ready,
        .plan = c->entry->plan,
        .held = is_held,
        .held_arg = c,
        .gate = c->seat != NULL ? network_gate(c->seat) : NULL,
        .template = c->entry->template,
        .limits = c->turn.limits,
    };

    if (c->turn.limits.most[RESOURCE_MEMORY] != 0 || c->turn.limits.most[RESOURCE_PROCESSES] != 0) {
        env.cgroups = session_cgroups(c->session);
    }
    return env;
}

static enum sy_code
prepare(struct orch_call *c, struct sy_error *err)
{
    const struct exec_env env = make_exec_env(c);
    const struct sandbox_base base = process_base(&env);
    struct output_options options = {
        .keep_bytes = c->request.keep_bytes,
        .on_delta = event_bus_wants(session_bus(c->session), EVENT_EXEC_OUTPUT_DELTA)
                        ? call_on_delta
                        : NULL,
        .on_raw = c->request.on_raw != NULL ? pass_raw : NULL,
        .arg = c,
    };

    c->chain = output_new(&options);
    return c->chain != NULL ? make_process(c, &base, err) : sy_err_nomem(err);
}

static enum sy_code
start(struct orch_call *c, struct sy_error *err)
{
    const struct exec_env env = make_exec_env(c);
    const struct sandbox_base base = process_base(&env);
    enum sy_code rc = call_protect_begin(c, err);

    if (rc == SY_E_OK && call_hidden_begin(c) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        call_audit_begin(c);
        rc = process_go(c->process, &env, c->chain, err);
    }
    if (rc != SY_E_OK) {
        call_audit_end(c);
    } else if (session_keeps_spare(c->session)) {
        session_make_spare(c->session, &base);
    }
    return rc;
}

/* What the caller gave as arguments is run as it is. What is judged, told and asked about is the
 * derived list in any case. */
static enum sy_code
make_bare(struct orch_call *c, struct sy_error *err)
{
    strv_fini(&c->bare_argv);
    c->bare_argv.max = LIMIT_ARGV;
    if (c->request.script == NULL && !c->request.is_derived) {
        return SY_E_OK;
    }
    return shell_bare(&c->bare_argv, buf_view(&c->program), strv_view(&c->argv)) == SY_E_OK
               ? SY_E_OK
               : sy_err_nomem(err);
}

/* What it takes to run the command, up to a process that waits for it. */
static enum sy_code
make_ready(struct orch_call *c, struct sy_error *err)
{
    /* One that a command made in its own temporary directory is there for it alone. */
    enum sy_code rc = c->entry->template != NULL ? SY_E_OK : check_cwd(c->request.params.cwd, err);

    if (rc == SY_E_OK) {
        rc = call_join_network(c, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = call_make_environment(c, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (c->seat != NULL) {
        rc = network_environment(c->seat, &c->env, err);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    rc = call_make_argv(c, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    /* What commands made in their own temporary directory is there for them alone. */
    rc = command_resolve_in(
        &c->program, c->argv.v[0], c->request.params.cwd, strv_env_get(&c->env, "PATH"),
        c->entry->template != NULL ? template_top_fd(c->entry->template) : -1, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (c->request.params.arg0 != NULL) {
        char *arg0 = mem_strdup(c->request.params.arg0);

        if (arg0 == NULL) {
            return sy_err_nomem(err);
        }
        mem_free(c->argv.v[0]);
        c->argv.v[0] = arg0;
    }
    rc = make_bare(c, err);
    return rc == SY_E_OK ? prepare(c, err) : rc;
}

enum sy_code
call_spawn(struct orch_call *c, uint64_t now_ns, bool *ret_has_begun, struct sy_error *err)
{
    enum sy_code rc = c->process == NULL ? make_ready(c, err) : SY_E_OK;

    *ret_has_begun = false;
    if (rc == SY_E_OK) {
        rc = process_take_terminal(c->process, now_ns, ret_has_begun, err);
    }
    if (rc == SY_E_OK && *ret_has_begun) {
        rc = start(c, err);
    }
    if (rc != SY_E_OK) {
        process_free(c->process);
        c->process = NULL;
    }
    return rc;
}
