#include "guard/git_config.h"

#include <stdint.h>
#include <string.h>

#include "base/limits.h"

/* git's reader, in its order (git-config(1), CONFIGURATION FILE): what it refuses is
 * refused here, and what it takes gives the same names and values. */
struct reader {
    const char *text;
    size_t len;
    size_t at;
    uint32_t line;
    struct buf section;
    struct buf subsection;
    bool has_subsection;
    struct buf key;
    struct buf value;
};

#define END (-1)

static int
next(struct reader *r)
{
    if (r->at >= r->len) {
        return END;
    }

    int c = (unsigned char)r->text[r->at++];

    if (c == '\r' && r->at < r->len && r->text[r->at] == '\n') {
        c = '\n';
        r->at++;
    }
    if (c == '\n') {
        r->line++;
    }
    return c;
}

static bool
is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static bool
is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_key_char(int c)
{
    return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static char
lower(int c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* After the blank in "[section ". */
static enum sy_code
read_subsection(struct reader *r)
{
    int c;

    do {
        c = next(r);
        if (c == '\n') {
            return SY_E_PARSE;
        }
    } while (is_space(c));
    if (c != '"') {
        return SY_E_PARSE;
    }
    r->has_subsection = true;
    for (;;) {
        c = next(r);
        if (c == '\n' || c == END || c == '\0') {
            return SY_E_PARSE;
        }
        if (c == '"') {
            break;
        }
        if (c == '\\') {
            c = next(r);
            if (c == '\n' || c == END || c == '\0') {
                return SY_E_PARSE;
            }
        }

        enum sy_code rc = buf_add_char(&r->subsection, (char)c);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return next(r) == ']' ? SY_E_OK : SY_E_PARSE;
}

static enum sy_code
read_section(struct reader *r)
{
    buf_reset(&r->section);
    buf_reset(&r->subsection);
    r->has_subsection = false;
    for (;;) {
        int c = next(r);

        if (c == ']') {
            return SY_E_OK;
        }
        if (is_space(c)) {
            return c == '\n' ? SY_E_PARSE : read_subsection(r);
        }
        if (!is_key_char(c) && c != '.') {
            return SY_E_PARSE;
        }

        enum sy_code rc = SY_E_OK;

        if (c == '.' && !r->has_subsection) {
            /* The old way: [branch.name]. */
            r->has_subsection = true;
        } else {
            rc = buf_add_char(r->has_subsection ? &r->subsection : &r->section, lower(c));
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

/* After a backslash; *ret is what it stands for, or 0 for a line that goes on. */
static bool
unescape(struct reader *r, char *ret)
{
    int c = next(r);

    switch (c) {
    case '\n':
        *ret = '\0';
        return true;
    case 't':
        *ret = '\t';
        return true;
    case 'b':
        *ret = '\b';
        return true;
    case 'n':
        *ret = '\n';
        return true;
    case '\\':
    case '"':
        *ret = (char)c;
        return true;
    default:
        return false;
    }
}

/* One byte of a value outside of comments that is neither its end nor the end of a line.
 * *keep is the length up to the last one that counts. */
static enum sy_code
add_to_value(struct reader *r, int c, bool *is_quoted, size_t *keep)
{
    char plain = (char)c;

    if (c == '\0') {
        return SY_E_PARSE;
    }
    if (c == '"') {
        *is_quoted = !*is_quoted;
        return SY_E_OK;
    }
    if (is_space(c) && !*is_quoted) {
        /* Between words it counts, before the first it does not. */
        return r->value.len > 0 ? buf_add_char(&r->value, plain) : SY_E_OK;
    }
    if (c == '\\' && !unescape(r, &plain)) {
        return SY_E_PARSE;
    }
    if (plain == '\0') {
        return SY_E_OK; /* the line goes on */
    }

    enum sy_code rc = buf_add_char(&r->value, plain);

    *keep = r->value.len;
    return rc;
}

/* After '='. Blanks at its end are cut unless quoted. */
static enum sy_code
read_value(struct reader *r)
{
    bool is_quoted = false;
    bool is_comment = false;
    size_t keep = 0;

    for (;;) {
        int c = next(r);

        if (c == '\n' || c == END) {
            r->value.len = keep;
            if (r->value.data != NULL) {
                r->value.data[keep] = '\0';
            }
            return is_quoted ? SY_E_PARSE : SY_E_OK;
        }
        is_comment = is_comment || (!is_quoted && (c == ';' || c == '#'));
        if (is_comment) {
            continue;
        }

        enum sy_code rc = add_to_value(r, c, &is_quoted, &keep);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

/* A key whose first letter was `c`. */
static enum sy_code
read_entry(struct reader *r, int c, git_config_fn *fn, void *arg)
{
    enum sy_code rc = SY_E_OK;
    bool has_value = false;

    buf_reset(&r->key);
    buf_reset(&r->value);
    while (is_key_char(c) && rc == SY_E_OK) {
        rc = buf_add_char(&r->key, lower(c));
        c = next(r);
    }
    while (c == ' ' || c == '\t') {
        c = next(r);
    }
    if (rc == SY_E_OK && c != '\n' && c != END) {
        has_value = c == '=';
        rc = has_value ? read_value(r) : SY_E_PARSE;
    }
    if (rc == SY_E_OK && r->section.len == 0 && !r->has_subsection) {
        rc = SY_E_PARSE;
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    struct git_config_entry e = {
        .section = buf_view(&r->section),
        .subsection = r->has_subsection ? buf_view(&r->subsection) : NULL,
        .key = buf_view(&r->key),
        .value = has_value ? buf_view(&r->value) : NULL,
    };

    return fn(arg, &e);
}

static enum sy_code
read_all(struct reader *r, git_config_fn *fn, void *arg)
{
    bool is_comment = false;

    for (;;) {
        enum sy_code rc = SY_E_OK;
        int c = next(r);

        if (c == END) {
            return SY_E_OK;
        }
        if (c == '\n') {
            is_comment = false;
        } else if (is_comment || is_space(c)) {
            continue;
        } else if (c == '#' || c == ';') {
            is_comment = true;
        } else if (c == '[') {
            rc = read_section(r);
        } else if (is_alpha(c)) {
            rc = read_entry(r, c, fn, arg);
        } else {
            rc = SY_E_PARSE;
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

enum sy_code
git_config_read(const char *text, size_t len, git_config_fn *fn, void *arg, struct sy_error *err)
{
    struct reader r = {
        .text = text,
        .len = len,
        .line = 1,
        .section = {.max = LIMIT_GIT_CONFIG},
        .subsection = {.max = LIMIT_GIT_CONFIG},
        .key = {.max = LIMIT_GIT_CONFIG},
        .value = {.max = LIMIT_GIT_CONFIG},
    };

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        r.at = 3;
    }

    enum sy_code rc = read_all(&r, fn, arg);

    buf_fini(&r.section);
    buf_fini(&r.subsection);
    buf_fini(&r.key);
    buf_fini(&r.value);
    if (rc == SY_E_PARSE) {
        return sy_err_set(err, rc, "line %u is no git configuration", r.line);
    }
    return rc;
}

enum sy_code
git_config_text(struct buf *out, const struct git_config_entry *e)
{
    enum sy_code rc = buf_add_str(out, e->section);

    if (rc == SY_E_OK && e->subsection != NULL) {
        rc = buf_addf(out, ".%s", e->subsection);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, ".%s", e->key);
    }
    if (rc == SY_E_OK && e->value != NULL) {
        rc = buf_addf(out, "=%s", e->value);
    }
    return rc;
}
