#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/rules.h"
#include "store/access.h"

/* What answers to request_access let commands do for good. */

static enum sy_code
write_json(struct buf *out, const struct store_accesses *list)
{
    struct jw w = {.out = out};

    jw_array(&w);
    for (size_t i = 0; i < list->n; i++) {
        const struct store_access *a = &list->v[i];

        jw_object(&w);
        jw_key_str(&w, "id", a->id);
        jw_key_str(&w, "kind", a->kind);
        jw_key_str(&w, "object", a->object);
        jw_key_str(&w, "workspace", a->workspace);
        jw_key_str(&w, "mode", a->mode);
        jw_key_int(&w, "created_ms", a->created_ms);
        jw_key_str(&w, "decided_by", a->decided_by);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    return jw_done(&w);
}

static enum sy_code
write_line(struct buf *out, const struct store_access *a)
{
    enum sy_code rc = buf_add_str(out, "access  ");

    if (rc == SY_E_OK) {
        rc = str_add_visible(out, a->kind, strlen(a->kind), 20);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_char(out, ' ');
    }
    if (rc == SY_E_OK) {
        rc = str_add_visible(out, a->object, strlen(a->object), LIMIT_PATH);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, ", in ");
    }
    if (rc == SY_E_OK) {
        rc = str_add_visible(out, a->workspace, strlen(a->workspace), LIMIT_PATH);
    }
    return rc == SY_E_OK ? buf_addf(out, "  (an answer, %s)\n", a->id) : rc;
}

enum sy_code
cli_rules_list_accesses(struct buf *out, bool is_json, struct store *st, struct sy_error *err)
{
    struct store_accesses list = {0};
    enum sy_code rc = st != NULL ? store_accesses_get(&list, st, err) : SY_E_OK;

    if (rc == SY_E_OK && is_json) {
        rc = write_json(out, &list);
    }
    for (size_t i = 0; !is_json && i < list.n && rc == SY_E_OK; i++) {
        rc = write_line(out, &list.v[i]);
    }
    store_accesses_fini(&list);
    return rc;
}
