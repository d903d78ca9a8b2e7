#include "base/json.h"
#include "cli/exec.h"

#include "base/limits.h"

/* The kept text of one stream, or of both (stream STREAM_COUNT). */
static void
put_text(struct jw *w, const char *key, const struct output_chain *chain, int stream)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    enum sy_code rc = SY_E_OK;

    if (chain != NULL) {
        rc = stream == STREAM_COUNT ? output_text_all(chain, &text)
                                    : output_text_stream(chain, (enum output_stream)stream, &text);
    }
    jw_key_strn(w, key, buf_view(&text), text.len);
    if (rc != SY_E_OK && w->rc == SY_E_OK) {
        w->rc = rc;
    }
}

static void
put_output(struct jw *w, const struct exec_output *o)
{
    struct output_stats all = {0};

    if (o->output != NULL) {
        output_stats_all(o->output, &all);
    }
    put_text(w, "stdout", o->output, STREAM_STDOUT);
    put_text(w, "stderr", o->output, STREAM_STDERR);
    put_text(w, "aggregated_output", o->output, STREAM_COUNT);
    jw_key_int(w, "total_bytes", (int64_t)all.total_bytes);
    jw_key_bool(w, "truncated", all.omitted_bytes > 0);
    if (all.has_invalid_utf8) {
        jw_key_bool(w, "invalid_utf8", true);
    }
    if (all.is_binary) {
        jw_key_bool(w, "binary", true);
    }
}

enum sy_code
exec_json(struct buf *out, const struct exec_output *o, int status, const char *mode)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_str(&w, "status", exec_status_name(o->status));
    jw_key_int(&w, "exit_code", status);
    if (o->signal != 0) {
        char name[16];

        exec_signal_name(name, o->signal);
        jw_key_int(&w, "signal", o->signal);
        jw_key_str(&w, "signal_name", name);
    }
    jw_key_bool(&w, "timed_out", o->is_timed_out);
    put_output(&w, o);
    jw_key(&w, "duration_ms");
    jw_real(&w, (double)o->duration_ns / 1e6, 3);
    jw_key_int(&w, "ended_background", o->ended_background);
    if (o->hit.resource != RESOURCE_NONE) {
        jw_key(&w, "limit");
        exec_limit_write(&w, &o->hit);
    }
    denial_list_write(&w, &o->denials);
    exec_hosts_write(&w, &o->network_hosts);
    if (o->note[0] != '\0') {
        jw_key_str(&w, "note", o->note);
    }
    if (o->err.code != SY_E_OK) {
        jw_key(&w, "error");
        jw_object(&w);
        jw_key_str(&w, "code", sy_code_name(o->err.code));
        jw_key_str(&w, "message", o->err.msg);
        jw_end_object(&w);
    }
    jw_key(&w, "sandbox");
    if (o->plan != NULL) {
        sandbox_plan_write(&w, o->plan);
    } else {
        jw_object(&w);
        if (mode != NULL) {
            jw_key_str(&w, "mode", mode);
        }
        jw_end_object(&w);
    }
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}
