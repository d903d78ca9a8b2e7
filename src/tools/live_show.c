#include "tools/live_show.h"

#include <string.h>

#include "base/limits.h"
#include "sessions/transcript.h"
#include "terminal/strip.h"
#include "terminal/terminal.h"
#include "terminal/view.h"

/* How far back a last line is looked for. */
#define TAIL_BYTES ((size_t)4096)

/* A byte becomes no longer text than that. */
#define TEXT_FACTOR 12U
/* Where a line is cut: of how many times as many bytes as it has text, and how exactly. */
#define FIT_RAW  8U
#define FIT_STEP 64U

static uint64_t
count_lines(const struct buf *text)
{
    uint64_t ret = 0;

    for (size_t i = 0; i < text->len; i++) {
        ret += text->data[i] == '\n' ? 1 : 0;
    }
    return ret;
}

uint64_t
live_show_lines(const struct buf *text)
{
    bool is_open = text->len > 0 && text->data[text->len - 1] != '\n';

    return count_lines(text) + (is_open ? 1 : 0);
}

/* It is not told as missing. */
static void
leave_drawing_out(struct buf *raw, bool was_drawing, struct output_totals *total)
{
    size_t bytes = raw->len;
    uint64_t lines = count_lines(raw);

    strip_alternate(raw, was_drawing);
    if (raw->len < bytes) {
        lines -= count_lines(raw);
        bytes -= raw->len;
        total->bytes -= total->bytes > bytes ? bytes : total->bytes;
        total->lines -= total->lines > lines ? lines : total->lines;
    }
}

/* How long a text the bytes become; SIZE_MAX: memory is out. */
static size_t
text_len(const char *bytes, size_t n, unsigned columns)
{
    SY_AUTO(buf_fini) struct buf text = {.max = n * TEXT_FACTOR + 64};
    const struct output_totals total = {.bytes = n, .columns = columns};
    struct output_marks marks = {0};

    return output_text_bytes(&text, bytes, n, text.max, total, &marks) == SY_E_OK ? text.len
                                                                                  : SIZE_MAX;
}

/* How many of the first bytes become at most `max` of text; somewhat less, and whole characters and
 * sequences. */
static size_t
fit_text(const struct buf *raw, size_t max, unsigned columns)
{
    size_t low = 0;
    size_t high = raw->len / FIT_RAW < max ? raw->len : max * FIT_RAW;

    while (high - low > FIT_STEP) {
        size_t middle = low + (high - low) / 2;
        bool fits = text_len(buf_view(raw), middle, columns) <= max;

        low = fits ? middle : low;
        high = fits ? high : middle;
    }
    return transcript_whole_part(buf_view(raw), low);
}

/*
 * Where in the bytes the text is cut that was made of them and has `head` before the cut: the same
 * place where they are the same, else behind as many lines as that has, or within the first line
 * behind what becomes as much. Rather too early than too late: what is left out then begins with
 * something that was shown.
 */
static size_t
find_cut(const struct buf *raw, const char *text, size_t head, unsigned columns)
{
    size_t lines = 0;
    size_t at = 0;

    if (head <= raw->len && memcmp(buf_view(raw), text, head) == 0) {
        return head;
    }
    for (size_t i = 0; i < head; i++) {
        lines += text[i] == '\n' ? 1 : 0;
    }
    if (lines == 0) {
        return fit_text(raw, head, columns);
    }
    for (size_t i = 0; i < raw->len && lines > 0; i++) {
        if (raw->data[i] == '\n') {
            at = i + 1;
            lines--;
        }
    }
    return lines == 0 ? at : 0;
}

