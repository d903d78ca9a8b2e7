/* Resources: what a session's terminal shows, and what the session wrote. */
#include "protocol/mcp_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

/* As MCP has it up to 2025-11-25. */
#define RPC_NO_RESOURCE (-32002)

/* Of an address that an error repeats. */
#define URI_SHOWN 1024U

/* The largest screen, with room for what is drawn over its characters; a log is smaller. */
#define TEXT_MAX ((size_t)LIMIT_TERMINAL_ROWS * LIMIT_TERMINAL_COLS * 8)

#define MIME_TYPE "text/plain"

struct mcp_subscription {
    struct mcp_subscription *next;
    struct resource_uri uri;
    struct notice notice;
    bool is_gone; /* told once more, then forgotten */
};

static void
no_resource(struct mcp *m, const struct mcp_request *r, const char *uri, const char *why)
{
    struct jw w;

    out_begin(&m->base, &w);
    rpc_error_data_open(&w, &r->id, RPC_NO_RESOURCE, why);
    jw_key_strn(&w, "uri", uri, (size_t)utf8_room(uri, URI_SHOWN));
    rpc_error_data_close(&w);
    if (jw_done(&w) == SY_E_OK) {
        mcp_deliver(m, r->batch);
    } else {
        mcp_error(m, &r->id, r->batch, RPC_NO_RESOURCE, "%s", why);
    }
}

/* The address that a request names; answers what is wrong. `ret_text`: as it came. */
static bool
read_uri(struct mcp *m, const struct mcp_request *r, struct resource_uri *ret,
         const char **ret_text)
{
    const char *text = js_str(js_get(r->params, "uri"));

    if (text == NULL) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS,
                  "%s needs params.uri, a string: the address of a resource", r->method);
        return false;
    }
    *ret_text = text;
    if (!resource_uri_parse(ret, text, strlen(text))) {
        no_resource(m, r, text,
                    "unknown resource: there are shellyard://session/SESSION_ID/screen and "
                    "shellyard://session/SESSION_ID/log, which resources/list names");
        return false;
    }
    return true;
}

static void
write_resource(const struct mcp *m, struct jw *w, const struct tool_session *s,
               enum tool_session_part part)
{
    char uri[RESOURCE_URI_ROOM];
    char name[LIMIT_SESSION_ID + 32];
    char about[LIMIT_SESSION_COMMAND + TOOL_SESSION_STATE + 8];

    resource_uri_text(uri, s->id, part);
    (void)snprintf(name, sizeof(name), "session %s: %s", s->id, resource_uri_part_name(part));
    (void)snprintf(about, sizeof(about), "%s (%s)", s->command, s->state);
    jw_object(w);
    jw_key_str(w, "uri", uri);
    jw_key_str(w, "name", name);
    if (m->version->has_structured) {
        jw_key_str(w, "title", name);
    }
    jw_key_str(w, "description", about);
    jw_key_str(w, "mimeType", MIME_TYPE);
    jw_end_object(w);
}

/* The session after which the page begins; answers what is wrong. */
static bool
read_cursor(struct mcp *m, const struct mcp_request *r, const char **ret)
{
    const struct js *v = js_get(r->params, "cursor");
    struct tool_session s;

    *ret = js_str(v);
    if (js_type(v) == JS_NULL ||
        (*ret != NULL && tool_session_find(&s, m->base.options.context, *ret, NULL) == SY_E_OK)) {
        return true;
    }
    mcp_error(m, &r->id, r->batch, RPC_PARAMS,
              "unknown cursor: its session may be known no more; begin without params.cursor");
    return false;
}

void
mcp_resources_list(struct mcp *m, const struct mcp_request *r)
{
    struct tool_context *c = m->base.options.context;
    struct tool_session s;
    const char *after = NULL;
    size_t n = 0;
    struct jw w;

    if (!read_cursor(m, r, &after)) {
        return;
    }
    mcp_reply_open(m, &w, &r->id);
    jw_key(&w, "resources");
    jw_array(&w);
    for (; n < LIMIT_RESOURCE_PAGE && tool_session_next(&s, c, after); n++) {
        if (s.has_terminal) {
            write_resource(m, &w, &s, TOOL_SESSION_SCREEN);
        }
        write_resource(m, &w, &s, TOOL_SESSION_LOG);
        after = s.id;
    }
    jw_end_array(&w);
    if (n == LIMIT_RESOURCE_PAGE && tool_session_next(&s, c, after)) {
        jw_key_str(&w, "nextCursor", after);
    }
    mcp_reply_close(m, &w, &r->id, r->batch);
}

