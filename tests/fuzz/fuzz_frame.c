/*
 * What the engine and shellyard-http say to each other: the first byte says which of the two reads
 * it. Whatever is accepted keeps its promises, and reads the same when it is written anew.
 */
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz_check.h"
#include "http/frame.h"

/* As those that read and write it have it. */
#define FRAME_MAX ((size_t)LIMIT_HTTP_BODY + LIMIT_HTTP_HEAD)

static bool
same_headers(char *const *a, char *const *b)
{
    size_t i = 0;

    for (; a[i] != NULL && b[i] != NULL; i++) {
        if (!str_eq(a[i], b[i])) {
            return false;
        }
    }
    return a[i] == NULL && b[i] == NULL;
}

static void
read_request(struct buf *text)
{
    struct frame_parsed p = {0};
    struct frame_parsed again = {0};
    struct buf written = {.max = FRAME_MAX};
    struct sy_error err = {0};
    enum sy_code rc = frame_read_request(&p, text, &err);

    if (rc == SY_E_OK) {
        CHECK(p.request.url != NULL && p.request.url[0] != '\0' && p.request.headers != NULL);
        CHECK(p.request.timeout_ms > 0 && p.request.max_bytes <= LIMIT_HTTP_ANSWER);
        /* What the engine would not write nobody need take. */
        rc = frame_write_request(&written, &p.request, &err);
        if (rc == SY_E_OK) {
            CHECK(frame_read_request(&again, &written, &err) == SY_E_OK);
            CHECK(str_eq(again.request.url, p.request.url));
            CHECK(again.request.timeout_ms == p.request.timeout_ms);
            CHECK(again.request.max_bytes == p.request.max_bytes);
            CHECK(same_headers(again.request.headers, p.request.headers));
            CHECK(again.request.len == p.request.len &&
                  memcmp(again.request.body, p.request.body, p.request.len) == 0);
        }
    } else {
        CHECK(err.code == rc && err.msg[0] != '\0');
    }
    frame_parsed_fini(&again);
    frame_parsed_fini(&p);
    buf_fini(&written);
}

static void
read_answer(struct buf *text)
{
    struct frame_answer a = {0};
    struct frame_answer again = {0};
    struct buf written = {.max = FRAME_MAX};
    struct sy_error err = {0};
    enum sy_code rc = frame_read_answer(&a, text, &err);

    if (rc == SY_E_OK) {
        CHECK(a.failure <= FRAME_OTHER);
        CHECK(a.failure != FRAME_NONE || (a.status >= 100 && a.status <= 999 && a.type != NULL));
        CHECK(frame_write_answer(&written, &a) == SY_E_OK);
        CHECK(frame_read_answer(&again, &written, &err) == SY_E_OK);
        CHECK(again.failure == a.failure && again.status == a.status);
        CHECK(again.len == a.len && memcmp(again.body, a.body, a.len) == 0);
    } else {
        CHECK(rc == SY_E_PARSE && err.code == rc && err.msg[0] != '\0');
    }
    buf_fini(&written);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {.max = FRAME_MAX};
    size_t live = mem_live();

    if (size == 0 || buf_add(&text, (const char *)data + 1, size - 1) != SY_E_OK) {
        buf_fini(&text);
        return 0;
    }
    if (data[0] == 'r') {
        read_request(&text);
    } else {
        read_answer(&text);
    }
    buf_fini(&text);
    CHECK(mem_live() == live);
    return 0;
}
