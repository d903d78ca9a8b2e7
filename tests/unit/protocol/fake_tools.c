#include "fake_tools.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct tool_call {
    size_t index;
    tool_done_fn *done;
    void *arg;
};

struct session {
    const char *id;
    const char *name;
    char *title;
    struct session *parent;
    size_t children;
};

struct tool_context {
    struct session session;
    struct config config;
    struct turn_context turn;
    struct event_bus *bus;
    struct fake_call *calls; /* not cleared with the rest: it is large */
    size_t n;
    size_t n_open;
    size_t n_sessions;
    enum sy_code next_error;
    bool cancels_at_once;
};

static struct tool_context fake;
static struct fake_call all_calls[FAKE_CALLS_MAX];
static bool is_unsettled;
static char *no_environ[] = {NULL};

static bool
takes_function(enum payload_kind payload)
{
    return payload != PAYLOAD_CUSTOM;
}

static bool
takes_custom(enum payload_kind payload)
{
    return payload == PAYLOAD_CUSTOM;
}

static bool
mutates(const struct invocation *inv)
{
    (void)inv;
    return true;
}

static bool
reads(const struct invocation *inv)
{
    (void)inv;
    return false;
}

static const char *const shell_aliases[] = {"local_shell", "container.exec", NULL};
static const char *const no_aliases[] = {NULL};

static const struct tool_handler shell = {
    .name = "shell",
    .aliases = shell_aliases,
    .title = "Run a program",
    .description = "Run a program.",
    .input_schema = "{\"type\":\"object\"}",
    .output_schema = "{\"type\":\"object\",\"properties\":{}}",
    .is_destructive = true,
    .is_open_world = true,
    .shell_types = "default|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = takes_function,
    .is_mutating = mutates,
};

static const struct tool_handler reader = {
    .name = "reader",
    .aliases = no_aliases,
    .title = "Read",
    .description = "Read something.",
    .input_schema = "{\"type\":\"object\"}",
    .output_schema = "{\"type\":\"object\"}",
    .is_read_only = true,
    .is_idempotent = true,
    .shell_types = "all",
    .kind = TOOL_FUNCTION,
    .matches_kind = takes_function,
    .is_mutating = reads,
};

static const struct tool_handler patch = {
    .name = "patch",
    .aliases = no_aliases,
    .title = "Patch",
    .description = "Patch files.",
    .input_schema = "{\"type\":\"object\"}",
    .output_schema = "{\"type\":\"object\"}",
    .shell_types = "all",
    .kind = TOOL_CUSTOM,
    .matches_kind = takes_custom,
    .is_mutating = mutates,
};

static const struct tool_handler *const handlers[] = {&shell, &reader, &patch, NULL};

const struct tool_handler *const *
tool_handlers(void)
{
    return handlers;
}

const struct tool_handler *
tool_find(const char *name)
{
    for (const struct tool_handler *const *t = handlers; *t != NULL; t++) {
        if (str_eq((*t)->name, name)) {
            return *t;
        }
        for (const char *const *a = (*t)->aliases; *a != NULL; a++) {
            if (str_eq(*a, name)) {
                return *t;
            }
        }
    }
    return NULL;
}

bool
tool_is_listed(const struct tool_handler *t, const struct config *config)
{
    return strstr(t->shell_types, config->tools.shell_type) != NULL;
}

const struct config *
tool_context_config(const struct tool_context *c)
{
    return &c->config;
}

struct session *
tool_context_session(struct tool_context *c)
{
    return &c->session;
}

void
tool_context_end_within(struct tool_context *c, const struct session *s)
{
    (void)c;
    (void)s;
}

void
fake_unsettle(bool to)
{
    is_unsettled = to;
}

bool
tool_context_has_settled(const struct tool_context *c, const struct session *s)
{
    (void)c;
    (void)s;
    return !is_unsettled;
}

const struct turn_context *
tool_context_turn(const struct tool_context *c)
{
    return &c->turn;
}

struct event_bus *
session_bus(struct session *s)
{
    (void)s;
    return fake.bus;
}

char *const *
session_environ(const struct session *s)
{
    (void)s;
    return no_environ;
}

