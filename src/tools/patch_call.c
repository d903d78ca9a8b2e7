#include "tools/patch_call.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "patch/patch.h"
#include "sandbox/linux/walk.h"

/* The whole message of a patch that does not fit. */
#define FAULT_BYTES ((size_t)32768)

/* A patch on its way: owned by the request, looked at by the answer. */
struct patch_call {
    struct patch patch;
    char *text;
    char *cwd;
    bool is_dry;
    bool has_begun; /* it was approved, and its turn came */
    bool may_ask;   /* for the access that it lacks */
    /* What became of it. */
    struct buf summary;
    struct buf changes; /* JSON */
    struct buf diff;
    struct buf fault;
    struct strv notes;
    uint32_t more_notes;
};

/* For a model that was refused what a person may grant. */
static const char advice[] = "if the task needs it, ask a person by request_access for just the "
                             "directory that was refused";

const char patch_call_schema[] =
    "{\"type\":\"object\",\"required\":[\"status\",\"exit_code\",\"output\"],"
    "\"properties\":{"
    "\"status\":{\"type\":\"string\"},"
    "\"exit_code\":{\"type\":\"integer\",\"description\":\"0: applied\"},"
    "\"output\":{\"type\":\"string\"},"
    "\"changes\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}";

static void
patch_call_free(void *arg)
{
    struct patch_call *p = arg;

    if (p == NULL) {
        return;
    }
    patch_fini(&p->patch);
    mem_free(p->text);
    mem_free(p->cwd);
    buf_fini(&p->summary);
    buf_fini(&p->changes);
    buf_fini(&p->diff);
    buf_fini(&p->fault);
    strv_fini(&p->notes);
    mem_free(p);
}

static enum sy_code
judge(void *arg, enum sandbox_operation op, const char *path, char *const *all,
      struct sy_error *err)
{
    return orch_judge_file(arg, op, path, all, err);
}

static enum sy_code
refused(void *arg, enum sandbox_operation op, const char *path, struct sy_error *err)
{
    return orch_refuse_file(arg, op, path, err);
}

/* Where the policy lets it write. Temporary directories are the commands' own. */
static enum sy_code
fill_roots(struct patch_world *w, struct strv *roots, const struct sandbox_policy *policy,
           struct sy_error *err)
{
    if (!sandbox_mode_is_enforced(policy->mode)) {
        return SY_E_OK;
    }
    w->outside = "writing outside of the project; rejected by user approval settings";
    if (policy->mode == SANDBOX_READ_ONLY) {
        w->outside = "writing is blocked by read-only sandbox; rejected by user approval settings";
        w->roots = strv_view(roots); /* none */
        return SY_E_OK;
    }

    enum sy_code rc = walk_add_roots(roots, policy, err);

    w->roots = strv_view(roots);
    return rc;
}

/* As root, commands run as the owner of the workspace; so are files touched. */
static enum sy_code
fill_identity(struct patch_world *w, const struct sandbox_policy *policy, struct sy_error *err)
{
    struct stat st;

    if (geteuid() != 0 || policy->runs_as_self || !sandbox_mode_is_enforced(policy->mode)) {
        return SY_E_OK;
    }
    if (stat(policy->cwd, &st) != 0) {
        return sy_err_set(err, SY_E_CWD, "the workspace '%.160s' is not there", policy->cwd);
    }
    w->changes_identity = st.st_uid != 0;
    w->uid = st.st_uid;
    w->gid = st.st_gid;
    return SY_E_OK;
}

/* As a command could not start in it. */
static enum sy_code
check_cwd(const struct patch_call *p, struct sy_error *err)
{
    struct stat st;

    if (stat(p->cwd, &st) == 0 && S_ISDIR(st.st_mode)) {
        return SY_E_OK;
    }
    return sy_err_set(err, SY_E_CWD, "the directory '%.160s' does not exist", p->cwd);
}

