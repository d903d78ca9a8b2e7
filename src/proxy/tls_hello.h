#ifndef SY_PROXY_TLS_HELLO_H
#define SY_PROXY_TLS_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proxy/host.h"
#include "proxy/parse.h"

/* What a TLS client says first, as far as a proxy must know it. */
struct tls_hello {
    bool has_name;
    bool has_ech; /* an encrypted inner hello: `name` is the outer one's */
    struct host name;
};

/*
 * Reads a ClientHello (TLS 1.0 to 1.3), over any number of records, without
 * copying it. PARSE_BAD: not TLS, or lengths that do not fit together, or a
 * server name that is there twice or is no host name; *err says which.
 */
enum parse_result tls_hello_parse(struct tls_hello *ret, const uint8_t *data, size_t len,
                                  struct sy_error *err);

/* Does this hello belong to a tunnel that was asked for as `h`? A name must
 * equal the host's; none is taken only if the host is an address. */
enum sy_code tls_hello_check(const struct tls_hello *hello, const struct host *h,
                             struct sy_error *err) SY_NODISCARD;

/* A fatal alert, access_denied, so that the client shows more than a reset. */
#define TLS_ALERT_LEN 7
extern const uint8_t tls_hello_denied[TLS_ALERT_LEN];

#endif
