#include "sandbox/audit_record.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

struct blocker {
    const char *name;
    enum sandbox_operation operation;
    bool is_in_directory;
};

/* Names of rights as the kernel writes them (security/landlock/audit.c). A record has all that were
 * missing; the first one that is listed here tells what was tried. */
static const struct blocker blockers[] = {
    {"fs.refer",        OPERATION_RENAME,   true },
    {"fs.make_reg",     OPERATION_CREATE,   true },
    {"fs.make_dir",     OPERATION_CREATE,   true },
    {"fs.make_sym",     OPERATION_CREATE,   true },
    {"fs.make_fifo",    OPERATION_CREATE,   true },
    {"fs.make_sock",    OPERATION_CREATE,   true },
    {"fs.make_char",    OPERATION_CREATE,   true },
    {"fs.make_block",   OPERATION_CREATE,   true },
    {"fs.remove_file",  OPERATION_DELETE,   true },
    {"fs.remove_dir",   OPERATION_DELETE,   true },
    {"fs.write_file",   OPERATION_WRITE,    false},
    {"fs.truncate",     OPERATION_TRUNCATE, false},
    {"fs.ioctl_dev",    OPERATION_WRITE,    false},
    {"fs.execute",      OPERATION_READ,     false},
    {"fs.read_file",    OPERATION_READ,     false},
    {"fs.read_dir",     OPERATION_READ,     false},
    {"fs.resolve_unix", OPERATION_CONNECT,  false},
};

/* The text behind " key=", or NULL. Values of others that hold blanks are quoted or in hex, so
 * that no value can pass for a key. */
static const char *
value_of(const char *text, const char *end, const char *key, size_t *ret_n)
{
    size_t len = strlen(key);

    while (text < end) {
        const char *stop = memchr(text, ' ', (size_t)(end - text));
        size_t n = (size_t)((stop != NULL ? stop : end) - text);

        if (n > len && text[len] == '=' && memcmp(text, key, len) == 0) {
            *ret_n = n - len - 1;
            return text + len + 1;
        }
        text += n + 1;
    }
    return NULL;
}

static bool
number_of(const char *text, const char *end, const char *key, unsigned base, uint64_t *ret)
{
    size_t n = 0;
    const char *v = value_of(text, end, key, &n);
    uint64_t number = 0;

    for (size_t i = 0; v != NULL && i < n; i++) {
        unsigned digit = v[i] >= '0' && v[i] <= '9'   ? (unsigned)(v[i] - '0')
                         : v[i] >= 'a' && v[i] <= 'f' ? (unsigned)(v[i] - 'a' + 10)
                                                      : base;

        if (digit >= base || number > (UINT64_MAX - digit) / base) {
            return false;
        }
        number = number * base + digit;
    }
    *ret = number;
    return v != NULL && n > 0;
}

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A string that the kernel did not trust: quoted, or in hex if it has blanks, quotes or control
 * bytes. */
static bool
string_of(const char *v, size_t n, char *ret, size_t size)
{
    if (n >= 2 && v[0] == '"' && v[n - 1] == '"' && n - 2 < size) {
        memcpy(ret, v + 1, n - 2);
        ret[n - 2] = '\0';
        return n > 2;
    }
    if (n == 0 || n % 2 != 0 || n / 2 >= size) {
        return false;
    }
    for (size_t i = 0; i < n / 2; i++) {
        int high = hex_digit(v[2 * i]);
        int low = hex_digit(v[2 * i + 1]);

        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            return false;
        }
        ret[i] = (char)(unsigned char)(high * 16 + low);
    }
    ret[n / 2] = '\0';
    return true;
}

static const struct blocker *
find_blocker(const char *list, size_t n)
{
    for (size_t i = 0; i < sizeof(blockers) / sizeof(blockers[0]); i++) {
        size_t len = strlen(blockers[i].name);

        for (size_t at = 0; at < n;) {
            const char *comma = memchr(list + at, ',', n - at);
            size_t word = comma != NULL ? (size_t)(comma - list) - at : n - at;

            if (word == len && memcmp(list + at, blockers[i].name, len) == 0) {
                return &blockers[i];
            }
            at += word + 1;
        }
    }
    return NULL;
}

/* "audit(SECONDS.MILLISECONDS:SERIAL): ", with which each record begins. */
static bool
stamp_of(const char *text, const char *end, uint64_t *ret_ms)
{
    static const char head[] = "audit(";
    const char *at = text + strlen(head);
    const char *dot = NULL;
    uint64_t ms = 0;

    if ((size_t)(end - text) <= strlen(head) || memcmp(text, head, strlen(head)) != 0) {
        return false;
    }
    for (; at < end && *at != ':'; at++) {
        if (*at == '.' && dot == NULL && at > text + strlen(head)) {
            dot = at;
        } else if (*at < '0' || *at > '9' || ms > (UINT64_MAX - 9) / 10) {
            return false;
        } else {
            ms = ms * 10 + (uint64_t)(*at - '0');
        }
    }
    *ret_ms = ms;
    return at < end && dot != NULL && at - dot == 4;
}

static bool
parse_access(struct audit_record *ret, const char *text, const char *end)
{
    size_t n = 0;
    const char *list = value_of(text, end, "blockers", &n);
    const struct blocker *b = list != NULL ? find_blocker(list, n) : NULL;
    const char *path = b != NULL ? value_of(text, end, "path", &n) : NULL;

    if (path == NULL || !string_of(path, n, ret->object, sizeof(ret->object)) ||
        ret->object[0] != '/') {
        return false;
    }
    ret->kind = AUDIT_REFUSED;
    ret->operation = b->operation;
    ret->is_in_directory = b->is_in_directory;
    return true;
}

static bool
parse_domain(struct audit_record *ret, const char *text, const char *end)
{
    static const char allocated[] = "allocated";
    static const char freed[] = "deallocated";
    size_t n = 0;
    const char *status = value_of(text, end, "status", &n);
    uint64_t pid = 0;

    if (status != NULL && str_is(freed, status, n)) {
        ret->kind = AUDIT_DOMAIN_FREED;
        return true;
    }
    if (status == NULL || !str_is(allocated, status, n) || !number_of(text, end, "pid", 10, &pid) ||
        pid == 0 || pid > INT_MAX) {
        return false;
    }
    ret->kind = AUDIT_DOMAIN_OF;
    ret->pid = (pid_t)pid;
    return true;
}

void
audit_record_parse(struct audit_record *ret, int type, const char *text, size_t n)
{
    const char *nul = memchr(text, '\0', n);
    const char *end = nul != NULL ? nul : text + n;
    bool is_known = type == AUDIT_RECORD_ACCESS || type == AUDIT_RECORD_DOMAIN;

    ret->kind = AUDIT_OTHER;
    ret->stamp_ms = 0;
    ret->domain = 0;
    ret->pid = 0;
    ret->object[0] = '\0';
    if (!is_known || !stamp_of(text, end, &ret->stamp_ms) ||
        !number_of(text, end, "domain", 16, &ret->domain) ||
        !(type == AUDIT_RECORD_ACCESS ? parse_access(ret, text, end)
                                      : parse_domain(ret, text, end))) {
        ret->kind = AUDIT_OTHER;
    }
}
