#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/tools_internal.h"

/* Nothing that is null: clients choke on unions, so a field is left out. Fields that few answers
 * have are in docs/tools.md alone: each list of tools costs its reader. */
const char result_schema[] =
    "{\"type\":\"object\",\"required\":[\"status\",\"exit_code\",\"timed_out\",\"output\"],"
    "\"properties\":{"
    "\"status\":{\"type\":\"string\",\"description\":\"exited, signaled, denied, ...\"},"
    "\"exit_code\":{\"type\":\"integer\"},"
    "\"timed_out\":{\"type\":\"boolean\"},"
    "\"output\":{\"type\":\"string\",\"description\":\"stdout and stderr as they came\"},"
    "\"denials\":{\"type\":\"array\","
    "\"items\":{\"type\":\"object\"}},"
    "\"approval\":{\"type\":\"object\",\"description\":\"a person's answer, or the id to wait for\"}}}";

/* Of the tools that have to do with sessions. */
const char result_session_schema[] = "{\"type\":\"object\",\"required\":[\"status\",\"output\"],"
                                     "\"properties\":{"
                                     "\"status\":{\"type\":\"string\"},"
                                     "\"session_id\":{\"type\":\"string\"},"
                                     "\"exit_code\":{\"type\":\"integer\"},"
                                     "\"output\":{\"type\":\"string\"},"
                                     "\"reason\":{\"type\":\"string\"}}}";

/* Of one that has answers of all kinds: none of its fields is in each of them. */
const char result_any_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"status\":{\"type\":\"string\",\"description\":\"running, exited, ...\"},"
    "\"session_id\":{\"type\":\"string\"},"
    "\"exit_code\":{\"type\":\"integer\"},"
    "\"output\":{\"type\":\"string\"},"
    "\"reason\":{\"type\":\"string\"},"
    "\"next\":{\"type\":\"string\",\"description\":\"the call that goes on\"},"
    "\"denials\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"sessions\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}";

void
tool_output_fini(struct tool_output *o)
{
    buf_fini(&o->text);
    buf_fini(&o->content);
    buf_fini(&o->structured);
}

/* What both forms of the answer are made from. */
struct facts {
    const struct tool_call *call;
    const struct exec_output *out;
    const struct result_session *session; /* NULL: the call has run to its end */
    struct buf output;                    /* the model text */
    struct output_stats stats;
    bool is_truncated;
    char signal_name[16];
};

static enum sy_code
gather(struct facts *f)
{
    f->output.max =
        f->call->max_bytes + 4096 + (f->session != NULL ? f->session->shown.text.len : 0);
    if (f->out->signal != 0) {
        exec_signal_name(f->signal_name, f->out->signal);
    }
    if (f->session != NULL) {
        f->stats = f->session->shown.stats;
        f->is_truncated = f->session->shown.is_truncated;
        return buf_add(&f->output, buf_view(&f->session->shown.text), f->session->shown.text.len);
    }
    if (f->out->output == NULL) {
        return SY_E_OK;
    }
    output_stats_all(f->out->output, &f->stats);
    return output_text_model(f->out->output, f->call->max_bytes, &f->output, &f->is_truncated);
}

/* For a model that was refused something which it may ask a person for. */
static const char escalation[] =
    "if the task needs it, ask a person by request_access for just the path or host that was "
    "refused; where that is not enough, call again with sandbox_permissions "
    "\"require_escalated\" and a justification: they decide whether the command runs outside the "
    "sandbox";

static bool
says_escalation(const struct exec_output *out)
{
    return out->may_escalate && out->denials.n > 0;
}

/* What a person answered, where one had to be asked. */
void
result_write_review(struct jw *w, const struct review_answer *a)
{
    if (a == NULL) {
        return;
    }
    jw_key(w, "approval");
    jw_object(w);
    jw_key_str(w, "decision",
               store_status_name(a->outcome == REVIEW_PENDING ? STORE_PENDING : a->status));
    if (a->id[0] != '\0') {
        jw_key_str(w, "id", a->id);
    }
    if (a->reason[0] != '\0') {
        jw_key_str(w, "reason", a->reason);
    }
    if (a->decided_by[0] != '\0') {
        jw_key_str(w, "decided_by", a->decided_by);
    }
    if (a->is_remembered) {
        jw_key_bool(w, "remembered", true);
    }
    jw_end_object(w);
}

