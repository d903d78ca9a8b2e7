/*
 * The engine's side with programs that stand in for shellyard-http (shell scripts), and with
 * itself against a server in this program. tests/integration/http.test.mjs has servers that
 * answer badly.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "fault.h"
#include "http/http.h"

static char helper[PATH_MAX]; /* absolute */

struct seen {
    unsigned calls;
    struct sy_error err;
    int status;
    char type[64];
    char body[4096];
    size_t len;
};

static void
on_done(void *arg, const struct http_answer *a)
{
    struct seen *s = arg;

    s->calls++;
    s->err = a->err;
    s->status = a->status;
    s->len = a->len;
    (void)snprintf(s->type, sizeof(s->type), "%s", a->type);
    memcpy(s->body, a->body, a->len < sizeof(s->body) ? a->len : sizeof(s->body) - 1);
}

static char *const no_environment[] = {NULL};

/* A program of these lines, in a directory of its own. */
struct script {
    char dir[32];
    char path[64];
};

static void
script_make(struct script *s, const char *lines)
{
    FILE *f = NULL;

    memcpy(s->dir, "/tmp/sy-http-XXXXXX", 20);
    assert_non_null(mkdtemp(s->dir));
    (void)snprintf(s->path, sizeof(s->path), "%s/helper", s->dir);
    f = fopen(s->path, "we");
    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\n%s\n", lines) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(s->path, 0755), 0);
}

static void
script_remove(const struct script *s)
{
    (void)unlink(s->path);
    (void)rmdir(s->dir);
}

static const struct http_request usual = {
    .url = "http://127.0.0.1:1/",
    .body = "{}",
    .len = 2,
    .timeout_ms = 10000,
    .max_bytes = 1000,
};

static void
run(struct seen *s, const char *program, char *const *environ_list, const struct http_request *r)
{
    uv_loop_t loop;
    struct http_exchange *x = NULL;
    struct sy_error err = {0};

    assert_int_equal(uv_loop_init(&loop), 0);

    const struct http_client client = {
        .loop = &loop, .helper = program, .environ_list = environ_list};

    *s = (struct seen){0};
    assert_int_equal(http_post(&x, &client, r, on_done, s, &err), SY_E_OK);
    assert_int_equal(s->calls, 0);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(s->calls, 1);
}

static void
run_script(struct seen *s, const char *lines, char *const *environ_list,
           const struct http_request *r)
{
    struct script script;

    script_make(&script, lines);
    run(s, script.path, environ_list, r);
    script_remove(&script);
}

static void
gives_the_program_its_request_and_takes_its_answer(void **state)
{
    char *const headers[] = {(char[]){"x-api-key: secret"}, NULL};
    struct http_request r = usual;
    struct seen s;

    (void)state;
    r.headers = headers;
    /* The answer's body is the request. */
    run_script(&s,
               "in=$(cat; echo .); in=${in%.}\n"
               "printf 'shellyard-http 1\\nstatus 201\\ntype a/b\\nbody %s\\n\\n%s' ${#in} \"$in\"",
               no_environment, &r);
    assert_int_equal(s.err.code, SY_E_OK);
    assert_int_equal(s.status, 201);
    assert_string_equal(s.type, "a/b");
    assert_string_equal(s.body, "shellyard-http 1\nmethod POST\nurl http://127.0.0.1:1/\n"
                                "timeout-ms 10000\nmax-bytes 1000\nheader x-api-key: secret\n"
                                "body 2\n\n{}");
}

static void
gives_it_the_variables_of_proxies_and_certificates_alone(void **state)
{
    char *const list[] = {(char[]){"https_proxy=http://p:1"}, (char[]){"KEY=secret"},
                          (char[]){"SSL_CERT_FILE=/c"},       (char[]){"https_proxy2=no"},
                          (char[]){"PATH=/usr/bin:/bin"},     NULL};
    struct seen s;

    (void)state;
    run_script(&s,
               "PATH=/usr/bin:/bin\nin=$(tr '\\0' '\\n' </proc/$$/environ)\n"
               "printf 'shellyard-http 1\\nstatus 200\\ntype \\nbody %s\\n\\n%s' ${#in} \"$in\"",
               list, &usual);
    assert_int_equal(s.err.code, SY_E_OK);
    assert_string_equal(s.body, "https_proxy=http://p:1\nSSL_CERT_FILE=/c");
}

