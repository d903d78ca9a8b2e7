#include "http/frame.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"

#define FIRST_LINE "shellyard-http 1"

static const char *const failure_words[] = {"none",    "url",  "connect", "tls",
                                            "timeout", "size", "answer",  "other"};

static bool
is_one_line(const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f) {
            return false;
        }
    }
    return true;
}

/* "Name: value": a token of RFC 9110, a colon, and no line break anywhere. */
static bool
is_header(const char *s)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz";
    size_t n = strspn(s, token);

    return n > 0 && s[n] == ':' && is_one_line(s);
}

static enum sy_code
check_request(const struct frame_request *r, struct sy_error *err)
{
    size_t n = 0;

    if (!is_one_line(r->url) || r->url[0] == '\0') {
        return sy_err_set(err, SY_E_ARG, "a URL with control characters, or an empty one");
    }
    for (; r->headers != NULL && r->headers[n] != NULL; n++) {
        if (!is_header(r->headers[n])) {
            /* Not the header: it may be a secret. */
            return sy_err_set(err, SY_E_ARG, "header %zu is not of the form 'Name: value'", n + 1);
        }
    }
    if (n > LIMIT_HTTP_HEADERS || r->len > LIMIT_HTTP_BODY || r->max_bytes > LIMIT_HTTP_ANSWER) {
        return sy_err_set(err, SY_E_LIMIT,
                          "an HTTP request has %u headers and %u bytes at most, and its answer %u",
                          LIMIT_HTTP_HEADERS, LIMIT_HTTP_BODY, LIMIT_HTTP_ANSWER);
    }
    return r->timeout_ms > 0 ? SY_E_OK : sy_err_set(err, SY_E_ARG, "no time for an HTTP request");
}

