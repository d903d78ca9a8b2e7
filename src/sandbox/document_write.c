#include "sandbox/document.h"

void
sandbox_policy_write(struct jw *w, const struct sandbox_policy *p)
{
    jw_key_int(w, "version", 1);
    jw_key_str(w, "mode", sandbox_mode_name(p->mode));
    jw_key_str(w, "cwd", p->cwd);
    jw_key(w, "writable_roots");
    jw_array(w);
    for (size_t i = 0; i < p->writable_roots.n; i++) {
        jw_str(w, p->writable_roots.v[i]);
    }
    jw_end_array(w);
    if (p->tmpdir != NULL) {
        jw_key_str(w, "tmpdir", p->tmpdir);
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
