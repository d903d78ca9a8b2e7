/* The words that a shell makes of {a,b} and {1..3}. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/dialect_internal.h"

/* Words of one: what comes behind them begins no other command. */
#define WORDS_MAX 256U
/* Of braces in braces, the inner ones. */
#define OPEN_MAX 64U
/* Bytes that are moved for one word, and looked at for all of them. */
#define MOVED_MAX  ((size_t)4 * 1024 * 1024)
#define LOOKED_MAX ((size_t)16 * 1024 * 1024)

/* One pair of braces in a word. */
struct pair {
    size_t open;
    size_t close;
    bool is_list; /* else a range */
};

/* ${...} and $(...), by their brackets. */
static size_t
bracket_length(const char *s, size_t len)
{
    const char close = s[1] == '{' ? '}' : ')';
    size_t depth = 0;

    for (size_t i = 1; i < len; i++) {
        depth += s[i] == s[1] ? 1 : 0;
        depth -= s[i] == close ? 1 : 0;
        if (depth == 0) {
            return i + 1;
        }
    }
    return len;
}

/* How much at s is quoted, or computed by the shell: those braces are none. */
static size_t
opaque_length(const char *s, size_t len)
{
    const char *end = NULL;
    size_t i = 1;

    switch (s[0]) {
    case '\\':
        return len > 1 ? 2 : 1;
    case '\'':
        end = memchr(s + 1, '\'', len - 1);
        return end != NULL ? (size_t)(end - s) + 1 : len;
    case '$':
        return len > 1 && (s[1] == '{' || s[1] == '(') ? bracket_length(s, len) : 0;
    case '"':
    case '`':
        while (i < len && s[i] != s[0]) {
            i += s[i] == '\\' ? 2 : 1;
        }
        return i < len ? i + 1 : len;
    default:
        return 0;
    }
}

/* a..b, or numbers, perhaps with a step. */
static bool
is_range(const char *s, size_t len)
{
    size_t dots = 0;

    for (size_t i = 0; i + 1 < len; i++) {
        dots += s[i] == '.' && s[i + 1] == '.' ? 1 : 0;
    }
    for (size_t i = 0; i < len; i++) {
        const bool is_letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z');

        if (!is_letter && !(s[i] >= '0' && s[i] <= '9') && s[i] != '.' && s[i] != '-') {
            return false;
        }
    }
    return dots > 0 && dots < 3;
}

/* The first pair to be closed that makes words. In one pass: a word may be full of them. */
static bool
find_pair(struct pair *ret, const char *s, size_t len)
{
    struct pair open[OPEN_MAX] = {{0}};
    size_t depth = 0;

    for (size_t i = 0; i < len;) {
        const size_t skip = opaque_length(s + i, len - i);

        if (skip > 0) {
            i += skip;
            continue;
        }
        if (s[i] == '{') {
            if (depth == OPEN_MAX) {
                memmove(open, open + 1, sizeof(open) - sizeof(open[0]));
                depth--;
            }
            open[depth++] = (struct pair){.open = i};
        } else if (s[i] == ',' && depth > 0) {
            open[depth - 1].is_list = true;
        } else if (s[i] == '}' && depth > 0) {
            *ret = open[--depth];
            ret->close = i;
            if (ret->is_list || is_range(s + ret->open + 1, i - ret->open - 1)) {
                return true;
            }
        }
        i++;
    }
    return false;
}

struct words_made {
    struct strv todo; /* a stack */
    struct strv done;
    size_t moved;
};

static enum sy_code
push(struct words_made *m, const char *word, const struct pair *p, const char *part, size_t n)
{
    SY_AUTO(buf_fini) struct buf one = {.max = LIMIT_SCRIPT};
    enum sy_code rc = buf_add(&one, word, p->open);

    rc = rc == SY_E_OK ? buf_add(&one, part, n) : rc;
    rc = rc == SY_E_OK ? buf_add_str(&one, word + p->close + 1) : rc;
    m->moved += one.len;
    return rc == SY_E_OK ? strv_add(&m->todo, buf_view(&one)) : rc;
}

/* From the last to the first, so that the first is taken first. */
static enum sy_code
push_list(struct words_made *m, const char *word, const struct pair *p)
{
    size_t ends[WORDS_MAX + 1] = {p->open};
    size_t n = 1;
    size_t depth = 0;
    enum sy_code rc = SY_E_OK;

    for (size_t i = p->open; i <= p->close && n <= WORDS_MAX;) {
        const size_t skip = opaque_length(word + i, p->close + 1 - i);

        if (skip > 0) {
            i += skip;
            continue;
        }
        depth += word[i] == '{' ? 1 : 0;
        if ((word[i] == ',' && depth == 1) || i == p->close) {
            ends[n++] = i;
        }
        depth -= word[i] == '}' ? 1 : 0;
        i++;
    }
    for (size_t k = n - 1; k > 0 && rc == SY_E_OK; k--) {
        rc = push(m, word, p, word + ends[k - 1] + 1, ends[k] - ends[k - 1] - 1);
    }
    return rc;
}

