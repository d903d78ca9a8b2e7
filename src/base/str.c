#include "base/str.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

bool
str_eq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool
str_is(const char *s, const char *bytes, size_t n)
{
    return strlen(s) == n && (n == 0 || memcmp(s, bytes, n) == 0);
}

bool
str_starts(const char *s, const char *prefix)
{
    while (*prefix != '\0' && *s == *prefix) {
        s++;
        prefix++;
    }
    return *prefix == '\0';
}

bool
str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s);
    size_t m = strlen(suffix);

    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool
str_to_u64(uint64_t *ret, const char *s, uint64_t min, uint64_t max)
{
    uint64_t v = 0;

    if (*s == '\0') {
        return false;
    }
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9') {
            return false;
        }

        uint64_t digit = (uint64_t)(*s - '0');

        if (v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    if (v < min || v > max) {
        return false;
    }
    *ret = v;
    return true;
}

bool
str_to_i64(int64_t *ret, const char *s, int64_t min, int64_t max)
{
    bool negative = *s == '-';
    uint64_t v = 0;
    uint64_t top = (uint64_t)INT64_MAX + (negative ? 1U : 0U);

    if (!str_to_u64(&v, negative ? s + 1 : s, 0, top)) {
        return false;
    }

    int64_t signed_v = negative ? (v == top ? INT64_MIN : -(int64_t)v) : (int64_t)v;

    if (signed_v < min || signed_v > max) {
        return false;
    }
    *ret = signed_v;
    return true;
}

static unsigned char
lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* One bracket expression, from after its '['. *ret_end: after its ']', NULL
 * when it has none, so that '[' stands for itself. */
static bool
bracket_has(const char *p, char c, const char **ret_end)
{
    bool is_negated = *p == '!' || *p == '^';
    bool has = false;
    const char *first = is_negated ? p + 1 : p;

    /* A ']' that comes first is a member. */
    for (p = first; *p != '\0' && (*p != ']' || p == first); p++) {
        unsigned char low = lower(*p);
        unsigned char high = low;

        if (p[1] == '-' && p[2] != ']' && p[2] != '\0') {
            high = lower(p[2]);
            p += 2;
        }
        has = has || (lower(c) >= low && lower(c) <= high);
    }
    *ret_end = *p == ']' ? p + 1 : NULL;
    return has != is_negated;
}

/* One element of the pattern, no '*', against one character; *ret_next: the
 * rest of the pattern. */
static bool
glob_step(const char *pattern, char c, const char **ret_next)
{
    *ret_next = pattern + 1;
    if (*pattern == '?') {
        return true;
    }
    if (*pattern == '[') {
        const char *end = NULL;
        bool has = bracket_has(pattern + 1, c, &end);

        if (end != NULL) {
            *ret_next = end;
            return has;
        }
    }
    return lower(*pattern) == lower(c);
}

/* Ours, not fnmatch(3): that one depends on the locale, fails on bytes that
 * the locale does not have, and is slow enough to be seen in a spawn. */
bool
str_glob_nocase(const char *pattern, const char *name)
{
    const char *star = NULL; /* the pattern after the last '*' */
    const char *mark = NULL; /* where its match of the name ends so far */

    while (*name != '\0') {
        const char *next = NULL;

        if (*pattern == '*') {
            star = ++pattern;
            mark = name;
        } else if (*pattern != '\0' && glob_step(pattern, *name, &next)) {
            pattern = next;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++mark;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

#define NEAREST_MAX 64

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Single letters added, left out or changed, and neighbours that changed places, as typing goes
 * wrong (the optimal string alignment distance); both at most NEAREST_MAX bytes. */
static size_t
distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][NEAREST_MAX + 1]; /* row i in rows[i % 3] */

    for (size_t j = 0; j <= nb; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        const size_t *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];

        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U),
                           least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[na % 3][nb];
}

const char *
str_nearest(const char *got, const char *const *names, size_t n)
{
    size_t len = strlen(got);
    const char *best = NULL;
    size_t best_distance = 0;

    if (len > NEAREST_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        size_t m = strlen(names[i]);

        if (m > NEAREST_MAX) {
            continue;
        }

        size_t d = distance(got, len, names[i], m);
        size_t allowed = (len > m ? len : m) / 3;

        if (d <= (allowed > 0 ? allowed : 1U) && (best == NULL || d < best_distance)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}

enum sy_code
str_add_visible(struct buf *b, const char *s, size_t len, size_t max_bytes)
{
    size_t start = b->len;

    for (size_t i = 0; i < len;) {
        char piece[16];
        uint32_t c = 0;
        size_t n = utf8_decode(&c, s + i, len - i);
        int m = 0;

        if (n == 0) {
            m = snprintf(piece, sizeof(piece), "\\x%02x", (unsigned)(unsigned char)s[i]);
            n = 1;
        } else if (utf8_is_unseen(c)) {
            m = c < 0x80U ? snprintf(piece, sizeof(piece), "\\x%02x", (unsigned)c)
                          : snprintf(piece, sizeof(piece), "\\u{%X}", (unsigned)c);
        } else {
            memcpy(piece, s + i, n);
            m = (int)n;
        }
        if (b->len - start + (size_t)m > max_bytes) {
            return buf_add_str(b, "...");
        }

        enum sy_code rc = buf_add(b, piece, (size_t)m);

        if (rc != SY_E_OK) {
            return rc;
        }
        i += n;
    }
    return SY_E_OK;
}

const char *
path_base(const char *s)
{
    const char *slash = strrchr(s, '/');

    if (slash == NULL || (slash == s && s[1] == '\0')) {
        return s;
    }
    return slash + 1;
}

enum sy_code
path_join(struct buf *b, const char *dir, const char *name)
{
    buf_reset(b);
    if (name[0] == '/') {
        return buf_add_str(b, name);
    }

    enum sy_code rc = buf_add_str(b, dir);

    if (rc == SY_E_OK && !str_ends(dir, "/")) {
        rc = buf_add_char(b, '/');
    }
    return rc != SY_E_OK ? rc : buf_add_str(b, name);
}

enum sy_code
path_normalize(struct buf *b, const char *path)
{
    SY_ASSERT(path[0] == '/');
    buf_reset(b);

    enum sy_code rc = buf_reserve(b, strlen(path) + 1);

    if (rc != SY_E_OK) {
        return rc;
    }
    while (*path != '\0') {
        while (*path == '/') {
            path++;
        }

        size_t n = strcspn(path, "/");

        if (n == 2 && path[0] == '.' && path[1] == '.') {
            while (b->len > 0 && b->data[--b->len] != '/') {
            }
            b->data[b->len] = '\0';
        } else if (n > 0 && !(n == 1 && path[0] == '.')) {
            rc = buf_add_char(b, '/');
            if (rc == SY_E_OK) {
                rc = buf_add(b, path, n);
            }
            if (rc != SY_E_OK) {
                return rc;
            }
        }
        path += n;
    }
    return b->len == 0 ? buf_add_char(b, '/') : SY_E_OK;
}

bool
path_is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    if (n == 1 && dir[0] == '/') {
        return path[0] == '/';
    }
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

size_t
str_env_name(const char *entry)
{
    size_t n = 0;

    while (n < ENV_NAME_MAX && (unsigned char)entry[n] > ' ' && (unsigned char)entry[n] < 0x7F &&
           entry[n] != '=') {
        n++;
    }
    return entry[n] == '=' ? n : 0;
}
