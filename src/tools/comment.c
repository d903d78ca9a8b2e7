#include "tools/comment.h"

#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/secret_file.h"
#include "base/str.h"
#include "http/http.h"

#define REQUEST_BYTES ((size_t)LIMIT_STORE_TEXT * 2)
#define HEADER_BYTES  ((size_t)LIMIT_COMMENT_KEY + 64)

/* One that is waited for. */
struct comment {
    struct commenter *owner;
    struct comment *next;
    struct http_exchange *exchange;
    char id[STORE_ID_SIZE];
};

struct commenter {
    const struct config *config;
    struct review *review;
    enum risk_style style;
    char *http_path;
    struct http_client client;
    struct comment *running;
    size_t n;
};

static void
comment_forget(struct comment *m)
{
    struct comment **at = &m->owner->running;

    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    m->owner->n--;
    mem_free(m);
}

static void
tell_none(const char *id, const struct sy_error *why)
{
    LOG(LOG_DEBUG, "approval", "no comment on a request", kv_str("request", id),
        kv_str("error", why->msg));
}

/* The answer's own words help whoever set it up. */
static enum sy_code
refuse_status(const struct http_answer *a, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf said = {.max = SY_ERR_MSG_MAX};

    if (str_add_visible(&said, a->body, a->len, SY_ERR_MSG_MAX / 2) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_PARSE, "status %d of HTTP: %s", a->status, buf_view(&said));
}

static void
on_answer(void *arg, const struct http_answer *a)
{
    struct comment *m = arg;
    struct commenter *c = m->owner;
    struct sy_error err = a->err;
    struct risk risk;
    char id[STORE_ID_SIZE];
    enum sy_code rc = err.code;

    if (rc == SY_E_OK) {
        rc = a->status == 200 ? risk_read_answer(&risk, c->style, a->body, a->len, &err)
                              : refuse_status(a, &err);
    }
    memcpy(id, m->id, sizeof(id));
    comment_forget(m);
    if (rc != SY_E_OK) {
        tell_none(id, &err);
    }
    review_comment(c->review, id, rc == SY_E_OK ? &risk : NULL, c->config->assessment.model);
}

enum sy_code
commenter_read_key(struct buf *ret, const char *path, struct sy_error *err)
{
    struct place_shown_path shown;
    enum sy_code rc = secret_file_read(ret, "assessment.key_file", path, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    while (ret->len > 0 && strchr(" \t\r\n", ret->data[ret->len - 1]) != NULL) {
        ret->data[--ret->len] = '\0';
    }
    if (ret->len == 0 || strlen(buf_view(ret)) != strcspn(buf_view(ret), " \t\r\n")) {
        return sy_err_set(err, SY_E_CONFIG,
                          "assessment.key_file: '%s' has to hold the key and nothing else",
                          place_visible_path(&shown, path));
    }
    return SY_E_OK;
}

/* "x-api-key: KEY" or "Authorization: Bearer KEY" into *ret; nothing without a key file. */
static enum sy_code
make_key_header(struct buf *ret, const struct commenter *c, struct sy_error *err)
{
    struct buf key = {.max = LIMIT_COMMENT_KEY};
    const char *path = c->config->assessment.key_file;
    enum sy_code rc = SY_E_OK;

    if (path[0] == '\0') {
        return rc;
    }
    rc = commenter_read_key(&key, path, err);
    if (rc == SY_E_OK && buf_reserve(ret, HEADER_BYTES) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(
            ret, "%s%s",
            c->style == RISK_OPENAI ? "Authorization: Bearer " : "x-api-key: ", buf_view(&key));
    }
    mem_free_secret(key.data, key.cap);
    return rc;
}

static enum sy_code
post(struct comment *m, const char *text, struct sy_error *err)
{
    struct commenter *c = m->owner;
    SY_AUTO(buf_fini) struct buf body = {.max = REQUEST_BYTES};
    struct buf key = {.max = HEADER_BYTES + 1};
    char *headers[4] = {mem_unconst("Content-Type: application/json")};
    size_t n = 1;
    enum sy_code rc = risk_write_request(&body, c->style, c->config->assessment.model, text, err);

    if (rc == SY_E_OK) {
        rc = make_key_header(&key, c, err);
    }
    if (c->style == RISK_ANTHROPIC) {
        headers[n++] = mem_unconst("anthropic-version: 2023-06-01");
    }
    if (key.len > 0) {
        headers[n++] = key.data;
    }

    const struct http_request request = {
        .url = c->config->assessment.url,
        .headers = headers,
        .body = buf_view(&body),
        .len = body.len,
        .timeout_ms = LIMIT_COMMENT_MS,
        .max_bytes = LIMIT_COMMENT_ANSWER,
    };

    if (rc == SY_E_OK) {
        rc = http_post(&m->exchange, &c->client, &request, on_answer, m, err);
    }
    mem_free_secret(key.data, key.cap);
    return rc;
}

/* A review_commenter_fn. */
static bool
begin(void *arg, const char *id, const char *text)
{
    struct commenter *c = arg;
    struct sy_error err = {0};
    struct comment *m = c->n < LIMIT_COMMENTS ? mem_alloc_zero(1, sizeof(*m)) : NULL;

    if (m == NULL) {
        (void)sy_err_set(&err, SY_E_LIMIT, "%zu are waited for already", c->n);
        tell_none(id, &err);
        return false;
    }
    m->owner = c;
    m->next = c->running;
    c->running = m;
    c->n++;
    memcpy(m->id, id, strlen(id) + 1);
    if (post(m, text, &err) != SY_E_OK) {
        tell_none(id, &err);
        comment_forget(m);
        return false;
    }
    return true;
}

enum sy_code
commenter_new(struct commenter **ret, const struct commenter_options *options, struct sy_error *err)
{
    const struct config *config = options->config;
    struct commenter *c = NULL;

    if (config->assessment.url == NULL || config->assessment.url[0] == '\0') {
        return SY_E_OK;
    }
    c = mem_alloc_zero(1, sizeof(*c));
    if (c == NULL) {
        return sy_err_nomem(err);
    }
    c->config = config;
    c->review = options->review;
    c->style = str_eq(config->assessment.style, "openai") ? RISK_OPENAI : RISK_ANTHROPIC;
    c->http_path = options->http_path != NULL ? mem_strdup(options->http_path) : NULL;
    if (options->http_path != NULL && c->http_path == NULL) {
        mem_free(c);
        return sy_err_nomem(err);
    }
    c->client = (struct http_client){
        .loop = options->loop,
        .helper = c->http_path,
        .environ_list = options->environ_list,
        .keeps_no_loop = true,
    };
    review_use_commenter(c->review, begin, c);
    *ret = c;
    return SY_E_OK;
}

void
commenter_free(struct commenter *c)
{
    if (c == NULL) {
        return;
    }
    review_use_commenter(c->review, NULL, NULL);
    while (c->running != NULL) {
        http_cancel(c->running->exchange);
        comment_forget(c->running);
    }
    mem_free(c->http_path);
    mem_free(c);
}
