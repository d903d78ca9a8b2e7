#include "terminal/stand_out.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

/* What lies in paper is not narrower. */
#define HOLE_COLS 2U

void
stand_out_fini(struct stand_out *s)
{
    mem_free(s->parts);
    mem_free(s->runs);
    *s = (struct stand_out){.parts = NULL};
}

static unsigned
run_end(const struct terminal_run *r)
{
    return r->col + r->cols;
}

static bool
touch(const struct terminal_run *a, const struct terminal_run *b)
{
    return a->is_reverse == b->is_reverse && a->background == b->background &&
           a->col < run_end(b) && b->col < run_end(a);
}

/* The first part of the area that a part belongs to stands for it. */
static size_t
area_of(struct stand_out_part *parts, size_t i)
{
    while (parts[i].area != i) {
        parts[i].area = parts[parts[i].area].area;
        i = parts[i].area;
    }
    return i;
}

static void
join(struct stand_out_part *parts, size_t a, size_t b)
{
    a = area_of(parts, a);
    b = area_of(parts, b);
    parts[a > b ? a : b].area = a > b ? b : a;
}

static enum sy_code
make_room(struct stand_out *s, size_t n)
{
    size_t cap = s->cap > n ? s->cap * 2 : s->cap + n;
    struct stand_out_part *more = NULL;

    if (s->cap - s->n >= n) {
        return SY_E_OK;
    }
    more = mem_realloc(s->parts, cap * sizeof(*more));
    if (more == NULL) {
        return SY_E_NOMEM;
    }
    s->parts = more;
    s->cap = cap;
    return SY_E_OK;
}

/* Those of the row above begin at `above`. */
static enum sy_code
add_row(struct stand_out *s, const struct terminal *t, unsigned row, size_t above)
{
    size_t first = s->n;
    size_t n = terminal_row_runs(t, row, s->runs, s->cols);
    enum sy_code rc = n > 0 ? make_room(s, n) : SY_E_OK;

    if (n == 0 || rc != SY_E_OK) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        s->parts[s->n] = (struct stand_out_part){.run = s->runs[i], .row = row, .area = s->n};
        s->n++;
    }
    for (size_t a = above, b = first; a < first && b < s->n;) {
        if (touch(&s->parts[a].run, &s->parts[b].run)) {
            join(s->parts, a, b);
        }
        if (run_end(&s->parts[a].run) < run_end(&s->parts[b].run)) {
            a++;
        } else {
            b++;
        }
    }
    return SY_E_OK;
}

/* Of each area, at its first part: how many cells it has, and its last part so far. */
struct extent {
    uint64_t cells;
    size_t last;
};

static void
add_part(struct stand_out_part *parts, struct extent *areas, size_t i)
{
    size_t area = area_of(parts, i);
    const struct stand_out_part *last = &parts[areas[area].last];

    if (areas[area].cells > 0 && last->row == parts[i].row && i > areas[area].last + 1 &&
        parts[i].run.col - run_end(&last->run) >= HOLE_COLS) {
        parts[area].is_paper = true;
    }
    areas[area].cells += parts[i].run.cols;
    areas[area].last = i;
}

static enum sy_code
find_paper(struct stand_out *s, uint64_t cells)
{
    struct extent *areas = s->n > 0 ? mem_alloc_zero(s->n, sizeof(*areas)) : NULL;

    if (areas == NULL) {
        return s->n > 0 ? SY_E_NOMEM : SY_E_OK;
    }
    for (size_t i = 0; i < s->n; i++) {
        add_part(s->parts, areas, i);
    }
    for (size_t i = 0; i < s->n; i++) {
        size_t area = area_of(s->parts, i);

        s->parts[i].is_paper = s->parts[area].is_paper || areas[area].cells * 2 > cells;
    }
    mem_free(areas);
    return SY_E_OK;
}

enum sy_code
stand_out_find(struct stand_out *ret, const struct terminal *t,
               const struct terminal_screen *screen)
{
    size_t above = 0;
    enum sy_code rc = SY_E_OK;

    ret->cols = screen->cols;
    ret->runs = mem_alloc(ret->cols * sizeof(*ret->runs));
    if (ret->runs == NULL) {
        return SY_E_NOMEM;
    }
    for (unsigned row = 0; row < screen->rows && rc == SY_E_OK; row++) {
        size_t first = ret->n;

        rc = add_row(ret, t, row, above);
        above = first;
    }
    return rc == SY_E_OK ? find_paper(ret, (uint64_t)screen->rows * screen->cols) : rc;
}
