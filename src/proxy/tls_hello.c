#include "proxy/tls_hello.h"

#include <string.h>

#include "base/limits.h"

enum { RECORD_HANDSHAKE = 22, CLIENT_HELLO = 1, NAME_HOST = 0 };
enum { EXTENSION_SERVER_NAME = 0, EXTENSION_ECH = 0xfe0d };

#define RECORD_MAX 16384U
#define HELLO_MAX  (LIMIT_PROXY_HEAD / 2)

const uint8_t tls_hello_denied[TLS_ALERT_LEN] = {21, 3, 3, 0, 2, 2, 49};

/* Reads the handshake's bytes one after the other, stepping over the headers
 * of the records that they are cut into. */
struct reader {
    const uint8_t *data;
    size_t len;
    size_t at;
    size_t record_left;
    enum parse_result state; /* PARSE_DONE: all well so far */
    const char *why;
};

static void
fail(struct reader *r, enum parse_result state, const char *why)
{
    if (r->state == PARSE_DONE) {
        r->state = state;
        r->why = why;
    }
}

/* Judges the header's bytes as they come: what is no TLS is known at once. */
static void
next_record(struct reader *r)
{
    size_t have = r->len - r->at;
    const uint8_t *h = r->data + r->at;

    if ((have > 0 && h[0] != RECORD_HANDSHAKE) || (have > 1 && h[1] != 3) ||
        (have > 2 && h[2] > 4)) {
        fail(r, PARSE_BAD, "what the client sends is not TLS");
    } else if (have < 5) {
        fail(r, PARSE_MORE, NULL);
    } else {
        r->record_left = (size_t)h[3] << 8 | h[4];
        r->at += 5;
        if (r->record_left == 0 || r->record_left > RECORD_MAX) {
            fail(r, PARSE_BAD, "a TLS record has a bad length");
        }
    }
}

static uint8_t
byte(struct reader *r)
{
    if (r->state == PARSE_DONE && r->record_left == 0) {
        next_record(r);
    }
    if (r->state == PARSE_DONE && r->at == r->len) {
        fail(r, PARSE_MORE, NULL);
    }
    if (r->state != PARSE_DONE) {
        return 0;
    }
    r->record_left--;
    return r->data[r->at++];
}

/* A number of n bytes out of a budget: what surrounds it has *left bytes. */
static size_t
number(struct reader *r, unsigned n, size_t *left)
{
    size_t value = 0;

    if (*left < n) {
        fail(r, PARSE_BAD, "lengths inside the TLS hello do not fit together");
        return 0;
    }
    *left -= n;
    for (unsigned i = 0; i < n; i++) {
        value = value << 8 | byte(r);
    }
    return value;
}

/* A length of n bytes that must fit into *left, which it is taken from. */
static size_t
vector(struct reader *r, unsigned n, size_t *left)
{
    size_t len = number(r, n, left);

    if (len > *left) {
        fail(r, PARSE_BAD, "lengths inside the TLS hello do not fit together");
        return 0;
    }
    *left -= len;
    return len;
}

static void
skip(struct reader *r, size_t n)
{
    while (n > 0 && r->state == PARSE_DONE) {
        (void)byte(r);
        n--;
    }
}

static void
read_server_name(struct reader *r, struct tls_hello *ret, size_t left)
{
    char name[HOST_LENGTH_MAX + 2];
    size_t list = vector(r, 2, &left);
    size_t type = number(r, 1, &list);
    size_t len = vector(r, 2, &list);

    if (r->state == PARSE_DONE &&
        (ret->has_name || left != 0 || list != 0 || type != NAME_HOST || len >= sizeof(name))) {
        fail(r, PARSE_BAD, "the TLS hello does not hold exactly one server name");
    }
    for (size_t i = 0; i < len && r->state == PARSE_DONE; i++) {
        name[i] = (char)byte(r);
    }
    if (r->state != PARSE_DONE) {
        return;
    }
    ret->has_name = true;
    if (host_parse(&ret->name, name, len, NULL) != SY_E_OK || ret->name.kind != HOST_NAME) {
        fail(r, PARSE_BAD, "the TLS hello's server name is no host name");
    }
}

static void
read_extensions(struct reader *r, struct tls_hello *ret, size_t left)
{
    while (left > 0 && r->state == PARSE_DONE) {
        size_t type = number(r, 2, &left);
        size_t len = vector(r, 2, &left);

        if (r->state == PARSE_DONE && type == EXTENSION_SERVER_NAME) {
            read_server_name(r, ret, len);
            continue;
        }
        ret->has_ech = ret->has_ech || type == EXTENSION_ECH;
        skip(r, len);
    }
}

static void
read_hello(struct reader *r, struct tls_hello *ret)
{
    size_t left = 4;

    if (number(r, 1, &left) != CLIENT_HELLO) {
        fail(r, PARSE_BAD, "the TLS connection does not begin with a ClientHello");
    }

    size_t body = number(r, 3, &left);

    if (r->state == PARSE_DONE && body > HELLO_MAX) {
        fail(r, PARSE_BAD, "the TLS hello is longer than 16 KiB");
    }
    if (number(r, 1, &body) != 3) {
        fail(r, PARSE_BAD, "the TLS hello has an unknown version");
    }
    for (unsigned i = 0; i < 33; i++) { /* minor version, random */
        (void)number(r, 1, &body);
    }
    skip(r, vector(r, 1, &body)); /* session */
    skip(r, vector(r, 2, &body)); /* ciphers */
    skip(r, vector(r, 1, &body)); /* compression */
    if (r->state != PARSE_DONE || body == 0) {
        return;
    }

    size_t extensions = vector(r, 2, &body);

    if (r->state == PARSE_DONE && body != 0) {
        fail(r, PARSE_BAD, "lengths inside the TLS hello do not fit together");
    }
    read_extensions(r, ret, extensions);
}

enum parse_result
tls_hello_parse(struct tls_hello *ret, const uint8_t *data, size_t len, struct sy_error *err)
{
    struct reader r = {.data = data, .len = len, .state = PARSE_DONE};

    memset(ret, 0, sizeof(*ret));
    read_hello(&r, ret);
    if (r.state == PARSE_MORE && len >= LIMIT_PROXY_HEAD) {
        fail(&r, PARSE_BAD, NULL);
        r.state = PARSE_BAD;
        r.why = "the TLS hello is cut into too many records";
    }
    if (r.state == PARSE_BAD) {
        (void)sy_err_set(err, SY_E_PARSE, "%s", r.why);
    }
    return r.state;
}

enum sy_code
tls_hello_check(const struct tls_hello *hello, const struct host *h, struct sy_error *err)
{
    if (!hello->has_name && h->kind == HOST_ADDRESS) {
        return SY_E_OK;
    }
    if (!hello->has_name) {
        return sy_err_set(err, SY_E_DENIED, "the TLS hello names no server, the tunnel is for %s",
                          h->text);
    }
    if (!host_equal(&hello->name, h)) {
        return sy_err_set(err, SY_E_DENIED, "the TLS hello names %.100s, the tunnel is for %.100s",
                          hello->name.text, h->text);
    }
    return SY_E_OK;
}