enum sy_code
session_open(struct session **ret, struct session *parent, const char *name, const char *title,
             struct sy_error *err)
{
    struct session *s = mem_alloc_zero(1, sizeof(*s));
    char *copy = mem_strdup(name);
    char *said = mem_strdup(title != NULL ? title : "");

    if (s == NULL || copy == NULL || said == NULL) {
        mem_free(s);
        mem_free(copy);
        mem_free(said);
        return sy_err_nomem(err);
    }
    *s = (struct session){.id = copy, .name = copy, .title = said, .parent = parent};
    parent->children++;
    fake.n_sessions++;
    *ret = s;
    return SY_E_OK;
}

void
session_close(struct session *s)
{
    SY_ASSERT(s->children == 0);
    s->parent->children--;
    fake.n_sessions--;
    mem_free(mem_unconst(s->name));
    mem_free(s->title);
    mem_free(s);
}

const char *
session_id(const struct session *s)
{
    return s->id;
}

const char *
session_title(const struct session *s)
{
    return s->title != NULL && s->title[0] != '\0' ? s->title : NULL;
}

bool
session_is_within(const struct session *s, const struct session *above)
{
    while (s != NULL && s != above) {
        s = s->parent;
    }
    return s != NULL;
}

size_t
fake_sessions(void)
{
    return fake.n_sessions;
}

enum sy_code
turn_from_config(struct turn_context *ret, const struct config *config, const char *cwd,
                 char *const *environ_list, struct sy_error *err)
{
    (void)environ_list;
    *ret = (struct turn_context){.sandbox = {.writable_roots = {.max = 16}}};
    ret->cwd = mem_strdup(cwd);
    ret->sandbox.cwd = mem_strdup(cwd);
    if (ret->cwd == NULL || ret->sandbox.cwd == NULL ||
        strv_add_all(&ret->sandbox.writable_roots, strv_view(&config->sandbox.writable_roots)) !=
            SY_E_OK) {
        turn_context_fini(ret);
        return sy_err_nomem(err);
    }
    SY_ASSERT(sandbox_mode_parse(&ret->sandbox.mode, config->sandbox.mode));
    SY_ASSERT(approval_policy_parse(&ret->approval, config->approval.policy));
    ret->sandbox.has_network = config->sandbox.network_access;
    ret->sandbox.excludes_slash_tmp = config->sandbox.exclude_slash_tmp;
    return SY_E_OK;
}

static void
record(struct fake_call *f, const struct invocation *inv)
{
    struct buf text = {.max = sizeof(f->arguments) - 1};

    *f = (struct fake_call){.payload = inv->payload};
    (void)snprintf(f->name, sizeof(f->name), "%s", inv->tool_name);
    (void)snprintf(f->call_id, sizeof(f->call_id), "%s", inv->call_id);
    (void)snprintf(f->turn_id, sizeof(f->turn_id), "%s", inv->turn_id != NULL ? inv->turn_id : "");
    (void)snprintf(f->session, sizeof(f->session), "%s",
                   inv->session != NULL ? inv->session->id : "");
    (void)snprintf(f->cwd, sizeof(f->cwd), "%s", inv->turn->cwd);
    f->mode = inv->turn->sandbox.mode;
    f->approval = inv->turn->approval;
    f->has_network = inv->turn->sandbox.has_network;
    f->n_roots = inv->turn->sandbox.writable_roots.n;
    if (inv->arguments != NULL && js_dump(&text, inv->arguments) == SY_E_OK) {
        (void)snprintf(f->arguments, sizeof(f->arguments), "%s", buf_view(&text));
    }
    if (inv->input != NULL) {
        (void)snprintf(f->input, sizeof(f->input), "%.*s", (int)inv->input_len, inv->input);
    }
    buf_fini(&text);
}

enum sy_code
tool_start(struct tool_call **ret, const struct invocation *inv, tool_done_fn *done, void *arg,
           struct sy_error *err)
{
    if (fake.next_error != SY_E_OK) {
        enum sy_code code = fake.next_error;

        fake.next_error = SY_E_OK;
        return sy_err_set(err, code, "planted failure");
    }
    if (fake.n == FAKE_CALLS_MAX) {
        return sy_err_set(err, SY_E_LIMIT, "the fake is full");
    }

    struct tool_call *call = mem_alloc_zero(1, sizeof(*call));

