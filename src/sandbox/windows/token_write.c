/* The plan as JSON. */
#include "sandbox/windows/token.h"

static void
write_flags(struct jw *w, const char *key, uint32_t bits, const char *const *names,
            const uint32_t *values)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; names[i] != NULL; i++) {
        if ((bits & values[i]) != 0) {
            jw_str(w, names[i]);
        }
    }
    jw_end_array(w);
}

static const char *const flag_names[] = {
#define FLAG_NAME(id, value, name) (name),
    TOKEN_FLAGS(FLAG_NAME) NULL};
static const char *const job_names[] = {TOKEN_JOB_LIMITS(FLAG_NAME) NULL};
#undef FLAG_NAME

static const uint32_t flag_values[] = {
#define FLAG_VALUE(id, value, name) (value),
    TOKEN_FLAGS(FLAG_VALUE)};
static const uint32_t job_values[] = {TOKEN_JOB_LIMITS(FLAG_VALUE)};
#undef FLAG_VALUE

static void
write_strv(struct jw *w, const char *key, const struct strv *list)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < list->n; i++) {
        jw_str(w, list->v[i]);
    }
    jw_end_array(w);
}

static const char *
network_name(enum token_network n)
{
    switch (n) {
    case TOKEN_NETWORK_OPEN:
        return "open";
    case TOKEN_NETWORK_FILTER:
        return "filter";
    case TOKEN_NETWORK_PROXY:
        return "filter-and-proxy";
    case TOKEN_NETWORK_UNHELD:
        break;
    }
    return "unheld";
}

static void
write_token(struct jw *w, const struct token_plan *p)
{
    jw_key(w, "token");
    jw_object(w);
    write_flags(w, "flags", p->flags, flag_names, flag_values);
    write_strv(w, "sids_to_restrict", &p->restricting);
    write_strv(w, "sids_to_disable", &p->disabled);
    write_strv(w, "privileges_to_delete", &p->gone_privileges);
    jw_key_str(w, "integrity", p->integrity == INTEGRITY_LOW ? "low" : "medium");
    jw_end_object(w);
}

static void
write_process(struct jw *w, const struct token_plan *p)
{
    jw_key(w, "job");
    jw_object(w);
    write_flags(w, "limits", p->job_limits, job_names, job_values);
    jw_key_int(w, "ui_restrictions", p->ui_limits);
    jw_end_object(w);
    jw_key_bool(w, "private_desktop", p->has_private_desktop);
    jw_key_bool(w, "inherits_listed_handles", p->inherits_listed_handles);
    write_strv(w, "environment", &p->environment);
}

static void
write_aces(struct jw *w, const struct token_plan *p)
{
    jw_key(w, "acl_edits");
    jw_array(w);
    for (size_t i = 0; i < p->n_aces; i++) {
        const struct token_ace *ace = &p->aces[i];

        jw_object(w);
        jw_key_str(w, "kind", ace->kind == ACE_ALLOW ? "allow" : "deny");
        jw_key_str(w, ace->is_pattern ? "pattern" : "path", ace->path);
        jw_key_str(w, "sid", ace->sid);
        jw_key_int(w, "access", ace->access);
        jw_key_int(w, "inherit", ace->inherit);
        jw_key_str(w, "if_missing", ace->must_exist ? "error" : "skip");
        jw_end_object(w);
    }
    jw_end_array(w);
}

void
token_plan_write(struct jw *w, const struct token_plan *p)
{
    jw_key_str(w, "mode", sandbox_mode_name(p->mode));
    jw_key_str(w, "tier", token_plan_tier(p));
    jw_key_bool(w, "network", p->has_network);
    if (p->is_refused) {
        jw_key_str(w, "refused", p->reason);
    }
    if (p->is_enforced || p->is_refused) {
        jw_key_str(w, "network_decision", network_name(p->network));
    }
    if (p->proxy_port != 0) {
        jw_key_int(w, "proxy_port", p->proxy_port);
    }
    elsewhere_write_features(w, p->features);
    if (p->is_enforced) {
        write_token(w, p);
        write_process(w, p);
        write_aces(w, p);
    }
}