static bool
still_runs(const struct facts *f)
{
    return f->session != NULL && f->session->is_running;
}

/* How it ended, or that it has not. */
static void
write_end(struct jw *w, const struct facts *f)
{
    if (still_runs(f)) {
        jw_key_str(w, "status", "running");
        return;
    }
    jw_key_str(w, "status", exec_status_name(f->out->status));
    jw_key_int(w, "exit_code", f->out->exit_code);
    if (f->signal_name[0] != '\0') {
        jw_key_int(w, "signal", f->out->signal);
        jw_key_str(w, "signal_name", f->signal_name);
    }
    jw_key_bool(w, "timed_out", f->out->is_timed_out);
}

/* Why it is answered now, and how the session stands. */
static void
write_stand(struct jw *w, const struct result_session *s)
{
    jw_key_str(w, "reason", s->reason);
    jw_key_int(w, "next_seq", (int64_t)s->shown.next_seq);
    if (s->shown.omitted > 0) {
        jw_key_int(w, "omitted_bytes", (int64_t)s->shown.omitted);
    }
    if (s->screen.len > 0) {
        jw_key(w, "screen");
        jw_raw(w, buf_view(&s->screen), s->screen.len);
    }
    if (s->terminal.is_waiting) {
        jw_key_bool(w, "waiting_for_input", true);
    }
    if (s->terminal.echo_off) {
        jw_key_bool(w, "echo_off", true);
    }
    if (s->pending_input > 0) {
        jw_key_int(w, "pending_input", (int64_t)s->pending_input);
    }
}

static void
write_session(struct jw *w, const struct result_session *s)
{
    if (s == NULL) {
        return;
    }
    if (s->is_running) {
        jw_key_str(w, "session_id", s->id);
        jw_key_str(w, "process_id", s->id);
    }
    write_stand(w, s);
    if (s->next[0] != '\0') {
        jw_key_str(w, "next", s->next);
    }
}

static void
write_limit(struct jw *w, const struct exec_output *out)
{
    if (out->hit.resource != RESOURCE_NONE) {
        jw_key(w, "limit");
        exec_limit_write(w, &out->hit);
    }
}

static enum sy_code
write_structured(struct buf *ret, const struct facts *f)
{
    struct jw w = {.out = ret};

    jw_object(&w);
    write_end(&w, f);
    jw_key_strn(&w, "output", buf_view(&f->output), f->output.len);
    write_session(&w, f->session);
    if (f->is_truncated) {
        jw_key_bool(&w, "truncated", true);
    }
    jw_key_int(&w, "total_bytes", (int64_t)f->stats.total_bytes);
    jw_key_int(&w, "total_lines", (int64_t)f->stats.total_lines);
    jw_key_int(&w, "wall_ms", (int64_t)(f->out->duration_ns / 1000000));
    if (f->stats.has_invalid_utf8) {
        jw_key_bool(&w, "invalid_utf8", true);
    }
    if (f->stats.is_binary) {
        jw_key_bool(&w, "binary", true);
    }
    if (f->out->ended_background > 0) {
        jw_key_int(&w, "ended_background", f->out->ended_background);
    }
    write_limit(&w, f->out);
    denial_list_write(&w, &f->out->denials);
    exec_hosts_write(&w, &f->out->network_hosts);
    if (says_escalation(f->out)) {
        jw_key_str(&w, "escalation", escalation);
    }
    result_write_review(&w, f->out->review);
    exec_hooked_write(&w, &f->out->hooked);
    if (f->out->note[0] != '\0') {
        jw_key_str(&w, "note", f->out->note);
    }
    if (f->out->err.code != SY_E_OK) {
        jw_key_str(&w, "error", f->out->err.msg);
    }
    if (f->out->plan != NULL) {
        jw_key(&w, "sandbox");
        sandbox_plan_write(&w, f->out->plan);
    }
    jw_end_object(&w);
    return jw_done(&w);
}

