#include "base/path_pattern.h"

#include <stdint.h>
#include <string.h>

/* The bytes of the bracket expression that begins at s; 0: it has no end. A ']'
 * that stands first is a character of it. */
static size_t
bracket_len(const char *s, size_t n)
{
    size_t i = n > 1 && s[1] == '!' ? 2 : 1;
    size_t first = i;

    while (i < n && (s[i] != ']' || i == first)) {
        i++;
    }
    return i < n ? i + 1 : 0;
}

static bool
bracket_has(const char *s, size_t len, unsigned char c)
{
    bool is_negated = s[1] == '!';
    bool is_found = false;

    for (size_t i = is_negated ? 2 : 1; i + 1 < len;) {
        unsigned char from = (unsigned char)s[i];
        unsigned char to = from;

        if (i + 3 < len && s[i + 1] == '-') {
            to = (unsigned char)s[i + 2];
            i += 3;
        } else {
            i++;
        }
        is_found = is_found || (c >= from && c <= to);
    }
    return is_found != is_negated;
}

static const char *
bracket_fault(const char *s, size_t len)
{
    for (size_t i = 1; i + 1 < len; i++) {
        if ((unsigned char)s[i] >= 0x80) {
            return "has a letter beyond ASCII in '[...]': write one pattern for each letter";
        }
        if (s[i] == '-' && i > 1 && i + 2 < len && s[i - 1] > s[i + 1]) {
            return "has a range in '[...]' that ends before it begins";
        }
    }
    return NULL;
}

static const char *
component_fault(const char *s, size_t n)
{
    if (n == 2 && memcmp(s, "..", 2) == 0) {
        return "holds '..', which leads elsewhere behind a symbolic link: write the path out";
    }
    if (n == 2 && memcmp(s, "**", 2) == 0) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\') {
            return "holds a '\\', which is no escape here: '[*]' stands for a literal '*'";
        }
        if (s[i] == '*' && i + 1 < n && s[i + 1] == '*') {
            return "holds '**' beside other characters: it stands alone between two '/'";
        }
        if (s[i] != '[') {
            continue;
        }

        size_t len = bracket_len(s + i, n - i);
        const char *fault = len != 0 ? bracket_fault(s + i, len) : NULL;

        if (len == 0) {
            return "has a '[' without its ']': write '[[]' for a literal one";
        }
        if (fault != NULL) {
            return fault;
        }
        i += len - 1;
    }
    return NULL;
}

const char *
path_pattern_fault(const char *pattern)
{
    const char *s = pattern;

    if (pattern[0] != '/') {
        return "is not absolute: a pattern begins with '/' or '~/'";
    }
    while (*s != '\0') {
        s += strspn(s, "/");

        size_t n = strcspn(s, "/");
        const char *fault = component_fault(s, n);

        if (fault != NULL) {
            return fault;
        }
        s += n;
    }
    if (path_pattern_fixed_len(pattern) == 0) {
        return "would hide all that there is: begin with the name of a directory";
    }
    return NULL;
}

static bool
is_wild(char c)
{
    return c == '*' || c == '?' || c == '[';
}

bool
path_pattern_is_plain(const char *component, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (is_wild(component[i])) {
            return false;
        }
    }
    return true;
}

/* Bytes of the character at s. */
static size_t
char_len(const char *s, size_t n)
{
    size_t len = 1;

    if (((unsigned char)s[0] & 0xC0U) == 0xC0U) {
        while (len < n && ((unsigned char)s[len] & 0xC0U) == 0x80U) {
            len++;
        }
    }
    return len;
}

/* Whether what stands at p (no star) fits the character at s; then the bytes of
 * the pattern that stand for it. */
static size_t
fits_char(const char *p, size_t pn, const char *s, size_t len)
{
    if (p[0] == '?') {
        return 1;
    }
    if (p[0] == '[') {
        size_t bracket = bracket_len(p, pn);

        if (bracket != 0) {
            /* No character beyond ASCII is in a bracket. */
            return (len == 1 ? bracket_has(p, bracket, (unsigned char)s[0]) : p[1] == '!') ? bracket
                                                                                           : 0;
        }
    }
    return pn >= len && memcmp(p, s, len) == 0 ? len : 0;
}

bool
path_pattern_fits(const char *component, size_t len, const char *name, size_t name_len)
{
    size_t p = 0;
    size_t s = 0;
    size_t star = SIZE_MAX; /* behind the last star that was met */
    size_t retry = 0;       /* where what follows it was last tried */

    while (s < name_len) {
        size_t step = char_len(name + s, name_len - s);
        size_t used = 0;

        if (p < len && component[p] == '*') {
            star = ++p;
            retry = s;
            continue;
        }
        used = p < len ? fits_char(component + p, len - p, name + s, step) : 0;
        if (used != 0) {
            p += used;
            s += step;
        } else if (star != SIZE_MAX) {
            retry += char_len(name + retry, name_len - retry);
            p = star;
            s = retry;
        } else {
            return false;
        }
    }
    while (p < len && component[p] == '*') {
        p++;
    }
    return p == len;
}

/* Stands for one name: no wildcard but those that were quoted. */
static bool
is_one_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '[' && n - i >= 3 && s[i + 2] == ']' && is_wild(s[i + 1])) {
            i += 2;
        } else if (is_wild(s[i])) {
            return false;
        }
    }
    return true;
}

size_t
path_pattern_fixed_len(const char *pattern)
{
    size_t fixed = 0;

    for (const char *s = pattern; *s != '\0';) {
        s += strspn(s, "/");

        size_t n = strcspn(s, "/");

        if (!is_one_name(s, n)) {
            break;
        }
        s += n;
        fixed = n > 0 ? (size_t)(s - pattern) : fixed;
    }
    return fixed;
}

bool
path_pattern_is_below(const char *pattern, const char *dir)
{
    size_t fixed = path_pattern_fixed_len(pattern);
    size_t n = dir[1] == '\0' ? 0 : strlen(dir);

    return fixed >= n && memcmp(pattern, dir, n) == 0 && (fixed == n || pattern[n] == '/');
}

bool
path_pattern_may_be_below(const char *pattern, const char *dir)
{
    size_t fixed = path_pattern_fixed_len(pattern);
    bool has_wildcard = pattern[fixed] != '\0';
    bool is_above = strncmp(dir, pattern, fixed) == 0 && (dir[fixed] == '/' || dir[fixed] == '\0');

    return path_pattern_is_below(pattern, dir) || (has_wildcard && is_above);
}

bool
path_pattern_is_deep(const char *pattern)
{
    for (const char *s = pattern; *s != '\0';) {
        s += strspn(s, "/");

        size_t n = strcspn(s, "/");

        if (n == 2 && s[0] == '*' && s[1] == '*') {
            return true;
        }
        s += n;
    }
    return false;
}

enum sy_code
path_pattern_quote(struct buf *b, const char *path)
{
    enum sy_code rc = SY_E_OK;

    for (const char *s = path; *s != '\0' && rc == SY_E_OK; s++) {
        rc = is_wild(*s) ? buf_addf(b, "[%c]", *s) : buf_add_char(b, *s);
    }
    return rc;
}