static void
write_template(struct jw *w, enum tool_session_part part, const char *about)
{
    char uri[RESOURCE_URI_ROOM];
    char name[32];

    resource_uri_text(uri, "{session_id}", part);
    (void)snprintf(name, sizeof(name), "session %s", resource_uri_part_name(part));
    jw_object(w);
    jw_key_str(w, "uriTemplate", uri);
    jw_key_str(w, "name", name);
    jw_key_str(w, "description", about);
    jw_key_str(w, "mimeType", MIME_TYPE);
    jw_end_object(w);
}

void
mcp_resource_templates(struct mcp *m, const struct mcp_request *r)
{
    struct jw w;

    if (!mcp_is_first_page(m, r)) {
        return;
    }
    mcp_reply_open(m, &w, &r->id);
    jw_key(&w, "resourceTemplates");
    jw_array(&w);
    write_template(&w, TOOL_SESSION_SCREEN, "What the terminal of a session shows, as rows.");
    write_template(&w, TOOL_SESSION_LOG, "What a session wrote, without escape sequences.");
    jw_end_array(&w);
    mcp_reply_close(m, &w, &r->id, r->batch);
}

void
mcp_resources_read(struct mcp *m, const struct mcp_request *r)
{
    SY_AUTO(buf_fini) struct buf text = {.max = TEXT_MAX};
    struct resource_uri uri;
    const char *said = NULL;
    struct sy_error err = {0};
    struct jw w;

    if (!read_uri(m, r, &uri, &said)) {
        return;
    }

    enum sy_code rc = tool_session_read(&text, m->base.options.context, uri.id, uri.part, &err);

    if (rc == SY_E_NOTFOUND) {
        no_resource(m, r, said, err.msg);
        return;
    }
    if (rc != SY_E_OK) {
        mcp_error(m, &r->id, r->batch, RPC_INTERNAL, "reading %s", err.msg);
        return;
    }
    mcp_reply_open(m, &w, &r->id);
    jw_key(&w, "contents");
    jw_array(&w);
    jw_object(&w);
    jw_key_str(&w, "uri", said);
    jw_key_str(&w, "mimeType", MIME_TYPE);
    jw_key_strn(&w, "text", buf_view(&text), text.len);
    jw_end_object(&w);
    jw_end_array(&w);
    mcp_reply_close(m, &w, &r->id, r->batch);
}

static struct mcp_subscription **
find_subscription(struct mcp *m, const struct resource_uri *uri)
{
    struct mcp_subscription **at = &m->subscriptions;

    while (*at != NULL && !((*at)->uri.part == uri->part && str_eq((*at)->uri.id, uri->id))) {
        at = &(*at)->next;
    }
    return at;
}

static void
drop(struct mcp *m, struct mcp_subscription **at)
{
    struct mcp_subscription *s = *at;

    *at = s->next;
    m->n_subscriptions--;
    mem_free(s);
}

/* Is there such a resource? Answers if not. */
static bool
exists(struct mcp *m, const struct mcp_request *r, const struct resource_uri *uri, const char *said)
{
    struct tool_session s;
    struct sy_error err = {0};
    enum sy_code rc = tool_session_find(&s, m->base.options.context, uri->id, &err);

    if (rc == SY_E_OK && uri->part == TOOL_SESSION_SCREEN && !s.has_terminal) {
        rc = sy_err_set(&err, SY_E_NOTFOUND, "session %.64s has no terminal, and so no screen",
                        uri->id);
    }
    if (rc != SY_E_OK) {
        no_resource(m, r, said, err.msg);
    }
    return rc == SY_E_OK;
}

