/* A plan as JSON: what every answer carries of it, and the whole of it. */
#include "base/json.h"
#include "sandbox/deny_internal.h"
#include "sandbox/sandbox_internal.h"

void
sandbox_plan_write(struct jw *w, const struct sandbox_plan *plan)
{
    jw_object(w);
    jw_key_str(w, "mode", sandbox_mode_name(plan->mode));
    jw_key_str(w, "tier", sandbox_tier_name(plan->tier));
    if (plan->weaker[0] != '\0') {
        jw_key_str(w, "tier_reason", plan->weaker);
    }
    jw_key_int(w, "landlock_abi", plan->abi);
    jw_key_str(w, "network", sandbox_network_name(sandbox_plan_network(plan)));
    if (plan->has_observer) {
        jw_key_str(w, "report", "full");
    }
    jw_key(w, "features");
    jw_object(w);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        jw_key_str(w, sandbox_feature_name((enum sandbox_feature)i),
                   feature_state_name(plan->features[i]));
    }
    jw_end_object(w);
    if (plan->unprotected[0] != '\0') {
        jw_key_str(w, "protected_names_reason", plan->unprotected);
    }
    deny_plan_write(w, plan);
    jw_end_object(w);
}

static void
dump_rights(struct jw *w, const char *key, enum landlock_set set, uint64_t bits)
{
    size_t n;
    const struct landlock_right *rights = landlock_rights(set, &n);

    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < n; i++) {
        if ((bits & rights[i].bit) != 0) {
            jw_str(w, rights[i].name);
        }
    }
    jw_end_array(w);
}

static void
dump_landlock(struct jw *w, const struct sandbox_plan *plan)
{
    jw_key(w, "landlock");
    jw_object(w);
    jw_key_int(w, "abi", plan->abi);
    jw_key_int(w, "errata", plan->errata);
    dump_rights(w, "handled_fs", LANDLOCK_SET_FS, plan->ruleset.handled_fs);
    dump_rights(w, "handled_net", LANDLOCK_SET_NET, plan->ruleset.handled_net);
    dump_rights(w, "scoped", LANDLOCK_SET_SCOPE, plan->ruleset.scoped);
    jw_key(w, "rules");
    jw_array(w);
    for (size_t i = 0; i < plan->n_rules; i++) {
        const struct plan_rule *rule = &plan->rules[i];

        jw_object(w);
        jw_key_str(w, "path", rule->path);
        jw_key_str(w, "origin", plan_origin_text(rule->origin));
        jw_key_str(w, "if_missing", rule->must_exist ? "error" : "skip");
        dump_rights(w, "access", LANDLOCK_SET_FS, rule->access);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_end_object(w);
}

enum sy_code
sandbox_plan_dump(const struct sandbox_plan *plan, struct buf *out)
{
    static const char *const seccomp_names[] = {
        [NETWORK_OFF] = "network-off",
        [NETWORK_ALLOW_LIST] = "network-allow-list",
        [NETWORK_ON] = "network-on",
    };
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_str(&w, "mode", sandbox_mode_name(plan->mode));
    jw_key_str(&w, "tier", sandbox_tier_name(plan->tier));
    jw_key_str(&w, "cwd", plan->cwd);
    jw_key_bool(&w, "network", plan->has_network);
    if (plan->is_enforced) {
        dump_landlock(&w, plan);
        deny_plan_dump(&w, plan);
        jw_key_str(&w, "seccomp",
                   plan->has_own_network ? "own-network"
                                         : seccomp_names[sandbox_plan_network(plan)]);
    }
    if (plan->network_allow.n > 0) {
        jw_key(&w, "network_allow");
        jw_array(&w);
        for (size_t i = 0; i < plan->network_allow.n; i++) {
            jw_str(&w, plan->network_allow.v[i]);
        }
        jw_end_array(&w);
    }
    jw_key(&w, "rlimits");
    jw_object(&w);
    jw_key_int(&w, "core", 0);
    jw_end_object(&w);
    jw_key(&w, "features");
    jw_object(&w);
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        jw_key_str(&w, sandbox_feature_name((enum sandbox_feature)i),
                   feature_state_name(plan->features[i]));
    }
    jw_end_object(&w);
    jw_end_object(&w);
    return jw_done(&w);
}
