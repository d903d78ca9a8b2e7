/* Who reads what is typed to a session, and so how it is followed and judged. */
#include <string.h>

#include "base/mem.h"
#include "sessions/sessions_internal.h"
#include "terminal/state.h"

static void
forget(struct typed **t)
{
    if (*t != NULL) {
        typed_fini(*t);
        mem_free(*t);
        *t = NULL;
    }
}

void
live_forget_input(struct live *l)
{
    forget(&l->typed);
    forget(&l->hidden);
}

/* Less than this is judged in no time. */
#define MUCH_TYPED 4096U

/* May a shell be what reads it, among all that the session runs? */
static bool
may_be_shell(const struct live *l, const struct live_terminal *t)
{
    const bool is_known = l->screen == NULL || t->foreground > 0;
    pid_t root = orch_root_pid(l->call);

    return root <= 0 || !is_known || state_may_read_commands(root, t->foreground, t->name);
}

/* Looked at only where so much comes that it matters. */
static bool
takes_long(const struct live *l, const struct live_terminal *t, size_t n)
{
    const struct typed *all[] = {l->typed, l->hidden};
    size_t length = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        length += all[i] != NULL ? typed_length(all[i]) : 0;
    }
    return length + n > MUCH_TYPED && !may_be_shell(l, t);
}

/* It is kept only while something stands there: most sessions wait, at their prompt. */
static enum sy_code
follow(struct live *l, struct typed **t, const struct typed_reader *r, const char *bytes, size_t n,
       struct sy_error *err)
{
    if (*t == NULL) {
        *t = mem_alloc(sizeof(**t));
        if (*t == NULL) {
            return sy_err_nomem(err);
        }
        typed_init(*t, !l->has_terminal);
    }

    enum sy_code rc = typed_follow(*t, r, bytes, n, err);

    if (typed_is_idle(*t)) {
        forget(t);
    }
    return rc;
}

/*
 * Is the line nobody's command, as far as can be seen: for a shell's own `read`, or a program, and
 * no shell near it?
 */
static bool
is_no_command(const struct live *l, const struct live_terminal *t)
{
    return t->hides_line && !live_has_typed_ahead(l) &&
           (t->reads_for_others || !may_be_shell(l, t));
}

bool
live_is_copy(const struct exec_request *request)
{
    const char *at = request->script;

    /* With variables of its own it may run anything. */
    if (at == NULL || request->input.kind != INPUT_PIPE || request->params.env.n > 0 ||
        strncmp(at, "cat", 3) != 0) {
        return false;
    }
    at += 3;
    at += strspn(at, " ");
    if (*at != '>') {
        return false;
    }
    at += strspn(at, ">") == 1 ? 1 : 2;
    at += strspn(at, " ");

    const size_t n =
        strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");

    return n > 0 && at[n] == '\0';
}

/*
 * Is it text for a file? Where nothing but a cat can ever read it. Of no other program can that be
 * known: an editor and a Python can be told beforehand to run what comes next.
 */
static bool
is_text(const struct live *l)
{
    pid_t root = orch_root_pid(l->call);

    return l->is_copy && root > 0 && state_copies_to_file(root);
}

/*
 * Follows what is typed. A line that the terminal hides is most likely a password: it is judged all
 * the same, since who reads it may hand it to a shell (xargs, eval), or be one under another name.
 * But where no shell is seen to read commands it is followed apart from all others, so that a
 * quote in a password opens none in the commands that come behind it.
 */
enum sy_code
live_follow_input(struct live *l, const struct live_terminal *t, struct typed_reader *r,
                  const char *bytes, size_t n, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;
    size_t at = 0;

    r->knows_paste = l->screen != NULL && terminal_state(l->screen)->keys.bracketed_paste;
    r->draws = t->draws;
    r->call = is_text(l) ? NULL : r->call;
    r->takes_long = takes_long(l, t, n);
    typed_modes(&r->modes, orch_terminal_fd(l->call));
    if (!t->hides_line) {
        forget(&l->hidden);
    } else if (is_no_command(l, t)) {
        rc = follow(l, &l->hidden, r, bytes, n, err);
        while (at < n && (unsigned char)bytes[at] >= ' ') {
            at++;
        }
    }
    return rc == SY_E_OK ? follow(l, &l->typed, r, bytes + at, n - at, err) : rc;
}