static void
tells_a_program_that_dies_or_babbles(void **state)
{
    struct seen s;

    (void)state;
    run_script(&s, "echo no such library >&2; exit 3", no_environment, &usual);
    assert_int_equal(s.err.code, SY_E_INTERNAL);
    assert_non_null(strstr(s.err.msg, "(exit code 3) without an answer: no such library"));
    run_script(&s, "kill -9 $$", no_environment, &usual);
    assert_non_null(strstr(s.err.msg, "signal 9"));
    run_script(&s, "echo what", no_environment, &usual);
    assert_int_equal(s.err.code, SY_E_INTERNAL);
    /* More than it may ever say. */
    run_script(&s, "while :; do echo 0123456789012345678901234567890123456789; done",
               no_environment, &usual);
    assert_int_equal(s.err.code, SY_E_LIMIT);
    assert_int_equal(s.status, 0);
}

static void
makes_the_words_of_a_failure_visible(void **state)
{
    struct seen s;

    (void)state;
    run_script(&s, "printf 'shellyard-http 1\\nerror tls\\nbody 6\\n\\na\\033[2Jb'", no_environment,
               &usual);
    assert_int_equal(s.err.code, SY_E_DENIED);
    assert_string_equal(s.err.msg, "a\\x1b[2Jb");
}

static void
ends_a_program_that_is_late(void **state)
{
    struct http_request r = usual;
    struct seen s;
    uint64_t start = clock_mono_ns();

    (void)state;
    r.timeout_ms = 100;
    /* Its child holds the pipe, too. */
    run_script(&s, "sleep 1000 & sleep 1000", no_environment, &r);
    assert_int_equal(s.err.code, SY_E_LIMIT);
    assert_string_equal(s.err.msg, "no answer within 100 ms");
    assert_true(clock_mono_ns() - start >= 100000000ULL);
}

static void
a_missing_program_is_told_at_once(void **state)
{
    struct http_exchange *x = NULL;
    struct sy_error err = {0};
    const struct http_client none = {.helper = NULL};
    const struct http_client gone = {.helper = "/nonexistent/shellyard-http"};

    (void)state;
    assert_int_equal(http_post(&x, &none, &usual, on_done, NULL, &err), SY_E_NOTFOUND);
    assert_int_equal(http_post(&x, &gone, &usual, on_done, NULL, &err), SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "shellyard-http"));
    assert_null(x);
}

static void
a_cancelled_exchange_calls_nobody(void **state)
{
    struct script script;
    struct http_exchange *x = NULL;
    struct seen s = {0};
    struct sy_error err = {0};
    uv_loop_t loop;

    (void)state;
    script_make(&script, "sleep 1000");
    assert_int_equal(uv_loop_init(&loop), 0);

    const struct http_client client = {
        .loop = &loop, .helper = script.path, .environ_list = no_environment};

    for (int turns = 0; turns < 3; turns++) {
        assert_int_equal(http_post(&x, &client, &usual, on_done, &s, &err), SY_E_OK);
        for (int i = 0; i < turns; i++) {
            (void)uv_run(&loop, UV_RUN_NOWAIT);
        }
        http_cancel(x);
        assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    }
    http_cancel(NULL);
    assert_int_equal(s.calls, 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    script_remove(&script);
}

/* A server that answers one connection, and what it read. */
struct server {
    uv_tcp_t listener;
    uv_tcp_t peer;
    uv_write_t write;
    char got[4096];
    size_t len;
    int port;
};

static void
on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    struct server *s = handle->data;

    (void)wanted;
    *ret = uv_buf_init(s->got + s->len, (unsigned)(sizeof(s->got) - 1 - s->len));
}

static void
on_written(uv_write_t *write, int status)
{
    struct server *s = write->data;

    (void)status;
    uv_close((uv_handle_t *)&s->peer, NULL);
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *into)
{
    static char answer[] =
        "HTTP/1.1 404 No\r\nContent-Type: text/x\r\nContent-Length: 4\r\n\r\nno\n\n";
    struct server *s = stream->data;
    uv_buf_t out = uv_buf_init(answer, sizeof(answer) - 1);

    (void)into;
    assert_true(n > 0);
    s->len += (size_t)n;
    if (strstr(s->got, "\r\n\r\n{}") != NULL) {
        assert_int_equal(uv_read_stop(stream), 0);
        assert_int_equal(uv_write(&s->write, stream, &out, 1, on_written), 0);
    }
}

