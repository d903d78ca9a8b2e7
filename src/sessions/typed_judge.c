/*
 * What is typed, put before the judge: a line as a whole, from each place on where a write began,
 * and with the lines before it that it may complete.
 */
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "sessions/sessions_internal.h"

#define BLOCK_NS (LIMIT_TYPED_BLOCK_MS * 1000000ULL)

/*
 * Of what is no whole script and will be no other: whatever may begin a command in it does. So
 * each mark of the syntax ends a line, and no text is quoted.
 */
static enum sy_code
judge_pieces(const char *text, size_t n, struct orch_call *call, struct sy_error *err)
{
    bool is_open = false;
    enum sy_code rc = orch_judge_pieces(call, text, n, DIALECT_CUT_FEW, &is_open, err);

    return rc == SY_E_OK && is_open
               ? orch_judge_pieces(call, text, n, DIALECT_CUT_MANY, &is_open, err)
               : rc;
}

/* The same where the lines before it are lost: quotes may end there, and part no word. */
static enum sy_code
judge_loose(const char *text, size_t n, struct orch_call *call, struct sy_error *err)
{
    bool ignored = false;
    enum sy_code rc = judge_pieces(text, n, call, err);

    return rc == SY_E_OK && (memchr(text, '"', n) != NULL || memchr(text, '\'', n) != NULL)
               ? orch_judge_pieces(call, text, n, DIALECT_CUT_UNQUOTED, &ignored, err)
               : rc;
}

/* What no bash would read, another shell may: zsh and fish run what stands behind a first `;`. */
static enum sy_code
judge_text(const char *text, struct orch_call *call, bool *ret_is_open, struct sy_error *err)
{
    enum sy_code rc = orch_judge_typed(call, text, ret_is_open, err);

    return rc == SY_E_OK && *ret_is_open ? judge_pieces(text, strlen(text), call, err) : rc;
}

/* Is the time for all that was typed at once over? */
static bool
is_late(const struct typed_reader *r)
{
    return clock_work_ns() > r->until_ns;
}

static enum sy_code
judge_time(const struct typed_reader *r, struct sy_error *err)
{
    return is_late(r) && !r->takes_long
               ? sy_err_set(err, SY_E_DENIED,
                            "not typed: it takes more than %u ms to judge what it would run; type "
                            "less at once, or write a file",
                            LIMIT_TYPED_MS)
               : SY_E_OK;
}

/* As a whole, and from each start on. Thousands of those (keys that move in it) take long: it goes
 * on later, where it may. */
static enum sy_code
judge_line(struct typed_reading *t, const struct typed_reader *r, bool may_wait,
           struct sy_error *err)
{
    bool ignored = false;
    size_t n = 0;
    const size_t *starts = typed_starts(t, &n);
    enum sy_code rc = SY_E_OK;

    if (t->judged == 0) {
        t->is_open = false;
        rc = t->line.len > 0 ? judge_text(buf_view(&t->line), r->call, &t->is_open, err) : SY_E_OK;
    }
    for (size_t i = t->judged; i < n && rc == SY_E_OK && !is_late(r); i++) {
        if (may_wait && i > t->judged && clock_mono_ns() >= r->slice_ns) {
            t->judged = i;
            t->is_later = true;
            return SY_E_OK;
        }
        rc = starts[i] < t->line.len ? judge_text(t->line.data + starts[i], r->call, &ignored, err)
                                     : SY_E_OK;
    }
    t->judged = 0;
    return rc == SY_E_OK ? judge_time(r, err) : rc;
}

void
typed_drop_block(struct typed_reading *t)
{
    buf_fini(&t->block);
    t->here_len = 0;
}

/* The block with a line behind it. SY_E_LIMIT: there is no room for both. */
static enum sy_code
join(struct buf *ret, const struct typed_reading *t, const char *line, size_t n,
     struct sy_error *err)
{
    enum sy_code rc = buf_add(ret, buf_view(&t->block), t->block.len);

    if (rc == SY_E_OK && t->block.len > 0) {
        rc = buf_add_char(ret, '\n');
    }
    if (rc == SY_E_OK) {
        rc = buf_add(ret, line, n);
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}

/*
 * Is the block, one line, a command that lacks nothing but its here-document? With the word that
 * ends that it is a whole one. Until this word comes no line can complete it.
 */
static enum sy_code
find_here(struct typed_reading *t, struct orch_call *call, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf all = {.max = t->block.max};
    size_t at = 0;
    size_t n = 0;
    bool is_open = true;
    enum sy_code rc = SY_E_OK;

    if (!typed_find_here(buf_view(&t->block), t->block.len, &at, &n)) {
        return SY_E_OK;
    }
    rc = join(&all, t, t->block.data + at, n, err);
    rc = rc == SY_E_OK ? orch_judge_typed(call, buf_view(&all), &is_open, err) : rc;
    t->here_at = at;
    t->here_len = rc == SY_E_OK && !is_open ? n : 0;
    return rc == SY_E_LIMIT ? SY_E_OK : rc;
}

/* May the line be the one that ends the here-document? Blanks around the word do, for some. */
static bool
may_end_here(const struct typed_reading *t)
{
    const char *word = t->block.data + t->here_at;
    const char *line = buf_view(&t->line);
    size_t n = t->line.len;

    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t')) {
        n--;
    }
    return n >= t->here_len && memcmp(line + n - t->here_len, word, t->here_len) == 0;
}

