#include "cli/edit_json.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"

/* Does the last item of ours stand in its place in `now`? *ret_n: how many are ours. */
static bool
has_head(size_t *ret_n, const struct js *now, const struct js *ours)
{
    *ret_n = js_count(ours);

    const struct js *last = *ret_n > 0 ? js_at(ours, *ret_n - 1) : NULL;
    const struct js *there = js_type(now) == JS_ARRAY && js_count(now) >= *ret_n && *ret_n > 0
                                 ? js_at(now, *ret_n - 1)
                                 : NULL;

    return js_type(last) == JS_STRING && js_type(there) == JS_STRING &&
           str_eq(js_str(last), js_str(there));
}

enum sy_code
edit_json_value(struct buf *ret, const struct js *now, const struct edit_field *field)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    size_t n = 0;
    enum sy_code rc = SY_E_OK;

    if (field->owner == EDIT_OUR_HEAD && js_type(now) == JS_ARRAY) {
        rc = json_parse(&doc, field->value, strlen(field->value), NULL);
    }
    if (rc != SY_E_OK || doc.root == NULL || !has_head(&n, now, doc.root)) {
        return rc == SY_E_OK ? buf_add_str(ret, field->value) : rc;
    }

    struct jw w = {.out = ret};

    jw_array(&w);
    for (size_t i = 0; i < js_count(now); i++) {
        jw_value(&w, js_at(i < n ? doc.root : now, i));
    }
    jw_end_array(&w);
    return jw_done(&w);
}

static enum sy_code
merge_field(struct jw *w, const struct js *now, const struct edit_field *field)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    const struct js *there = js_get(now, field->key);
    enum sy_code rc = edit_json_value(&text, there, field);

    jw_key(w, field->key);
    if (there != NULL && field->owner == EDIT_THEIRS) {
        jw_value(w, there);
    } else {
        jw_raw(w, buf_view(&text), text.len);
    }
    return rc;
}

enum sy_code
edit_json_merge(struct buf *out, const struct js *now, const struct edit_field *fields)
{
    struct jw w = {.out = out};
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;

    jw_object(&w);
    for (size_t i = 0; fields[i].key != NULL; i++) {
        enum sy_code rc = merge_field(&w, now, &fields[i]);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    while (js_next(now, &it, &key, &value)) {
        bool is_written = false;

        for (size_t i = 0; fields[i].key != NULL; i++) {
            is_written = is_written || str_eq(fields[i].key, key);
        }
        if (!is_written) {
            jw_key(&w, key);
            jw_value(&w, value);
        }
    }
    jw_end_object(&w);
    return jw_done(&w);
}

enum sy_code
edit_json_field_is_set(bool *ret, const struct js *now, const struct edit_field *field)
{
    const struct js *value = js_get(now, field->key);
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf wanted = {.max = LIMIT_CLIENT_FILE};

    *ret = value != NULL && field->owner == EDIT_THEIRS;
    if (value == NULL || *ret) {
        return SY_E_OK;
    }

    enum sy_code rc = js_dump(&text, value);

    if (rc == SY_E_OK) {
        rc = edit_json_value(&wanted, value, field);
    }
    if (rc == SY_E_OK) {
        *ret = str_eq(buf_view(&text), buf_view(&wanted));
    }
    return rc;
}

enum sy_code
edit_json_is_set(bool *ret, const struct js *now, const struct edit_field *fields)
{
    enum sy_code rc = SY_E_OK;

    *ret = js_type(now) == JS_OBJECT;
    for (size_t i = 0; fields[i].key != NULL && *ret && rc == SY_E_OK; i++) {
        rc = edit_json_field_is_set(ret, now, &fields[i]);
    }
    return rc;
}
