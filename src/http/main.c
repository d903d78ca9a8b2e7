/*
 * shellyard-http: one HTTP exchange. Reads a request from its standard input (http/frame.h), makes
 * it with libcurl and writes the answer to its standard output. It knows nothing of Shellyard but
 * that.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/fd.h"
#include "base/limits.h"
#include "http/frame.h"

struct exchange {
    CURL *curl;
    struct curl_slist *headers;
    struct buf body;
    size_t head_bytes;
    bool is_too_long;
    char why[CURL_ERROR_SIZE];
};

static void
exchange_fini(struct exchange *x)
{
    curl_slist_free_all(x->headers);
    curl_easy_cleanup(x->curl);
    buf_fini(&x->body);
}

static size_t
on_body(const char *bytes, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;

    if (buf_add(&x->body, bytes, size * n) != SY_E_OK) {
        x->is_too_long = true;
        return 0;
    }
    return size * n;
}

/* libcurl bounds each line, not all of them. */
static size_t
on_header(const char *bytes, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;

    (void)bytes;
    x->head_bytes += size * n;
    if (x->head_bytes > LIMIT_HTTP_HEAD) {
        x->is_too_long = true;
        return 0;
    }
    return size * n;
}

/* A URL that is one of ours: http or https, with a host and without a user. */
static bool
is_url(const char *url)
{
    CURLU *u = curl_url();
    char *scheme = NULL;
    char *user = NULL;
    bool is_good = u != NULL && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
                   curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                   (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
                   curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_NO_USER;

    curl_free(scheme);
    curl_free(user);
    curl_url_cleanup(u);
    return is_good;
}

static bool
add_header(struct exchange *x, const char *header)
{
    struct curl_slist *longer = curl_slist_append(x->headers, header);

    if (longer != NULL) {
        x->headers = longer;
    }
    return longer != NULL;
}

/* The protocols by name where this libcurl knows them so. */
static CURLcode
restrict_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* Where the distribution's certificates are libcurl knows; OpenSSL's variables it does not. */
static CURLcode
use_certificates(CURL *curl)
{
    const char *file = getenv("SSL_CERT_FILE");
    const char *dir = getenv("SSL_CERT_DIR");
    CURLcode rc = CURLE_OK;

    if (file != NULL && file[0] != '\0') {
        rc = curl_easy_setopt(curl, CURLOPT_CAINFO, file);
    }
    if (rc == CURLE_OK && dir != NULL && dir[0] != '\0') {
        rc = curl_easy_setopt(curl, CURLOPT_CAPATH, dir);
    }
    return rc;
}

static CURLcode
prepare(struct exchange *x, const struct frame_request *r)
{
    CURL *c = x->curl;
    CURLcode rc = restrict_protocols(c);

#define SET(option, value) rc = rc == CURLE_OK ? curl_easy_setopt(c, option, value) : rc
    SET(CURLOPT_ERRORBUFFER, x->why);
    SET(CURLOPT_URL, r->url);
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->len);
    SET(CURLOPT_POSTFIELDS, r->body);
    SET(CURLOPT_HTTPHEADER, x->headers);
    SET(CURLOPT_USERAGENT, "shellyard/" SY_VERSION);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, x);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, x);
#undef SET
    return rc == CURLE_OK ? use_certificates(c) : rc;
}

static enum frame_failure
failure_of(CURLcode rc)
{
    switch ((int)rc) {
    case CURLE_URL_MALFORMAT:
        return FRAME_URL;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
        return FRAME_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return FRAME_TLS;
    case CURLE_OPERATION_TIMEDOUT:
        return FRAME_TIMEOUT;
    case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9: any bytes at all */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_BAD_CONTENT_ENCODING:
        return FRAME_ANSWER;
    default:
        return FRAME_OTHER;
    }
}

static void
fail(struct frame_answer *ret, enum frame_failure failure, const char *why)
{
    *ret = (struct frame_answer){.failure = failure, .type = "", .body = why, .len = strlen(why)};
}

static void
perform(struct frame_answer *ret, struct exchange *x, const struct frame_request *r)
{
    CURLcode rc = prepare(x, r);
    long status = 0;
    const char *type = NULL;

    rc = rc == CURLE_OK ? curl_easy_perform(x->curl) : rc;
    if (x->is_too_long) {
        fail(ret, FRAME_SIZE, "the answer is longer than was asked for");
        return;
    }
    if (rc != CURLE_OK) {
        fail(ret, failure_of(rc), x->why[0] != '\0' ? x->why : curl_easy_strerror(rc));
        return;
    }
    (void)curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(x->curl, CURLINFO_CONTENT_TYPE, &type);
    if (status < 100 || status > 999) {
        fail(ret, FRAME_ANSWER, "the answer has no status of HTTP");
        return;
    }
    *ret = (struct frame_answer){
        .status = (int)status,
        .type = type != NULL ? type : "",
        .body = buf_view(&x->body),
        .len = x->body.len,
    };
}

static void
make_exchange(struct frame_answer *ret, struct exchange *x, const struct frame_request *r)
{
    /* No 100-continue: servers that don't know it would cost a second. */
    bool is_ready = add_header(x, "Expect:");

    for (size_t i = 0; r->headers[i] != NULL && is_ready; i++) {
        is_ready = add_header(x, r->headers[i]);
    }
    x->body.max = r->max_bytes;
    x->curl = is_ready ? curl_easy_init() : NULL;
    if (x->curl == NULL) {
        fail(ret, FRAME_OTHER, "libcurl could not be set up");
    } else if (!is_url(r->url)) {
        fail(ret, FRAME_URL, "not a URL of http or https without a user name");
    } else {
        perform(ret, x, r);
    }
}

int
main(void)
{
    SY_AUTO(buf_fini) struct buf in = {.max = (size_t)LIMIT_HTTP_BODY + LIMIT_HTTP_HEAD};
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)LIMIT_HTTP_ANSWER + LIMIT_HTTP_HEAD};
    SY_AUTO(exchange_fini) struct exchange x = {0};
    SY_AUTO(frame_parsed_fini) struct frame_parsed parsed = {0};
    struct frame_answer answer = {0};
    struct sy_error err = {0};

    /* The request may hold a key: not for other processes of the same user to read. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fail(&answer, FRAME_OTHER, "libcurl could not be set up");
    } else if (fd_read_all(STDIN_FILENO, &in, &err) != SY_E_OK ||
               frame_read_request(&parsed, &in, &err) != SY_E_OK) {
        sy_err_wrap(&err, "the request on standard input");
        fail(&answer, FRAME_OTHER, err.msg);
    } else {
        make_exchange(&answer, &x, &parsed.request);
    }
    return frame_write_answer(&out, &answer) == SY_E_OK &&
                   fd_write_all(STDOUT_FILENO, buf_view(&out), out.len, &err) == SY_E_OK
               ? 0
               : 1;
}
