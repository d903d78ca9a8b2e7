#include "sandbox/denial.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const layers[] = {
#define LAYER_ROW(id, name) [id] = (name),
    DENIAL_LAYERS(LAYER_ROW)
#undef LAYER_ROW
};

const char *
denial_layer_name(enum denial_layer layer)
{
    SY_ASSERT((size_t)layer < DENIAL_LAYER_COUNT);
    return layers[layer];
}

const char *
denial_confidence_name(enum denial_confidence c)
{
    return c == DENIAL_EXACT ? "exact" : "inferred";
}

static void
denial_fini(struct denial *d)
{
    mem_free(d->object);
    mem_free(d->rule);
    mem_free(d->fix);
}

static bool
copy_text(char **ret, const char *text)
{
    *ret = text != NULL ? mem_strdup(text) : NULL;
    return text == NULL || *ret != NULL;
}

static bool
denial_copy(struct denial *ret, const struct denial *from)
{
    *ret = (struct denial){
        .layer = from->layer,
        .confidence = from->confidence,
        .operation = from->operation,
        .count = 1,
    };
    if (copy_text(&ret->object, from->object) && copy_text(&ret->rule, from->rule) &&
        copy_text(&ret->fix, from->fix)) {
        return true;
    }
    denial_fini(ret);
    return false;
}

enum sy_code
denial_add(struct denial_list *list, const struct denial *d)
{
    struct denial made;
    struct denial *same = NULL;

    for (size_t i = 0; i < list->n && same == NULL; i++) {
        if (str_eq(list->v[i].operation, d->operation) && str_eq(list->v[i].object, d->object)) {
            same = &list->v[i];
        }
    }
    if (same != NULL && (same->confidence == DENIAL_EXACT || d->confidence == DENIAL_INFERRED)) {
        same->count++;
        return SY_E_OK;
    }
    if (same == NULL && list->n == DENIALS_MAX) {
        list->more++;
        return SY_E_OK;
    }
    if (list->v == NULL) {
        list->v = mem_alloc_zero(DENIALS_MAX, sizeof(list->v[0]));
        if (list->v == NULL) {
            return SY_E_NOMEM;
        }
    }
    if (!denial_copy(&made, d)) {
        return SY_E_NOMEM;
    }
    if (same != NULL) {
        made.count = same->count + 1;
        denial_fini(same);
        *same = made;
        return SY_E_OK;
    }
    list->v[list->n++] = made;
    return SY_E_OK;
}

void
denial_list_fini(struct denial_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        denial_fini(&list->v[i]);
    }
    mem_free(list->v);
    *list = (struct denial_list){0};
}

static void
write_text(struct jw *w, const char *key, const char *text)
{
    if (text != NULL) {
        jw_key_str(w, key, text);
    }
}

void
denial_list_write(struct jw *w, const struct denial_list *list)
{
    if (list->n == 0) {
        return;
    }
    jw_key(w, "denials");
    jw_array(w);
    for (size_t i = 0; i < list->n; i++) {
        const struct denial *d = &list->v[i];

        jw_object(w);
        jw_key_str(w, "operation", d->operation);
        jw_key_str(w, "object", d->object);
        jw_key_str(w, "layer", denial_layer_name(d->layer));
        jw_key_str(w, "confidence", denial_confidence_name(d->confidence));
        write_text(w, "rule", d->rule);
        write_text(w, "fix", d->fix);
        if (d->count > 1) {
            jw_key_int(w, "count", d->count);
        }
        jw_end_object(w);
    }
    jw_end_array(w);
    if (list->more > 0) {
        jw_key_int(w, "denials_more", list->more);
    }
}

enum sy_code
denial_sentence(struct buf *out, const struct denial *d)
{
    enum sy_code rc = buf_addf(out, "%s %s was refused by %s (%s)", d->operation, d->object,
                               denial_layer_name(d->layer), denial_confidence_name(d->confidence));

    if (rc == SY_E_OK && d->count > 1) {
        rc = buf_addf(out, ", %u times", d->count);
    }
    if (rc == SY_E_OK && d->fix != NULL) {
        rc = buf_addf(out, "; to allow it: %s", d->fix);
    }
    return rc;
}
