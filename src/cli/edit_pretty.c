#include "cli/edit.h"

#include <stdint.h>

#include "cli/edit_jsonc.h"

struct pretty {
    struct buf *out;
    const char *base;
    const char *unit;
    size_t depth;
    uint64_t is_object; /* one bit a level; LIMIT_JSON_DEPTH is 64 */
};

static enum sy_code
break_line(const struct pretty *p)
{
    enum sy_code rc = buf_addf(p->out, "\n%s", p->base);

    for (size_t k = 0; k < p->depth && rc == SY_E_OK; k++) {
        rc = buf_add_str(p->out, p->unit);
    }
    return rc;
}

/* One byte of the compact text that stands outside of strings. */
static enum sy_code
put_mark(struct pretty *p, const char *at)
{
    bool breaks = false;
    enum sy_code rc = SY_E_OK;

    switch (*at) {
    case '{':
    case '[':
        breaks = *at == '{' && at[1] != '}';
        p->is_object = p->is_object << 1 | (*at == '{' ? 1U : 0U);
        p->depth++;
        rc = buf_add_char(p->out, *at);
        break;
    case '}':
    case ']':
        p->depth--;
        p->is_object >>= 1;
        rc = *at == '}' && at[-1] != '{' ? break_line(p) : SY_E_OK;
        return rc == SY_E_OK ? buf_add_char(p->out, *at) : rc;
    case ',':
        breaks = (p->is_object & 1) != 0;
        rc = buf_add_str(p->out, breaks ? "," : ", ");
        break;
    case ':':
        return buf_add_str(p->out, ": ");
    default:
        return buf_add_char(p->out, *at);
    }
    return rc == SY_E_OK && breaks ? break_line(p) : rc;
}

enum sy_code
edit_pretty(struct buf *out, const char *json, const char *base, const char *unit)
{
    struct pretty p = {.out = out, .base = base, .unit = unit};
    enum sy_code rc = SY_E_OK;
    size_t i = 0;

    while (json[i] != '\0' && rc == SY_E_OK) {
        size_t end = json[i] == '"' ? edit_jsonc_string(json, i) : i + 1;

        rc = json[i] == '"' ? buf_add(out, json + i, end - i) : put_mark(&p, json + i);
        i = end;
    }
    return rc;
}