static enum sy_code
add_limit_line(struct buf *ret, const struct resource_hit *hit)
{
    char text[EXEC_LIMIT_TEXT];

    /* A timeout has a line of its own. */
    if (hit->resource == RESOURCE_NONE || hit->resource == RESOURCE_WALL_CLOCK) {
        return SY_E_OK;
    }
    exec_limit_text(text, hit);
    return buf_addf(ret, "Limit: %s\n", text);
}

enum sy_code
result_add_denials(struct buf *ret, const struct exec_output *out)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < out->denials.n && rc == SY_E_OK; i++) {
        rc = buf_add_str(ret, "[sandbox: ");
        if (rc == SY_E_OK) {
            rc = denial_sentence(ret, &out->denials.v[i]);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_str(ret, "]\n");
        }
    }
    if (rc == SY_E_OK && out->denials.more > 0) {
        rc = buf_addf(ret, "[sandbox: %u more were refused]\n", out->denials.more);
    }
    return rc;
}

/* And what to do about it. */
static enum sy_code
add_refusals(struct buf *ret, const struct exec_output *out)
{
    enum sy_code rc = result_add_denials(ret, out);

    return rc == SY_E_OK && says_escalation(out) ? buf_addf(ret, "[sandbox: %s]\n", escalation)
                                                 : rc;
}

