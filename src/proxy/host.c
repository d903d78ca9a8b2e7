#include "proxy/host.h"

#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <sys/socket.h>

/* What the registry of names allows in one label. */
#define LABEL_MAX 63
#define SHOWN     60

void
host_show(const char *s, size_t len, char out[HOST_SHOWN_MAX])
{
    size_t at = 0;

    for (size_t i = 0; i < len && i < SHOWN; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c > 0x20 && c < 0x7f && c != '\\' && c != '\'') {
            out[at++] = (char)c;
        } else {
            (void)snprintf(out + at, 5, "\\x%02x", (unsigned)c);
            at += 4;
        }
    }
    (void)snprintf(out + at, HOST_SHOWN_MAX - at, "%s", len > SHOWN ? "..." : "");
}

static enum sy_code
refuse(struct sy_error *err, const char *s, size_t len, const char *reason)
{
    char shown[HOST_SHOWN_MAX];

    host_show(s, len, shown);
    return sy_err_set(err, SY_E_PARSE, "host '%s' %s", shown, reason);
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' ||
           c == '_' || c == '.';
}

/* Why a byte may not be in a host, NULL if it may. */
static const char *
bad_byte(char c)
{
    unsigned char u = (unsigned char)c;

    if (is_name_char(c)) {
        return NULL;
    }
    if (u >= 0x80) {
        return "is not ASCII: write its punycode form (xn--...)";
    }
    switch (c) {
    case '\0':
        return "has a NUL byte";
    case '@':
        return "has user information before '@': write the host alone";
    case '%':
        return "has a '%': percent escapes and zone ids are not taken, write the host plainly";
    case ':':
        return "has a ':' too many: an IPv6 address stands in brackets, [2001:db8::1]";
    case '/':
    case '\\':
    case '?':
    case '#':
        return "has more than a host in it: write it without scheme and path";
    case '*':
        return "has a '*': only an entry of network.allow may begin with '*.'";
    default:
        break;
    }
    if (u <= 0x20 || u == 0x7f) {
        return "has white space or a control character";
    }
    return "has a character that no host name has: letters, digits, '-', '_' and '.' are taken";
}

/* The last label, without the dot before it. */
static size_t
last_label(const char *s, size_t len)
{
    size_t at = len;

    while (at > 0 && s[at - 1] != '.') {
        at--;
    }
    return at;
}

/* Would some resolver take it for an IPv4 address, in whatever notation? It
 * would if its last label is a number: 1, 017, 0x7f, 127.1. */
static bool
ends_in_number(const char *s, size_t len)
{
    size_t at = last_label(s, len);
    bool is_hex = len - at >= 2 && s[at] == '0' && (s[at + 1] == 'x' || s[at + 1] == 'X');

    for (size_t i = at + (is_hex ? 2 : 0); i < len; i++) {
        char c = s[i];
        bool is_hex_digit = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');

        if (!is_digit(c) && !(is_hex && is_hex_digit)) {
            return false;
        }
    }
    return len > at;
}

static bool
parse_v4(struct address *ret, const char *s, size_t len)
{
    struct address a = {.is_v6 = false};
    size_t at = 0;

    for (unsigned part = 0; part < 4; part++) {
        size_t from = at;
        unsigned value = 0;

        while (at < len && is_digit(s[at]) && at - from < 3) {
            value = value * 10 + (unsigned)(s[at] - '0');
            at++;
        }
        if (at == from || value > 255 || (s[from] == '0' && at - from > 1)) {
            return false;
        }
        a.ip[part] = (uint8_t)value;
        if (part < 3 && (at >= len || s[at++] != '.')) {
            return false;
        }
    }
    if (at != len) {
        return false;
    }
    *ret = a;
    return true;
}

static enum sy_code
parse_v6(struct host *ret, const char *s, size_t len, struct sy_error *err)
{
    char text[ADDRESS_TEXT_MAX];
    struct address a = {.is_v6 = true};

    if (len < 2 || s[len - 1] != ']') {
        return refuse(err, s, len, "begins with '[' but does not end with ']'");
    }
    if (len - 2 >= sizeof(text)) {
        return refuse(err, s, len, "is no IPv6 address: it is too long");
    }
    for (size_t i = 1; i < len - 1; i++) {
        if (strchr("0123456789abcdefABCDEF:.", s[i]) == NULL || s[i] == '\0') {
            return refuse(err, s, len,
                          s[i] == '%' ? "has a zone id: write the address without it"
                                      : "is no IPv6 address");
        }
    }
    memcpy(text, s + 1, len - 2);
    text[len - 2] = '\0';
    if (inet_pton(AF_INET6, text, a.ip) != 1) {
        return refuse(err, s, len, "is no IPv6 address");
    }
    return host_from_address(ret, &a, err);
}

enum sy_code
host_from_address(struct host *ret, const struct address *a, struct sy_error *err)
{
    char text[ADDRESS_TEXT_MAX];

    address_text(a, text);
    if (address_is_mapped(a)) {
        return refuse(err, text, strlen(text),
                      "is an IPv4 address in IPv6 form: write the IPv4 address itself");
    }
    memset(ret, 0, sizeof(*ret));
    ret->kind = HOST_ADDRESS;
    ret->address = *a;
    memcpy(ret->text, text, strlen(text) + 1);
    return SY_E_OK;
}

