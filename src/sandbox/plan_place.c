/* Places that are not files of anybody's: what the kernel shows there, and what the sandbox has of
 * its own. */
#include "base/str.h"
#include "sandbox/sandbox_internal.h"

bool
plan_place_refuses(const char *path)
{
    if (path_is_below(path, "/dev/shm")) {
        return false;
    }
    return str_eq(path, "/run") || path_is_below(path, "/dev") || path_is_below(path, "/proc") ||
           path_is_below(path, "/sys");
}

const char *
plan_place_own(const struct sandbox_plan *plan, const char *path)
{
    static const char *const places[] = {"/dev", "/proc", "/run"};

    for (size_t i = 0; plan->tier == TIER_FULL && i < sizeof(places) / sizeof(places[0]); i++) {
        if (path_is_below(path, places[i])) {
            return places[i];
        }
    }
    return NULL;
}

enum sy_code
plan_place_error(const char *path, enum plan_origin origin, struct sy_error *err)
{
    if (str_eq(path, "/run")) {
        return sy_err_set(err, SY_E_CONFIG,
                          "%s '/run' can't be a writable root: the sandbox has its own; name a "
                          "directory in it",
                          plan_origin_text(origin));
    }
    return sy_err_set(err, SY_E_CONFIG,
                      "%s '%.90s' can't be a writable root: it is the kernel's, not files; %s",
                      plan_origin_text(origin), path,
                      origin == ORIGIN_CWD      ? "work in another directory, or in mode read-only"
                      : origin == ORIGIN_TMPDIR ? "set TMPDIR to another directory"
                                                : "take it out of sandbox.writable_roots");
}
