#ifndef SY_PROXY_HOST_H
#define SY_PROXY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proxy/address.h"

/*
 * A host as a request names it, after the one and only normalisation: lower
 * case, one trailing dot gone, IPv6 in its canonical text. What is judged,
 * what is resolved and what is sent on is this text, so no two parsers can
 * read it in two ways.
 */
enum host_kind { HOST_NAME, HOST_ADDRESS };

#define HOST_LENGTH_MAX 253
#define HOST_TEXT_MAX   (HOST_LENGTH_MAX + 1)

struct host {
    enum host_kind kind;
    char text[HOST_TEXT_MAX]; /* IPv6 without brackets */
    struct address address;   /* of HOST_ADDRESS */
};

/*
 * Strict: a name of letters, digits, `-` and `_`; an IPv4 address in four plain
 * decimal numbers; or "[IPv6]". Refused, each with its reason: NUL, control
 * and white space, `%`, userinfo, non-ASCII (the punycode form is asked for),
 * empty or long labels, names whose last label is a number in any notation,
 * zone ids, IPv4-mapped IPv6. SY_E_PARSE, *err (may be NULL) says what is
 * wrong and what would be right.
 */
enum sy_code host_parse(struct host *ret, const char *s, size_t len,
                        struct sy_error *err) SY_NODISCARD;
/* From bytes on the wire (SOCKS). IPv4-mapped IPv6 is refused. */
enum sy_code host_from_address(struct host *ret, const struct address *a,
                               struct sy_error *err) SY_NODISCARD;
bool host_equal(const struct host *a, const struct host *b);

/* Digits only, no leading zero, 1 to 65535. */
enum sy_code host_parse_port(uint16_t *ret, const char *s, size_t len,
                             struct sy_error *err) SY_NODISCARD;

/* "host", "host:port", "[ip6]" or "[ip6]:port"; *ret_port is untouched where
 * the text has none, *ret_has_port says which (may be NULL: a port must be
 * there). */
enum sy_code host_parse_authority(struct host *ret, uint16_t *ret_port, bool *ret_has_port,
                                  const char *s, size_t len, struct sy_error *err) SY_NODISCARD;

/* host, or [host] for IPv6, and ":port" if port is not 0. */
#define HOST_AUTHORITY_MAX (HOST_TEXT_MAX + 8)
void host_authority(const struct host *h, uint16_t port, char out[HOST_AUTHORITY_MAX]);

/* Foreign bytes for a sentence: the first 60, what is not printable as \xNN. */
#define HOST_SHOWN_MAX 256
void host_show(const char *s, size_t len, char out[HOST_SHOWN_MAX]);

#endif
