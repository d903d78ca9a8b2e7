/* What statuses and signals mean, and their words as answers and events have them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "orchestrator/orchestrator.h"

static const char *const status_names[] = {
    [EXEC_EXITED] = "exited",
    [EXEC_SIGNALED] = "signaled",
    [EXEC_TIMED_OUT] = "timed_out",
    [EXEC_CANCELLED] = "cancelled",
    [EXEC_DENIED] = "denied",
    [EXEC_FAILED] = "failed",
    [EXEC_PENDING] = "pending_approval",
};

/* Our own: not every C library has sigabbrev_np(3). */
static const char *const signal_names[] = {
#define SIGNAL_ROW(id) [id] = #id
    SIGNAL_ROW(SIGHUP),  SIGNAL_ROW(SIGINT),    SIGNAL_ROW(SIGQUIT), SIGNAL_ROW(SIGILL),
    SIGNAL_ROW(SIGTRAP), SIGNAL_ROW(SIGABRT),   SIGNAL_ROW(SIGBUS),  SIGNAL_ROW(SIGFPE),
    SIGNAL_ROW(SIGKILL), SIGNAL_ROW(SIGUSR1),   SIGNAL_ROW(SIGSEGV), SIGNAL_ROW(SIGUSR2),
    SIGNAL_ROW(SIGPIPE), SIGNAL_ROW(SIGALRM),   SIGNAL_ROW(SIGTERM), SIGNAL_ROW(SIGSTKFLT),
    SIGNAL_ROW(SIGCHLD), SIGNAL_ROW(SIGCONT),   SIGNAL_ROW(SIGSTOP), SIGNAL_ROW(SIGTSTP),
    SIGNAL_ROW(SIGTTIN), SIGNAL_ROW(SIGTTOU),   SIGNAL_ROW(SIGURG),  SIGNAL_ROW(SIGXCPU),
    SIGNAL_ROW(SIGXFSZ), SIGNAL_ROW(SIGVTALRM), SIGNAL_ROW(SIGPROF), SIGNAL_ROW(SIGWINCH),
    SIGNAL_ROW(SIGPOLL), SIGNAL_ROW(SIGPWR),    SIGNAL_ROW(SIGSYS),
#undef SIGNAL_ROW
};

const char *
exec_status_name(enum exec_status s)
{
    return status_names[s];
}

void
exec_signal_name(char ret[16], int number)
{
    size_t i = (size_t)number;

    if (number > 0 && i < sizeof(signal_names) / sizeof(signal_names[0]) &&
        signal_names[i] != NULL) {
        snprintf(ret, 16, "%s", signal_names[i]);
    } else {
        snprintf(ret, 16, "%d", number);
    }
}

int
exec_sentence_room(const char *text, size_t n)
{
    if (strlen(text) <= n) {
        return (int)strlen(text);
    }
    for (size_t end = n; end > 0; end--) {
        if (text[end] == ';' && text[end + 1] == ' ') {
            return (int)end;
        }
    }
    return utf8_room(text, n);
}

void
exec_add_note(struct exec_output *o, const char *text)
{
    size_t used = strlen(o->note);
    const char *between = used > 0 && text[0] != '\0' ? "; " : "";
    size_t room = sizeof(o->note) - 1 - used;

    if (room > strlen(between)) {
        (void)snprintf(o->note + used, room + 1, "%s%.*s", between,
                       exec_sentence_room(text, room - strlen(between)), text);
    }
}

void
exec_hosts_write(struct jw *w, const struct strv *hosts)
{
    if (hosts->n == 0) {
        return;
    }
    jw_key(w, "network_hosts");
    jw_array(w);
    for (size_t i = 0; i < hosts->n; i++) {
        jw_str(w, hosts->v[i]);
    }
    jw_end_array(w);
}

void
exec_hooked_write(struct jw *w, const struct exec_hooked *hooked)
{
    if (hooked->rewritten_by == NULL && hooked->allowed_by == NULL) {
        return;
    }
    jw_key(w, "hooks");
    jw_object(w);
    if (hooked->rewritten_by != NULL) {
        jw_key_str(w, "rewritten_by", hooked->rewritten_by);
        jw_key_list(w, "command", strv_view(hooked->command));
    }
    if (hooked->allowed_by != NULL) {
        jw_key_str(w, "allowed_by", hooked->allowed_by);
    }
    jw_end_object(w);
}

bool
exec_has_failed(const struct exec_output *o)
{
    switch (o->status) {
    case EXEC_EXITED:
        return o->exit_code != 0;
    case EXEC_SIGNALED:
        return true;
    case EXEC_TIMED_OUT:
    case EXEC_CANCELLED:
    case EXEC_DENIED:
    case EXEC_PENDING:
    case EXEC_FAILED:
        break;
    }
    return false;
}
