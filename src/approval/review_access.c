#include "approval/review_internal.h"
#include "store/access.h"

enum sy_code
review_access_read(struct review *r, struct store_accesses *ret, bool *ret_is_new,
                   uint64_t *version, struct sy_error *err)
{
    struct sy_error why = {0};
    uint64_t now = 0;
    enum sy_code rc = SY_E_OK;

    *ret_is_new = false;
    if (!review_has_reader(r, &why)) {
        return why.code == SY_E_OK ? SY_E_OK : sy_err_set(err, why.code, "%s", why.msg);
    }
    rc = store_version(&now, r->reader, err);
    if (rc != SY_E_OK || now == *version) {
        return rc;
    }
    rc = store_accesses_get(ret, r->reader, err);
    if (rc == SY_E_OK) {
        *version = now;
        *ret_is_new = true;
    }
    return rc;
}
