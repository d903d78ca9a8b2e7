/*
 * The stripped stream does not depend on where it was cut, and has no escape sequence and nothing
 * that turns text; the views of the same bytes are valid UTF-8 and JSON.
 */
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/place.h"
#include "base/utf8.h"
#include "fuzz_check.h"
#include "terminal/strip.h"
#include "terminal/view.h"

static void
strip(const char *bytes, size_t n, size_t piece, struct buf *out)
{
    struct strip s = {.held_n = 0};

    for (size_t i = 0; i < n; i += piece) {
        CHECK(strip_feed(&s, bytes + i, piece < n - i ? piece : n - i, out) == SY_E_OK);
    }
    CHECK(strip_finish(&s, out) == SY_E_OK);
    strip_fini(&s);
}

static void
check_harmless(const struct buf *text)
{
    const char *s = buf_view(text);

    CHECK(memchr(s, '\x1b', text->len) == NULL);
    for (size_t i = 0; i < text->len;) {
        uint32_t c = 0;
        size_t len = utf8_decode(&c, s + i, text->len - i);

        CHECK(len < 2 || !place_is_deceptive(c));
        i += len > 0 ? len : 1;
    }
}

static void
check_strip(const char *bytes, size_t n, size_t piece)
{
    SY_AUTO(buf_fini) struct buf whole = {.max = n * 16 + 64};
    SY_AUTO(buf_fini) struct buf cut = {.max = n * 16 + 64};

    strip(bytes, n, n + 1, &whole);
    strip(bytes, n, piece, &cut);
    CHECK(whole.len == cut.len);
    CHECK(memcmp(buf_view(&whole), buf_view(&cut), whole.len) == 0);
    check_harmless(&whole);
}

/* What a look has found out of a row is what its cells say. */
static void
check_rows(const struct terminal *t, const struct terminal_screen *screen)
{
    SY_AUTO(buf_fini) struct buf row = {.max = 65536};
    SY_AUTO(buf_fini) struct buf cells = {.max = 65536};

    for (unsigned i = 0; i < screen->rows; i++) {
        buf_reset(&row);
        buf_reset(&cells);
        CHECK(terminal_row(t, i, &row) == SY_E_OK);
        CHECK(terminal_part(t, i, 0, screen->cols, &cells) == SY_E_OK);
        while (cells.len > 0 && buf_view(&cells)[cells.len - 1] == ' ') {
            cells.len--;
        }
        CHECK(row.len == cells.len && memcmp(buf_view(&row), buf_view(&cells), row.len) == 0);
    }
}

static void
check_views(const char *bytes, size_t n, unsigned rows, unsigned cols)
{
    struct terminal_options o = {.rows = rows, .cols = cols};
    struct terminal *t = NULL;
    struct terminal_screen screen;
    SY_AUTO(buf_fini) struct buf out = {.max = 1048576};
    SY_AUTO(buf_fini) struct buf diff = {.max = 1048576};
    SY_AUTO(buf_fini) struct buf facts = {.max = 1048576};
    struct jw w = {.out = &facts};

    CHECK(terminal_new(&t, &o, NULL) == SY_E_OK);
    CHECK(terminal_feed(t, bytes, n / 2) == SY_E_OK);
    CHECK(terminal_look(t, &screen) == SY_E_OK);
    check_rows(t, &screen);
    CHECK(terminal_resize(t, rows % 7 + 1, cols, NULL) == SY_E_OK);
    CHECK(terminal_feed(t, bytes + n / 2, n - n / 2) == SY_E_OK);
    CHECK(terminal_look(t, &screen) == SY_E_OK);
    check_rows(t, &screen);
    CHECK(view_screen(t, &screen, &out) == SY_E_OK && utf8_is_valid(buf_view(&out), out.len));
    CHECK(view_diff(t, &screen, screen.seq, &diff) == SY_E_OK && diff.len == 0);
    CHECK(view_diff(t, &screen, 0, &diff) == SY_E_OK && utf8_is_valid(buf_view(&diff), diff.len));
    jw_object(&w);
    CHECK(view_facts(&w, t, &screen) == SY_E_OK);
    jw_end_object(&w);
    CHECK(jw_done(&w) == SY_E_OK);

    struct json_doc doc = {.root = NULL};

    CHECK(json_parse(&doc, buf_view(&facts), facts.len, NULL) == SY_E_OK);
    json_doc_fini(&doc);
    terminal_free(t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();

    if (size < 4 || size > 65536) {
        return 0;
    }
    check_strip((const char *)data + 3, size - 3, 1 + (size_t)data[2]);
    check_views((const char *)data + 3, size - 3, 1 + data[0] % 30, 2 + data[1] % 100);
    CHECK(mem_live() == live);
    return 0;
}
