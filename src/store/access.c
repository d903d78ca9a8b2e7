#include "store/access.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/store_internal.h"

#define NS_PER_MS 1000000

static void
access_fini(struct store_access *a)
{
    mem_free(a->kind);
    mem_free(a->object);
    mem_free(a->workspace);
    mem_free(a->mode);
    mem_free(a->decided_by);
}

void
store_accesses_fini(struct store_accesses *list)
{
    for (size_t i = 0; list->v != NULL && i < list->n; i++) {
        access_fini(&list->v[i]);
    }
    mem_free(list->v);
    *list = (struct store_accesses){0};
}

static int
bind_words(sqlite3_stmt *s, const struct store_access_new *a)
{
    return store_bind_text(s, ":kind", a->kind) | store_bind_text(s, ":object", a->object) |
           store_bind_text(s, ":workspace", a->workspace) | store_bind_text(s, ":mode", a->mode);
}

static enum sy_code
check_room(struct store *st, struct sy_error *err)
{
    int64_t n = 0;
    enum sy_code rc = store_number(&n, st, "SELECT count(*) FROM access_rule", err);

    return rc == SY_E_OK && n >= (int64_t)LIMIT_STORE_RULES
               ? sy_err_set(err, SY_E_LIMIT,
                            "access was granted for good %u times already; take some back "
                            "(shellyard rules remove ID)",
                            LIMIT_STORE_RULES)
               : rc;
}

static enum sy_code
insert(struct store *st, const char *id, const struct store_access_new *a, const char *decided_by,
       struct sy_error *err)
{
    STORE_STMT gone = NULL;
    STORE_STMT s = NULL;
    enum sy_code rc = store_prepare(&gone, st,
                                    "DELETE FROM access_rule WHERE kind = :kind AND object ="
                                    " :object AND workspace = :workspace AND mode = :mode",
                                    err);

    if (rc == SY_E_OK) {
        rc = store_run(st, gone, bind_words(gone, a), NULL, err);
    }
    if (rc == SY_E_OK) {
        rc = check_room(st, err);
    }
    if (rc == SY_E_OK) {
        rc =
            store_prepare(&s, st,
                          "INSERT INTO access_rule (id, kind, object, workspace, mode, created_ms,"
                          " decided_by) VALUES (:id, :kind, :object, :workspace, :mode, :now, :by)",
                          err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    int bound = store_bind_text(s, ":id", id) | bind_words(s, a) |
                store_bind_i64(s, ":now", clock_wall_ns() / NS_PER_MS) |
                store_bind_text(s, ":by", decided_by);

    return store_run(st, s, bound, NULL, err);
}

enum sy_code
store_access_put(char ret_id[STORE_ID_SIZE], struct store *st, const struct store_access_new *a,
                 const char *decided_by, struct sy_error *err)
{
    struct store_txn txn;
    char id[STORE_ID_SIZE];
    enum sy_code rc = store_check_text("decider of an access", decided_by, LIMIT_STORE_NAME, err);

    if (rc == SY_E_OK) {
        rc = store_check_text("object of an access", a->object, LIMIT_STORE_NAME, err);
    }
    if (rc == SY_E_OK) {
        rc = store_check_text("workspace of an access", a->workspace, LIMIT_STORE_NAME, err);
    }
    if (rc == SY_E_OK) {
        rc = store_make_id(id, "an access", err);
    }
    if (rc == SY_E_OK) {
        rc = store_begin(&txn, st, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = store_end(&txn, insert(st, id, a, decided_by, err), err);
    if (rc == SY_E_OK && ret_id != NULL) {
        memcpy(ret_id, id, sizeof(id));
    }
    return rc;
}

enum sy_code
store_access_remove(struct store *st, const char *id, struct sy_error *err)
{
    return store_remove_rule(st, "DELETE FROM access_rule WHERE id = :id", id, err);
}

static enum sy_code
read_row(void *element, struct store *st, sqlite3_stmt *s, struct sy_error *err)
{
    struct store_access *a = element;
    enum sy_code rc = store_column_id(a->id, st, s, 0, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    a->kind = store_column_text(s, 1);
    a->object = store_column_text(s, 2);
    a->workspace = store_column_text(s, 3);
    a->mode = store_column_text(s, 4);
    a->created_ms = sqlite3_column_int64(s, 5);
    a->decided_by = store_column_text(s, 6);
    return a->kind != NULL && a->object != NULL && a->workspace != NULL && a->mode != NULL &&
                   a->decided_by != NULL
               ? SY_E_OK
               : sy_err_nomem(err);
}

enum sy_code
store_accesses_get(struct store_accesses *ret, struct store *st, struct sy_error *err)
{
    const struct store_listing all = {
        .count = "SELECT count(*) FROM access_rule",
        .select = "SELECT id, kind, object, workspace, mode, created_ms, decided_by FROM"
                  " access_rule ORDER BY seq LIMIT :n",
        .size = sizeof(*ret->v),
        .read = read_row,
    };
    struct store_accesses list = {0};
    void *v = NULL;
    enum sy_code rc = store_list(&v, &list.n, st, &all, err);

    list.v = v;
    if (rc != SY_E_OK) {
        store_accesses_fini(&list);
        return rc;
    }
    *ret = list;
    return SY_E_OK;
}
