#define PCRE2_CODE_UNIT_WIDTH 8
#include "output/pattern.h"

#include <string.h>

#include <pcre2.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"

/*
 * Machine code takes longer to make than to interpret the expression on so many bytes. What repeats
 * or recurs may take long on few: it is interpreted on the first ones alone, as long as that takes
 * no more than some steps from any place.
 */
#define INTERPRETED_BYTES         65536U
#define INTERPRETED_REPEATS_BYTES 4096U
#define INTERPRETED_REPEATS_STEPS 64U

struct pattern {
    pcre2_general_context *memory;
    pcre2_compile_context *compiling;
    pcre2_match_context *matching;
    pcre2_code *code;
    bool repeats;  /* or recurs */
    bool is_fast;  /* it is machine code, or can't be */
    size_t behind; /* bytes before a place that decide whether it matches */
};

struct pattern_scan {
    struct pattern *p;
    pcre2_match_data *data;
    struct buf window;
    uint64_t base;   /* offset of the window in the stream, from what stands before it on */
    uint64_t before; /* how much that is: a match ends behind it */
    size_t from;     /* where in the window the search goes on */
    bool is_fresh;   /* something came since nothing was found */
    bool is_finished;
    uint64_t given_up;
};

static void *
take(PCRE2_SIZE size, void *arg)
{
    (void)arg;
    return mem_alloc(size);
}

static void
give(void *p, void *arg)
{
    (void)arg;
    mem_free(p);
}

void
pattern_free(struct pattern *p)
{
    if (p != NULL) {
        pcre2_code_free(p->code);
        pcre2_match_context_free(p->matching);
        pcre2_compile_context_free(p->compiling);
        pcre2_general_context_free(p->memory);
        mem_free(p);
    }
}

static enum sy_code
make_contexts(struct pattern *p)
{
    p->memory = pcre2_general_context_create(take, give, NULL);
    if (p->memory == NULL) {
        return SY_E_NOMEM;
    }
    p->compiling = pcre2_compile_context_create(p->memory);
    p->matching = pcre2_match_context_create(p->memory);
    if (p->compiling == NULL || p->matching == NULL) {
        return SY_E_NOMEM;
    }
    (void)pcre2_set_newline(p->compiling, PCRE2_NEWLINE_ANYCRLF);
    (void)pcre2_set_parens_nest_limit(p->compiling, LIMIT_PATTERN_DEPTH);
    (void)pcre2_set_depth_limit(p->matching, LIMIT_PATTERN_STEPS);
    (void)pcre2_set_heap_limit(p->matching, LIMIT_PATTERN_HEAP / 1024U);
    return SY_E_OK;
}

static bool
may_take_long(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strchr("*+{?", text[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Without a compiler at run time it is interpreted. */
static enum sy_code
make_fast(struct pattern *p)
{
    p->is_fast = true;
    (void)pcre2_set_match_limit(p->matching, LIMIT_PATTERN_STEPS);
    return pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_SOFT) ==
                   PCRE2_ERROR_NOMEMORY
               ? SY_E_NOMEM
               : SY_E_OK;
}

static enum sy_code
compile(struct pattern *p, const char *text, size_t n, size_t *ret_at, struct sy_error *err)
{
    /* \C would cut characters. */
    const uint32_t options =
        PCRE2_MATCH_INVALID_UTF | PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    char words[SY_ERR_MSG_MAX];
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t behind = 0;

    p->code = pcre2_compile((PCRE2_SPTR)text, n, options, &code, &at, p->compiling);
    if (p->code == NULL) {
        if (code == PCRE2_ERROR_HEAP_FAILED) {
            return sy_err_nomem(err);
        }
        if (ret_at != NULL) {
            *ret_at = at;
        }
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)words, sizeof(words));
        return sy_err_set(err, SY_E_ARG, "no regular expression, at offset %zu: %s", at, words);
    }
    (void)pcre2_pattern_info(p->code, PCRE2_INFO_MAXLOOKBEHIND, &behind);
    /* In characters; and the one before says whether a line or word begins. */
    p->behind = ((size_t)behind + 1) * UTF8_MAX;
    p->repeats = may_take_long(text, n);
    (void)pcre2_set_match_limit(p->matching,
                                p->repeats ? INTERPRETED_REPEATS_STEPS : LIMIT_PATTERN_STEPS);
    return SY_E_OK;
}

enum sy_code
pattern_new(struct pattern **ret, const char *text, size_t n, size_t *ret_at, struct sy_error *err)
{
    struct pattern *p = NULL;
    enum sy_code rc = SY_E_OK;

    if (n > LIMIT_PATTERN) {
        return sy_err_set(err, SY_E_LIMIT, "a regular expression of %zu bytes; it may have %u", n,
                          LIMIT_PATTERN);
    }
    p = mem_alloc_zero(1, sizeof(*p));
    if (p == NULL) {
        return sy_err_nomem(err);
    }
    rc = make_contexts(p);
    rc = rc != SY_E_OK ? sy_err_nomem(err) : compile(p, text, n, ret_at, err);
    if (rc != SY_E_OK) {
        pattern_free(p);
        return rc;
    }
    *ret = p;
    return SY_E_OK;
}

struct pattern_scan *
pattern_scan_new(struct pattern *p)
{
    struct pattern_scan *s = mem_alloc_zero(1, sizeof(*s));

    if (s == NULL) {
        return NULL;
    }
    s->p = p;
    s->window.max = (size_t)2 * LIMIT_PATTERN_WINDOW + p->behind;
    s->data = pcre2_match_data_create_from_pattern(p->code, p->memory);
    if (s->data == NULL) {
        pattern_scan_free(s);
        return NULL;
    }
    return s;
}

