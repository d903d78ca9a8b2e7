#include "sandbox/document.h"

static void
write_roots(struct jw *w, const char *key, const struct sandbox_policy *p, size_t from, size_t to)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = from; i < to; i++) {
        jw_exact(w, p->writable_roots.v[i]);
    }
    jw_end_array(w);
}

void
sandbox_policy_write(struct jw *w, const struct sandbox_policy *p)
{
    size_t granted = p->writable_roots.n - p->n_granted_roots;
    size_t n = granted - p->n_linked_roots;

    jw_key_int(w, "version", 1);
    jw_key_str(w, "mode", sandbox_mode_name(p->mode));
    jw_key_exact(w, "cwd", p->cwd);
    write_roots(w, "writable_roots", p, 0, n);
    if (p->n_linked_roots > 0) {
        write_roots(w, "linked_roots", p, n, granted);
    }
    if (p->n_granted_roots > 0) {
        write_roots(w, "granted_roots", p, granted, p->writable_roots.n);
    }
    if (p->cwd_has_no_links) {
        jw_key_bool(w, "cwd_without_links", true);
    }
    if (p->tmpdir != NULL) {
        jw_key_exact(w, "tmpdir", p->tmpdir);
    }
    jw_key_bool(w, "network_access", p->has_network);
    if (p->network_allow.n > 0) {
        jw_key(w, "network_allow");
        jw_array(w);
        for (size_t i = 0; i < p->network_allow.n; i++) {
            jw_str(w, p->network_allow.v[i]);
        }
        jw_end_array(w);
    }
    jw_key_bool(w, "exclude_tmpdir_env_var", p->excludes_tmpdir);
    jw_key_bool(w, "exclude_slash_tmp", p->excludes_slash_tmp);
    if (p->reports_all) {
        jw_key_str(w, "report", "full");
    }
    if (p->runs_as_self) {
        jw_key_str(w, "run_as", "self");
    }
    if (p->temp_bytes > 0) {
        jw_key_int(w, "temp_bytes", (int64_t)p->temp_bytes);
    }
}