/* A line of the here-document, which is judged with the one that ends it. SY_E_LIMIT: no room. */
static enum sy_code
add_here(struct typed_reading *t, struct sy_error *err)
{
    const size_t before = t->block.len;
    enum sy_code rc = buf_add_char(&t->block, '\n');

    rc = rc == SY_E_OK ? buf_add(&t->block, buf_view(&t->line), t->line.len) : rc;
    if (rc != SY_E_OK) {
        t->block.len = before;
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}

/* What can't be held any more is lost to the judge, and with it what is quoted: from there on each
 * line is judged by its pieces too. */
static enum sy_code
lose_block(struct typed_reading *t, struct orch_call *call, bool is_open, struct sy_error *err)
{
    const bool is_judged = t->is_loose;
    enum sy_code rc = SY_E_OK;

    t->is_loose = true;
    typed_drop_block(t);
    rc = is_judged ? SY_E_OK : judge_loose(buf_view(&t->line), t->line.len, call, err);
    return rc == SY_E_OK && is_open ? buf_add(&t->block, buf_view(&t->line), t->line.len) : rc;
}

/* The line with the lines before it that it may complete. */
static enum sy_code
judge_block(struct typed_reading *t, struct orch_call *call, bool is_open, struct sy_error *err)
{
    const bool is_first = t->block.len == 0;
    const uint64_t began_ns = clock_work_ns();
    SY_AUTO(buf_fini) struct buf all = {.max = t->block.max};
    const bool is_here = t->here_len > 0 && !may_end_here(t);
    bool is_still_open = is_open;
    enum sy_code rc = SY_E_OK;

    if (is_first && !is_open) {
        /* Where lines are lost it is no new beginning. */
        t->spent_ns = t->is_loose ? t->spent_ns : 0;
        return SY_E_OK;
    }
    rc = is_here ? add_here(t, err) : join(&all, t, buf_view(&t->line), t->line.len, err);
    if (rc == SY_E_LIMIT || (rc == SY_E_OK && t->spent_ns > BLOCK_NS)) {
        return lose_block(t, call, is_open, err);
    }
    if (is_here || rc != SY_E_OK) {
        return rc;
    }
    if (!is_first) {
        rc = orch_judge_typed(call, buf_view(&all), &is_still_open, err);
        t->spent_ns += clock_work_ns() - began_ns;
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    typed_drop_block(t);
    if (!is_still_open) {
        return SY_E_OK;
    }
    t->block = all;
    all = (struct buf){.max = t->block.max};
    return is_first ? find_here(t, call, err) : SY_E_OK;
}

/* A shell would run the end, too, that is not there to be judged. */
static enum sy_code
judge_length(const struct typed_reading *t, const struct typed_reader *r, struct sy_error *err)
{
    return t->is_cut && !r->takes_long
               ? sy_err_set(err, SY_E_DENIED,
                            "not typed: the line has more than %u bytes, and can't be judged as a "
                            "command whole; give a shell shorter lines, or write a file",
                            LIMIT_TYPED_LINE)
               : SY_E_OK;
}

enum sy_code
typed_judge_line(struct typed_reading *t, const struct typed_reader *r, struct sy_error *err)
{
    enum sy_code rc = r->call != NULL ? judge_length(t, r, err) : SY_E_OK;

    t->is_later = false;
    rc = r->call != NULL && rc == SY_E_OK ? judge_time(r, err) : rc;
    if (r->call == NULL || rc != SY_E_OK || is_late(r)) {
        return rc;
    }
    rc = judge_line(t, r, true, err);
    if (rc != SY_E_OK || t->is_later) {
        return rc;
    }
    if (t->is_loose) {
        rc = judge_loose(buf_view(&t->line), t->line.len, r->call, err);
    }
    return rc == SY_E_OK ? judge_block(t, r->call, t->is_open, err) : rc;
}

enum sy_code
typed_judge_end(struct typed_reading *t, const struct typed_reader *r, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf all = {.max = (size_t)LIMIT_TYPED_LINE * 2 + 1};
    bool is_open = false;
    enum sy_code rc = r->call != NULL ? judge_length(t, r, err) : SY_E_OK;

    rc = r->call != NULL && rc == SY_E_OK ? judge_time(r, err) : rc;
    if (r->call == NULL || rc != SY_E_OK || is_late(r) || (t->line.len == 0 && t->block.len == 0)) {
        return rc;
    }
    rc = judge_line(t, r, false, err);
    is_open = t->is_open;
    rc = rc == SY_E_OK ? join(&all, t, buf_view(&t->line), t->line.len, err) : rc;
    if (rc == SY_E_OK && t->block.len > 0) {
        rc = orch_judge_typed(r->call, buf_view(&all), &is_open, err);
    }
    /* The end completes more than any line does: a here-document, or a backslash. */
    is_open = is_open || t->is_loose || (t->line.len > 0 && t->line.data[t->line.len - 1] == '\\');
    return rc == SY_E_OK && is_open ? judge_pieces(buf_view(&all), all.len, r->call, err) : rc;
}
