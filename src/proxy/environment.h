#ifndef SY_PROXY_ENVIRONMENT_H
#define SY_PROXY_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* How a command's programs are told of the proxy. */
struct proxy_environment {
    uint16_t http_port;  /* on 127.0.0.1; must be set */
    uint16_t socks_port; /* for ALL_PROXY as socks5h://; 0: ALL_PROXY is http:// */
    /* Servers that the command itself starts on its own loopback are reached
     * directly; false: NO_PROXY is empty and loopback is asked of the proxy. */
    bool is_loopback_direct;
    /* A program for ssh that speaks to the proxy, called with host and port;
     * NULL: ssh is left alone. No white space or quotes. */
    const char *ssh_proxy_command;
};

/*
 * Sets the proxy variables of the common tools in an environment list, and
 * removes those that would lead past the proxy. Pure; the list is half
 * changed when memory is out. docs/internals/proxy.md lists them with sources.
 */
enum sy_code proxy_environment_apply(struct strv *env, const struct proxy_environment *p,
                                     struct sy_error *err) SY_NODISCARD;

#endif
