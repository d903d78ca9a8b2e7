/* The hosts that a line says could not be reached. */
#include <ctype.h>
#include <string.h>

#include "sandbox/evidence_internal.h"

/* The texts before the name of a host that could not be reached. */
static const char *const host_leads[] = {
    "could not translate host name ",
    "connection to server at ",
    "connect to mysql server on ",
    "connect to redis at ",
    "open tcp connection to ",
    "unknownhostexception: ",
    "could not resolve host: ",
    "couldn't resolve host ",
    "could not resolve hostname ",
    "could not resolve proxy: ",
    "could not resolve ",
    "unable to resolve host address ",
    "unable to look up ",
    "temporary failure resolving ",
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

/* Behind these anything may stand: "bus", "the daemon". */
static const char *const loose_leads[] = {
    "failed to connect to ",
    "couldn't connect to server ",
    "unable to connect to ",
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

/* "http://user@HOST:PORT/": from HOST on. False where the scheme is of no host. */
static bool
skip_scheme(struct span *rest)
{
    size_t n = 0;

    while (n < rest->n && (isalnum((unsigned char)rest->at[n]) || rest->at[n] == '+')) {
        n++;
    }
    if (!span_starts(span_from(*rest, rest->at + n), "://")) {
        return true;
    }
    if (span_is_word((struct span){rest->at, n}, "unix") ||
        span_is_word((struct span){rest->at, n}, "file")) {
        return false;
    }
    *rest = span_from(*rest, rest->at + n + strlen("://"));
    for (n = 0; n < rest->n && strchr("/ '\"", rest->at[n]) == NULL; n++) {
        if (rest->at[n] == '@') {
            *rest = span_from(*rest, rest->at + n + 1);
            break;
        }
    }
    return true;
}

/* Not any word: an address, a name with a dot, one that is quoted or has a port. */
static bool
looks_like_host(struct span host, unsigned port, bool is_quoted)
{
    return port != 0 || is_quoted || memchr(host.at, '.', host.n) != NULL ||
           memchr(host.at, ':', host.n) != NULL || span_is_word(host, "localhost");
}

static void
scan_host(struct scan *c, struct span rest, bool is_loose)
{
    struct named named = {.is_host = true};
    const char *begin = rest.at;

    while (rest.n > 0 &&
           (strchr("'\"`", rest.at[0]) != NULL || (unsigned char)rest.at[0] >= 0x80)) {
        rest.at++;
        rest.n--;
    }

    bool is_quoted = rest.at > begin;

    if (!skip_scheme(&rest)) {
        return;
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
    if (host.n > 0 && host.n <= 253 &&
        (!is_loose || looks_like_host(host, named.port, is_quoted))) {
        (void)scan_tell(c, host, named);
    }
}

/* The first of the leads that is in the line. */
static bool
scan_leads(struct scan *c, struct span line, const char *const *leads, size_t n, bool is_loose)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = span_find(line, leads[i]);

        if (at != NULL) {
            scan_host(c, span_from(line, at + strlen(leads[i])), is_loose);
            return true;
        }
    }
    return false;
}

void
evidence_hosts(struct scan *c, struct span line)
{
    if (!scan_leads(c, line, host_leads, sizeof(host_leads) / sizeof(host_leads[0]), false)) {
        (void)scan_leads(c, line, loose_leads, sizeof(loose_leads) / sizeof(loose_leads[0]), true);
    }
}
