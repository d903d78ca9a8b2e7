#include "fake_front.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/mem.h"
#include "base/str.h"

struct protocol {
    struct protocol_options options;
    uv_timer_t timer;
    bool is_ending;
};

static struct fake_front seen;

const struct fake_front *
fake_front(void)
{
    return &seen;
}

enum sy_code
fake_front_new(struct protocol **ret, const struct protocol_options *options, struct sy_error *err)
{
    struct protocol *p = mem_alloc_zero(1, sizeof(*p));

    if (p == NULL) {
        return sy_err_nomem(err);
    }
    seen = (struct fake_front){0};
    p->options = *options;
    *ret = p;
    return SY_E_OK;
}

static void
on_closed(uv_handle_t *handle)
{
    struct protocol *p = handle->data;

    p->options.finished(p->options.arg);
}

static void
end(struct protocol *p)
{
    if (!p->is_ending) {
        p->is_ending = true;
        SY_ASSERT(uv_timer_init(p->options.loop, &p->timer) == 0);
        p->timer.data = p;
        uv_close((uv_handle_t *)&p->timer, on_closed);
    }
}

static void
flood(struct protocol *p, uint64_t n)
{
    static char block[FLOOD_BYTES];

    for (uint64_t i = 0; i < n; i++) {
        memset(block, 'a' + (char)(i % 26), sizeof(block));
        seen.sent = p->options.send(p->options.arg, block, sizeof(block));
    }
}

void
protocol_on_line(struct protocol *p, const char *text, size_t len)
{
    size_t n = len < sizeof(seen.last) - 1 ? len : sizeof(seen.last) - 1;
    uint64_t count = 0;

    seen.n_lines++;
    memcpy(seen.last, text, n);
    seen.last[n] = '\0';
    if (str_starts(seen.last, "echo ")) {
        seen.sent = p->options.send(p->options.arg, text + 5, len - 5);
    } else if (str_starts(seen.last, "flood ") && str_to_u64(&count, seen.last + 6, 1, 4096)) {
        flood(p, count);
    } else if (str_eq(seen.last, "end")) {
        end(p);
    }
}

void
protocol_on_dropped(struct protocol *p, enum sy_code why)
{
    (void)p;
    (void)why;
    seen.n_dropped++;
}

void
protocol_on_eof(struct protocol *p)
{
    seen.has_eof = true;
    end(p);
}

void
protocol_on_gone(struct protocol *p)
{
    seen.is_gone = true;
    end(p);
}

void
protocol_free(struct protocol *p)
{
    mem_free(p);
}
