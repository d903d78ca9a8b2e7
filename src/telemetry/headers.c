#include <string.h>

#include "base/mem.h"
#include "base/secret_file.h"
#include "telemetry/telemetry_internal.h"

/*
 * Headers of exports, such as a token: from a file of lines "Name: value", or from a variable as
 * OTEL_EXPORTER_OTLP_HEADERS has them, "name=value,name=value" with percent signs.
 */

#define FILE_KEY "telemetry.otlp_headers_file"
#define ENV_KEY  "telemetry.otlp_headers_env"

void
headers_fini(struct headers *h)
{
    mem_free_secret(h->secret.data, h->secret.cap);
    *h = (struct headers){0};
}

/* The characters of a header's name (RFC 9110, token). */
static bool
is_name(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_word && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return n > 0;
}

static bool
is_value(const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < ' ' && c != '\t') {
            return false;
        }
        if (c >= 0x7f) {
            return false;
        }
    }
    return true;
}

/* The sentence never holds the text: it is a secret. */
static enum sy_code
bad(const char *key, size_t number, const char *form, struct sy_error *err)
{
    return sy_err_set(err, SY_E_CONFIG, "%s: header %zu is not of the form %s", key, number, form);
}

static char *
trim(char *text)
{
    size_t n = 0;

    text += strspn(text, " \t\r");
    n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL) {
        text[--n] = '\0';
    }
    return text;
}

static enum sy_code
add(struct headers *h, char *line, const char *key, struct sy_error *err)
{
    if (h->n == HEADERS_MAX) {
        return sy_err_set(err, SY_E_CONFIG, "%s: at most %u headers", key, HEADERS_MAX);
    }
    h->list[h->n++] = line;
    h->list[h->n] = NULL;
    return SY_E_OK;
}

/* Cuts off what stands before the separator, without space around it; *next is NULL past the last.
 */
static char *
take_part(char **next, char separator)
{
    char *part = *next;
    char *end = strchr(part, separator);

    *next = end != NULL ? end + 1 : NULL;
    if (end != NULL) {
        *end = '\0';
    }
    return trim(part);
}

/* Cuts the text, which is ours, into lines. Empty ones and those that begin with # say nothing. */
static enum sy_code
take_lines(struct headers *h, struct sy_error *err)
{
    char *next = h->secret.data;
    size_t number = 0;
    enum sy_code rc = SY_E_OK;

    while (next != NULL && rc == SY_E_OK) {
        char *line = take_part(&next, '\n');

        number++;
        if (line[0] == '\0' || line[0] == '#') {
            continue;
        }
        if (!is_name(line, strcspn(line, ":")) || strchr(line, ':') == NULL || !is_value(line)) {
            return bad(FILE_KEY, number, "'Name: value'", err);
        }
        rc = add(h, line, FILE_KEY, err);
    }
    return rc;
}

static int
hex(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* "%41" becomes 'A', in place, since texts only shrink; false: no such text. */
static bool
decode(char *text)
{
    char *out = text;

    for (; *text != '\0'; text++) {
        char c = *text;

        if (c == '%') {
            int high = hex(text[1]);
            int low = high >= 0 ? hex(text[2]) : -1;

            if (low < 0 || high + low == 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            text += 2;
        }
        *out++ = c;
    }
    *out = '\0';
    return true;
}

/* The same for "name=value,name=value". */
static enum sy_code
take_pairs(struct headers *h, struct sy_error *err)
{
    char *next = h->secret.data;
    size_t number = 0;
    enum sy_code rc = SY_E_OK;

    while (next != NULL && rc == SY_E_OK) {
        char *pair = take_part(&next, ',');
        size_t n = 0;

        number++;
        if (pair[0] == '\0') {
            continue;
        }
        n = strcspn(pair, "=");
        if (pair[n] != '=' || !is_name(pair, n) || !decode(pair + n) || !is_value(pair)) {
            return bad(ENV_KEY, number, "'name=value', with %XX for other characters", err);
        }
        pair[n] = ':';
        rc = add(h, pair, ENV_KEY, err);
    }
    return rc;
}

static enum sy_code
read_env(struct headers *h, const char *name, char *const *environ_list, struct sy_error *err)
{
    const char *value = strv_env_find(environ_list, name);

    if (value == NULL) {
        return sy_err_set(err, SY_E_CONFIG, ENV_KEY ": there is no variable %.100s", name);
    }
    if (strlen(value) >= HEADERS_BYTES) {
        return sy_err_set(err, SY_E_CONFIG, ENV_KEY ": %.100s has more than %u bytes", name,
                          HEADERS_BYTES);
    }
    return buf_add_str(&h->secret, value) == SY_E_OK ? take_pairs(h, err) : sy_err_nomem(err);
}

enum sy_code
headers_read(struct headers *ret, const struct config *config, char *const *environ_list,
             struct sy_error *err)
{
    const char *path = config->telemetry.otlp_headers_file;
    const char *name = config->telemetry.otlp_headers_env;
    enum sy_code rc = SY_E_OK;

    *ret = (struct headers){.secret = {.max = HEADERS_BYTES + 1}};
    rc = add(ret, mem_unconst("Content-Type: application/json"), FILE_KEY, err);
    if (rc == SY_E_OK && path[0] != '\0' && name[0] != '\0') {
        rc = sy_err_set(err, SY_E_CONFIG, FILE_KEY " and " ENV_KEY " exclude each other");
    }
    /* At once, so that no copy is left behind when it grows. */
    if (rc == SY_E_OK && name[0] != '\0' &&
        buf_reserve(&ret->secret, HEADERS_BYTES + 1) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc == SY_E_OK && path[0] != '\0') {
        rc = secret_file_read(&ret->secret, FILE_KEY, path, err);
        rc = rc == SY_E_OK ? take_lines(ret, err) : rc;
    } else if (rc == SY_E_OK && name[0] != '\0') {
        rc = read_env(ret, name, environ_list, err);
    }
    if (rc != SY_E_OK) {
        headers_fini(ret);
    }
    return rc;
}
