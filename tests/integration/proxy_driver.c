/*
 * The network proxy as a program, for the integration tests:
 *
 *     proxy_driver [tls=PORT] [http=PORT] [NAME=ADDRESS[,ADDRESS]...] [allow=ENTRY]...
 *     proxy_driver environment HTTP-PORT
 *
 * The first serves on a free port of 127.0.0.1 and resolves only the names that
 * it is given. The second prints this environment, led to that port. Lines on
 * standard output, members separated by tabs: "port N", "verdict ..." for each
 * request, "stat CONNECTIONS FDS BLOCKS LOOKUPS" for each byte on standard
 * input, "end BLOCKS" once that has ended and all is closed.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "proxy/environment.h"
#include "proxy/proxy.h"

#define ENTRIES 32

struct driver {
    uv_loop_t loop;
    uv_poll_t input;
    struct proxy *proxy;
    char **names; /* NAME=ADDRESS,... */
    size_t lookups;
};

static void
say(const char *text, size_t len)
{
    if (fd_write_all(STDOUT_FILENO, text, len, NULL) != SY_E_OK) {
        _exit(1);
    }
}

static size_t
open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

static size_t
resolve(void *arg, const char *name, struct address *ret, size_t max)
{
    struct driver *d = arg;
    size_t len = strlen(name);
    size_t n = 0;

    d->lookups++;
    for (char **one = d->names; *one != NULL; one++) {
        if (strncmp(*one, name, len) != 0 || (*one)[len] != '=') {
            continue;
        }
        for (const char *at = *one + len + 1; *at != '\0' && n < max;) {
            size_t end = strcspn(at, ",");
            char text[64] = "";

            memcpy(text, at, end < 63 ? end : 63);
            ret[n].is_v6 = strchr(text, ':') != NULL;
            n += inet_pton(ret[n].is_v6 ? AF_INET6 : AF_INET, text, ret[n].ip) == 1 ? 1 : 0;
            at += end + (at[end] == ',' ? 1 : 0);
        }
    }
    return n;
}

static void
on_verdict(void *arg, const struct proxy_verdict *v)
{
    SY_AUTO(buf_fini) struct buf line = {.max = 8192};

    (void)arg;
    if (buf_addf(&line, "verdict\t%s\t%s\t%s\t%s\t%u\t%s\t%s\t%s\t%s\t%d\n",
                 proxy_outcome_name(v->outcome), v->protocol, v->method, v->host, (unsigned)v->port,
                 v->address, v->rule, v->why, v->hint, (int)v->content) == SY_E_OK) {
        say(line.data, line.len);
    }
}

static void
on_closed(void *arg)
{
    struct driver *d = arg;

    uv_close((uv_handle_t *)&d->input, NULL);
}

static void
on_input(uv_poll_t *handle, int status, int events)
{
    struct driver *d = handle->data;
    char line[128];
    char byte = 0;

    (void)status;
    (void)events;
    if (read(STDIN_FILENO, &byte, 1) != 1) {
        (void)uv_poll_stop(handle);
        proxy_close(d->proxy, on_closed, d);
        return;
    }

    int n = snprintf(line, sizeof(line), "stat\t%zu\t%zu\t%zu\t%zu\n",
                     proxy_connection_count(d->proxy), open_descriptors(), mem_live(), d->lookups);

    say(line, (size_t)n);
}

static int
fail(const struct sy_error *err)
{
    fprintf(stderr, "proxy_driver: %s\n", err->msg);
    return 1;
}

static enum sy_code
listen_on_free_port(struct driver *d, struct sy_error *err)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    SY_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char line[32];

    if (fd < 0 || bind(fd, (const struct sockaddr *)&in, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&in, &len) != 0 ||
        proxy_listen_fd(d->proxy, &fd, PROXY_ANY, err) != SY_E_OK) {
        return sy_err_set(err, SY_E_SYS, "no listening socket");
    }

    int n = snprintf(line, sizeof(line), "port\t%u\n", (unsigned)ntohs(in.sin_port));

    say(line, (size_t)n);
    return SY_E_OK;
}

static int
serve(struct driver *d, const struct allow_list *list, const struct proxy_options *o)
{
    struct sy_error err = {.code = SY_E_OK};

    if (proxy_new(&d->proxy, &d->loop, list, o, &err) != SY_E_OK ||
        listen_on_free_port(d, &err) != SY_E_OK) {
        return fail(&err);
    }
    d->input.data = d;
    if (uv_poll_init(&d->loop, &d->input, STDIN_FILENO) != 0 ||
        uv_poll_start(&d->input, UV_READABLE, on_input) != 0) {
        return 1;
    }
    return uv_run(&d->loop, UV_RUN_DEFAULT) == 0 && uv_loop_close(&d->loop) == 0 ? 0 : 1;
}

static int
print_environment(const char *port)
{
    struct strv env = {.max = 10000};
    struct sy_error err = {.code = SY_E_OK};
    uint64_t number = 0;

    if (!str_to_u64(&number, port, 1, 65535)) {
        return 2;
    }

    struct proxy_environment p = {.http_port = (uint16_t)number, .socks_port = (uint16_t)number};

    if (strv_add_all(&env, environ) != SY_E_OK ||
        proxy_environment_apply(&env, &p, &err) != SY_E_OK) {
        return fail(&err);
    }
    for (size_t i = 0; i < env.n; i++) {
        say(env.v[i], strlen(env.v[i]) + 1);
    }
    strv_fini(&env);
    return 0;
}

int
main(int argc, char **argv)
{
    struct driver d = {.names = argv + 1};
    struct proxy_options o = {.on_verdict = on_verdict, .resolve = resolve, .arg = &d};
    struct sy_error err = {.code = SY_E_OK};
    struct allow_list *list = NULL;
    const char *entries[ENTRIES];
    uint64_t port = 0;
    char line[32];
    size_t n = 0;

    if (argc == 3 && str_eq(argv[1], "environment")) {
        return print_environment(argv[2]);
    }
    for (int i = 1; i < argc; i++) {
        if (str_starts(argv[i], "allow=") && n < ENTRIES) {
            entries[n++] = argv[i] + 6;
        } else if (str_starts(argv[i], "tls=") && str_to_u64(&port, argv[i] + 4, 1, 65535)) {
            o.tls_port = (uint16_t)port;
        } else if (str_starts(argv[i], "http=") && str_to_u64(&port, argv[i] + 5, 1, 65535)) {
            o.http_port = (uint16_t)port;
        }
    }
    if (uv_loop_init(&d.loop) != 0) {
        return 1;
    }
    if (allow_new(&list, entries, n, &err) != SY_E_OK) {
        return fail(&err);
    }

    int rc = serve(&d, list, &o);

    allow_free(list);
    (void)snprintf(line, sizeof(line), "end\t%zu\n", mem_live());
    say(line, strlen(line));
    return rc;
}