static void
on_connection(uv_stream_t *listener, int status)
{
    struct server *s = listener->data;

    assert_int_equal(status, 0);
    assert_int_equal(uv_tcp_init(listener->loop, &s->peer), 0);
    s->peer.data = s;
    s->write.data = s;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&s->peer), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)&s->peer, on_alloc, on_read), 0);
    uv_close((uv_handle_t *)listener, NULL);
}

static void
server_start(struct server *s, uv_loop_t *loop)
{
    struct sockaddr_in at = {0};
    int len = sizeof(at);

    *s = (struct server){0};
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &at), 0);
    assert_int_equal(uv_tcp_init(loop, &s->listener), 0);
    s->listener.data = s;
    assert_int_equal(uv_tcp_bind(&s->listener, (const struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&s->listener, 1, on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&s->listener, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    uv_unref((uv_handle_t *)&s->listener); /* nobody may come */
}

static void
posts_to_a_server(void **state)
{
    char *const headers[] = {(char[]){"Content-Type: application/json"}, (char[]){"x-key: k"},
                             NULL};
    struct http_request r = usual;
    struct http_exchange *x = NULL;
    struct sy_error err = {0};
    struct server server;
    struct seen s = {0};
    uv_loop_t loop;
    char url[64];

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    server_start(&server, &loop);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/a?b=c", server.port);
    r.url = url;
    r.headers = headers;

    const struct http_client client = {
        .loop = &loop, .helper = helper, .environ_list = no_environment};

    assert_int_equal(http_post(&x, &client, &r, on_done, &s, &err), SY_E_OK);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_string_equal(s.err.msg, "");
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(s.status, 404);
    assert_string_equal(s.type, "text/x");
    assert_string_equal(s.body, "no\n\n");
    assert_true(strncmp(server.got, "POST /a?b=c HTTP/1.1\r\n", 22) == 0);
    assert_non_null(strstr(server.got, "\r\nx-key: k\r\n"));
    assert_non_null(strstr(server.got, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(server.got, "\r\nUser-Agent: shellyard/"));
    assert_null(strstr(server.got, "Expect"));
}

struct faulty {
    struct script script;
};

static enum sy_code
post_once(void *arg)
{
    const struct faulty *f = arg;
    struct http_exchange *x = NULL;
    struct seen s = {0};
    struct sy_error err = {0};
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0) {
        return SY_E_INTERNAL;
    }

    const struct http_client client = {
        .loop = &loop, .helper = f->script.path, .environ_list = no_environment};
    enum sy_code rc = http_post(&x, &client, &usual, on_done, &s, &err);

    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0 || s.calls != (rc == SY_E_OK ? 1U : 0U)) {
        return SY_E_INTERNAL;
    }
    return rc != SY_E_OK ? rc : s.err.code;
}

static void
memory_that_is_out_is_told(void **state)
{
    struct faulty f;

    (void)state;
    script_make(&f.script, "printf 'shellyard-http 1\\nstatus 200\\ntype \\nbody 2\\n\\n{}'");
    fault_run_lenient(post_once, &f);
    script_remove(&f.script);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_program_its_request_and_takes_its_answer),
        cmocka_unit_test(gives_it_the_variables_of_proxies_and_certificates_alone),
        cmocka_unit_test(tells_a_program_that_dies_or_babbles),
        cmocka_unit_test(makes_the_words_of_a_failure_visible),
        cmocka_unit_test(ends_a_program_that_is_late),
        cmocka_unit_test(a_missing_program_is_told_at_once),
        cmocka_unit_test(a_cancelled_exchange_calls_nobody),
        cmocka_unit_test(posts_to_a_server),
        cmocka_unit_test(memory_that_is_out_is_told),
    };

    if (argc < 2 || realpath(argv[1], helper) == NULL) {
        (void)fputs("usage: test_http PATH-OF-SHELLYARD-HTTP\n", stderr);
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
