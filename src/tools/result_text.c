#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "tools/tools_internal.h"

/* What an answer says besides how the command ended, as lines of its text. */

/* Titles and names of programs are shorter. */
#define FOREIGN_MAX ((size_t)1024)

/* A line in which something foreign stands. */
static enum sy_code
add_foreign(struct buf *ret, const char *label, const char *text)
{
    enum sy_code rc = buf_addf(ret, "%s: ", label);

    if (rc == SY_E_OK) {
        rc = str_add_visible(ret, text, strlen(text), FOREIGN_MAX);
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

/* 0 where there is none. */
static long long
number(const struct js *object, const char *key)
{
    int64_t ret = 0;

    return js_int(&ret, js_get(object, key)) ? (long long)ret : 0;
}

static bool
is_true(const struct js *object, const char *key)
{
    bool ret = false;

    return js_bool(&ret, js_get(object, key)) && ret;
}

static enum sy_code
add_highlighted(struct buf *ret, const struct js *runs)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < js_count(runs) && rc == SY_E_OK; i++) {
        const struct js *run = js_at(runs, i);

        rc = buf_addf(ret, "Highlighted: row %lld, column %lld, %s\n", number(run, "row"),
                      number(run, "col"), js_str(js_get(run, "text")));
    }
    return rc;
}

/* `json` is of view_facts. */
static enum sy_code
add_screen(struct buf *ret, const struct buf *json)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};

    if (json->len == 0) {
        return SY_E_OK;
    }
    if (json_parse(&doc, buf_view(json), json->len, NULL) != SY_E_OK) {
        return SY_E_NOMEM;
    }

    const struct js *cursor = js_get(doc.root, "cursor");
    const char *title = js_str(js_get(doc.root, "title"));
    enum sy_code rc = buf_addf(ret, "Screen: %lld rows, %lld columns%s, seq %lld\n",
                               number(doc.root, "rows"), number(doc.root, "cols"),
                               is_true(doc.root, "alt_screen") ? ", alternate screen" : "",
                               number(doc.root, "seq"));

    if (rc == SY_E_OK) {
        rc = buf_addf(ret, "Cursor: row %lld, column %lld%s\n", number(cursor, "row"),
                      number(cursor, "col"), is_true(cursor, "visible") ? "" : ", hidden");
    }
    if (rc == SY_E_OK && title != NULL) {
        rc = add_foreign(ret, "Title", title);
    }
    return rc == SY_E_OK ? add_highlighted(ret, js_get(doc.root, "highlighted")) : rc;
}

enum sy_code
result_text_stand(struct buf *ret, const struct result_session *s)
{
    enum sy_code rc = buf_addf(ret, "Reason: %s\nNext seq: %llu\n", s->reason,
                               (unsigned long long)s->shown.next_seq);

    if (rc == SY_E_OK && s->shown.omitted > 0) {
        rc = buf_addf(ret, "Omitted: %llu bytes\n", (unsigned long long)s->shown.omitted);
    }
    if (rc == SY_E_OK) {
        rc = add_screen(ret, &s->screen);
    }
    if (rc == SY_E_OK && s->terminal.is_waiting) {
        rc = buf_add_str(ret, "Waiting for input: yes\n");
    }
    if (rc == SY_E_OK && s->terminal.echo_off) {
        rc = buf_add_str(ret, "It waits for something that is not shown: a password?\n");
    }
    if (rc == SY_E_OK && s->pending_input > 0) {
        rc = buf_addf(ret, "Pending input: %zu bytes\n", s->pending_input);
    }
    return rc == SY_E_OK && s->next[0] != '\0' ? buf_addf(ret, "Next: %s\n", s->next) : rc;
}

/* What a person answered. */
static enum sy_code
add_review(struct buf *ret, const struct review_answer *a)
{
    if (a == NULL) {
        return SY_E_OK;
    }

    enum sy_code rc =
        buf_addf(ret, "Approval: %s%s%s%s",
                 store_status_name(a->outcome == REVIEW_PENDING ? STORE_PENDING : a->status),
                 a->is_remembered ? ", remembered" : "", a->id[0] != '\0' ? ", id " : "", a->id);

    if (rc == SY_E_OK && a->decided_by[0] != '\0') {
        rc = buf_add_str(ret, ", by ");
    }
    if (rc == SY_E_OK) {
        rc = str_add_visible(ret, a->decided_by, strlen(a->decided_by), FOREIGN_MAX);
    }
    if (rc == SY_E_OK && a->reason[0] != '\0') {
        rc = buf_add_str(ret, ": ");
    }
    if (rc == SY_E_OK) {
        rc = str_add_visible(ret, a->reason, strlen(a->reason), sizeof(a->reason) * 4);
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

static enum sy_code
add_words(struct buf *ret, const char *label, const struct strv *words)
{
    enum sy_code rc = buf_addf(ret, "%s:", label);

    for (size_t i = 0; i < words->n && rc == SY_E_OK; i++) {
        rc = buf_add_char(ret, ' ');
        if (rc == SY_E_OK) {
            rc =
                str_add_visible(ret, words->v[i], strlen(words->v[i]), strlen(words->v[i]) * 4 + 4);
        }
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

enum sy_code
result_text_command(struct buf *ret, const struct exec_output *out)
{
    enum sy_code rc = add_review(ret, out->review);

    if (rc == SY_E_OK && out->network_hosts.n > 0) {
        rc = add_words(ret, "Network hosts", &out->network_hosts);
    }
    if (rc == SY_E_OK && out->hooked.rewritten_by != NULL) {
        rc = add_foreign(ret, "Rewritten by hook", out->hooked.rewritten_by);
    }
    if (rc == SY_E_OK && out->hooked.rewritten_by != NULL) {
        rc = add_words(ret, "Command", out->hooked.command);
    }
    if (rc == SY_E_OK && out->hooked.allowed_by != NULL) {
        rc = add_foreign(ret, "Allowed by hook", out->hooked.allowed_by);
    }
    return rc == SY_E_OK && out->ended_background > 0
               ? buf_addf(ret, "Ended in the background: %u\n", (unsigned)out->ended_background)
               : rc;
}
