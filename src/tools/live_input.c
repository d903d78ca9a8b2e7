/* The bytes that a session is given: a text, keys, Enter. */
#include <string.h>

#include "base/limits.h"
#include "terminal/key.h"
#include "terminal/terminal.h"
#include "tools/live_call.h"

#define CTRL_C         '\x03'
#define CTRL_D         '\x04'
#define CTRL_Z         '\x1a'
#define CTRL_BACKSLASH '\x1c'

/* Of one without a terminal nothing is known. */
static struct key_modes
modes_of(struct live *l)
{
    const struct terminal *t = live_screen(l);

    return t != NULL ? terminal_state(t)->keys : (struct key_modes){.app_cursor = false};
}

/* The text, as it is pasted. A pipe has no paste. */
static enum sy_code
paste(struct buf *input, struct live *l)
{
    SY_AUTO(buf_fini) struct buf out = {.max = input->max};
    const struct key_modes modes = modes_of(l);
    enum sy_code rc = key_paste(&out, buf_view(input), input->len, &modes);

    if (rc == SY_E_OK) {
        buf_reset(input);
        rc = buf_add(input, buf_view(&out), out.len);
    }
    return rc;
}

/* A terminal makes a line's end of what Enter sends; to a pipe the key is that end. */
static enum sy_code
press(struct buf *input, struct live *l, const char *name, struct sy_error *err)
{
    const struct key_modes modes = modes_of(l);
    size_t len = input->len;
    enum sy_code rc = key_encode(input, name, &modes, err);

    if (rc == SY_E_OK && live_screen(l) == NULL && input->len == len + 1 &&
        input->data[len] == '\r') {
        input->data[len] = '\n';
    }
    return rc;
}

enum sy_code
live_input_make(struct buf *input, struct live *l, const struct strv *keys,
                const struct live_order *o, struct sy_error *err)
{
    bool pastes = o->pastes && input->len > 0 && live_screen(l) != NULL;
    enum sy_code rc = pastes ? paste(input, l) : SY_E_OK;

    for (size_t i = 0; i < keys->n && rc == SY_E_OK; i++) {
        rc = press(input, l, keys->v[i], err);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    if (rc == SY_E_OK && o->presses_enter) {
        rc = press(input, l, "Enter", NULL);
    }
    return rc == SY_E_OK ? rc
                         : sy_err_set(err, rc, "no room for what is typed: at most %u bytes",
                                      LIMIT_INPUT_PENDING);
}

/* Of a paste in brackets its reader keeps the lines until one ends it. */
static size_t
paste_end(const struct buf *input)
{
    static const char end[] = "\x1b[201~";
    const size_t n = sizeof(end) - 1;

    for (size_t at = input->len; at >= n; at--) {
        if (memcmp(input->data + at - n, end, n) == 0) {
            return at;
        }
    }
    return 0;
}

char
live_input_control(const struct buf *input, bool has_lines)
{
    bool has_line = false;

    for (size_t i = paste_end(input); i < input->len; i++) {
        const char c = input->data[i];

        if (has_line &&
            (c == CTRL_C || c == CTRL_Z || c == CTRL_BACKSLASH || (c == CTRL_D && !has_lines))) {
            return c;
        }
        has_line |= c == '\r' || c == '\n';
    }
    return '\0';
}

size_t
live_input_lines(const struct buf *input)
{
    size_t ret = 0;

    for (size_t i = 0; i < input->len; i++) {
        bool is_second = i > 0 && input->data[i - 1] == '\r';

        ret += input->data[i] == '\r' || (input->data[i] == '\n' && !is_second) ? 1 : 0;
    }
    return ret;
}
