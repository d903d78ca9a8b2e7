#ifndef SY_PROTOCOL_NOTICE_H
#define SY_PROTOCOL_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * When a change is told of something that may change all the time: the first at once, then at most
 * one in NOTICE_MS, and the last one always. Times are those of the loop, in milliseconds. Pure;
 * zeroed: nothing to tell.
 */
#define NOTICE_MS 100U

struct notice {
    bool is_due;
    uint64_t not_before_ms;
};

/* It has changed. True: nothing was to be told until now. */
bool notice_changed(struct notice *n);
/* When it is to be told; UINT64_MAX: there is nothing. */
uint64_t notice_when(const struct notice *n);
/* Is it to be told now? Then it counts as told. */
bool notice_take(struct notice *n, uint64_t now_ms);
/* It can't be told now: it will be later. */
void notice_put_off(struct notice *n, uint64_t now_ms);

#endif
