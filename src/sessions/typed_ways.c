/*
 * What is typed, in all the ways to take it (typed.c), as far as judging it takes no longer than a
 * slice: other sessions are served before it goes on.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sessions/sessions_internal.h"

static enum sy_code
copy(struct typed_reading *ret, const struct typed_reading *t)
{
    *ret = *t;
    ret->line = (struct buf){.max = t->line.max};
    ret->block = (struct buf){.max = t->block.max};
    ret->starts = (struct buf){.max = t->starts.max};
    ret->killed = (struct buf){.max = t->killed.max};

    enum sy_code rc = buf_add(&ret->line, buf_view(&t->line), t->line.len);

    rc = rc == SY_E_OK ? buf_add(&ret->block, buf_view(&t->block), t->block.len) : rc;
    rc = rc == SY_E_OK ? buf_add(&ret->starts, buf_view(&t->starts), t->starts.len) : rc;
    return rc == SY_E_OK ? buf_add(&ret->killed, buf_view(&t->killed), t->killed.len) : rc;
}

/* Each way has its own line from here on. */
static enum sy_code
part_ways(struct typed *t)
{
    for (enum typed_kind kind = TYPED_PASTES; kind < TYPED_KINDS; kind++) {
        bool is_there = false;

        for (size_t i = 1; i < t->n; i++) {
            is_there = is_there || t->v[i].kind == kind;
        }
        if (!is_there) {
            struct typed_reading *added = &t->v[t->n++];
            enum sy_code rc = copy(added, &t->v[0]);

            added->kind = kind;
            if (rc != SY_E_OK) {
                return rc;
            }
        }
    }
    return SY_E_OK;
}

static bool
is_same_text(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && memcmp(buf_view(a), buf_view(b), a->len) == 0;
}

static bool
is_same(const struct typed_reading *a, const struct typed_reading *b)
{
    const bool is_between = a->escape != 0 || b->escape != 0 || a->loses_next || b->loses_next;

    return !is_between && a->is_cut == b->is_cut && a->is_loose == b->is_loose &&
           a->given == b->given && a->is_quoted == b->is_quoted && a->is_paste == b->is_paste &&
           a->closing == b->closing && a->has_moved == b->has_moved && a->here_len == b->here_len &&
           a->here_at == b->here_at && is_same_text(&a->line, &b->line) &&
           is_same_text(&a->block, &b->block) && is_same_text(&a->starts, &b->starts) &&
           is_same_text(&a->killed, &b->killed);
}

/* Those that have come to the same as the first are no ways of their own any more. */
static void
join_ways(struct typed *t)
{
    for (size_t i = t->n - 1; i > 0; i--) {
        if (is_same(&t->v[i], &t->v[0])) {
            typed_reading_fini(&t->v[i]);
            t->v[i] = t->v[--t->n];
        }
    }
}

/* Does it not mean the same to all? */
static bool
parts_ways(const struct typed *t, const struct typed_reader *r, unsigned char c)
{
    const bool is_control = c < 0x20 && c != '\t' && c != '\n' && c != '\r';

    if (t->v[0].is_pipe || t->n == TYPED_KINDS) {
        return false;
    }
    /* Nothing is there that it could do anything to. */
    if (c == 0x04 && t->v[0].line.len == 0 && t->v[0].block.len == 0) {
        return !r->modes.is_common;
    }
    return is_control || !r->modes.is_common;
}

/* The next byte, by each of the ways. False: the slice is over, and some have not followed it. */
static bool
follow_next(struct typed_work *w, char c, uint64_t until_ns, enum sy_code *ret,
            struct sy_error *err)
{
    const bool is_end = c == '\r' || c == '\n';

    if (!w->has_parted) {
        if (parts_ways(&w->now, &w->reader, (unsigned char)c) && part_ways(&w->now) != SY_E_OK) {
            *ret = sy_err_nomem(err);
            return true;
        }
        if (is_end && w->reader.modes.is_common) {
            join_ways(&w->now); /* nothing is judged twice */
        }
        w->has_parted = true;
        w->way = 0;
    }
    while (w->way < w->now.n && *ret == SY_E_OK) {
        *ret = typed_follow_byte(&w->now.v[w->way], &w->reader, c, err);
        if (w->now.v[w->way].is_later) {
            return false;
        }
        w->way++;
        /* What is judged at all ends a line, or is a control character. */
        if ((unsigned char)c < 0x20 && *ret == SY_E_OK && clock_mono_ns() >= until_ns) {
            return false;
        }
    }
    if (is_end) {
        join_ways(&w->now);
    }
    w->has_parted = false;
    return true;
}

