#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/journal.h"

/*
 *     shellyard guard 1
 *     d DEV INO BIRTH TEMP OWNER[,OWNER...] PATH
 *
 * Numbers in decimal; in PATH bytes below 0x21, 0x7f and '%' are %XX.
 */
#define FIRST_LINE "shellyard guard 1\n"
#define FIELDS     7

void
journal_entries_fini(struct journal_entries *e)
{
    while (e->n > 0) {
        journal_entries_remove(e, e->n - 1);
    }
    mem_free(e->v);
    *e = (struct journal_entries){0};
}

static void
entry_fini(struct journal_entry *e)
{
    mem_free(e->path);
    mem_free(e->temp);
    strv_fini(&e->owners);
    *e = (struct journal_entry){0};
}

enum sy_code
journal_entries_add(struct journal_entries *e, struct journal_entry *entry)
{
    struct journal_entry *more =
        e->n < LIMIT_GUARD_PLACEHOLDERS ? mem_realloc(e->v, (e->n + 1) * sizeof(*more)) : NULL;

    if (more == NULL) {
        entry_fini(entry);
        return e->n < LIMIT_GUARD_PLACEHOLDERS ? SY_E_NOMEM : SY_E_LIMIT;
    }
    e->v = more;
    e->v[e->n++] = *entry;
    *entry = (struct journal_entry){0};
    return SY_E_OK;
}

void
journal_entries_remove(struct journal_entries *e, size_t i)
{
    entry_fini(&e->v[i]);
    e->n--;
    memmove(&e->v[i], &e->v[i + 1], (e->n - i) * sizeof(e->v[0]));
}

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place; false: malformed. */
static bool
unescape(char *s)
{
    char *out = s;

    for (; *s != '\0'; s++) {
        if (*s != '%') {
            *out++ = *s;
            continue;
        }

        int high = hex_digit(s[1]);
        int low = high >= 0 ? hex_digit(s[2]) : -1;

        if (low < 0 || high * 16 + low == 0) {
            return false;
        }
        *out++ = (char)(high * 16 + low);
        s += 2;
    }
    *out = '\0';
    return true;
}

static bool
is_id(const char *s)
{
    return strlen(s) == JOURNAL_ID - 1 && strspn(s, "0123456789abcdef") == JOURNAL_ID - 1;
}

/* A name that we gave: nothing else is ever removed by it. */
static bool
is_temp(const char *s)
{
    return str_starts(s, ".shellyard-") && is_id(s + strlen(".shellyard-"));
}

static enum sy_code
parse_owners(struct strv *owners, char *text)
{
    owners->max = LIMIT_GUARD_OWNERS;
    if (str_eq(text, "-")) {
        return SY_E_OK; /* all dead, and it could not be removed so far */
    }
    for (char *at = text; at != NULL;) {
        char *comma = strchr(at, ',');

        if (comma != NULL) {
            *comma++ = '\0';
        }
        if (!is_id(at)) {
            return SY_E_PARSE;
        }

        enum sy_code rc = strv_add(owners, at);

        if (rc != SY_E_OK) {
            return rc == SY_E_LIMIT ? SY_E_PARSE : rc;
        }
        at = comma;
    }
    return SY_E_OK;
}

/* Absolute, and no component is empty, "." or "..". */
static bool
is_plain_path(const char *path)
{
    if (path[0] != '/' || strlen(path) >= LIMIT_PATH) {
        return false;
    }
    for (const char *at = path; *at == '/';) {
        size_t len = strcspn(++at, "/");

        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.')) {
            return false;
        }
        at += len;
    }
    return true;
}

static enum sy_code
parse_line(struct journal_entry *e, char *line)
{
    char *fields[FIELDS];
    size_t n = 0;

    for (char *at = line; at != NULL && n < FIELDS; n++) {
        fields[n] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
        if ((at != NULL) != (n + 1 < FIELDS)) {
            return SY_E_PARSE;
        }
    }
    if (n != FIELDS || (!str_eq(fields[0], "d") && !str_eq(fields[0], "f")) ||
        !str_to_u64(&e->dev, fields[1], 0, UINT64_MAX) ||
        !str_to_u64(&e->ino, fields[2], 0, UINT64_MAX) ||
        !str_to_u64(&e->btime_ns, fields[3], 0, UINT64_MAX) || !is_temp(fields[4]) ||
        !unescape(fields[6]) || !is_plain_path(fields[6])) {
        return SY_E_PARSE;
    }
    e->is_dir = fields[0][0] == 'd';
    e->temp = mem_strdup(fields[4]);
    e->path = mem_strdup(fields[6]);
    if (e->temp == NULL || e->path == NULL) {
        return SY_E_NOMEM;
    }
    return parse_owners(&e->owners, fields[5]);
}

enum sy_code
journal_parse(struct journal_entries *ret, const char *text, size_t len, struct sy_error *err)
{
    size_t first = strlen(FIRST_LINE);
    enum sy_code rc = SY_E_OK;
    size_t line = 1;

    *ret = (struct journal_entries){0};
    if (len == 0) {
        return SY_E_OK;
    }
    if (len < first || memcmp(text, FIRST_LINE, first) != 0) {
        rc = SY_E_PARSE;
    }
    for (size_t at = first; at < len && rc == SY_E_OK; line++) {
        const char *end = memchr(text + at, '\n', len - at);
        struct journal_entry e = {0};
        SY_AUTO(mem_free_charp)
        char *copy = end != NULL ? mem_strndup(text + at, (size_t)(end - text) - at) : NULL;

        if (end == NULL) {
            rc = SY_E_PARSE;
            break;
        }
        if (copy == NULL) {
            rc = SY_E_NOMEM;
            break;
        }
        rc = strlen(copy) == (size_t)(end - text) - at ? parse_line(&e, copy) : SY_E_PARSE;
        if (rc == SY_E_OK) {
            rc = journal_entries_add(ret, &e);
        } else {
            entry_fini(&e);
        }
        at = (size_t)(end - text) + 1;
    }
    if (rc != SY_E_OK) {
        journal_entries_fini(ret);
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_set(err, SY_E_PARSE,
                                             "line %zu of the journal of placeholders is damaged; "
                                             "remove it by hand",
                                             line);
    }
    return SY_E_OK;
}

static enum sy_code
format_path(struct buf *out, const char *path)
{
    enum sy_code rc = SY_E_OK;

    for (const char *at = path; *at != '\0' && rc == SY_E_OK; at++) {
        unsigned char c = (unsigned char)*at;

        rc = c <= ' ' || c == 0x7f || c == '%' ? buf_addf(out, "%%%02x", (unsigned)c)
                                               : buf_add_char(out, *at);
    }
    return rc;
}

enum sy_code
journal_format(struct buf *out, const struct journal_entries *e)
{
    enum sy_code rc = buf_add_str(out, FIRST_LINE);

    for (size_t i = 0; i < e->n && rc == SY_E_OK; i++) {
        const struct journal_entry *one = &e->v[i];

        rc = buf_addf(out, "%c %" PRIu64 " %" PRIu64 " %" PRIu64 " %s %s", one->is_dir ? 'd' : 'f',
                      one->dev, one->ino, one->btime_ns, one->temp, one->owners.n > 0 ? "" : "-");
        for (size_t k = 0; k < one->owners.n && rc == SY_E_OK; k++) {
            rc = buf_addf(out, "%s%s", k > 0 ? "," : "", one->owners.v[k]);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, ' ');
        }
        if (rc == SY_E_OK) {
            rc = format_path(out, one->path);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, '\n');
        }
    }
    return rc;
}
