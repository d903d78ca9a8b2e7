#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tools/live_call.h"

static const char *const argument_names[] = {NULL};

/* Of one session in the answer: its command, escaped, and numbers. */
#define ONE_BYTES ((size_t)LIMIT_SESSION_COMMAND * 6 + (size_t)LIMIT_PATH * 6 + 512)
/* Of all of them, in each form. */
#define LIST_BYTES ((size_t)LIMIT_MODEL_BYTES_MCP)
#define CUT        "..."

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_MCP;
}

static bool
is_mutating(const struct invocation *inv)
{
    (void)inv;
    return false;
}

/* What is shown of a command, to know it by; its answers have the whole of it. */
static enum sy_code
cut_command(struct buf *ret, const char *command)
{
    size_t n = strlen(command);

    buf_reset(ret);
    if (n <= LIMIT_SESSION_LISTED) {
        return buf_add_str(ret, command);
    }
    n = utf8_cut(command, n, LIMIT_SESSION_LISTED - strlen(CUT));
    return buf_add(ret, command, n) == SY_E_OK ? buf_add_str(ret, CUT) : SY_E_NOMEM;
}

/* One session as both forms have it. */
struct row {
    const struct live *live;
    struct live_state state;
    struct buf text;
    struct buf json;
};

static enum sy_code
fill_row(struct row *r, struct live *l, uint64_t now_ns)
{
    SY_AUTO(buf_fini) struct buf command = {.max = LIMIT_SESSION_COMMAND};
    struct live_state *s = &r->state;
    struct jw w = {.out = &r->json};
    char state[LIVE_STATE_TEXT];
    enum sy_code rc = SY_E_OK;

    *r = (struct row){.live = l, .text = {.max = ONE_BYTES}, .json = {.max = ONE_BYTES}};
    w.out = &r->json;
    live_get_state(l, s);
    live_state_text(state, l);
    rc = cut_command(&command, s->command);
    jw_object(&w);
    jw_key_str(&w, "session_id", live_id(l));
    jw_key_str(&w, "status", s->is_running ? "running" : exec_status_name(s->status));
    if (!s->is_running) {
        jw_key_int(&w, "exit_code", s->exit_code);
    }
    if (!s->is_running && s->status == EXEC_FAILED && s->error->code != SY_E_OK) {
        jw_key_str(&w, "error", s->error->msg);
    }
    jw_key_str(&w, "command", buf_view(&command));
    jw_key_str(&w, "workdir", s->cwd);
    jw_key_bool(&w, "tty", s->has_terminal);
    jw_key_int(&w, "age_ms", (int64_t)((now_ns - s->began_ns) / 1000000));
    jw_key_int(&w, "unused_ms", (int64_t)((now_ns - s->used_ns) / 1000000));
    jw_key_int(&w, "unread_bytes", (int64_t)s->unread);
    jw_end_object(&w);
    rc = rc == SY_E_OK ? jw_done(&w) : rc;
    return rc == SY_E_OK ? buf_addf(&r->text, "%s  %s  %llu s%s  %s\n", live_id(l), state,
                                    (unsigned long long)((now_ns - s->began_ns) / 1000000000U),
                                    s->has_terminal ? "  tty" : "", buf_view(&command))
                         : rc;
}

/* What runs, then what has something to be read, then what was used last. */
static int
compare(const void *a, const void *b)
{
    const struct live_state *x = &((const struct row *)a)->state;
    const struct live_state *y = &((const struct row *)b)->state;

    if (x->is_running != y->is_running) {
        return x->is_running ? -1 : 1;
    }
    if ((x->unread > 0) != (y->unread > 0)) {
        return x->unread > 0 ? -1 : 1;
    }
    return x->used_ns != y->used_ns ? (x->used_ns > y->used_ns ? -1 : 1) : 0;
}