static bool
read_end(const char *s, size_t len, int64_t *ret, bool *ret_is_letter)
{
    const bool is_negative = len > 1 && s[0] == '-';
    size_t i = is_negative ? 1 : 0;

    *ret_is_letter = len == 1 && (s[0] < '0' || s[0] > '9');
    if (*ret_is_letter) {
        *ret = (unsigned char)s[0];
        return true;
    }
    *ret = 0;
    for (; i < len && s[i] >= '0' && s[i] <= '9' && *ret < 1000000000; i++) {
        *ret = *ret * 10 + (s[i] - '0');
    }
    *ret = is_negative ? -*ret : *ret;
    return len > 0 && i == len;
}

static enum sy_code
push_range(struct words_made *m, const char *word, const struct pair *p)
{
    const char *s = word + p->open + 1;
    const size_t len = p->close - p->open - 1;
    const char *dots = strstr(s, "..");
    const char *more = strstr(dots + 2, "..");
    const char *end = more != NULL && more < s + len ? more : s + len;
    bool is_letter[2] = {false, false};
    int64_t ends[2] = {0, 0};
    enum sy_code rc = SY_E_OK;

    if (!read_end(s, (size_t)(dots - s), &ends[0], &is_letter[0]) ||
        !read_end(dots + 2, (size_t)(end - dots) - 2, &ends[1], &is_letter[1]) ||
        is_letter[0] != is_letter[1]) {
        return SY_E_NOTFOUND;
    }

    const int64_t step = ends[1] < ends[0] ? -1 : 1;
    const int64_t last = (ends[1] - ends[0]) * step >= (int64_t)WORDS_MAX
                             ? ends[0] + step * (int64_t)(WORDS_MAX - 1)
                             : ends[1];

    for (int64_t v = last; rc == SY_E_OK; v -= step) {
        char text[24];
        const int n = is_letter[0] ? snprintf(text, sizeof(text), "%c", (int)v)
                                   : snprintf(text, sizeof(text), "%lld", (long long)v);

        rc = push(m, word, p, text, (size_t)n);
        if (v == ends[0]) {
            break;
        }
    }
    return rc;
}

static enum sy_code
make_words(struct words_made *m, const char *word, size_t len)
{
    enum sy_code rc = strv_addn(&m->todo, word, len);

    while (m->todo.n > 0 && m->done.n < WORDS_MAX && rc == SY_E_OK) {
        SY_AUTO(mem_free_charp) char *one = m->todo.v[--m->todo.n];
        struct pair p = {0};

        m->todo.v[m->todo.n] = NULL;
        if (m->moved > MOVED_MAX || !find_pair(&p, one, strlen(one))) {
            rc = strv_add(&m->done, one);
            continue;
        }
        rc = p.is_list ? push_list(m, one, &p) : push_range(m, one, &p);
        if (rc == SY_E_NOTFOUND) {
            rc = strv_add(&m->done, one);
        }
    }
    return rc;
}

static enum sy_code
add_word(struct buf *ret, const char *word, size_t len)
{
    struct words_made m = {.todo = {.max = (size_t)WORDS_MAX * WORDS_MAX},
                           .done = {.max = WORDS_MAX}};
    enum sy_code rc = make_words(&m, word, len);

    for (size_t i = 0; i < m.done.n && rc == SY_E_OK; i++) {
        rc = i > 0 ? buf_add_char(ret, ' ') : SY_E_OK;
        rc = rc == SY_E_OK ? buf_add_str(ret, m.done.v[i]) : rc;
    }
    strv_fini(&m.todo);
    strv_fini(&m.done);
    return rc;
}

/* The end of the word that begins here. */
static size_t
word_length(const char *s, size_t len)
{
    size_t i = 0;

    while (i < len && strchr(" \t\n;&|()<>", s[i]) == NULL) {
        const size_t skip = opaque_length(s + i, len - i);

        i += skip > 0 ? skip : 1;
    }
    return i < len ? i : len;
}

enum sy_code
dialect_add_braces(struct buf *ret, const char *text, size_t len)
{
    struct dialect_walk w = {
        .text = text, .len = len, .has_ansi_c = true, .has_comments = true, .has_escapes = true};
    size_t looked = 0;
    enum sy_code rc = SY_E_OK;

    while (w.at < len && rc == SY_E_OK) {
        const bool is_bare = w.depth == 0 || w.in[w.depth - 1] != '"';
        const bool is_start = !w.is_word && is_bare && w.document == 0;
        const size_t n = is_start ? word_length(text + w.at, len - w.at) : 0;
        struct pair p = {0};
        size_t used = 1;

        looked += n;
        if (looked > LOOKED_MAX) {
            return SY_E_LIMIT;
        }
        if (n > 0 && text[w.at] != '#' && memchr(text + w.at, '{', n) != NULL &&
            find_pair(&p, text + w.at, n)) {
            rc = add_word(ret, text + w.at, n);
            w.at += n;
            w.is_word = true;
            continue;
        }
        (void)dialect_next(&w, &used);
        rc = buf_add(ret, text + w.at, used);
        w.at += used;
    }
    return rc;
}
