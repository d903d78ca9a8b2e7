#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "store/rule.h"
#include "store/store_internal.h"

#define NS_PER_MS 1000000

static void
rule_fini(struct store_rule *r)
{
    strv_fini(&r->prefix);
    mem_free(r->decided_by);
}

void
store_rules_fini(struct store_rules *list)
{
    for (size_t i = 0; list->v != NULL && i < list->n; i++) {
        rule_fini(&list->v[i]);
    }
    mem_free(list->v);
    *list = (struct store_rules){0};
}

static enum sy_code
write_prefix(struct buf *ret, const struct strv *prefix)
{
    struct jw w = {.out = ret};

    jw_array(&w);
    for (size_t i = 0; i < prefix->n; i++) {
        jw_str(&w, prefix->v[i]);
    }
    jw_end_array(&w);
    return jw_done(&w);
}

static enum sy_code
insert(struct store *st, const char *id, const char *prefix, bool lifts_sandbox,
       const char *decided_by, struct sy_error *err)
{
    STORE_STMT gone = NULL;
    STORE_STMT s = NULL;
    int64_t n = 0;
    enum sy_code rc =
        store_prepare(&gone, st, "DELETE FROM allow_rule WHERE prefix = :prefix", err);

    if (rc == SY_E_OK) {
        rc = store_run(st, gone, store_bind_text(gone, ":prefix", prefix), NULL, err);
    }
    if (rc == SY_E_OK) {
        rc = store_number(&n, st, "SELECT count(*) FROM allow_rule", err);
    }
    if (rc == SY_E_OK && n >= (int64_t)LIMIT_STORE_RULES) {
        rc = sy_err_set(err, SY_E_LIMIT,
                        "%u rules were made by answers already; remove some (shellyard rules "
                        "remove ID)",
                        LIMIT_STORE_RULES);
    }
    if (rc == SY_E_OK) {
        rc = store_prepare(&s, st,
                           "INSERT INTO allow_rule (id, prefix, lifts_sandbox, created_ms,"
                           " decided_by) VALUES (:id, :prefix, :lifts, :now, :by)",
                           err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    int bound = store_bind_text(s, ":id", id) | store_bind_text(s, ":prefix", prefix) |
                store_bind_i64(s, ":lifts", lifts_sandbox ? 1 : 0) |
                store_bind_i64(s, ":now", clock_wall_ns() / NS_PER_MS) |
                store_bind_text(s, ":by", decided_by);

    return store_run(st, s, bound, NULL, err);
}

enum sy_code
store_rule_put(char ret_id[STORE_ID_SIZE], struct store *st, const struct strv *prefix,
               bool lifts_sandbox, const char *decided_by, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_STORE_TEXT};
    struct store_txn txn;
    char id[STORE_ID_SIZE];
    enum sy_code rc = store_check_text("decider of a rule", decided_by, LIMIT_STORE_NAME, err);

    if (rc == SY_E_OK && prefix->n == 0) {
        rc = sy_err_set(err, SY_E_ARG, "a rule needs at least the program");
    }
    if (rc == SY_E_OK) {
        rc = write_prefix(&text, prefix);
        rc = rc == SY_E_LIMIT ? sy_err_set(err, SY_E_ARG, "the words of a rule are too long")
             : rc != SY_E_OK  ? sy_err_nomem(err)
                              : rc;
    }
    if (rc == SY_E_OK) {
        rc = store_make_id(id, "a rule", err);
    }
    if (rc == SY_E_OK) {
        rc = store_begin(&txn, st, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = store_end(&txn, insert(st, id, buf_view(&text), lifts_sandbox, decided_by, err), err);
    if (rc == SY_E_OK && ret_id != NULL) {
        memcpy(ret_id, id, sizeof(id));
    }
    return rc;
}

enum sy_code
store_rule_remove(struct store *st, const char *id, struct sy_error *err)
{
    return store_remove_rule(st, "DELETE FROM allow_rule WHERE id = :id", id, err);
}

static enum sy_code
read_prefix(struct strv *ret, struct store *st, const char *text, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    struct sy_error why = {0};
    enum sy_code rc = json_parse(&doc, text, strlen(text), &why);

    ret->max = LIMIT_ARGV;
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK || js_type(doc.root) != JS_ARRAY || js_count(doc.root) == 0) {
        return store_failed(st, SQLITE_CORRUPT, err);
    }
    for (size_t i = 0; i < js_count(doc.root); i++) {
        const char *word = js_str(js_at(doc.root, i));

        if (word == NULL) {
            return store_failed(st, SQLITE_CORRUPT, err);
        }
        rc = strv_add(ret, word);
        if (rc != SY_E_OK) {
            return rc == SY_E_LIMIT ? store_failed(st, SQLITE_CORRUPT, err) : sy_err_nomem(err);
        }
    }
    return SY_E_OK;
}

static enum sy_code
read_row(void *element, struct store *st, sqlite3_stmt *s, struct sy_error *err)
{
    struct store_rule *r = element;
    const char *prefix = (const char *)sqlite3_column_text(s, 1);
    enum sy_code rc = store_column_id(r->id, st, s, 0, err);

    if (rc != SY_E_OK || prefix == NULL) {
        return rc != SY_E_OK ? rc : store_failed(st, SQLITE_CORRUPT, err);
    }
    r->lifts_sandbox = sqlite3_column_int(s, 2) != 0;
    r->created_ms = sqlite3_column_int64(s, 3);
    r->decided_by = store_column_text(s, 4);
    return r->decided_by != NULL ? read_prefix(&r->prefix, st, prefix, err) : sy_err_nomem(err);
}

enum sy_code
store_rules_get(struct store_rules *ret, struct store *st, struct sy_error *err)
{
    const struct store_listing all = {
        .count = "SELECT count(*) FROM allow_rule",
        .select = "SELECT id, prefix, lifts_sandbox, created_ms, decided_by FROM allow_rule"
                  " ORDER BY seq LIMIT :n",
        .size = sizeof(*ret->v),
        .read = read_row,
    };
    struct store_rules list = {0};
    void *v = NULL;
    enum sy_code rc = store_list(&v, &list.n, st, &all, err);

    list.v = v;
    if (rc != SY_E_OK) {
        store_rules_fini(&list);
        return rc;
    }
    *ret = list;
    return SY_E_OK;
}
