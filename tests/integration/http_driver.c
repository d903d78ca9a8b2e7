/*
 * The HTTP client as a program, for the integration tests:
 *
 *     http_driver HELPER URL TIMEOUT-MS MAX-BYTES [HEADER]...
 *
 * Posts its standard input. A line on standard output, members separated by tabs: the code, the
 * status, the content type, the sentence of an error; then the body.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "http/http.h"

static void
on_done(void *arg, const struct http_answer *a)
{
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)LIMIT_HTTP_ANSWER + 4096};
    int *ret_status = arg;

    *ret_status = 1;
    if (buf_addf(&out, "%s\t%d\t%s\t%s\n", sy_code_name(a->err.code), a->status, a->type,
                 a->err.msg) == SY_E_OK &&
        buf_add(&out, a->body, a->len) == SY_E_OK &&
        fd_write_all(STDOUT_FILENO, buf_view(&out), out.len, NULL) == SY_E_OK) {
        *ret_status = 0;
    }
}

int
main(int argc, char **argv)
{
    SY_AUTO(buf_fini) struct buf body = {.max = LIMIT_HTTP_BODY};
    struct http_exchange *x = NULL;
    struct sy_error err = {0};
    uint64_t timeout_ms = 0;
    uint64_t max_bytes = 0;
    uv_loop_t loop;
    int status = 1;

    if (argc < 5 || !str_to_u64(&timeout_ms, argv[3], 1, 100000) ||
        !str_to_u64(&max_bytes, argv[4], 0, LIMIT_HTTP_ANSWER) ||
        fd_read_all(STDIN_FILENO, &body, &err) != SY_E_OK || uv_loop_init(&loop) != 0) {
        (void)fputs("usage: http_driver HELPER URL TIMEOUT-MS MAX-BYTES [HEADER]...\n", stderr);
        return 2;
    }

    const struct http_client client = {.loop = &loop, .helper = argv[1], .environ_list = environ};
    const struct http_request request = {
        .url = argv[2],
        .headers = argv + 5,
        .body = buf_view(&body),
        .len = body.len,
        .timeout_ms = (uint32_t)timeout_ms,
        .max_bytes = (size_t)max_bytes,
    };

    if (http_post(&x, &client, &request, on_done, &status, &err) != SY_E_OK) {
        (void)fprintf(stderr, "%s\t%s\n", sy_code_name(err.code), err.msg);
        status = 3;
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    return status;
}
