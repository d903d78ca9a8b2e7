/* How far a call's output has come, for progress. */
#include "orchestrator/call_internal.h"

const char *
orch_tail(struct orch_call *c, size_t max, size_t *ret_len)
{
    *ret_len = 0;
    buf_reset(&c->tail);
    if (c->chain == NULL || output_text_all(c->chain, &c->tail) != SY_E_OK) {
        return "";
    }
    *ret_len = c->tail.len < max ? c->tail.len : max;
    return buf_view(&c->tail) + (c->tail.len - *ret_len);
}

uint64_t
orch_total(const struct orch_call *c)
{
    return c->chain != NULL ? output_total(c->chain) : 0;
}
