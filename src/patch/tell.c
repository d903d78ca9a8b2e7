/* What is told about a plan. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "patch/patch_internal.h"

static int
compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum sy_code
add_key(struct strv *ret, const char *cwd, const char *path, bool follows)
{
    SY_AUTO(buf_fini) struct buf resolved = {.max = 2 * (size_t)LIMIT_PATH};
    enum sy_code rc = site_resolve(&resolved, cwd, path, follows);

    return rc == SY_E_OK ? strv_addf(ret, "patch:%s", buf_view(&resolved)) : rc;
}

enum sy_code
patch_keys(struct strv *ret, const struct patch *p, const char *cwd)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < p->n_sections && rc == SY_E_OK; i++) {
        const struct patch_section *s = &p->sections[i];

        rc = add_key(ret, cwd, s->path, s->kind != PATCH_DELETE);
        if (rc == SY_E_OK && s->move_to != NULL) {
            rc = add_key(ret, cwd, s->move_to, true);
        }
    }
    if (rc != SY_E_OK || ret->n < 2) {
        return rc;
    }
    qsort(ret->v, ret->n, sizeof(*ret->v), compare);
    for (size_t i = ret->n - 1; i > 0; i--) {
        if (str_eq(ret->v[i], ret->v[i - 1])) {
            strv_remove(ret, i);
        }
    }
    return SY_E_OK;
}

static const char *
shown_path(const struct planned *v)
{
    return v->section->move_to != NULL ? v->section->move_to : v->section->path;
}

enum sy_code
patch_plan_summary(struct buf *out, const struct patch_plan *plan)
{
    static const struct {
        enum patch_kind kind;
        char mark;
    } order[] = {
        {PATCH_ADD,    'A'},
        {PATCH_UPDATE, 'M'},
        {PATCH_DELETE, 'D'}
    };
    enum sy_code rc = SY_E_OK;

    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        for (size_t i = 0; i < plan->n && rc == SY_E_OK; i++) {
            if (plan->v[i].section->kind == order[k].kind) {
                rc = buf_addf(out, "%c %s\n", order[k].mark, shown_path(&plan->v[i]));
            }
        }
    }
    return rc;
}

/* Names as they stand after "a/" and "b/": without the slash that makes them absolute. */
static enum sy_code
add_diff_path(struct buf *out, const char *path)
{
    path += strspn(path, "/");
    return str_add_visible(out, path, strlen(path), (size_t)LIMIT_PATH * 4);
}

static enum sy_code
add_file_diff(struct buf *out, const struct patch_plan *plan, const struct planned *v)
{
    SY_AUTO(buf_fini) struct buf from = {.max = (size_t)LIMIT_PATH * 5};
    SY_AUTO(buf_fini) struct buf to = {.max = (size_t)LIMIT_PATH * 5};
    struct diff_file file = {
        .kind = v->section->kind,
        .old_mode = v->source.exists ? (unsigned)v->source.st.st_mode : 0,
        .new_mode = 0100644,
    };
    enum sy_code rc = add_diff_path(&from, v->section->path);

    if (rc == SY_E_OK) {
        rc = add_diff_path(&to, shown_path(v));
    }
    file.old_path = buf_view(&from);
    file.new_path = buf_view(&to);
    return rc == SY_E_OK ? diff_add(out, &file, &v->fit, &v->text, plan->patch) : rc;
}

enum sy_code
patch_plan_diff(struct buf *out, const struct patch_plan *plan)
{
    static const char more[] = "\n[the rest of the difference is left out]\n";
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_PATCH_DIFF};
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < plan->n && rc == SY_E_OK; i++) {
        rc = add_file_diff(&whole, plan, &plan->v[i]);
    }
    if (rc == SY_E_NOMEM) {
        return rc;
    }

    bool is_cut = rc == SY_E_LIMIT;

    rc = buf_add(out, buf_view(&whole), whole.len);
    return rc == SY_E_OK && is_cut ? buf_add_str(out, more) : rc;
}

void
patch_plan_write(struct jw *w, const struct patch_plan *plan)
{
    static const char *const actions[] = {
        [PATCH_ADD] = "add", [PATCH_DELETE] = "delete", [PATCH_UPDATE] = "update"};

    jw_array(w);
    for (size_t i = 0; i < plan->n; i++) {
        const struct planned *v = &plan->v[i];

        jw_object(w);
        jw_key_str(w, "action", planned_moves(v) ? "move" : actions[v->section->kind]);
        jw_key_str(w, "path", shown_path(v));
        if (planned_moves(v)) {
            jw_key_str(w, "from", v->section->path);
        }
        jw_end_object(w);
    }
    jw_end_array(w);
}

const char *
patch_plan_note(const struct patch_plan *plan, size_t i)
{
    return i < plan->report.notes.list.n ? plan->report.notes.list.v[i] : NULL;
}

uint32_t
patch_plan_more_notes(const struct patch_plan *plan)
{
    return plan->report.notes.more;
}