static enum sy_code
keep_notes(struct patch_call *p, const struct patch_plan *plan)
{
    const char *note = NULL;

    for (size_t i = 0; (note = patch_plan_note(plan, i)) != NULL; i++) {
        if (strv_add(&p->notes, note) != SY_E_OK) {
            return SY_E_NOMEM;
        }
    }
    p->more_notes = patch_plan_more_notes(plan);
    return SY_E_OK;
}

/* What is told of a plan, before anything happens: afterwards memory must not be wanting. */
static enum sy_code
tell_plan(struct patch_call *p, const struct patch_plan *plan, struct sy_error *err)
{
    struct jw w = {.out = &p->changes};
    enum sy_code rc = patch_plan_summary(&p->summary, plan);

    patch_plan_write(&w, plan);
    if (rc == SY_E_OK) {
        rc = jw_done(&w);
    }
    if (rc == SY_E_OK && p->is_dry) {
        rc = patch_plan_diff(&p->diff, plan);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

static enum sy_code
run(void *arg, struct orch_call *call, struct sy_error *err)
{
    struct patch_call *p = arg;
    const struct turn_context *turn = orch_turn(call);
    SY_AUTO(strv_fini) struct strv roots = {.max = LIMIT_ROOTS + 1};
    struct patch_world w = {
        .cwd = p->cwd,
        .outside = "it can't be reached: openat2(2) is missing or refused here",
        .judge = judge,
        .refused = refused,
        .arg = call,
        .wants_diff = p->is_dry,
    };
    struct patch_plan *plan = NULL;
    enum sy_code rc = check_cwd(p, err);

    p->has_begun = true;
    p->may_ask =
        turn->approval == APPROVAL_ON_REQUEST && turn->sandbox.mode == SANDBOX_WORKSPACE_WRITE;

    if (rc == SY_E_OK) {
        rc = fill_roots(&w, &roots, &turn->sandbox, err);
    }
    if (rc == SY_E_OK) {
        rc = fill_identity(&w, &turn->sandbox, err);
    }
    if (rc == SY_E_OK) {
        rc = patch_plan_new(&plan, &p->patch, &w, &p->fault, err);
    }
    if (rc == SY_E_OK) {
        rc = tell_plan(p, plan, err);
    }
    if (rc == SY_E_OK && !p->is_dry) {
        rc = patch_apply(plan, NULL, NULL, err);
    }
    /* A note that is lost for memory does not undo what was done. */
    if (rc == SY_E_OK && keep_notes(p, plan) != SY_E_OK) {
        p->more_notes++;
    }
    patch_plan_free(plan);
    return rc;
}

static struct patch_call *
patch_call_new(const struct patch_order *order)
{
    SY_AUTO(buf_fini) struct buf cwd = {.max = (size_t)LIMIT_PATH * 2};
    struct patch_call *p = mem_alloc_zero(1, sizeof(*p));
    size_t max = (size_t)LIMIT_PATCH_DIFF * 2 + (size_t)LIMIT_PATCH_FILES * LIMIT_PATH * 8;

    if (p == NULL) {
        return NULL;
    }
    p->is_dry = order->is_dry;
    p->summary.max = max;
    p->changes.max = max;
    p->diff.max = max;
    p->fault.max = FAULT_BYTES;
    p->notes.max = LIMIT_PATCH_NOTES;
    p->text = mem_alloc(order->len + 1);
    if (p->text != NULL) {
        memcpy(p->text, order->text, order->len); /* whole: a NUL in it is the reader's to refuse */
        p->text[order->len] = '\0';
    }
    if (order->workdir == NULL || order->workdir[0] == '\0') {
        p->cwd = mem_strdup(order->cwd);
    } else if (path_join(&cwd, order->cwd, order->workdir) == SY_E_OK) {
        p->cwd = buf_take(&cwd);
    }
    if (p->text == NULL || p->cwd == NULL) {
        patch_call_free(p);
        return NULL;
    }
    return p;
}

/* The request as it is shown, remembered and judged: a program apply_patch with its patch. */
static enum sy_code
fill_request(struct exec_request *request, struct patch_call *p, const struct patch_order *order)
{
    struct strv *argv = &request->params.argv;
    enum sy_code rc = SY_E_OK;

    argv->max = 2;
    request->keys.max = (size_t)LIMIT_PATCH_FILES * 2;
    request->params.cwd = mem_strdup(p->cwd);
    if (request->params.cwd == NULL) {
        return SY_E_NOMEM;
    }
    if (order->justification != NULL) {
        request->params.justification = mem_strdup(order->justification);
        rc = request->params.justification == NULL ? SY_E_NOMEM : SY_E_OK;
    }
    if (rc == SY_E_OK) {
        rc = strv_add(argv, "apply_patch");
    }
    if (rc == SY_E_OK) {
        rc = strv_addn(argv, p->text, order->len);
    }
    return rc == SY_E_OK ? patch_keys(&request->keys, &p->patch, p->cwd) : rc;
}

enum sy_code
patch_call_submit(struct tool_call *call, const struct patch_order *order, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = order->tool};
    struct patch_call *p = patch_call_new(order);
    enum sy_code rc = SY_E_OK;

    if (p == NULL) {
        return sy_err_nomem(err);
    }
    request.work = (struct exec_work){.run = run, .free = patch_call_free, .arg = p};
    rc = patch_read(&p->patch, p->text, order->len, err);
    if (rc != SY_E_OK) {
        sy_err_wrap(err, "apply_patch verification failed");
        return rc;
    }
    if (fill_request(&request, p, order) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    call->patch = p;
    return tool_submit(call, &request, order->max_bytes, err);
}

enum sy_code
patch_call_intercept(bool *ret_is_taken, struct tool_call *call, const struct exec_request *request,
                     size_t max_bytes, struct sy_error *err)
{
    struct intercept i;
    enum sy_code rc = request->script != NULL
                          ? patch_intercept_script(&i, request->script)
                          : patch_intercept_argv(&i, strv_view(&request->params.argv));

    *ret_is_taken = false;
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    switch (i.kind) {
    case INTERCEPT_NONE:
        break;
    case INTERCEPT_BARE:
        rc = sy_err_set(err, SY_E_ARG, "%s", patch_bare_advice);
        break;
    case INTERCEPT_PATCH: {
        const struct patch_order order = {
            .text = i.body,
            .len = i.len,
            .cwd = request->params.cwd,
            .workdir = i.workdir,
            .tool = "apply_patch",
            .justification = request->params.justification,
            .max_bytes = max_bytes,
        };

        *ret_is_taken = true;
        rc =
            request->params.permissions == PERMISSIONS_REQUIRE_ESCALATED
                ? sy_err_set(err, SY_E_ARG,
                             "a patch can't be escalated: it is applied by Shellyard itself, below "
                             "the writable roots; leave out sandbox_permissions")
                : patch_call_submit(call, &order, err);
        break;
    }
    }
    intercept_fini(&i);
    return rc;
}

static enum sy_code
add_notes(struct buf *out, const struct patch_call *p, const struct exec_output *output)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < p->notes.n && rc == SY_E_OK; i++) {
        rc = buf_addf(out, "Note: %s\n", p->notes.v[i]);
    }
    if (rc == SY_E_OK && p->more_notes > 0) {
        rc = buf_addf(out, "Note: and %u more\n", p->more_notes);
    }
    if (rc == SY_E_OK && output->note[0] != '\0') {
        rc = buf_addf(out, "Note: %s\n", output->note);
    }
    return rc;
}

