/*
 * A terminal that is fed in pieces, rests and is looked at now and then shows the same as
 * one that draws each byte at once, and gives the same answers. The first bytes say how.
 */
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "fuzz_check.h"
#include "screens.h"
#include "terminal/terminal_internal.h"

static struct terminal *
make(unsigned rows, unsigned cols)
{
    struct terminal_options o = {.rows = rows, .cols = cols, .nonce = "n"};
    struct terminal *t = NULL;

    CHECK(terminal_new(&t, &o, NULL) == SY_E_OK);
    return t;
}

static void
check_shown(struct terminal *t)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1048576};

    CHECK(screens_text(t, &text) == SY_E_OK);
    CHECK(utf8_is_valid(buf_view(&text), text.len));
    CHECK(memchr(buf_view(&text), '\x1b', text.len) == NULL);
    CHECK(utf8_is_valid(terminal_title(t), strlen(terminal_title(t))));
    CHECK(strlen(terminal_title(t)) <= LIMIT_TERMINAL_TITLE);
    CHECK(terminal_replies(t)->len <= LIMIT_TERMINAL_REPLIES);
}

/* Between two pieces; `what` is a byte of the input. */
static void
meddle(struct terminal *lazy, struct terminal *eager, uint8_t what)
{
    struct terminal_screen s;

    switch (what % 16) {
    case 0:
        CHECK(terminal_look(lazy, &s) == SY_E_OK);
        CHECK(s.cursor_row < s.rows && s.cursor_col < s.cols);
        break;
    case 1:
        terminal_rest(lazy);
        break;
    case 2:
        CHECK(screens_differ(lazy, eager) == NULL);
        break;
    case 3:
        eager->is_pristine = false;
        CHECK(terminal_resize(lazy, 1 + what / 16, 2 + what / 8, NULL) == SY_E_OK);
        CHECK(terminal_resize(eager, 1 + what / 16, 2 + what / 8, NULL) == SY_E_OK);
        break;
    default:
        break;
    }
}

static void
run(const uint8_t *data, size_t size)
{
    /* A piece of text is repeated, else no input is long enough for anything to be left out. */
    struct terminal *lazy = make(1 + data[0] % 30, 2 + data[1] % 100);
    struct terminal *eager = make(1 + data[0] % 30, 2 + data[1] % 100);
    size_t piece = 1 + (size_t)data[2] * 4;
    unsigned times = 1 + data[3] % 64;
    const char *bytes = (const char *)data + 4;
    size_t n = size - 4;

    times = n * times > 20000 ? 1 : times;
    for (unsigned k = 0; k < times; k++) {
        for (size_t i = 0; i < n; i += piece) {
            size_t len = piece < n - i ? piece : n - i;

            CHECK(terminal_feed(lazy, bytes + i, len) == SY_E_OK);
            CHECK(screens_feed_eagerly(eager, bytes + i, len) == SY_E_OK);
            meddle(lazy, eager, (uint8_t)(data[(i + k) % size] ^ k));
        }
    }
    CHECK(screens_differ(lazy, eager) == NULL);
    check_shown(lazy);
    terminal_rest(lazy);
    CHECK(screens_differ(lazy, eager) == NULL);
    terminal_free(lazy);
    terminal_free(eager);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();

    if (size > 4) {
        run(data, size);
    }
    CHECK(mem_live() == live);
    return 0;
}
