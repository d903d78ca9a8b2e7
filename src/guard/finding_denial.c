#include "base/limits.h"
#include "base/mem.h"
#include "guard/guard.h"

enum sy_code
guard_finding_denial(struct denial_list *list, const struct guard_finding *f)
{
    SY_AUTO(buf_fini) struct buf fix = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf rule = {.max = LIMIT_PATH};

    if (f->verdict == GUARD_HARMLESS) {
        return SY_E_OK;
    }

    enum sy_code rc = buf_addf(&fix, "sandbox.unprotected_names: [%s]", guard_name_text(f->name));

    if (rc == SY_E_OK) {
        rc = buf_addf(&rule, "protected name %s (%s)", guard_name_text(f->name),
                      f->why != NULL ? f->why : guard_name_what(f->name));
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    const struct denial d = {
        .layer = DENIAL_GUARD,
        .confidence = DENIAL_EXACT,
        .operation = f->operation,
        .object = f->path,
        .rule = mem_unconst(buf_view(&rule)),
        .fix = mem_unconst(buf_view(&fix)),
    };

    return denial_add(list, &d);
}
