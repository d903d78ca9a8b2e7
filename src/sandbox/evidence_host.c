/* The hosts that a line says could not be reached. */
#include <ctype.h>
#include <string.h>

#include "sandbox/evidence_internal.h"

/* The texts before the name of a host that could not be reached. */
static const char *const host_leads[] = {
    "could not resolve host: ",
    "couldn't resolve host ",
    "could not resolve hostname ",
    "could not resolve proxy: ",
    "could not resolve ",
    "unable to resolve host address ",
    "unable to look up ",
    "temporary failure resolving ",
    "failed to connect to ",
    "couldn't connect to server ",
    "unable to connect to ",
    "connect to host ",
    "connect to address ",
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo EAI_AGAIN ",
    "connect EPERM ",
    "connect EACCES ",
    "connect ENETUNREACH ",
    "dial tcp: lookup ",
    "dial tcp ",
    "dial udp ",
    "ConnectionPool(host=",
};

static bool
is_host_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
           c == ']';
}

/* Digits at the beginning; 0 if there is no port. */
static unsigned
port_of(struct span s)
{
    unsigned port = 0;

    for (size_t i = 0; i < s.n && i < 5 && isdigit((unsigned char)s.at[i]); i++) {
        port = port * 10 + (unsigned)(s.at[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* The port that is named after the host: ":443", " port 443", ", port=443". */
static unsigned
port_after(struct span rest)
{
    static const char *const leads[] = {" port ", "port="};

    for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
        const char *at = span_find(rest, leads[i]);

        if (at != NULL) {
            at += strlen(leads[i]);
            return port_of((struct span){at, rest.n - (size_t)(at - rest.at)});
        }
    }
    return 0;
}

static void
scan_host(struct scan *c, struct span rest)
{
    struct named named = {.is_host = true};

    while (rest.n > 0 &&
           (strchr("'\"`", rest.at[0]) != NULL || (unsigned char)rest.at[0] >= 0x80)) {
        rest.at++;
        rest.n--;
    }

    struct span host = {rest.at, 0};

    while (host.n < rest.n && is_host_char(rest.at[host.n])) {
        host.n++;
    }
    rest.at += host.n;
    rest.n -= host.n;
    while (host.n > 0 && (host.at[host.n - 1] == ':' || host.at[host.n - 1] == '.')) {
        host.n--;
    }

    const char *colon = host.n > 0 ? memchr(host.at, ':', host.n) : NULL;
    bool is_v6 = host.n > 0 && host.at[0] != '[' && colon != NULL &&
                 memchr(colon + 1, ':', host.n - (size_t)(colon + 1 - host.at)) != NULL;

    if (host.n > 0 && host.at[0] == '[') {
        colon = span_find(host, "]:");
        colon = colon != NULL ? colon + 1 : NULL;
    }
    if (colon != NULL && !is_v6) {
        named.port = port_of((struct span){colon + 1, host.n - (size_t)(colon + 1 - host.at)});
        host.n = (size_t)(colon - host.at);
    } else {
        named.port = port_after(rest);
    }
    if (host.n > 0 && host.n <= 253) {
        (void)scan_tell(c, host, named);
    }
}

void
evidence_hosts(struct scan *c, struct span line)
{
    for (size_t i = 0; i < sizeof(host_leads) / sizeof(host_leads[0]); i++) {
        const char *at = span_find(line, host_leads[i]);

        if (at != NULL) {
            at += strlen(host_leads[i]);
            scan_host(c, (struct span){at, line.n - (size_t)(at - line.at)});
            return;
        }
    }
}