void
pattern_scan_free(struct pattern_scan *s)
{
    if (s != NULL) {
        pcre2_match_data_free(s->data);
        buf_fini(&s->window);
        mem_free(s);
    }
}

static void
drop(struct pattern_scan *s, size_t n)
{
    buf_drop(&s->window, n);
    s->base += n;
    s->from -= n;
}

/* Keeps what is before the place where the search goes on only as far as it decides. */
static void
trim(struct pattern_scan *s)
{
    size_t max = LIMIT_PATTERN_WINDOW;

    if (s->window.len - s->from > max) {
        s->from = s->window.len - max / 2;
        s->given_up++;
    }
    if (s->from > s->p->behind) {
        size_t n = utf8_cut(s->window.data, s->window.len, s->from - s->p->behind);

        drop(s, n);
    }
}

enum sy_code
pattern_scan_feed(struct pattern_scan *s, const char *bytes, size_t n)
{
    const size_t slow = s->p->repeats ? INTERPRETED_REPEATS_BYTES : INTERPRETED_BYTES;
    enum sy_code rc = n > LIMIT_PATTERN_WINDOW ? SY_E_LIMIT : buf_add(&s->window, bytes, n);

    if (rc == SY_E_OK && !s->p->is_fast && s->base + s->window.len > slow) {
        (void)make_fast(s->p); /* out of memory: it goes on as it is */
    }
    s->is_fresh |= rc == SY_E_OK && n > 0;
    return rc;
}

enum sy_code
pattern_scan_begin(struct pattern_scan *s, const char *bytes, size_t n)
{
    enum sy_code rc = n > LIMIT_PATTERN_WINDOW ? SY_E_LIMIT : buf_add(&s->window, bytes, n);

    s->before = s->window.len;
    return rc;
}

void
pattern_scan_finish(struct pattern_scan *s)
{
    s->is_finished = true;
    s->is_fresh = true;
}

static bool
is_over_limit(int code)
{
    return code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
           code == PCRE2_ERROR_HEAPLIMIT;
}

static enum sy_code
failed(struct pattern_scan *s, int code, struct sy_error *err)
{
    char words[SY_ERR_MSG_MAX];

    s->from = s->window.len;
    trim(s);
    if (code == PCRE2_ERROR_NOMEMORY) {
        return sy_err_nomem(err);
    }
    (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)words, sizeof(words));
    if (is_over_limit(code) || code == PCRE2_ERROR_JIT_STACKLIMIT) {
        return sy_err_set(err, SY_E_LIMIT,
                          "the regular expression takes too long for this text (%s); write it "
                          "without repeats in repeats",
                          words);
    }
    return sy_err_set(err, SY_E_INTERNAL, "matching: %s", words);
}

/* On the compiled machine code, or if its stack is too small for the text, interpreted; and where
 * that is not made yet, until it takes too many steps. */
static int
match(struct pattern_scan *s, size_t n)
{
    const uint32_t options = PCRE2_PARTIAL_SOFT | PCRE2_NOTEMPTY;
    PCRE2_SPTR text = (PCRE2_SPTR)buf_view(&s->window);

    /* The interpreter takes what follows on an invalid byte for the beginning of a line, if some
     * line began before (10.42). */
    if (!s->p->is_fast && !utf8_is_valid(buf_view(&s->window), n) && make_fast(s->p) != SY_E_OK) {
        return PCRE2_ERROR_NOMEMORY;
    }

    int rc = pcre2_match(s->p->code, text, n, s->from, options, s->data, s->p->matching);

    if (is_over_limit(rc) && !s->p->is_fast) {
        if (make_fast(s->p) != SY_E_OK) {
            return PCRE2_ERROR_NOMEMORY;
        }
        rc = pcre2_match(s->p->code, text, n, s->from, options, s->data, s->p->matching);
    }
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(s->p->code, text, n, s->from, options | PCRE2_NO_JIT, s->data,
                         s->p->matching);
    }
    return rc;
}

enum sy_code
pattern_scan_next(struct pattern_scan *s, struct pattern_match *ret, bool *ret_found,
                  struct sy_error *err)
{
    size_t tail = s->is_finished ? 0 : utf8_incomplete_tail(buf_view(&s->window), s->window.len);
    size_t n = s->window.len - tail;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->data);
    int rc = 0;

    *ret_found = false;
    if (!s->is_fresh || s->from >= n) {
        return SY_E_OK;
    }
    while ((rc = match(s, n)) > 0) {
        s->from = ends[1] > s->from ? ends[1] : s->from + 1;
        if (s->base + ends[1] > s->before) {
            /* \K in an assertion may set the start behind the end. */
            size_t start = ends[0] < ends[1] ? ends[0] : ends[1];

            start = s->base + start > s->before ? start : (size_t)(s->before - s->base);
            ret->start = s->base + start - s->before;
            ret->end = s->base + ends[1] - s->before;
            *ret_found = true;
            return SY_E_OK;
        }
    }
    s->is_fresh = false;
    if (rc != PCRE2_ERROR_NOMATCH && rc != PCRE2_ERROR_PARTIAL) {
        return failed(s, rc, err);
    }
    s->from = rc == PCRE2_ERROR_PARTIAL && ends[0] > s->from ? ends[0]
              : rc == PCRE2_ERROR_PARTIAL                    ? s->from
                                                             : n;
    trim(s);
    return SY_E_OK;
}

uint64_t
pattern_scan_given_up(const struct pattern_scan *s)
{
    return s->given_up;
}