static enum sy_code
read_rows(struct row **ret, size_t *ret_n, struct live_store *store, const struct session *who)
{
    uint64_t now = clock_mono_ns();
    size_t n = 0;
    enum sy_code rc = SY_E_OK;

    for (struct live *l = live_next(store, who, NULL); l != NULL; l = live_next(store, who, l)) {
        n++;
    }
    *ret_n = 0;
    *ret = mem_alloc_zero(n + 1, sizeof(**ret));
    if (*ret == NULL) {
        return SY_E_NOMEM;
    }
    for (struct live *l = live_next(store, who, NULL); l != NULL && rc == SY_E_OK;
         l = live_next(store, who, l)) {
        rc = fill_row(&(*ret)[(*ret_n)++], l, now);
    }
    qsort(*ret, *ret_n, sizeof(**ret), compare);
    return rc;
}

/* As many as have room in an answer; *ret_left: how many have not. */
static enum sy_code
write_rows(struct tool_output *ret, struct jw *w, const struct row *rows, size_t n,
           size_t *ret_left)
{
    size_t bytes = 0;
    size_t i = 0;

    for (; i < n; i++) {
        bytes += rows[i].json.len + 1;
        if (i > 0 && bytes > LIST_BYTES) {
            break;
        }
        jw_raw(w, buf_view(&rows[i].json), rows[i].json.len);
        if (buf_add(&ret->text, buf_view(&rows[i].text), rows[i].text.len) != SY_E_OK) {
            return SY_E_NOMEM;
        }
    }
    *ret_left = n - i;
    if (n == 0) {
        return buf_add_str(&ret->text, "no sessions\n");
    }
    return n > i ? buf_addf(&ret->text, "... and %zu more\n", n - i) : SY_E_OK;
}

static enum sy_code
build(struct tool_output *ret, struct live_store *store, const struct session *who)
{
    const size_t max = LIST_BYTES + ONE_BYTES + 4096;
    struct jw w = {.out = &ret->structured};
    struct row *rows = NULL;
    size_t n = 0;
    size_t left = 0;
    enum sy_code rc = read_rows(&rows, &n, store, who);

    *ret = (struct tool_output){.is_success = true,
                                .text = {.max = max},
                                .content = {.max = max},
                                .structured = {.max = max}};
    jw_object(&w);
    jw_key(&w, "sessions");
    jw_array(&w);
    rc = rc == SY_E_OK ? write_rows(ret, &w, rows, n, &left) : rc;
    jw_end_array(&w);
    if (left > 0) {
        jw_key_int(&w, "omitted", (int64_t)left);
    }
    jw_key_int(&w, "running", (int64_t)live_store_running(store));
    jw_key_int(&w, "max", (int64_t)live_store_max(store));
    jw_end_object(&w);
    if (rc == SY_E_OK) {
        rc = jw_done(&w);
    }
    for (size_t i = 0; i < n; i++) {
        buf_fini(&rows[i].text);
        buf_fini(&rows[i].json);
    }
    mem_free(rows);
    return result_end(ret, rc);
}

enum sy_code
tool_live_list(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    struct tool_output output;
    enum sy_code rc = build(&output, tool_context_sessions(inv->context), call->session);

    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    tool_call_answer(call, &output);
    return SY_E_OK;
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    return rc == SY_E_OK ? tool_live_list(inv, call, err) : rc;
}

static const char *const aliases[] = {NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}";

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"sessions\"],\"properties\":{"
    "\"sessions\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"omitted\":{\"type\":\"integer\"},\"running\":{\"type\":\"integer\"},\"max\":{\"type\":\"integer\"}}}";

const struct tool_handler tool_list_sessions = {
    .name = "list_sessions",
    .aliases = aliases,
    .title = "List sessions",
    .description = "List the sessions of exec_command: what runs, since when, how it ended.",
    .input_schema = input_schema,
    .output_schema = output_schema,
    .is_read_only = true,
    .is_destructive = false,
    .is_idempotent = true,
    .is_open_world = false,
    .shell_types = "unified_exec|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = is_mutating,
    .handle = handle,
};