enum sy_code
live_show_stream(struct live_shown *ret, struct live *l, const struct live_part *part)
{
    const uint64_t from = part->from;
    const struct transcript *t = live_transcript(l);
    struct live_state state;
    SY_AUTO(buf_fini) struct buf raw = {.max = (size_t)LIMIT_SESSION_KEEP_MOST * 2};
    struct output_marks marks = {0};

    live_get_state(l, &state);

    uint64_t to = state.is_running ? transcript_whole_end(t) : transcript_end(t);
    enum sy_code rc = transcript_read(t, from, to, &raw, &ret->omitted);

    if (rc != SY_E_OK) {
        return rc;
    }
    ret->stats.total_bytes = to > from ? to - from : 0;
    ret->stats.total_lines = transcript_lines(t, from, to);
    if (raw.len > 0 && raw.data[raw.len - 1] != '\n') {
        ret->stats.total_lines++;
    }

    struct output_totals total = {
        .bytes = ret->stats.total_bytes,
        .lines = ret->stats.total_lines,
        .columns = live_screen(l) != NULL ? terminal_columns(live_screen(l)) : 0,
    };

    size_t whole = raw.len;

    if (part->leaves_drawing_out) {
        leave_drawing_out(&raw, part->was_drawing, &total);
    }
    rc = output_text_bytes(&ret->text, buf_view(&raw), raw.len, part->max_bytes, total, &marks);
    ret->stats.has_invalid_utf8 = marks.has_invalid_utf8;
    ret->is_truncated = marks.is_truncated || ret->omitted > 0;
    if (rc == SY_E_OK && marks.is_truncated && raw.len == whole) {
        size_t cut = find_cut(&raw, buf_view(&ret->text), marks.head, total.columns);

        ret->cut_seq = cut > 0 ? transcript_seq_at(t, from, to, cut) : 0;
    }
    ret->next_seq = to > from || from > transcript_end(t) ? to : from;
    return rc;
}

bool
live_show_draws(struct live *l, uint64_t from)
{
    const struct transcript *t = live_transcript(l);
    SY_AUTO(buf_fini) struct buf raw = {.max = (size_t)LIMIT_SESSION_KEEP_MOST * 2};
    uint64_t omitted = 0;

    if (transcript_read(t, from, transcript_whole_end(t), &raw, &omitted) != SY_E_OK ||
        raw.len == 0) {
        return false;
    }
    strip_alternate(&raw, live_was_drawing(l));
    return strip_draws(buf_view(&raw), raw.len, terminal_rows(live_screen(l)));
}

enum sy_code
live_show_screen(struct buf *out, struct live *l, struct terminal_screen *ret_screen,
                 bool has_changes)
{
    struct terminal *t = live_screen(l);
    enum sy_code rc = terminal_look(t, ret_screen);

    if (rc != SY_E_OK) {
        return rc;
    }
    return has_changes ? view_diff(t, ret_screen, live_seen(l), out)
                       : view_screen(t, ret_screen, out);
}

static bool
ends_line(char c)
{
    return c == '\n' || c == '\r';
}

/* The last line of a text that is not blank. */
static void
last_line(const struct buf *text, const char **ret, size_t *ret_n)
{
    size_t end = text->len;

    while (end > 0 && strchr(" \t\r\n", text->data[end - 1]) != NULL) {
        end--;
    }

    size_t start = end;

    while (start > 0 && !ends_line(text->data[start - 1])) {
        start--;
    }
    *ret = buf_view(text) + start;
    *ret_n = end - start;
}

enum sy_code
live_show_last_line_of(struct buf *out, const char *text, size_t n)
{
    size_t skipped = n > TAIL_BYTES ? n - TAIL_BYTES : 0;
    SY_AUTO(buf_fini) struct buf plain = {.max = TAIL_BYTES * 12 + 64};
    struct strip strip = {.rc = SY_E_OK};
    const char *line = NULL;
    size_t len = 0;
    enum sy_code rc = strip_feed(&strip, text + skipped, n - skipped, &plain);

    if (rc == SY_E_OK) {
        rc = strip_finish(&strip, &plain);
    }
    strip_fini(&strip);
    buf_reset(out);
    if (rc != SY_E_OK) {
        return rc;
    }
    last_line(&plain, &line, &len);
    return buf_add(out, line, len);
}

/* Of a program that draws the stream is no text: its lowest row that is not blank. */
static enum sy_code
last_row(struct buf *out, struct terminal *t)
{
    struct terminal_screen screen;
    enum sy_code rc = terminal_look(t, &screen);

    for (unsigned row = rc == SY_E_OK ? screen.rows : 0; row > 0 && out->len == 0; row--) {
        rc = terminal_row(t, row - 1, out);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return rc;
}

enum sy_code
live_show_last_line(struct buf *out, struct live *l)
{
    struct terminal *screen = live_screen(l);
    const struct transcript *t = live_transcript(l);
    SY_AUTO(buf_fini) struct buf raw = {.max = TAIL_BYTES * 2};
    uint64_t end = transcript_whole_end(t);
    uint64_t omitted = 0;

    buf_reset(out);
    if (screen != NULL && terminal_state(screen)->alt_screen) {
        return last_row(out, screen);
    }

    enum sy_code rc =
        transcript_read(t, end > TAIL_BYTES ? end - TAIL_BYTES : 0, end, &raw, &omitted);

    return rc == SY_E_OK ? live_show_last_line_of(out, buf_view(&raw), raw.len) : rc;
}
