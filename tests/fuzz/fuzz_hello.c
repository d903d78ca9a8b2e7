/*
 * What a stranger says to the daemon first, and what a stranger answers its client. A hello that
 * is whole has all its texts within the bytes and is written again as it came; one that is not
 * whole is not judged by less than all.
 */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "transport/hello.h"

static void
check_within(const char *text, const char *bytes, size_t n)
{
    CHECK(text >= bytes && text + strlen(text) < bytes + n);
}

/* The texts again; only the number of arguments may have been spelled otherwise. */
static void
check_written(const struct hello *h, size_t n)
{
    struct buf frame = {.max = LIMIT_HELLO};
    struct hello again;
    size_t i = 0;

    CHECK(hello_write(&frame, h, NULL) == SY_E_OK);
    CHECK(frame.len <= n);
    CHECK(hello_read(&again, frame.data, frame.len, NULL) == HELLO_WHOLE);
    CHECK(strcmp(h->protocol, again.protocol) == 0 && strcmp(h->cwd, again.cwd) == 0);
    for (; h->args[i] != NULL; i++) {
        CHECK(again.args[i] != NULL && strcmp(h->args[i], again.args[i]) == 0);
    }
    CHECK(again.args[i] == NULL);
    for (i = 0; h->environ_list[i] != NULL; i++) {
        CHECK(strcmp(h->environ_list[i], again.environ_list[i]) == 0);
    }
    CHECK(again.environ_list[i] == NULL);
    hello_fini(&again);
    buf_fini(&frame);
}

static void
check_hello(const char *bytes, size_t n)
{
    struct sy_error err = {0};
    struct hello h;

    switch (hello_read(&h, bytes, n, &err)) {
    case HELLO_MORE:
        CHECK(h.words == NULL && err.code == SY_E_OK);
        break;
    case HELLO_WHOLE:
        check_within(h.protocol, bytes, n);
        check_within(h.build, bytes, n);
        check_within(h.cwd, bytes, n);
        CHECK(h.cwd[0] == '/');
        for (size_t i = 0; h.args[i] != NULL; i++) {
            check_within(h.args[i], bytes, n);
        }
        for (size_t i = 0; h.environ_list[i] != NULL; i++) {
            check_within(h.environ_list[i], bytes, n);
        }
        check_written(&h, n);
        break;
    case HELLO_OTHER:
    case HELLO_BAD:
        CHECK(h.words == NULL && err.code == SY_E_PARSE && err.msg[0] != '\0');
        break;
    }
    hello_fini(&h);
}

static void
check_answer(const char *bytes, size_t n)
{
    char line[HELLO_ANSWER_MAX];
    struct hello_answer a;
    struct hello_answer again;

    if (hello_answer_read(&a, bytes, n)) {
        size_t len = hello_answer_write(line, &a);

        CHECK(len <= sizeof(line) && memchr(line, '\n', len) == line + len - 1);
        CHECK(hello_answer_read(&again, line, len - 1));
        CHECK(again.kind == a.kind && again.number == a.number);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();
    char *bytes = mem_alloc(size + 1);

    if (bytes == NULL) {
        return 0;
    }
    memcpy(bytes, data, size);
    bytes[size] = '\0';
    check_hello(bytes, size);
    check_answer(bytes, size);
    mem_free(bytes);
    CHECK(mem_live() == live);
    return 0;
}