void
mcp_subscribe(struct mcp *m, const struct mcp_request *r)
{
    struct resource_uri uri;
    const char *said = NULL;

    if (!read_uri(m, r, &uri, &said) || !exists(m, r, &uri, said)) {
        return;
    }

    struct mcp_subscription **at = find_subscription(m, &uri);

    if (*at != NULL && !(*at)->is_gone) {
        mcp_reply_empty(m, r); /* twice is once */
        return;
    }
    if (m->n_subscriptions >= LIMIT_SUBSCRIPTIONS) {
        mcp_error(m, &r->id, r->batch, sy_code_rpc(SY_E_LIMIT),
                  "%u resources are subscribed to, which is the maximum: unsubscribe from one",
                  LIMIT_SUBSCRIPTIONS);
        return;
    }

    struct mcp_subscription *s = mem_alloc_zero(1, sizeof(*s));

    if (s == NULL) {
        mcp_error(m, &r->id, r->batch, RPC_INTERNAL, "out of memory");
        return;
    }
    s->uri = uri;
    s->next = m->subscriptions;
    m->subscriptions = s;
    m->n_subscriptions++;
    mcp_reply_empty(m, r);
}

void
mcp_unsubscribe(struct mcp *m, const struct mcp_request *r)
{
    struct resource_uri uri;
    const char *said = NULL;

    if (!read_uri(m, r, &uri, &said)) {
        return;
    }

    struct mcp_subscription **at = find_subscription(m, &uri);

    if (*at != NULL) {
        drop(m, at);
    }
    mcp_reply_empty(m, r);
}

/* From whatever changes a session: only takes note. */
static void
on_session(void *arg, const char *id, enum tool_session_change change)
{
    struct mcp *m = arg;

    if (change == TOOL_SESSION_SETTLED) {
        return;
    }

    bool is_new = change != TOOL_SESSION_CHANGED && notice_changed(&m->list);

    for (struct mcp_subscription *s = m->subscriptions; s != NULL; s = s->next) {
        if (str_eq(s->uri.id, id)) {
            is_new = notice_changed(&s->notice) || is_new;
            s->is_gone = s->is_gone || change == TOOL_SESSION_GONE;
        }
    }
    if (is_new) {
        mcp_arm(m);
    }
}

enum sy_code
mcp_watch_sessions(struct mcp *m, struct sy_error *err)
{
    return tool_watch_new(&m->watch, m->base.options.context, on_session, m, err);
}

void
mcp_unwatch_sessions(struct mcp *m)
{
    tool_watch_free(m->watch);
    m->watch = NULL;
    while (m->subscriptions != NULL) {
        drop(m, &m->subscriptions);
    }
}

uint64_t
mcp_notices_when(const struct mcp *m)
{
    uint64_t first = m->is_ready ? notice_when(&m->list) : UINT64_MAX;

    for (const struct mcp_subscription *s = m->subscriptions; s != NULL; s = s->next) {
        uint64_t when = notice_when(&s->notice);

        first = when < first ? when : first;
    }
    return first;
}

static void
tell(struct mcp *m, const char *method, const struct resource_uri *uri)
{
    char text[RESOURCE_URI_ROOM];
    struct jw w;

    out_begin(&m->base, &w);
    rpc_notification_open(&w, method);
    if (uri != NULL) {
        resource_uri_text(text, uri->id, uri->part);
        jw_key_str(&w, "uri", text);
    }
    jw_end_object(&w);
    jw_end_object(&w);
    /* OUT_RESERVE holds it. */
    SY_ASSERT(jw_done(&w) == SY_E_OK);
    out_send(&m->base);
}

/* The peer reads nothing at present: all of them later. */
static void
put_off(struct mcp *m, uint64_t now)
{
    notice_put_off(&m->list, now);
    for (struct mcp_subscription *s = m->subscriptions; s != NULL; s = s->next) {
        notice_put_off(&s->notice, now);
    }
}

void
mcp_send_notices(struct mcp *m, uint64_t now)
{
    struct mcp_subscription **at = &m->subscriptions;

    if (mcp_is_slow(m)) {
        put_off(m, now);
        return;
    }
    if (m->is_ready && notice_take(&m->list, now)) {
        tell(m, "notifications/resources/list_changed", NULL);
    }
    while (*at != NULL) {
        struct mcp_subscription *s = *at;
        bool is_told = notice_take(&s->notice, now);

        if (is_told) {
            tell(m, "notifications/resources/updated", &s->uri);
        }
        if (is_told && s->is_gone) {
            drop(m, at);
        } else {
            at = &s->next;
        }
    }
}