enum sy_code
frame_write_request(struct buf *ret, const struct frame_request *r, struct sy_error *err)
{
    enum sy_code rc = check_request(r, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = buf_addf(ret, FIRST_LINE "\nmethod POST\nurl %s\ntimeout-ms %u\nmax-bytes %zu\n", r->url,
                  (unsigned)r->timeout_ms, r->max_bytes);
    for (size_t i = 0; r->headers != NULL && r->headers[i] != NULL && rc == SY_E_OK; i++) {
        rc = buf_addf(ret, "header %s\n", r->headers[i]);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(ret, "body %zu\n\n", r->len);
    }
    if (rc == SY_E_OK) {
        rc = buf_add(ret, r->body, r->len);
    }
    return rc == SY_E_OK ? rc
           : rc == SY_E_LIMIT
               ? sy_err_set(err, rc, "an HTTP request of more than %zu bytes", ret->max)
               : sy_err_nomem(err);
}

/* The next line of the head, without its end; false at the empty line (*at is behind it) or where
 * there is none (*at stays). */
static bool
next_line(char **ret, struct buf *text, size_t *at)
{
    char *start = text->data + *at;
    char *end = memchr(start, '\n', text->len - *at);

    /* What is cut by a NUL would say less than what was sent. */
    if (end == NULL || memchr(start, '\0', (size_t)(end - start)) != NULL) {
        return false;
    }
    *end = '\0';
    *at = (size_t)(end - text->data) + 1;
    *ret = start;
    return start[0] != '\0';
}

/* "word value": the value, or NULL for another word. */
static const char *
value_of(const char *line, const char *word)
{
    size_t n = strlen(word);

    return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* The first line, and whether there is a whole head. */
static enum sy_code
begin(struct buf *text, size_t *at, struct sy_error *err)
{
    char *line = NULL;

    if (text->len == 0 || !next_line(&line, text, at) || !str_eq(line, FIRST_LINE)) {
        return sy_err_set(err, SY_E_PARSE, "it does not begin with '" FIRST_LINE "'");
    }
    return SY_E_OK;
}

/* What comes after the head has to be all there, and nothing else. */
static enum sy_code
check_body(const struct buf *text, size_t at, const char *last, uint64_t len, struct sy_error *err)
{
    if (last == NULL || last[0] != '\0' || text->len - at != len) {
        return sy_err_set(err, SY_E_PARSE,
                          "its head is cut, or its body is not as long as that says");
    }
    return SY_E_OK;
}

struct numbers {
    uint64_t timeout_ms;
    uint64_t max_bytes;
    uint64_t len;
};

static enum sy_code
take_line(struct frame_parsed *ret, struct numbers *n, const char *line, struct sy_error *err)
{
    const char *v = NULL;
    bool is_good = false;

    if ((v = value_of(line, "method")) != NULL) {
        is_good = str_eq(v, "POST");
    } else if ((v = value_of(line, "url")) != NULL) {
        ret->request.url = v;
        is_good = v[0] != '\0' && is_one_line(v); /* as it is written */
    } else if ((v = value_of(line, "timeout-ms")) != NULL) {
        is_good = str_to_u64(&n->timeout_ms, v, 1, UINT32_MAX);
    } else if ((v = value_of(line, "max-bytes")) != NULL) {
        is_good = str_to_u64(&n->max_bytes, v, 0, LIMIT_HTTP_ANSWER);
    } else if ((v = value_of(line, "body")) != NULL) {
        is_good = str_to_u64(&n->len, v, 0, LIMIT_HTTP_BODY);
    } else if ((v = value_of(line, "header")) != NULL) {
        is_good = is_header(v);
        if (is_good && strv_add(&ret->headers, v) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    return is_good ? SY_E_OK : sy_err_set(err, SY_E_PARSE, "a line of its head says nothing known");
}

enum sy_code
frame_read_request(struct frame_parsed *ret, struct buf *text, struct sy_error *err)
{
    struct numbers n = {0};
    size_t at = 0;
    char *line = NULL;
    enum sy_code rc = begin(text, &at, err);

    *ret = (struct frame_parsed){.headers = {.max = LIMIT_HTTP_HEADERS}};
    while (rc == SY_E_OK && next_line(&line, text, &at)) {
        rc = take_line(ret, &n, line, err);
    }
    if (rc == SY_E_OK) {
        rc = check_body(text, at, line, n.len, err);
    }
    if (rc == SY_E_OK && (ret->request.url == NULL || n.timeout_ms == 0)) {
        rc = sy_err_set(err, SY_E_PARSE, "it has no url or no timeout-ms");
    }
    if (rc != SY_E_OK) {
        frame_parsed_fini(ret);
        return rc;
    }
    ret->request.timeout_ms = (uint32_t)n.timeout_ms;
    ret->request.max_bytes = (size_t)n.max_bytes;
    ret->request.body = text->data + at;
    ret->request.len = (size_t)n.len;
    ret->request.headers = strv_view(&ret->headers);
    return SY_E_OK;
}

void
frame_parsed_fini(struct frame_parsed *p)
{
    strv_fini(&p->headers);
    p->request = (struct frame_request){0};
}

enum sy_code
frame_write_answer(struct buf *ret, const struct frame_answer *a)
{
    const char *type = is_one_line(a->type) ? a->type : "";
    enum sy_code rc = a->failure == FRAME_NONE
                          ? buf_addf(ret, FIRST_LINE "\nstatus %d\ntype %s\nbody %zu\n\n",
                                     a->status, type, a->len)
                          : buf_addf(ret, FIRST_LINE "\nerror %s\nbody %zu\n\n",
                                     failure_words[a->failure], a->len);

    return rc == SY_E_OK ? buf_add(ret, a->body, a->len) : rc;
}

static bool
read_failure(enum frame_failure *ret, const char *word)
{
    for (size_t i = FRAME_URL; i <= FRAME_OTHER; i++) {
        if (str_eq(word, failure_words[i])) {
            *ret = (enum frame_failure)i;
            return true;
        }
    }
    return false;
}

enum sy_code
frame_read_answer(struct frame_answer *ret, struct buf *text, struct sy_error *err)
{
    struct frame_answer a = {.type = ""};
    uint64_t status = 0;
    uint64_t len = 0;
    size_t at = 0;
    char *line = NULL;
    bool is_good = true;
    enum sy_code rc = begin(text, &at, err);

    while (rc == SY_E_OK && is_good && next_line(&line, text, &at)) {
        const char *v = NULL;

        if ((v = value_of(line, "status")) != NULL) {
            is_good = str_to_u64(&status, v, 100, 999);
        } else if ((v = value_of(line, "type")) != NULL) {
            a.type = v;
        } else if ((v = value_of(line, "error")) != NULL) {
            is_good = read_failure(&a.failure, v);
        } else {
            v = value_of(line, "body");
            is_good = v != NULL && str_to_u64(&len, v, 0, LIMIT_HTTP_ANSWER);
        }
    }
    if (rc == SY_E_OK && (!is_good || (status == 0) == (a.failure == FRAME_NONE))) {
        rc = sy_err_set(err, SY_E_PARSE, "its head says neither a status nor an error");
    }
    if (rc == SY_E_OK) {
        rc = check_body(text, at, line, len, err);
    }
    if (rc == SY_E_OK) {
        a.status = (int)status;
        a.body = text->data + at;
        a.len = (size_t)len;
        *ret = a;
    }
    return rc;
}
