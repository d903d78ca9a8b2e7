#include "proxy/socks.h"

#include <string.h>

enum { VERSION_4 = 4, VERSION_5 = 5, NO_AUTH = 0, NO_METHOD = 0xff, COMMAND_CONNECT = 1 };
enum { TYPE_V4 = 1, TYPE_NAME = 3, TYPE_V6 = 4 };

void
socks_reply(enum socks_reply code, uint8_t out[SOCKS_REPLY_LEN])
{
    memset(out, 0, SOCKS_REPLY_LEN);
    out[0] = VERSION_5;
    out[1] = (uint8_t)code;
    out[3] = TYPE_V4;
}

static enum parse_result
bad(struct socks *ret, enum socks_reply code, struct sy_error *err, const char *why)
{
    socks_reply(code, ret->reply);
    ret->reply_len = SOCKS_REPLY_LEN;
    (void)sy_err_set(err, SY_E_PARSE, "%s", why);
    return PARSE_BAD;
}

enum parse_result
socks_parse_greeting(struct socks *ret, const uint8_t *data, size_t len, struct sy_error *err)
{
    memset(ret, 0, sizeof(*ret));
    if (len > 0 && data[0] == VERSION_4) {
        /* Its refusal: version 0, code 91, six bytes that are ignored. */
        ret->reply[1] = 91;
        ret->reply_len = 8;
        (void)sy_err_set(err, SY_E_PARSE,
                         "SOCKS4 carries no host names: use SOCKS5 (socks5h://) instead");
        return PARSE_BAD;
    }
    if (len > 0 && data[0] != VERSION_5) {
        (void)sy_err_set(err, SY_E_PARSE, "this is no SOCKS5");
        return PARSE_BAD;
    }
    if (len < 2 || len < 2 + (size_t)data[1]) {
        return PARSE_MORE;
    }
    ret->used = 2 + (size_t)data[1];
    ret->reply[0] = VERSION_5;
    ret->reply_len = 2;
    if (memchr(data + 2, NO_AUTH, data[1]) == NULL) {
        ret->reply[1] = NO_METHOD;
        (void)sy_err_set(err, SY_E_PARSE,
                         "the client wants to authenticate: the proxy takes no user and password");
        return PARSE_BAD;
    }
    return PARSE_DONE;
}

/* Bytes of the address field with its length byte, 0: more are needed to know. */
static size_t
address_len(const uint8_t *data, size_t len)
{
    switch (data[3]) {
    case TYPE_V4:
        return 4;
    case TYPE_V6:
        return 16;
    default:
        return len > 4 ? 1 + (size_t)data[4] : 0;
    }
}

static enum sy_code
parse_address(struct host *ret, const uint8_t *data, size_t n, struct sy_error *err)
{
    struct address a = {.is_v6 = data[3] == TYPE_V6};
    char name[256];

    if (data[3] == TYPE_NAME) {
        memcpy(name, data + 5, n - 1);
        return host_parse(ret, name, n - 1, err);
    }
    memcpy(a.ip, data + 4, n);
    return host_from_address(ret, &a, err);
}

enum parse_result
socks_parse_request(struct socks *ret, const uint8_t *data, size_t len, struct sy_error *err)
{
    memset(ret, 0, sizeof(*ret));
    if (len > 0 && data[0] != VERSION_5) {
        return bad(ret, SOCKS_FAILED, err, "the request is no SOCKS5");
    }
    if (len > 1 && data[1] != COMMAND_CONNECT) {
        return bad(ret, SOCKS_BAD_COMMAND, err,
                   "the proxy takes CONNECT only, neither BIND nor UDP ASSOCIATE");
    }
    if (len > 2 && data[2] != 0) {
        return bad(ret, SOCKS_FAILED, err, "the request's reserved byte is not 0");
    }
    if (len > 3 && data[3] != TYPE_V4 && data[3] != TYPE_NAME && data[3] != TYPE_V6) {
        return bad(ret, SOCKS_BAD_ADDRESS, err, "the request has an unknown type of address");
    }

    size_t n = len > 3 ? address_len(data, len) : 0;

    if (n == 0 || len < 4 + n + 2) {
        return PARSE_MORE;
    }
    ret->used = 4 + n + 2;
    ret->port = (uint16_t)(data[4 + n] << 8 | data[4 + n + 1]);
    if (parse_address(&ret->host, data, n, err) != SY_E_OK) {
        return bad(ret, SOCKS_DENIED, NULL, "");
    }
    if (ret->port == 0) {
        return bad(ret, SOCKS_FAILED, err, "port 0 is no port");
    }
    return PARSE_DONE;
}
