/*
 * What is painted of any screen makes another terminal show it, and asks it nothing. The first
 * bytes say how large, and in which pieces.
 */
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "screens.h"
#include "terminal/paint.h"

static void
paint_into(struct paint *p, struct terminal *from, struct terminal *to)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_PAINT_MOST};
    bool is_whole = false;

    while (!is_whole) {
        buf_reset(&out);
        CHECK(paint_add(p, from, &out, &is_whole) == SY_E_OK);
        CHECK(terminal_feed(to, buf_view(&out), out.len) == SY_E_OK);
    }
    CHECK(terminal_replies(to)->len == 0);
}

static void
run(const uint8_t *data, size_t size)
{
    struct terminal_options o = {.rows = 1 + data[0] % 30, .cols = 2 + data[1] % 100};
    struct terminal *a = NULL;
    struct terminal *b = NULL;
    struct paint *p = NULL;
    size_t piece = 1 + (size_t)data[2] * 4;
    const char *bytes = (const char *)data + 3;
    size_t n = size - 3;

    CHECK(terminal_new(&a, &o, NULL) == SY_E_OK && terminal_new(&b, &o, NULL) == SY_E_OK);
    CHECK(paint_new(&p, o.rows, o.cols, false, NULL) == SY_E_OK);
    for (size_t i = 0; i < n; i += piece) {
        CHECK(terminal_feed(a, bytes + i, piece < n - i ? piece : n - i) == SY_E_OK);
        buf_reset(terminal_replies(a));
        paint_into(p, a, b);
    }
    CHECK(screens_cells_differ(a, b) == NULL);
    paint_free(p);
    terminal_free(a);
    terminal_free(b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();

    if (size > 3 && size < 20000) {
        run(data, size);
    }
    CHECK(mem_live() == live);
    return 0;
}
