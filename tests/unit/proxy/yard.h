#ifndef SY_TESTS_UNIT_PROXY_YARD_H
#define SY_TESTS_UNIT_PROXY_YARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "proxy/proxy.h"

#define VERDICTS 8

/* A proxy on its loop, a server that only listens, and what was told. */
struct yard {
    uv_loop_t loop;
    struct proxy *proxy;
    struct allow_list *list;
    int server; /* listens */
    uint16_t server_port;
    uint16_t port; /* the proxy's */
    size_t live;   /* blocks before */
    size_t lookups;
    bool is_closed;
    bool closes_on_verdict;
    const char *answers[4]; /* of the resolver */
    size_t verdict_count;
    struct {
        enum proxy_outcome outcome;
        enum proxy_content content;
        char text[512];
    } verdicts[VERDICTS];
};

void yard_on_verdict(void *arg, const struct proxy_verdict *v);
/* A TCP socket on a free port of all IPv4 addresses, listening if backlog > 0. */
int yard_listener(uint16_t *ret_port, int backlog);
enum sy_code yard_start(struct yard *y, const struct proxy_options *more, enum proxy_kind kind);
/* yard_start with a server, failing the test; port 1 in the options stands for the server's. */
void yard_open(struct yard *y, const struct proxy_options *more, enum proxy_kind kind);
/* Ends all; false if a handle is left on the loop. yard_close fails the test then,
 * and if memory is left. */
bool yard_end(struct yard *y);
void yard_close(struct yard *y);
/* Lets the proxy work until the descriptor has one of the events. */
bool yard_run_until(struct yard *y, int fd, short events);
int yard_dial(const struct yard *y);
/* All of it, the proxy working meanwhile; false if the peer is gone. */
bool yard_send(struct yard *y, int fd, const void *bytes, size_t n);
bool yard_send_text(struct yard *y, int fd, const char *text);
/* Reads n bytes, or up to the end with n = SIZE_MAX; what came is in `in`. */
bool yard_receive(struct yard *y, int fd, struct buf *in, size_t n);
void yard_expect(struct yard *y, int fd, const char *text);
/* All up to the end; the text must hold each of the NULL-terminated parts. */
void yard_expect_end(struct yard *y, int fd, const char *const *parts);
int yard_accept(struct yard *y);
bool yard_has_waiting(const struct yard *y);
/* Exactly one verdict came, and its text holds this. */
void yard_expect_verdict(const struct yard *y, const char *text);
/* CONNECT for the host on the server's port, up to the 200. */
int yard_tunnel(struct yard *y, const char *host);

#endif
