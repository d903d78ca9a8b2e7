#include "approval/question_access.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

enum sy_code
question_access_write(struct buf *ret, const struct access_question *q)
{
    struct jw w = {.out = ret};

    jw_object(&w);
    jw_key_str(&w, "kind", access_kind_name(q->access->kind));
    jw_key_str(&w, "object", q->access->object);
    if (!str_eq(q->asked, q->access->object)) {
        jw_key_str(&w, "asked", q->asked);
    }
    jw_key_str(&w, "scope", q->scope);
    /* A rule of it would else hold in another directory. */
    jw_key_exact(&w, "workspace", q->workspace);
    jw_key_str(&w, "mode", q->mode);
    if (q->warning[0] != '\0') {
        jw_key_str(&w, "warning", q->warning);
    }
    sandbox_delta_write(&w, q->delta);
    jw_end_object(&w);
    return jw_done(&w);
}

static const char *
text_of(const struct js *v, const char *key)
{
    const char *text = js_str(js_get(v, key));

    return text != NULL ? text : "";
}

static enum sy_code
add_visible(struct buf *ret, const char *text)
{
    return str_add_visible(ret, text, strlen(text), (size_t)LIMIT_STORE_TEXT * 4);
}

/* "LEAD text\n" */
static enum sy_code
add_line(struct buf *ret, const char *lead, const char *text, const char *tail)
{
    enum sy_code rc = buf_add_str(ret, lead);

    if (rc == SY_E_OK) {
        rc = add_visible(ret, text);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(ret, tail);
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

static enum sy_code
add_gain(struct buf *ret, const struct js *gain)
{
    bool is_secret = false;
    const char *right = text_of(gain, "right");
    const char *tail = "";

    if (js_bool(&is_secret, js_get(gain, "secret")) && is_secret) {
        tail = " (SECRETS), and all below";
    } else if (str_eq(right, "write")) {
        tail = ", and all below: made, changed, renamed, removed";
    } else if (str_eq(right, "connect")) {
        tail = str_starts(text_of(gain, "object"), "unix:") ? ", and all sockets below"
                                                            : " through the proxy";
    }

    enum sy_code rc = buf_addf(ret, "  + %s ", right);

    return rc == SY_E_OK ? add_line(ret, "", text_of(gain, "object"), tail) : rc;
}

static enum sy_code
add_names(struct buf *ret, const char *lead, const struct js *list)
{
    enum sy_code rc = SY_E_OK;

    if (js_count(list) == 0) {
        return rc;
    }
    rc = buf_add_str(ret, lead);
    for (size_t i = 0; i < js_count(list) && rc == SY_E_OK; i++) {
        const char *name = js_str(js_at(list, i));

        rc = buf_add_str(ret, i > 0 ? ", " : " ");
        rc = rc == SY_E_OK ? add_visible(ret, name != NULL ? name : "") : rc;
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

static enum sy_code
add_head(struct buf *ret, const struct js *a)
{
    enum sy_code rc = buf_addf(ret, "Access:     %s ", text_of(a, "kind"));

    if (rc == SY_E_OK) {
        rc = add_line(ret, "", text_of(a, "object"), "");
    }
    if (rc == SY_E_OK && text_of(a, "asked")[0] != '\0') {
        rc = add_line(ret, "Asked for:  ", text_of(a, "asked"), ", which is that");
    }
    if (rc == SY_E_OK && text_of(a, "warning")[0] != '\0') {
        rc = add_line(ret, "WARNING:    ", text_of(a, "warning"), "");
    }
    return rc;
}

enum sy_code
question_access_text(struct buf *ret, const struct js *a)
{
    const struct js *gains = js_get(a, "gains");
    enum sy_code rc = add_head(ret, a);

    if (rc == SY_E_OK) {
        rc = buf_add_str(ret, "New would be:\n");
    }
    for (size_t i = 0; i < js_count(gains) && rc == SY_E_OK; i++) {
        rc = add_gain(ret, js_at(gains, i));
    }
    if (rc == SY_E_OK) {
        rc = add_names(ret, "Stay protected below:", js_get(a, "kept"));
    }
    if (rc == SY_E_OK) {
        rc = add_names(ret, "Stay hidden below:", js_get(a, "hidden"));
    }
    return rc == SY_E_OK ? add_line(ret, "Wished for: ", text_of(a, "scope"),
                                    " (once: the next command; session: this server; rule: this "
                                    "workspace, for good)")
                         : rc;
}

void
question_access_fini(struct question_access *a)
{
    mem_free(a->kind);
    mem_free(a->object);
    mem_free(a->workspace);
    mem_free(a->mode);
    *a = (struct question_access){0};
}

enum sy_code
question_access_read(struct question_access *ret, const char *json, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    struct sy_error why = {0};
    const struct js *a = NULL;
    enum sy_code rc = json_parse(&doc, json, strlen(json), &why);

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM
                   ? sy_err_nomem(err)
                   : sy_err_set(err, SY_E_PARSE, "the request's text is not what Shellyard writes");
    }
    a = js_get(doc.root, "access");
    if (a == NULL) {
        return SY_E_OK;
    }

    SY_AUTO(buf_fini) struct buf workspace = {.max = LIMIT_PATH};

    rc = js_exact(&workspace, js_get(a, "workspace"));
    if (rc != SY_E_OK && rc != SY_E_PARSE) {
        return sy_err_nomem(err);
    }

    struct question_access made = {
        .kind = mem_strdup(text_of(a, "kind")),
        .object = mem_strdup(text_of(a, "object")),
        .workspace = mem_strdup(buf_view(&workspace)),
        .mode = mem_strdup(text_of(a, "mode")),
    };

    if (made.kind == NULL || made.object == NULL || made.workspace == NULL || made.mode == NULL) {
        question_access_fini(&made);
        return sy_err_nomem(err);
    }
    *ret = made;
    return SY_E_OK;
}