/* Lengths and dashes of the labels; s has only is_name_char bytes. */
static const char *
bad_labels(const char *s, size_t len)
{
    size_t from = 0;

    for (size_t i = 0; i <= len; i++) {
        if (i < len && s[i] != '.') {
            continue;
        }
        if (i == from) {
            return "has an empty label: two dots in a row, or one at its beginning";
        }
        if (i - from > LABEL_MAX) {
            return "has a label of more than 63 characters";
        }
        if (s[from] == '-' || s[i - 1] == '-') {
            return "has a label that begins or ends with '-'";
        }
        from = i + 1;
    }
    return NULL;
}

static enum sy_code
parse_name(struct host *ret, const char *s, size_t len, struct sy_error *err)
{
    size_t n = len > 1 && s[len - 1] == '.' ? len - 1 : len;
    const char *reason = bad_labels(s, n);

    if (n > HOST_LENGTH_MAX) {
        return refuse(err, s, len, "is longer than 253 characters");
    }
    if (reason != NULL) {
        return refuse(err, s, len, reason);
    }
    if (ends_in_number(s, n)) {
        return refuse(err, s, len,
                      "is no plain IPv4 address: write four decimal numbers, as in 192.0.2.1");
    }
    memset(ret, 0, sizeof(*ret));
    ret->kind = HOST_NAME;
    for (size_t i = 0; i < n; i++) {
        ret->text[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]);
    }
    return SY_E_OK;
}

enum sy_code
host_parse(struct host *ret, const char *s, size_t len, struct sy_error *err)
{
    struct address a;

    if (len == 0) {
        return sy_err_set(err, SY_E_PARSE, "the host is empty");
    }
    if (s[0] == '[') {
        return parse_v6(ret, s, len, err);
    }
    for (size_t i = 0; i < len; i++) {
        const char *reason = bad_byte(s[i]);

        if (reason != NULL) {
            return refuse(err, s, len, reason);
        }
    }
    if (parse_v4(&a, s, len)) {
        return host_from_address(ret, &a, err);
    }
    return parse_name(ret, s, len, err);
}

bool
host_equal(const struct host *a, const struct host *b)
{
    return a->kind == b->kind && strcmp(a->text, b->text) == 0;
}

enum sy_code
host_parse_port(uint16_t *ret, const char *s, size_t len, struct sy_error *err)
{
    char shown[HOST_SHOWN_MAX];
    uint32_t value = 0;
    bool is_ok = len >= 1 && len <= 5 && s[0] != '0';

    for (size_t i = 0; is_ok && i < len; i++) {
        is_ok = is_digit(s[i]);
        value = value * 10 + (uint32_t)(s[i] - '0');
    }
    if (!is_ok || value > 65535) {
        host_show(s, len, shown);
        return sy_err_set(err, SY_E_PARSE, "'%s' is no port: write a number from 1 to 65535",
                          shown);
    }
    *ret = (uint16_t)value;
    return SY_E_OK;
}

enum sy_code
host_parse_authority(struct host *ret, uint16_t *ret_port, bool *ret_has_port, const char *s,
                     size_t len, struct sy_error *err)
{
    size_t end = 0;
    uint16_t port = 0;

    if (len > 0 && memchr(s, '@', len) != NULL) {
        return refuse(err, s, len, bad_byte('@'));
    }
    if (len > 0 && s[0] == '[') {
        const char *close = memchr(s, ']', len);

        end = close != NULL ? (size_t)(close - s) + 1 : len;
    } else {
        const char *colon = len > 0 ? memchr(s, ':', len) : NULL;

        end = colon != NULL ? (size_t)(colon - s) : len;
    }
    if (end < len && s[end] != ':') {
        return refuse(err, s, len, "has something other than ':port' after ']'");
    }
    if (end < len && memchr(s + end + 1, ':', len - end - 1) != NULL) {
        return refuse(err, s, len, bad_byte(':'));
    }
    if (end == len && ret_has_port == NULL) {
        return refuse(err, s, len, "has no port: write host:port");
    }
    if (host_parse(ret, s, end, err) != SY_E_OK ||
        (end < len && host_parse_port(&port, s + end + 1, len - end - 1, err) != SY_E_OK)) {
        return SY_E_PARSE;
    }
    if (end < len) {
        *ret_port = port;
    }
    if (ret_has_port != NULL) {
        *ret_has_port = end < len;
    }
    return SY_E_OK;
}

void
host_authority(const struct host *h, uint16_t port, char out[HOST_AUTHORITY_MAX])
{
    bool is_v6 = h->kind == HOST_ADDRESS && h->address.is_v6;
    int n =
        snprintf(out, HOST_AUTHORITY_MAX, "%s%s%s", is_v6 ? "[" : "", h->text, is_v6 ? "]" : "");

    SY_ASSERT(n > 0 && n < HOST_AUTHORITY_MAX);
    if (port != 0) {
        (void)snprintf(out + n, (size_t)(HOST_AUTHORITY_MAX - n), ":%u", (unsigned)port);
    }
}