/* False: it goes on later. */
static bool
follow(struct typed_work *w, const char *bytes, size_t n, uint64_t until_ns, enum sy_code *ret,
       struct sy_error *err)
{
    while (w->at < n && *ret == SY_E_OK) {
        if (!follow_next(w, bytes[w->at], until_ns, ret, err)) {
            return false;
        }
        w->at++;
        w->way = 0;
    }
    while (w->reader.is_over && w->way < w->now.n && *ret == SY_E_OK) {
        *ret = typed_judge_end(&w->now.v[w->way++], &w->reader, err);
        if (w->way < w->now.n && clock_mono_ns() >= until_ns) {
            return false;
        }
    }
    return true;
}

/* What is refused leaves no trace: it is followed on a copy. */
static enum sy_code
begin(struct typed_work *w, const struct typed *t)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < t->n && rc == SY_E_OK; i++) {
        struct typed_reading *r = &w->now.v[w->now.n++];

        rc = copy(r, &t->v[i]);
        if (!w->reader.knows_paste) {
            r->is_paste = false;
            r->closing = 0;
        }
        rc = rc == SY_E_OK ? typed_add_start(r) : rc;
    }
    w->left_ns = (w->reader.takes_long ? LIMIT_TYPED_BLOCK_MS : LIMIT_TYPED_MS) * 1000000ULL;
    w->has_begun = true;
    return rc;
}

/* Of a line in a refusal. */
#define TOLD_LINE 80U

/* The line that ends at `at`, as far as it was typed now: what stood there may have been hidden. */
static void
name_line(struct sy_error *err, const char *bytes, size_t at, const char *note)
{
    const struct sy_error why = *err;
    SY_AUTO(buf_fini) struct buf line = {.max = TOLD_LINE + sizeof("...")};
    const size_t used = strlen(why.msg) + strlen(note) + strlen("; the line: ...");
    const size_t room = used < SY_ERR_MSG_MAX - 1 ? SY_ERR_MSG_MAX - 1 - used : 0;
    const size_t end = at > 0 && (bytes[at - 1] == '\n' || bytes[at - 1] == '\r') ? at - 1 : at;
    size_t begin = end;

    while (begin > 0 && bytes[begin - 1] != '\n' && bytes[begin - 1] != '\r') {
        begin--;
    }
    if (end > begin && room > 8 &&
        str_add_visible(&line, bytes + begin, end - begin, room < TOLD_LINE ? room : TOLD_LINE) !=
            SY_E_OK) {
        buf_reset(&line);
    }
    (void)sy_err_set(err, why.code, "%.*s%s%s%s", SY_ERR_MSG_MAX - 1 - (int)strlen(note), why.msg,
                     line.len > 0 ? "; the line: " : "", buf_view(&line), note);
}

/*
 * Says which line was refused, of those up to `at`. That of what seems harmless is the fault of
 * what stands before it.
 */
static void
tell_line(const struct typed *t, const struct typed_reader *r, const char *bytes, size_t at,
          struct sy_error *err)
{
    const bool is_first =
        at == 0 || (memchr(bytes, '\n', at - 1) == NULL && memchr(bytes, '\r', at - 1) == NULL);
    const char *clears = t->v[0].is_pipe ? "" : " (Ctrl-U clears)";
    char note[96] = "";

    if (err == NULL) {
        return;
    }
    /* What was typed to a program that draws stands in no line. */
    if (t->v[0].line.len > 0 && is_first && !r->draws) {
        (void)snprintf(note, sizeof(note), "; %zu bytes of it stand there already%s",
                       t->v[0].line.len, clears);
    }
    name_line(err, bytes, at, note);
}

void
typed_work_fini(struct typed_work *w)
{
    typed_fini(&w->now);
    *w = (struct typed_work){.now.n = 0};
}

enum sy_code
typed_follow(struct typed *t, struct typed_work *w, const char *bytes, size_t n,
             struct sy_error *err)
{
    const uint64_t until_ns = clock_mono_ns() + LIMIT_TYPED_SLICE_MS * 1000000ULL;
    const uint64_t began_ns = clock_work_ns();
    enum sy_code rc = w->has_begun ? SY_E_OK : begin(w, t);

    w->is_later = false;
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    w->reader.until_ns = began_ns + w->left_ns;
    w->reader.slice_ns = until_ns;
    if (!follow(w, bytes, n, until_ns, &rc, err)) {
        const uint64_t took_ns = clock_work_ns() - began_ns;

        w->left_ns -= took_ns < w->left_ns ? took_ns : w->left_ns;
        w->is_later = true;
        return SY_E_OK;
    }
    if (rc != SY_E_OK) {
        if (rc == SY_E_DENIED) {
            tell_line(t, &w->reader, bytes, w->at, err);
        }
        return rc;
    }
    typed_fini(t);
    *t = w->now;
    w->now.n = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->v[i].line.len == 0) {
            buf_fini(&t->v[i].line); /* an idle one holds no memory */
        }
    }
    return SY_E_OK;
}
