#include "terminal/view.h"

#include <string.h>

#include "base/limits.h"
#include "terminal/stand_out.h"

static enum sy_code
add_row(const struct terminal *t, unsigned row, struct buf *out)
{
    enum sy_code rc = terminal_row(t, row, out);

    return rc != SY_E_OK ? rc : buf_add_char(out, '\n');
}

enum sy_code
view_screen(const struct terminal *t, const struct terminal_screen *screen, struct buf *out)
{
    size_t start = out->len;
    enum sy_code rc = SY_E_OK;

    for (unsigned row = 0; row < screen->rows && rc == SY_E_OK; row++) {
        rc = add_row(t, row, out);
    }
    while (out->len > start && out->data[out->len - 1] == '\n' &&
           (out->len - 1 == start || out->data[out->len - 2] == '\n')) {
        out->len--;
        out->data[out->len] = '\0';
    }
    return rc;
}

enum sy_code
view_diff(const struct terminal *t, const struct terminal_screen *screen, uint64_t since,
          struct buf *out)
{
    enum sy_code rc = SY_E_OK;

    for (unsigned row = 0; row < screen->rows && rc == SY_E_OK; row++) {
        if (terminal_row_seq(t, row) <= since) {
            continue;
        }
        rc = buf_addf(out, "%u: ", row);
        if (rc == SY_E_OK) {
            rc = add_row(t, row, out);
        }
    }
    return rc;
}

/* At most LIMIT_TERMINAL_RUNS. */
static enum sy_code
add_parts(struct jw *w, const struct terminal *t, const struct stand_out *found)
{
    size_t left = LIMIT_TERMINAL_RUNS;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < found->n && left > 0 && rc == SY_E_OK; i++) {
        const struct stand_out_part *part = &found->parts[i];
        SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_TERMINAL_COLS * 32};

        if (part->is_paper) {
            continue;
        }
        rc = terminal_part(t, part->row, part->run.col, part->run.cols, &text);
        /* A bar of spaces says nothing. */
        if (rc != SY_E_OK || strspn(buf_view(&text), " ") == text.len) {
            continue;
        }
        if (left == LIMIT_TERMINAL_RUNS) {
            jw_key(w, "highlighted");
            jw_array(w);
        }
        left--;
        jw_object(w);
        jw_key_int(w, "row", part->row);
        jw_key_int(w, "col", part->run.col);
        jw_key_strn(w, "text", buf_view(&text), text.len);
        jw_end_object(w);
    }
    if (left < LIMIT_TERMINAL_RUNS) {
        jw_end_array(w);
    }
    return rc;
}

enum sy_code
view_facts(struct jw *w, const struct terminal *t, const struct terminal_screen *screen)
{
    const struct terminal_state *state = terminal_state(t);
    SY_AUTO(stand_out_fini) struct stand_out found = {.parts = NULL};
    enum sy_code rc = stand_out_find(&found, t, screen);

    jw_key_int(w, "rows", screen->rows);
    jw_key_int(w, "cols", screen->cols);
    jw_key(w, "cursor");
    jw_object(w);
    jw_key_int(w, "row", screen->cursor_row);
    jw_key_int(w, "col", screen->cursor_col);
    jw_key_bool(w, "visible", state->cursor_visible);
    jw_end_object(w);
    jw_key_bool(w, "alt_screen", state->alt_screen);
    jw_key_int(w, "seq", (int64_t)screen->seq);
    if (terminal_title(t)[0] != '\0') {
        jw_key_str(w, "title", terminal_title(t));
    }
    return rc == SY_E_OK ? add_parts(w, t, &found) : rc;
}
