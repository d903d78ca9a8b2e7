/*
 * Paths as Windows has them. Many spellings lead to one file there, and rules
 * are on names: what could be another spelling is refused, not guessed.
 */
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "sandbox/windows/token.h"

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char
upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 0x20 : c);
}

static bool
is_slash(char c)
{
    return c == '\\' || c == '/';
}

/* CON, NUL, COM1, ... with or without an extension name a device anywhere. */
static bool
is_device(const char *s, size_t n)
{
    static const char *const devices[] = {"CON",    "PRN",     "AUX",  "NUL",
                                          "CONIN$", "CONOUT$", "COM?", "LPT?"};
    const char *dot = memchr(s, '.', n);
    size_t stem = dot != NULL ? (size_t)(dot - s) : n;

    while (stem > 0 && s[stem - 1] == ' ') {
        stem--;
    }
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        size_t k = 0;

        while (k < stem && devices[i][k] != '\0' &&
               (devices[i][k] == upper(s[k]) || devices[i][k] == '?')) {
            k++;
        }
        if (k == stem && devices[i][k] == '\0') {
            return true;
        }
    }
    return false;
}

/* NULL if it is a name, else what is wrong with it. */
static const char *
component_fault(const char *s, size_t n)
{
    if (n == 2 && s[0] == '.' && s[1] == '.') {
        return "'..' in a path: name the directory itself";
    }
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] < 0x20 || strchr("<>:\"|?*", s[i]) != NULL) {
            return "a character that no file name has (a colon would name a stream)";
        }
        if (s[i] == '~' && i + 1 < n && s[i + 1] >= '0' && s[i + 1] <= '9' && n <= 12) {
            return "a short (8.3) name: write the long one";
        }
    }
    if (s[n - 1] == '.' || s[n - 1] == ' ') {
        return "a name that ends with a dot or a space, which Windows drops";
    }
    return is_device(s, n) ? "the name of a device" : NULL;
}

static enum sy_code
fault(struct sy_error *err, const char *what, const char *path, const char *why)
{
    return sy_err_set(err, SY_E_CONFIG, "%s '%.100s': %s", what, path, why);
}

/* Everything behind the drive or server; ret already ends with a backslash. */
static enum sy_code
add_components(struct buf *ret, const char *what, const char *path, const char *rest,
               struct sy_error *err)
{
    bool is_first = true;
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && *rest != '\0') {
        size_t n = strcspn(rest, "\\/");

        if (n > 0 && !(n == 1 && rest[0] == '.')) {
            const char *why = component_fault(rest, n);

            if (why != NULL) {
                return fault(err, what, path, why);
            }
            rc = is_first ? SY_E_OK : buf_add_char(ret, '\\');
            if (rc == SY_E_OK) {
                rc = buf_add(ret, rest, n);
            }
            is_first = false;
        }
        rest += n + (rest[n] != '\0' ? 1 : 0);
    }
    return rc;
}

static bool
has_server_and_share(const char *unc)
{
    size_t server = strcspn(unc, "\\/");
    size_t share = unc[server] != '\0' ? strcspn(unc + server + 1, "\\/") : 0;

    return server > 0 && share > 0 && unc[0] != '.' && unc[0] != '?';
}

enum sy_code
token_path(struct buf *ret, const char *what, const char *path, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    buf_reset(ret);
    if (!utf8_is_valid(path, strlen(path))) {
        return fault(err, what, path, "not UTF-8: no such name can be made on Windows");
    }
    if (is_letter(path[0]) && path[1] == ':' && is_slash(path[2])) {
        rc = buf_addf(ret, "%c:\\", upper(path[0]));
        if (rc == SY_E_OK) {
            rc = add_components(ret, what, path, path + 3, err);
        }
    } else if (is_slash(path[0]) && is_slash(path[1]) && has_server_and_share(path + 2)) {
        rc = buf_add_str(ret, "\\\\");
        if (rc == SY_E_OK) {
            rc = add_components(ret, what, path, path + 2, err);
        }
    } else {
        return fault(
            err, what, path,
            "not an absolute path: on Windows right are C:\\... and \\\\server\\share\\...");
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "%s: longer than %u bytes: '%.80s...'", what,
                          LIMIT_PATH, path);
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}

/* FNV-1a. Roots come from the user's own configuration: nobody who could gain by
 * it chooses two of them that collide. */
static uint64_t
hash(const char *path, uint64_t basis)
{
    uint64_t h = basis;

    for (; *path != '\0'; path++) {
        h ^= (unsigned char)upper(*path);
        h *= 0x100000001b3U;
    }
    return h;
}

enum sy_code
token_root_sid(struct buf *ret, const char *path)
{
    uint64_t a = hash(path, 0xcbf29ce484222325U);
    uint64_t b = hash(path, a ^ 0x9e3779b97f4a7c15U);

    buf_reset(ret);
    /* As the SIDs of accounts look like (S-1-5-21-...), of a domain that nobody has. */
    return buf_addf(ret, "S-1-5-21-%u-%u-%u-%u", (unsigned)(a >> 32), (unsigned)(a & 0xffffffffU),
                    (unsigned)(b >> 32), (unsigned)(b & 0xffffffffU));
}