static enum sy_code
add_sandbox_line(struct buf *ret, const struct sandbox_plan *plan)
{
    if (plan == NULL) {
        return SY_E_OK;
    }

    enum sy_code rc =
        buf_addf(ret, "Sandbox: %s (%s), network %s", sandbox_mode_name(sandbox_plan_mode(plan)),
                 sandbox_tier_name(sandbox_plan_tier(plan)),
                 sandbox_network_name(sandbox_plan_network(plan)));
    bool is_first = true;

    for (int i = 0; i < FEATURE_COUNT && rc == SY_E_OK; i++) {
        enum sandbox_feature feature = (enum sandbox_feature)i;
        enum feature_state state = sandbox_plan_feature(plan, feature);

        if (state == FEATURE_ENFORCED || !sandbox_feature_is_wall(feature)) {
            continue;
        }
        rc = buf_addf(ret, "%s%s %s", is_first ? "; " : ", ", sandbox_feature_name(feature),
                      feature_state_name(state));
        is_first = false;
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

/* What the output alone does not show. */
static enum sy_code
add_output_lines(struct buf *ret, const struct facts *f)
{
    enum sy_code rc = SY_E_OK;

    if (f->is_truncated) {
        rc = buf_addf(ret, "Total output: %llu bytes, %llu lines (truncated)\n",
                      (unsigned long long)f->stats.total_bytes,
                      (unsigned long long)f->stats.total_lines);
    }
    if (rc == SY_E_OK && f->stats.has_invalid_utf8) {
        rc = buf_add_str(ret, "Invalid UTF-8 was replaced\n");
    }
    if (rc == SY_E_OK && f->stats.is_binary) {
        rc = buf_add_str(ret, "The output is binary\n");
    }
    return rc;
}

/* The header that Codex gives, and lines for what else is true. */
static enum sy_code
write_text(struct buf *ret, const struct facts *f)
{
    enum sy_code rc = still_runs(f)
                          ? buf_addf(ret, "Process running with session ID %s\n", f->session->id)
                          : buf_addf(ret, "Exit code: %d\n", f->out->exit_code);

    if (rc == SY_E_OK) {
        rc = buf_addf(ret, "Wall time: %.1f seconds\n", (double)f->out->duration_ns / 1e9);
    }
    if (rc == SY_E_OK && f->session != NULL) {
        rc = result_text_stand(ret, f->session);
    }
    if (rc == SY_E_OK && !still_runs(f) && f->out->status != EXEC_EXITED) {
        rc = buf_addf(ret, "Status: %s\n", exec_status_name(f->out->status));
    }
    if (rc == SY_E_OK && f->signal_name[0] != '\0') {
        rc = buf_addf(ret, "Signal: %d (%s)\n", f->out->signal, f->signal_name);
    }
    if (rc == SY_E_OK) {
        rc = add_output_lines(ret, f);
    }
    if (rc == SY_E_OK) {
        rc = add_limit_line(ret, &f->out->hit);
    }
    if (rc == SY_E_OK) {
        rc = add_refusals(ret, f->out);
    }
    if (rc == SY_E_OK) {
        rc = result_text_command(ret, f->out);
    }
    if (rc == SY_E_OK && f->out->note[0] != '\0') {
        rc = buf_addf(ret, "Note: %s\n", f->out->note);
    }
    if (rc == SY_E_OK) {
        rc = add_sandbox_line(ret, f->out->plan);
    }
    if (rc == SY_E_OK && f->out->err.code != SY_E_OK) {
        rc = buf_addf(ret, "Error: %s\n", f->out->err.msg);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(ret, "Output:\n");
    }
    if (rc == SY_E_OK && f->out->is_timed_out) {
        rc = buf_addf(ret, "command timed out after %llu milliseconds\n",
                      (unsigned long long)f->call->timeout_ms);
    }
    return rc == SY_E_OK ? buf_add(ret, buf_view(&f->output), f->output.len) : rc;
}

/* A person or the model must act on these; a command that failed is a result. */
static bool
is_call_error(const struct exec_output *out)
{
    switch (out->status) {
    case EXEC_EXITED:
    case EXEC_SIGNALED:
    case EXEC_TIMED_OUT:
        return false;
    case EXEC_CANCELLED:
    case EXEC_DENIED:
    case EXEC_PENDING:
        return true;
    case EXEC_FAILED:
        break;
    }
    return out->err.code != SY_E_NOTFOUND && out->err.code != SY_E_NOEXEC;
}

/* The specification's answer of write_stdin: exit_code is there, and null, while it runs. The rest
 * is there where it has something to say, or the call asked for more than the specification knows.
 */
static enum sy_code
write_content(struct buf *ret, const struct facts *f)
{
    struct jw w = {.out = ret};

    jw_object(&w);
    jw_key_strn(&w, "output", buf_view(&f->output), f->output.len);
    if (still_runs(f)) {
        jw_key_str(&w, "process_id", f->session->id);
        jw_key(&w, "exit_code");
        jw_raw(&w, "null", 4);
    } else {
        jw_key_int(&w, "exit_code", f->out->exit_code);
    }
    if (f->signal_name[0] != '\0') {
        jw_key_str(&w, "signal", f->signal_name);
    }
    if (f->out->is_timed_out) {
        jw_key_bool(&w, "timed_out", true);
    }
    if (f->session->tells_more) {
        write_stand(&w, f->session);
    } else if (f->session->terminal.echo_off) {
        jw_key_bool(&w, "echo_off", true);
    }
    write_limit(&w, f->out);
    denial_list_write(&w, &f->out->denials);
    if (f->out->note[0] != '\0') {
        jw_key_str(&w, "note", f->out->note);
    }
    if (f->out->err.code != SY_E_OK) {
        jw_key_str(&w, "error", f->out->err.msg);
    }
    jw_end_object(&w);
    return jw_done(&w);
}

enum sy_code
result_build(struct tool_output *ret, const struct tool_call *call,
             const struct exec_output *output)
{
    return result_build_session(ret, call, output, NULL);
}

enum sy_code
result_build_session(struct tool_output *ret, const struct tool_call *call,
                     const struct exec_output *output, const struct result_session *session)
{
    struct facts f = {.call = call, .out = output, .session = session};
    /* Six-fold when every byte is escaped; refusals as much as there are. */
    size_t shown = session != NULL ? session->shown.text.len + session->screen.len : 0;
    size_t max = (call->max_bytes + shown + 4096) * 8 + output->denials.n * (size_t)LIMIT_PATH * 8;

    for (size_t i = 0; output->hooked.command != NULL && i < output->hooked.command->n; i++) {
        max += strlen(output->hooked.command->v[i]) * 6 + 4;
    }
    *ret = (struct tool_output){
        .text = {.max = max}, .content = {.max = max}, .structured = {.max = max}};
    /* A session that was killed is what somebody wanted. */
    ret->is_error = (session == NULL || output->status == EXEC_FAILED) && is_call_error(output);
    ret->is_aborted = output->review != NULL && output->review->outcome == REVIEW_ABORTED;
    ret->is_success = still_runs(&f) || (output->status == EXEC_EXITED && output->exit_code == 0);

    enum sy_code rc = gather(&f);

    if (rc == SY_E_OK) {
        rc = write_structured(&ret->structured, &f);
    }
    if (rc == SY_E_OK) {
        rc = write_text(&ret->text, &f);
    }
    if (rc == SY_E_OK && session != NULL && call->front == FRONT_PROTO) {
        rc = write_content(&ret->content, &f);
    } else if (rc == SY_E_OK && ret->is_success && output->note[0] == '\0' &&
               output->hit.resource == RESOURCE_NONE && output->denials.n == 0) {
        rc = buf_add(&ret->content, buf_view(&f.output), f.output.len);
    } else if (rc == SY_E_OK) {
        rc = buf_add(&ret->content, buf_view(&ret->text), ret->text.len);
    }
    buf_fini(&f.output);
    if (rc != SY_E_OK) {
        tool_output_fini(ret);
    }
    return rc;
}

enum sy_code
result_build_error(struct tool_output *ret, const struct sy_error *err)
{
    size_t max = 8192;
    struct jw w = {.out = &ret->structured};

    *ret = (struct tool_output){
        .is_error = true,
        .text = {.max = max},
        .content = {.max = max},
        .structured = {.max = max},
    };
    jw_object(&w);
    jw_key_str(&w, "status", "failed");
    jw_key_int(&w, "exit_code", sy_code_status(SY_E_INTERNAL));
    jw_key_bool(&w, "timed_out", false);
    jw_key_str(&w, "output", "");
    jw_key_str(&w, "error", err->msg);
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    if (rc == SY_E_OK) {
        rc = buf_addf(&ret->text, "Error (%s): %s", sy_code_text(err->code), err->msg);
    }
    if (rc == SY_E_OK) {
        rc = buf_add(&ret->content, buf_view(&ret->text), ret->text.len);
    }
    if (rc != SY_E_OK) {
        tool_output_fini(ret);
    }
    return rc;
}

enum sy_code
result_build_untyped(struct tool_output *ret, const struct sy_error *err)
{
    static const char hint[] = "\nIf it is no command but text for a file: apply_patch writes it.";
    enum sy_code rc = result_build_error(ret, err);

    if (rc != SY_E_OK || err->code != SY_E_DENIED) {
        return rc;
    }
    rc = buf_add(&ret->text, hint, sizeof(hint) - 1);
    rc = rc == SY_E_OK ? buf_add(&ret->content, hint, sizeof(hint) - 1) : rc;
    if (rc != SY_E_OK) {
        tool_output_fini(ret);
    }
    return rc;
}

void
result_begin(struct tool_output *ret, const struct exec_output *output, size_t max)
{
    *ret = (struct tool_output){
        .is_error = output->status != EXEC_EXITED,
        .is_success = output->status == EXEC_EXITED,
        .is_aborted = output->review != NULL && output->review->outcome == REVIEW_ABORTED,
        .text = {.max = max},
        .content = {.max = max},
        .structured = {.max = max},
    };
}

void
result_write_first(struct jw *w, const struct tool_output *ret, const struct exec_output *output)
{
    jw_object(w);
    jw_key_str(w, "status", exec_status_name(output->status));
    jw_key_int(w, "exit_code", output->status == EXEC_EXITED ? 0 : 1);
    jw_key_bool(w, "timed_out", false);
    jw_key_strn(w, "output", buf_view(&ret->text), ret->text.len);
}

void
result_write_last(struct jw *w, const struct exec_output *output)
{
    if (output->err.code != SY_E_OK) {
        jw_key_str(w, "error", output->err.msg);
    }
    if (output->plan != NULL) {
        jw_key(w, "sandbox");
        sandbox_plan_write(w, output->plan);
    }
    jw_end_object(w);
}

enum sy_code
result_end(struct tool_output *ret, enum sy_code rc)
{
    if (rc == SY_E_OK) {
        rc = buf_add(&ret->content, buf_view(&ret->text), ret->text.len);
    }
    if (rc != SY_E_OK) {
        tool_output_fini(ret);
    }
    return rc;
}
