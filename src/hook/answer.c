#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "hook/hook.h"

#define COMMAND_MAX 4096U /* arguments: 64 KiB of JSON hold no more that mean anything */

void
hook_answer_fini(struct hook_answer *a)
{
    strv_fini(&a->command);
    *a = (struct hook_answer){0};
}

static const struct {
    const char *word;
    enum hook_decision decision;
} decisions[] = {
    {"none",    HOOK_NONE   },
    {"allow",   HOOK_ALLOW  },
    {"rewrite", HOOK_REWRITE},
    {"ask",     HOOK_ASK    },
    {"deny",    HOOK_DENY   },
};

static enum sy_code
read_decision(struct hook_answer *ret, const struct js *v, struct sy_error *err)
{
    const char *word = js_str(v);

    for (size_t i = 0; word != NULL && i < sizeof(decisions) / sizeof(decisions[0]); i++) {
        if (str_eq(word, decisions[i].word)) {
            ret->decision = decisions[i].decision;
            return SY_E_OK;
        }
    }
    return sy_err_set(err, SY_E_PARSE,
                      "\"decision\" must be \"none\", \"allow\", \"ask\", \"deny\" or \"rewrite\"");
}

static enum sy_code
read_reason(struct hook_answer *ret, const struct js *v, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = SY_ERR_MSG_MAX - 1};
    enum sy_code rc = SY_E_OK;

    if (js_type(v) != JS_STRING) {
        return sy_err_set(err, SY_E_PARSE, "\"reason\" must be a string, not %s",
                          js_type_name(js_type(v)));
    }
    rc = str_add_visible(&text, js_str_raw(v), js_str_len(v), SY_ERR_MSG_MAX - 8);
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    memcpy(ret->reason, buf_view(&text), text.len + 1);
    return SY_E_OK;
}

static enum sy_code
read_command(struct hook_answer *ret, const struct js *v, struct sy_error *err)
{
    size_t n = js_count(v);

    if (js_type(v) != JS_ARRAY || n == 0 || n > COMMAND_MAX) {
        return sy_err_set(err, SY_E_PARSE,
                          "\"command\" must be a list of 1 to %u strings: the program and its "
                          "arguments",
                          COMMAND_MAX);
    }
    ret->command.max = COMMAND_MAX;
    for (size_t i = 0; i < n; i++) {
        const char *word = js_str(js_at(v, i));

        if (word == NULL || (i == 0 && word[0] == '\0')) {
            return sy_err_set(err, SY_E_PARSE, "\"command\"[%zu] must be a string%s without NUL", i,
                              i == 0 ? ", not empty and" : "");
        }
        if (strv_add(&ret->command, word) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    return SY_E_OK;
}

static enum sy_code
read_member(struct hook_answer *ret, const char *key, const struct js *v, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf shown = {.max = 64};

    if (str_eq(key, "decision")) {
        return read_decision(ret, v, err);
    }
    if (str_eq(key, "reason")) {
        return read_reason(ret, v, err);
    }
    if (str_eq(key, "command")) {
        return read_command(ret, v, err);
    }
    if (str_add_visible(&shown, key, strlen(key), shown.max - 8) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_PARSE, "unknown key \"%s\" (decision, reason, command)",
                      buf_view(&shown));
}

static enum sy_code
read_object(struct hook_answer *ret, const struct js *root, struct sy_error *err)
{
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;

    if (js_type(root) != JS_OBJECT) {
        return sy_err_set(err, SY_E_PARSE, "expected an object, got %s",
                          js_type_name(js_type(root)));
    }
    if (js_get(root, "decision") == NULL) {
        return sy_err_set(err, SY_E_PARSE, "\"decision\" is missing");
    }
    while (js_next(root, &it, &key, &value)) {
        enum sy_code rc = read_member(ret, key, value, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    if ((ret->decision == HOOK_REWRITE) != (ret->command.n > 0)) {
        return sy_err_set(err, SY_E_PARSE, "\"command\" %s",
                          ret->decision == HOOK_REWRITE
                              ? "is missing, which \"rewrite\" needs"
                              : "belongs to the decision \"rewrite\" alone");
    }
    return SY_E_OK;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

enum sy_code
hook_answer_read(struct hook_answer *ret, const char *text, size_t len, struct sy_error *err)
{
    struct json_doc doc = {0};
    size_t blank = 0;

    *ret = (struct hook_answer){0};
    while (blank < len && is_blank(text[blank])) {
        blank++;
    }
    if (blank == len) {
        return SY_E_OK;
    }

    enum sy_code rc = json_parse(&doc, text, len, err);

    if (rc == SY_E_OK) {
        rc = read_object(ret, doc.root, err);
        json_doc_fini(&doc);
    }
    if (rc != SY_E_OK) {
        hook_answer_fini(ret);
    }
    return rc;
}
