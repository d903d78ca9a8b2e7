#ifndef SY_PROXY_SOCKS_H
#define SY_PROXY_SOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proxy/host.h"
#include "proxy/parse.h"

/* SOCKS5 (RFC 1928) without authentication, CONNECT only, with names, IPv4 and
 * IPv6 addresses. SOCKS4 is told so in its own language. */
enum socks_reply {
    SOCKS_OK = 0,
    SOCKS_FAILED = 1,
    SOCKS_DENIED = 2,
    SOCKS_UNREACHABLE = 4,
    SOCKS_REFUSED = 5,
    SOCKS_BAD_COMMAND = 7,
    SOCKS_BAD_ADDRESS = 8
};

#define SOCKS_REPLY_LEN 10
/* RFC 1928 section 6; the bound address is 0.0.0.0:0, nobody's business. */
void socks_reply(enum socks_reply code, uint8_t out[SOCKS_REPLY_LEN]);

struct socks {
    struct host host;
    uint16_t port;
    size_t used;                    /* bytes of what was parsed */
    uint8_t reply[SOCKS_REPLY_LEN]; /* what to send now */
    size_t reply_len;
};

/* Both: data begins with the first byte of the message. PARSE_DONE and
 * PARSE_BAD say in ret->reply what to send (may be nothing); after PARSE_BAD
 * the connection ends, and *err says why. */
enum parse_result socks_parse_greeting(struct socks *ret, const uint8_t *data, size_t len,
                                       struct sy_error *err);
/* After PARSE_DONE nothing is to be sent before the answer is known. */
enum parse_result socks_parse_request(struct socks *ret, const uint8_t *data, size_t len,
                                      struct sy_error *err);

#endif