/* The difference within the call's budget; what is left out is said. */
static enum sy_code
add_diff(struct buf *out, const struct patch_call *p, size_t max)
{
    const char *text = buf_view(&p->diff);
    size_t n = p->diff.len <= max ? p->diff.len : utf8_cut(text, p->diff.len, max);
    enum sy_code rc = buf_add(out, text, n);

    return rc == SY_E_OK && n < p->diff.len
               ? buf_addf(out, "\n[%zu bytes of the difference are left out]\n", p->diff.len - n)
               : rc;
}

/* Is there something among what was refused that a person may grant? */
static bool
gives_advice(const struct patch_call *p, const struct exec_output *output)
{
    for (size_t i = 0; p->may_ask && i < output->denials.n; i++) {
        if (output->denials.v[i].layer == DENIAL_POLICY && output->denials.v[i].fix != NULL) {
            return true;
        }
    }
    return false;
}

/* A patch that a person did not let through may be a sound one. */
static const char *
headline(const struct patch_call *p, const struct exec_output *output)
{
    if (p->fault.len == 0 && output->status == EXEC_DENIED) {
        return "patch rejected";
    }
    return p->fault.len == 0 && output->status == EXEC_PENDING ? "patch not applied"
                                                               : "apply_patch verification failed";
}

/* Why nothing happened, and what was refused. */
static enum sy_code
write_failure(struct buf *out, const struct patch_call *p, const struct exec_output *output)
{
    const char *why = p->fault.len > 0 ? buf_view(&p->fault) : output->err.msg;
    enum sy_code rc =
        output->status == EXEC_CANCELLED
            ? buf_addf(out, "%s\n", why)
            : buf_addf(out, "%s: %s\nNothing was changed.\n", headline(p, output), why);

    if (rc == SY_E_OK) {
        rc = result_add_denials(out, output);
    }
    if (rc == SY_E_OK && gives_advice(p, output)) {
        rc = buf_addf(out, "[sandbox: %s]\n", advice);
    }
    return rc == SY_E_OK && output->note[0] != '\0' ? buf_addf(out, "Note: %s\n", output->note)
                                                    : rc;
}

