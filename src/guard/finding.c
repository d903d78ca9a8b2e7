#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard.h"

void
guard_findings_fini(struct guard_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        mem_free(f->v[i].path);
        mem_free(f->v[i].quarantine);
        mem_free(f->v[i].why);
    }
    mem_free(f->v);
    *f = (struct guard_findings){0};
}

enum sy_code
guard_finding_sentence(struct buf *out, const struct guard_finding *f)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    enum sy_code rc = str_add_visible(&path, f->path, __builtin_strlen(f->path), 200);
    const char *lies = f->quarantine != NULL ? f->quarantine : "the quarantine";
    const char *why = f->why != NULL ? f->why : guard_name_what(f->name);

    if (rc != SY_E_OK) {
        return rc;
    }
    switch (f->verdict) {
    case GUARD_HARMLESS:
        return buf_addf(out, "%s (protected) was changed, harmlessly", buf_view(&path));
    case GUARD_QUARANTINED:
        return buf_addf(out, "%s is protected (%s) and was moved to %s", buf_view(&path), why,
                        lies);
    case GUARD_RESTORED:
        return buf_addf(out, "%s is protected (%s) and was put back%s%s", buf_view(&path), why,
                        f->quarantine != NULL ? "; the change lies in " : "",
                        f->quarantine != NULL ? f->quarantine : "");
    case GUARD_LEFT:
        return buf_addf(out, "%s is protected and was changed, and could not be put back: %s",
                        buf_view(&path), why);
    }
    return SY_E_OK;
}
