/*
 * Regular expressions for Seatbelt. "." is not used for "any byte": a name may
 * hold a newline, at which some matchers stop; "[^/]" has no such doubt.
 */
#include <stdbool.h>
#include <string.h>

#include "sandbox/macos/seatbelt.h"

static enum sy_code
add_quoted(struct buf *out, char c)
{
    if (c != '\0' && strchr("\\^$.|?*+()[]{}", c) != NULL) {
        enum sy_code rc = buf_add_char(out, '\\');

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return buf_add_char(out, c);
}

enum sy_code
seatbelt_regex_quote(struct buf *out, const char *text)
{
    enum sy_code rc = SY_E_OK;

    for (; rc == SY_E_OK && *text != '\0'; text++) {
        rc = add_quoted(out, *text);
    }
    return rc;
}

static bool
is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static enum sy_code
add_component(struct buf *out, const char *s, size_t n)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < n; i++) {
        if (s[i] == '*') {
            rc = buf_add_str(out, "[^/]*");
        } else if (is_ascii_letter(s[i])) {
            rc = buf_addf(out, "[%c%c]", s[i] | 0x20, s[i] & ~0x20);
        } else {
            rc = add_quoted(out, s[i]);
        }
    }
    return rc;
}

/* The first `len` bytes of a name. */
static enum sy_code
add_name(struct buf *out, const char *name, size_t len)
{
    const char *end = name + len;
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && name < end) {
        const char *slash = memchr(name, '/', (size_t)(end - name));
        size_t n = (size_t)((slash != NULL ? slash : end) - name);

        if (n == 2 && name[0] == '*' && name[1] == '*') {
            rc = buf_add_str(out, "([^/]+/)*");
        } else {
            rc = add_component(out, name, n);
            if (rc == SY_E_OK && slash != NULL) {
                rc = buf_add_char(out, '/');
            }
        }
        name += n + (slash != NULL ? 1 : 0);
    }
    return rc;
}

/* The same alternative once: parents are shared by many names. */
static bool
is_first(char *const *names, size_t i, size_t len)
{
    for (size_t k = 0; k < i; k++) {
        if (strncmp(names[k], names[i], len) == 0 && names[k][len] == '/') {
            return false;
        }
    }
    return true;
}

static enum sy_code
add_alternative(struct buf *out, bool *has_one, const char *name, size_t len)
{
    enum sy_code rc = buf_add_str(out, *has_one ? "|" : "/([^/]+/)*(");

    *has_one = true;
    return rc == SY_E_OK ? add_name(out, name, len) : rc;
}

/* Parents up to the first that is not plain: behind it a new name is as
 * protected as the old one. */
static enum sy_code
add_parents(struct buf *out, bool *has_one, char *const *names, size_t i)
{
    size_t plain = strcspn(names[i], "*");
    enum sy_code rc = SY_E_OK;

    for (const char *p = strchr(names[i], '/'); rc == SY_E_OK && p != NULL;
         p = strchr(p + 1, '/')) {
        size_t len = (size_t)(p - names[i]);

        if (len < plain && is_first(names, i, len)) {
            rc = add_alternative(out, has_one, names[i], len);
        }
    }
    return rc;
}

enum sy_code
seatbelt_regex_names(struct buf *out, char *const *names, bool is_pin)
{
    bool has_one = false;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && names[i] != NULL; i++) {
        rc = is_pin ? add_parents(out, &has_one, names, i)
                    : add_alternative(out, &has_one, names[i], strlen(names[i]));
    }
    if (rc == SY_E_OK && has_one) {
        rc = buf_add_str(out, is_pin ? ")$" : ")(/|$)");
    }
    return rc;
}
