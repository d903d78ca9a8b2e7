/* The last line of a call's output, for progress. */
#include "orchestrator/call_internal.h"

const char *
orch_last_line(struct orch_call *c)
{
    buf_reset(&c->last_line);
    if (c->chain == NULL || output_text_all(c->chain, &c->last_line) != SY_E_OK) {
        return "";
    }

    size_t end = c->last_line.len;

    while (end > 0 && (c->last_line.data[end - 1] == '\n' || c->last_line.data[end - 1] == '\r')) {
        end--;
    }
    if (end == 0) {
        return "";
    }
    c->last_line.data[end] = '\0';
    while (end > 0 && c->last_line.data[end - 1] != '\n' && c->last_line.data[end - 1] != '\r') {
        end--;
    }
    return c->last_line.data + end;
}
