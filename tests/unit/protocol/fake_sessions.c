/* The sessions of the stand-in for the tools room. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "fake_tools.h"

struct tool_watch {
    tool_session_fn *fn;
    void *arg;
};

static struct fake_live {
    char id[80];
    bool has_terminal;
} lives[FAKE_SESSIONS_MAX];

static size_t n_lives;
static struct tool_watch *watch;

void
fake_sessions_forget(void)
{
    n_lives = 0;
}

static size_t
find_live(const char *id)
{
    size_t i = 0;

    while (i < n_lives && !str_eq(lives[i].id, id)) {
        i++;
    }
    return i;
}

static void
describe_live(struct tool_session *ret, size_t i)
{
    *ret = (struct tool_session){.id = lives[i].id,
                                 .command = "cat",
                                 .has_terminal = lives[i].has_terminal,
                                 .state = "runs"};
}

enum sy_code
tool_session_find(struct tool_session *ret, struct tool_context *c, const char *id,
                  struct sy_error *err)
{
    size_t i = find_live(id);

    (void)c;
    if (i == n_lives) {
        return sy_err_set(err, SY_E_NOTFOUND, "there is no session %.64s", id);
    }
    describe_live(ret, i);
    return SY_E_OK;
}

bool
tool_session_next(struct tool_session *ret, struct tool_context *c, const char *id)
{
    size_t i = id != NULL ? find_live(id) + 1 : 0;

    (void)c;
    if (i >= n_lives) {
        return false;
    }
    describe_live(ret, i);
    return true;
}

enum sy_code
tool_session_read(struct buf *out, struct tool_context *c, const char *id,
                  enum tool_session_part part, struct sy_error *err)
{
    struct tool_session s;
    enum sy_code rc = tool_session_find(&s, c, id, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = buf_addf(out, "%s of %s\n", part == TOOL_SESSION_LOG ? "log" : "screen", id);
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

enum sy_code
tool_watch_new(struct tool_watch **ret, struct tool_context *c, tool_session_fn *fn, void *arg,
               struct sy_error *err)
{
    struct tool_watch *w = mem_alloc_zero(1, sizeof(*w));

    if (w == NULL) {
        return sy_err_nomem(err);
    }
    *w = (struct tool_watch){.fn = fn, .arg = arg};
    (void)c;
    watch = w;
    *ret = w;
    return SY_E_OK;
}

void
tool_watch_free(struct tool_watch *w)
{
    if (w != NULL) {
        watch = NULL;
        mem_free(w);
    }
}

void
fake_session_change(const char *id, enum tool_session_change change)
{
    size_t i = find_live(id);

    if (watch != NULL) {
        watch->fn(watch->arg, id, change);
    }
    if (change == TOOL_SESSION_GONE && i < n_lives) {
        memmove(&lives[i], &lives[i + 1], (n_lives - i - 1) * sizeof(lives[0]));
        n_lives--;
    }
}

void
fake_session(const char *id, bool has_terminal)
{
    if (n_lives == FAKE_SESSIONS_MAX) {
        return;
    }

    struct fake_live *l = &lives[n_lives++];

    (void)snprintf(l->id, sizeof(l->id), "%s", id);
    l->has_terminal = has_terminal;
    fake_session_change(id, TOOL_SESSION_BEGAN);
}
