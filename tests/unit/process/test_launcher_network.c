/* The network of the full tier: whose sockets are in it. The first argument is the launcher. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "launched.h"

/* SO_NETNS_COOKIE: in whose network it is; 0 before Linux 5.14. */
static uint64_t
network_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t size = sizeof(cookie);

    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

struct gate_log {
    unsigned n;
    uint16_t port; /* of the last */
};

static void
note_connected(void *arg, int *fd)
{
    struct gate_log *log = arg;
    struct sockaddr_in peer = {0};
    socklen_t size = sizeof(peer);

    assert_int_equal(getpeername(*fd, (struct sockaddr *)&peer, &size), 0);
    log->port = ntohs(peer.sin_port);
    log->n++;
    fd_close(fd);
}

/* The sockets are in the network of commands, who serves them is not. */
static void
serve_one(const struct world *w, int listener, uint16_t port)
{
    struct gate_log log = {0};
    const struct process_gate gate = {.port = LAUNCH_HTTP_PORT,
                                      .socks_port = LAUNCH_SOCKS_PORT,
                                      .on_connected = note_connected,
                                      .arg = &log};
    char script[200];
    char *argv[] = {mem_unconst("/bin/bash"), mem_unconst("-c"), script, mem_unconst(w->mark),
                    NULL};
    struct exec_env env = env_of(w, argv);
    struct command c;

    (void)snprintf(script, sizeof(script),
                   "exec 3<>/dev/tcp/127.0.0.1/%u && echo connected; read -r x <&3; echo got $x",
                   (unsigned)port);
    env.gate = &gate;
    assert_int_equal(listen(listener, 4), 0);
    start_env(&c, w, &env);
    drive(&c, "connected");
    assert_int_equal(log.n, 1);
    assert_int_equal(log.port, port);

    SY_FD end_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    assert_true(end_fd >= 0);
    assert_int_equal(write(end_fd, "hello\n", 6), 6);
    drive(&c, "got hello");
    end(&c);
}

static void
an_allow_list_has_its_sockets_inside(void **state)
{
    struct world *w = *state;
    SY_FD http = -1;
    SY_FD socks = -1;
    SY_FD outside = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    template_take_proxy(w->template, &http, &socks);
    assert_int_equal(http, -1); /* of no use with the network off */
    assert_int_equal(socks, -1);
    template_unref(w->template);
    w->template = NULL;
    w->policy.network_allow.max = 1;
    assert_int_equal(strv_add(&w->policy.network_allow, "example.com"), SY_E_OK);
    assert_int_equal(launcher_make_template(w->launcher, &w->template, &w->policy, NULL), SY_E_OK);
    template_take_proxy(w->template, &http, &socks);
    assert_true(http >= 0 && socks >= 0);
    assert_true(network_of(http) == 0 || network_of(http) != network_of(outside));
    assert_int_equal(network_of(http), network_of(socks));
    serve_one(w, http, LAUNCH_HTTP_PORT);
    serve_one(w, socks, LAUNCH_SOCKS_PORT);
    /* They are ours alone: nobody is left who listens. */
    fd_close(&http);
    assert_int_equal(run(w, "! bash -c ': <>/dev/tcp/127.0.0.1/3128' 2>/dev/null", NULL), 0);
}

/* A server in a command that stays; its port. */
static unsigned
start_server(struct command *ret, const struct world *w)
{
    SY_AUTO(buf_fini) struct buf said = {.max = 4096};
    const char *at = NULL;
    unsigned port = 0;

    start(ret, w,
          "exec python3 -uc 'import socket; s = socket.create_server((\"127.0.0.1\", 0));"
          "print(\"port=%d.\" % s.getsockname()[1])\nwhile True:\n"
          "  c = s.accept()[0]; c.sendall(b\"hello\\n\"); c.close()' \"$0\"");
    drive(ret, ".");
    assert_int_equal(output_text_all(ret->chain, &said), SY_E_OK);
    at = strstr(buf_view(&said), "port=");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "port=%u.", &port), 1); // NOLINT(cert-err34-c): our own text
    return port;
}

/* Does a command of that world reach it? */
static bool
reaches(const struct world *w, unsigned port)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    char script[200];

    (void)snprintf(script, sizeof(script),
                   "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%u && read -r x <&3 && echo got $x' "
                   "2>/dev/null",
                   port);
    (void)run(w, script, &out);
    return strcmp(buf_view(&out), "got hello\n") == 0;
}

/* Another template of the same policy is what another session or engine has. */
static void
commands_of_one_template_share_a_loopback_and_nobody_else_is_on_it(void **state)
{
    struct world *w = *state;
    struct world other = *w;
    struct command server;
    struct command again;
    unsigned port = start_server(&server, w);
    SY_FD outside = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    assert_true(reaches(w, port));
    assert_int_equal(launcher_make_template(w->launcher, &other.template, &w->policy, NULL),
                     SY_E_OK);
    assert_false(reaches(&other, port));
    assert_int_not_equal(connect(outside, (const struct sockaddr *)&here, sizeof(here)), 0);
    /* The control: the other one has its own. */
    assert_true(reaches(&other, start_server(&again, &other)));
    process_kill(again.process);
    drive(&again, NULL);
    end(&again);
    template_unref(other.template);
    process_kill(server.process);
    drive(&server, NULL);
    end(&server);
    assert_false(reaches(w, port)); /* it ends with its command */
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LAUNCHED(an_allow_list_has_its_sockets_inside),
        LAUNCHED(commands_of_one_template_share_a_loopback_and_nobody_else_is_on_it),
    };

    return launched_by(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
