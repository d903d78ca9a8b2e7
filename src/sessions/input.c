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
    pid_t keeper = orch_root_pid(l->call);
    pid_t root = keeper > 0 ? keeper : t->leader;

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
follow(struct live *l, struct typed **t, struct typed_work *w, const char *bytes, size_t n,
       struct sy_error *err)
{
    if (*t == NULL) {
        *t = mem_alloc(sizeof(**t));
        if (*t == NULL) {
            return sy_err_nomem(err);
        }
        typed_init(*t, !l->has_terminal);
    }

    enum sy_code rc = typed_follow(*t, w, bytes, n, err);

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
    return t->hides_line && !t->has_unread && (t->reads_for_others || !may_be_shell(l, t));
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

/* Which shell reads a line is known for the first one, while it waits for that: who reads another
 * is up to what the one before it starts. Where no other is named in any, that is the same one. */
static void
tell_reader(const struct live *l, const struct live_terminal *t, const char *bytes, size_t n)
{
    char name[32] = "";

    if (t->is_waiting && t->is_shell && t->foreground > 0 && !t->has_unread) {
        bool is_one = true;

        for (size_t i = 0; i + 1 < n && is_one; i++) {
            is_one = bytes[i] != '\n' && bytes[i] != '\r' && bytes[i] != 0x0F;
        }
        if (is_one || !state_names_shell(bytes, n)) {
            state_shell_name(name, sizeof(name), t->foreground);
        }
    }
    orch_set_reader(l->call, name);
}

/* Has its shell read all that was typed, and come back for a new command? It says so by its mark
 * (marks.c), whatever the lines before were to the judge. */
static bool
is_at_new_prompt(const struct live *l, const struct live_terminal *t)
{
    return l->prompted_ns > l->typed_ns && t->is_at_prompt && orch_unwritten(l->call) == 0 &&
           !t->has_unread;
}

void
live_typing_fini(struct live_typing *typing)
{
    typed_work_fini(&typing->work);
    typed_work_fini(&typing->hidden_work);
}

static void
begin(struct live_typing *typing, struct live *l, const struct live_terminal *t, const char *bytes,
      size_t n)
{
    struct typed_reader r = {.call = typing->is_person || is_text(l) ? NULL : l->call,
                             .is_over = typing->is_last};

    if (l->typed != NULL && is_at_new_prompt(l, t)) {
        typed_begin_anew(l->typed);
    }
    r.knows_paste = l->screen != NULL && terminal_state(l->screen)->keys.bracketed_paste;
    r.draws = t->draws;
    r.takes_long = takes_long(l, t, n);
    typed_modes(&r.modes, orch_terminal_fd(l->call));
    tell_reader(l, t, bytes, n);
    live_typing_fini(typing);
    typing->work.reader = r;
    typing->hidden_work.reader = r;
    typing->typed_at = l->typings;
    typing->is_hidden = live_tty_hides(l, t);
    if (!t->echo_off) {
        forget(&l->hidden);
    }

    /* What was begun in one of them may go on where it looks otherwise: it is followed in both. */
    const bool is_alone = is_no_command(l, t);
    const bool has_begun = l->typed != NULL && typed_length(l->typed) > 0;

    typing->is_apart = is_alone || l->hidden != NULL;
    typing->skipped = 0;
    while (is_alone && !has_begun && typing->skipped < n &&
           (unsigned char)bytes[typing->skipped] >= ' ') {
        typing->skipped++;
    }
}

/*
 * A line that the terminal hides is most likely a password: it is judged all the same, since who
 * reads it may hand it to a shell (xargs, eval), or be one under another name. But where no shell
 * is seen to read commands it is followed apart from all others, so that a quote in a password
 * opens none in the commands that come behind it.
 */
enum sy_code
live_follow_input(struct live *l, const struct live_terminal *t, struct live_typing *typing,
                  const char *bytes, size_t n, struct sy_error *err)
{
    const bool has_begun = typing->work.has_begun || typing->hidden_work.has_begun;
    enum sy_code rc = SY_E_OK;

    if (!has_begun || typing->typed_at != l->typings) {
        begin(typing, l, t, bytes, n);
    }
    typing->is_later = false;
    if (typing->is_apart) {
        rc = follow(l, &l->hidden, &typing->hidden_work, bytes, n, err);
        typing->is_apart = typing->hidden_work.is_later;
        typing->is_later = typing->is_apart;
    }
    if (rc == SY_E_OK && !typing->is_later) {
        rc = follow(l, &l->typed, &typing->work, bytes + typing->skipped, n - typing->skipped, err);
        typing->is_later = typing->work.is_later;
    }
    if (rc != SY_E_OK || !typing->is_later) {
        l->typings += rc == SY_E_OK ? 1 : 0;
        live_typing_fini(typing);
    }
    return rc;
}
