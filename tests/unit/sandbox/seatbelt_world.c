#include "seatbelt_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

char world_cwd[] = "/Users/u/work";
static char tmpdir[] = "/var/folders/x/T/";
static char root_a[] = "/Users/u//cache/.";
static char secret_a[] = "/Users/u/.ssh";
static char secret_b[] = "/Users/u/work/keys/private/id";
static char *roots[] = {root_a, NULL};
char *world_secrets[] = {secret_a, secret_b, NULL};

struct sandbox_policy
world_policy(void)
{
    return (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE,
        .cwd = world_cwd,
        .writable_roots = {.v = roots, .n = 1, .cap = 2, .max = 1},
        .tmpdir = tmpdir,
    };
}

void
world_make(struct world *w)
{
    struct sy_error err = {0};
    char why[256];

    w->request.policy = &w->policy;
    if (seatbelt_plan_init(&w->plan, &w->request, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    w->sbpl = sbpl_read(buf_view(&w->plan.profile), &w->plan.params, why);
    if (w->sbpl == NULL) {
        fail_msg("the profile is wrong: %s", why);
    }
}

void
world_fini(struct world *w)
{
    sbpl_free(w->sbpl);
    seatbelt_plan_fini(&w->plan);
}

void
world_allows(const struct world *w, const char *operation, const char *path)
{
    if (!sbpl_allows_file(w->sbpl, operation, path)) {
        fail_msg("%s '%s' is denied", operation, path);
    }
}

void
world_denies(const struct world *w, const char *operation, const char *path)
{
    if (sbpl_allows_file(w->sbpl, operation, path)) {
        fail_msg("%s '%s' is allowed", operation, path);
    }
}

bool
world_connects(const struct world *w, const char *operation, const char *address)
{
    return sbpl_allows(w->sbpl,
                       &(struct sbpl_question){.operation = operation, .address = address});
}

bool
world_uses_socket(const struct world *w, const char *operation, const char *path)
{
    return sbpl_allows(w->sbpl, &(struct sbpl_question){.operation = operation, .path = path});
}