/* For people and models: what happened, or the whole message of why nothing did. */
static enum sy_code
write_text(struct buf *out, const struct patch_call *p, const struct exec_output *output,
           size_t max)
{
    enum sy_code rc = SY_E_OK;

    if (output->status != EXEC_EXITED) {
        return write_failure(out, p, output);
    }
    rc = buf_add_str(out, p->is_dry ? "Nothing was changed (dry_run). These files would be:\n"
                                    : "Success. Updated the following files:\n");
    if (rc == SY_E_OK) {
        rc = buf_add(out, buf_view(&p->summary), p->summary.len);
    }
    if (rc == SY_E_OK) {
        rc = add_notes(out, p, output);
    }
    return rc == SY_E_OK && p->is_dry ? add_diff(out, p, max) : rc;
}

static enum sy_code
write_structured(struct tool_output *ret, const struct patch_call *p,
                 const struct exec_output *output)
{
    struct jw w = {.out = &ret->structured};

    result_write_first(&w, ret, output);
    if (output->status == EXEC_EXITED) {
        jw_key(&w, "changes");
        jw_raw(&w, buf_view(&p->changes), p->changes.len);
    }
    if (p->is_dry) {
        jw_key_bool(&w, "dry_run", true);
    }
    if (p->notes.n > 0) {
        jw_key(&w, "notes");
        jw_array(&w);
        for (size_t i = 0; i < p->notes.n; i++) {
            jw_str(&w, p->notes.v[i]);
        }
        jw_end_array(&w);
    }
    denial_list_write(&w, &output->denials);
    if (gives_advice(p, output)) {
        jw_key_str(&w, "escalation", advice);
    }
    result_write_review(&w, output->review);
    jw_key_int(&w, "wall_ms", (int64_t)(output->duration_ns / 1000000));
    result_write_last(&w, output);
    return jw_done(&w);
}

enum sy_code
patch_call_result(struct tool_output *ret, const struct tool_call *call,
                  const struct exec_output *output)
{
    const struct patch_call *p = call->patch;
    size_t max = (p->summary.len + p->changes.len + p->fault.len + call->max_bytes +
                  output->denials.n * LIMIT_PATH + 65536) *
                 8;

    result_begin(ret, output, max);

    enum sy_code rc = write_text(&ret->text, p, output, call->max_bytes);

    if (rc == SY_E_OK) {
        rc = write_structured(ret, p, output);
    }
    return result_end(ret, rc);
}
