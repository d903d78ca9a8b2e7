#include "transport/hello.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define FIRST  "shellyard "
#define BEFORE FIRST HELLO_VERSION " "

/* "shellyard 1 1048576\n" */
#define HEAD_MAX 32U

void
hello_fini(struct hello *h)
{
    mem_free(h->words);
    *h = (struct hello){0};
}

static enum sy_code
add(struct buf *texts, const char *text)
{
    return buf_add(texts, text, strlen(text) + 1);
}

static enum sy_code
add_all(struct buf *texts, const struct hello *h, size_t n_args)
{
    char number[24];
    const char *const first[] = {h->protocol, h->build, h->cwd, number};
    enum sy_code rc = SY_E_OK;

    (void)snprintf(number, sizeof(number), "%zu", n_args);
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]) && rc == SY_E_OK; i++) {
        rc = add(texts, first[i]);
    }
    for (size_t i = 0; i < n_args && rc == SY_E_OK; i++) {
        rc = add(texts, h->args[i]);
    }
    for (size_t i = 0; rc == SY_E_OK && h->environ_list[i] != NULL; i++) {
        rc = add(texts, h->environ_list[i]);
    }
    return rc;
}

enum sy_code
hello_write(struct buf *out, const struct hello *h, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf texts = {.max = LIMIT_HELLO - HEAD_MAX};
    size_t n_args = 0;

    while (h->args[n_args] != NULL) {
        n_args++;
    }

    enum sy_code rc = add_all(&texts, h, n_args);

    if (rc == SY_E_OK) {
        rc = buf_addf(out, BEFORE "%zu\n", texts.len);
    }
    if (rc == SY_E_OK) {
        rc = buf_add(out, texts.data, texts.len);
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, rc, "environment and arguments are larger than %u bytes",
                          LIMIT_HELLO);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

static enum hello_state
bad(struct sy_error *err, const char *what)
{
    (void)sy_err_set(err, SY_E_PARSE, "the hello is malformed: %s", what);
    return HELLO_BAD;
}

/* The size of the texts, out of the first line. */
static enum hello_state
read_head(size_t *ret_head, size_t *ret_size, const char *bytes, size_t n, struct sy_error *err)
{
    const char *newline = memchr(bytes, '\n', n < HEAD_MAX ? n : HEAD_MAX);
    char line[HEAD_MAX];
    uint64_t size = 0;

    if (newline == NULL) {
        size_t known = n < sizeof(FIRST) - 1 ? n : sizeof(FIRST) - 1;

        if (n >= HEAD_MAX || memcmp(bytes, FIRST, known) != 0) {
            return bad(err, "the first line is 'shellyard VERSION BYTES'");
        }
        return HELLO_MORE;
    }

    size_t len = (size_t)(newline - bytes);

    memcpy(line, bytes, len);
    line[len] = '\0';
    if (strlen(line) != len || !str_starts(line, FIRST)) {
        return bad(err, "the first line is 'shellyard VERSION BYTES'");
    }
    if (!str_starts(line, BEFORE)) {
        (void)sy_err_set(err, SY_E_PARSE, "the client speaks another version than " HELLO_VERSION);
        return HELLO_OTHER;
    }
    if (!str_to_u64(&size, line + sizeof(BEFORE) - 1, 1, LIMIT_HELLO - HEAD_MAX)) {
        return bad(err, "its number of bytes is none from 1 to 1048544");
    }
    *ret_head = len + 1;
    *ret_size = (size_t)size;
    return HELLO_WHOLE;
}

_Static_assert(LIMIT_HELLO - HEAD_MAX == 1048544, "the number that the sentence names");

/* Cuts the texts into *ret; `words` has room for all of them and one more. */
static enum hello_state
share_out(struct hello *ret, char **words, size_t n, struct sy_error *err)
{
    uint64_t n_args = 0;

    if (n < 4) {
        return bad(err, "protocol, build, directory or number of arguments is missing");
    }
    if (!str_to_u64(&n_args, words[3], 0, n - 4)) {
        return bad(err, "there are fewer arguments than it says");
    }
    ret->protocol = words[0];
    ret->build = words[1];
    ret->cwd = words[2];
    if (ret->cwd[0] != '/') {
        return bad(err, "its working directory is not absolute");
    }
    /* Arguments move to the front, so that both arrays can end with NULL. */
    memmove(words, words + 4, (size_t)n_args * sizeof(words[0]));
    words[n_args] = NULL;
    ret->args = words;
    ret->environ_list = words + 4 + n_args;
    return HELLO_WHOLE;
}

static enum hello_state
read_texts(struct hello *ret, const char *texts, size_t size, struct sy_error *err)
{
    size_t n = 0;

    if (texts[size - 1] != '\0') {
        return bad(err, "its last text has no end");
    }
    for (size_t i = 0; i < size; i++) {
        n += texts[i] == '\0' ? 1 : 0;
    }
    if (n > LIMIT_ENV + LIMIT_HELLO_ARGS) {
        return bad(err, "it has too many texts");
    }

    char **words = mem_alloc((n + 1) * sizeof(words[0]));

    if (words == NULL) {
        (void)sy_err_nomem(err);
        return HELLO_BAD;
    }

    const char *text = texts;

    for (size_t i = 0; i < n; i++) {
        words[i] = mem_unconst(text);
        text += strlen(text) + 1;
    }
    words[n] = NULL;

    enum hello_state state = share_out(ret, words, n, err);

    if (state == HELLO_WHOLE) {
        ret->words = words;
    } else {
        mem_free(words);
        *ret = (struct hello){0};
    }
    return state;
}

enum hello_state
hello_read(struct hello *ret, const char *bytes, size_t n, struct sy_error *err)
{
    size_t head = 0;
    size_t size = 0;

    *ret = (struct hello){0};
    if (n == 0) {
        return HELLO_MORE;
    }

    enum hello_state state = read_head(&head, &size, bytes, n, err);

    if (state != HELLO_WHOLE) {
        return state;
    }
    if (n > head + size) {
        return bad(err, "it is longer than it says");
    }
    return n < head + size ? HELLO_MORE : read_texts(ret, bytes + head, size, err);
}

static const char *const kinds[] = {
    [HELLO_OK] = "ok",       [HELLO_NOTE] = "note", [HELLO_OWN] = "own",
    [HELLO_ERROR] = "error", [HELLO_END] = "end",
};

size_t
hello_answer_write(char ret[HELLO_ANSWER_MAX], const struct hello_answer *a)
{
    int n = snprintf(ret, HELLO_ANSWER_MAX, "%s %u %s", kinds[a->kind], a->number, a->sentence);

    SY_ASSERT(n > 0 && (size_t)n + 1 < HELLO_ANSWER_MAX);

    size_t len = (size_t)n;

    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)ret[i] < 0x20U) {
            ret[i] = ' ';
        }
    }
    ret[len] = '\n';
    ret[len + 1] = '\0';
    return len + 1;
}

bool
hello_answer_read(struct hello_answer *ret, const char *line, size_t n)
{
    char copy[HELLO_ANSWER_MAX];
    uint64_t number = 0;

    if (n >= sizeof(copy) || memchr(line, '\0', n) != NULL) {
        return false;
    }
    memcpy(copy, line, n);
    copy[n] = '\0';

    char *first = strchr(copy, ' ');
    char *second = first != NULL ? strchr(first + 1, ' ') : NULL;

    if (second == NULL) {
        return false;
    }
    *first = '\0';
    *second = '\0';
    if (!str_to_u64(&number, first + 1, 0, UINT32_MAX) ||
        strlen(second + 1) >= sizeof(ret->sentence)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (str_eq(copy, kinds[i])) {
            *ret = (struct hello_answer){.kind = (enum hello_kind)i, .number = (unsigned)number};
            memcpy(ret->sentence, second + 1, strlen(second + 1) + 1);
            return true;
        }
    }
    return false;
}