    if (call == NULL) {
        return sy_err_nomem(err);
    }
    record(&fake.calls[fake.n], inv);
    call->index = fake.n;
    call->done = done;
    call->arg = arg;
    fake.calls[fake.n].handle = call;
    fake.n++;
    fake.n_open++;
    *ret = call;
    return SY_E_OK;
}

void
tool_cancel(struct tool_call *call)
{
    fake.calls[call->index].is_cancelled = true;
    if (fake.cancels_at_once) {
        fake_finish(call->index, "cancelled");
    }
}

void
tool_reply(struct tool_call *call, const struct review_reply *reply)
{
    fake.calls[call->index].n_replies++;
    fake.calls[call->index].reply = reply->status;
}

void
tool_give_up(struct tool_call *call)
{
    fake.calls[call->index].n_given_up++;
}

const char *
tool_last_line(struct tool_call *call)
{
    return fake.calls[call->index].last_line;
}

uint64_t
tool_output_bytes(const struct tool_call *call)
{
    return fake.calls[call->index].bytes;
}

uint64_t
tool_elapsed_ms(const struct tool_call *call)
{
    return fake.calls[call->index].elapsed_ms;
}

const char *
tool_call_id(const struct tool_call *call)
{
    return fake.calls[call->index].call_id;
}

struct tool_context *
fake_tools_new(void)
{
    fake = (struct tool_context){
        .session = {.id = "main"                      },
        .calls = all_calls,
        .config = { .sandbox = {.mode = "workspace-write"},
                    .approval = {.policy = "on-failure"},
                    .tools = {.shell_type = "default"}}
    };
    fake.config.sandbox.writable_roots.max = 16;
    fake_sessions_forget();
    is_unsettled = false;
    fake.bus = event_bus_new();
    if (fake.bus == NULL ||
        turn_from_config(&fake.turn, &fake.config, "/", no_environ, NULL) != SY_E_OK) {
        fake_tools_free();
        return NULL;
    }
    return &fake;
}

void
fake_tools_free(void)
{
    SY_ASSERT(fake.n_open == 0);
    turn_context_fini(&fake.turn);
    strv_fini(&fake.config.sandbox.writable_roots);
    event_bus_free(fake.bus);
    fake = (struct tool_context){0};
}

struct config *
fake_config(void)
{
    return &fake.config;
}

struct turn_context *
fake_turn(void)
{
    return &fake.turn;
}

size_t
fake_calls(void)
{
    return fake.n;
}

struct fake_call *
fake_call(size_t i)
{
    SY_ASSERT(i < fake.n);
    return &fake.calls[i];
}

size_t
fake_open(void)
{
    return fake.n_open;
}

void
fake_finish_output(size_t i, struct tool_output *output)
{
    struct tool_call *call = fake_call(i)->handle;

    SY_ASSERT(call != NULL);
    fake.calls[i].handle = NULL;
    fake.n_open--;
    call->done(call->arg, call, output);
    buf_fini(&output->text);
    buf_fini(&output->content);
    buf_fini(&output->structured);
    mem_free(call);
}

void
fake_finish(size_t i, const char *content)
{
    struct tool_output o = {
        .text = {.max = 65536}, .content = {.max = 65536}, .structured = {.max = 65536}};

    /* Memory may be short on purpose: what is missing stays empty. */
    if (buf_addf(&o.text, "exit_code: 0\n%s", content) != SY_E_OK ||
        buf_add_str(&o.content, content) != SY_E_OK ||
        buf_add_str(&o.structured, "{\"exit_code\":0}") != SY_E_OK) {
        o.is_error = true;
        buf_reset(&o.structured);
    }
    fake_finish_output(i, &o);
}

void
fake_finish_all(void)
{
    /* Ending one may start the next of a batch. */
    for (size_t i = 0; i < fake.n; i++) {
        if (fake.calls[i].handle != NULL) {
            fake_finish(i, fake.calls[i].is_cancelled ? "cancelled" : "done\n");
        }
    }
}

void
fake_fail_next(enum sy_code code)
{
    fake.next_error = code;
}

void
fake_cancel_is_synchronous(bool yes)
{
    fake.cancels_at_once = yes;
}

void
fake_emit(const struct event *e)
{
    struct event one = *e;

    if (one.session_id == NULL) {
        one.session_id = fake.session.id;
    }
    event_emit(fake.bus, &one);
}
