#include "protocol/notice.h"

bool
notice_changed(struct notice *n)
{
    bool was_due = n->is_due;

    n->is_due = true;
    return !was_due;
}

uint64_t
notice_when(const struct notice *n)
{
    return n->is_due ? n->not_before_ms : UINT64_MAX;
}

bool
notice_take(struct notice *n, uint64_t now_ms)
{
    if (!n->is_due || now_ms < n->not_before_ms) {
        return false;
    }
    n->is_due = false;
    n->not_before_ms = now_ms + NOTICE_MS;
    return true;
}

void
notice_put_off(struct notice *n, uint64_t now_ms)
{
    n->not_before_ms = now_ms + NOTICE_MS;
}
