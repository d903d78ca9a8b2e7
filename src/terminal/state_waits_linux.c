/* What a call waits for that waits for several descriptors. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "terminal/state_internal.h"

/* So many are looked at: the terminal is among the first. */
#define WAITS_FDS 256U

/* How the call has its descriptors. */
enum waits_form { WAITS_NONE, WAITS_POLL, WAITS_SELECT, WAITS_EPOLL };

static enum waits_form
form_of(uint64_t number)
{
    static const struct {
        int number;
        enum waits_form form;
    } calls[] = {
        {SYS_ppoll,        WAITS_POLL  },
        {SYS_pselect6,     WAITS_SELECT},
        {SYS_epoll_pwait,  WAITS_EPOLL },
#ifdef SYS_epoll_pwait2
        {SYS_epoll_pwait2, WAITS_EPOLL },
#endif
#ifdef SYS_poll
        {SYS_poll,         WAITS_POLL  },
        {SYS_select,       WAITS_SELECT},
        {SYS_epoll_wait,   WAITS_EPOLL },
#endif
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (number == (uint64_t)calls[i].number) {
            return calls[i].form;
        }
    }
    return WAITS_NONE;
}

bool
state_waits_for_many(uint64_t number)
{
    return form_of(number) != WAITS_NONE;
}

/* "0xA 0xB ...": the first two. */
static bool
read_arguments(uint64_t ret[2], const char *text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < 2; i++) {
        ret[i] = 0;
        if (text[0] != '0' || text[1] != 'x') {
            return false;
        }
        for (text += 2; *text != '\0' && strchr(digits, *text) != NULL; text++) {
            ret[i] = ret[i] << 4U | (uint64_t)(strchr(digits, *text) - digits);
        }
        text += *text == ' ' ? 1 : 0;
    }
    return true;
}

/* What is waited for, so far. */
struct waits {
    enum state_answer terminal; /* yes is for good, and doubt outweighs no */
    bool has_others;
};

/* One more descriptor that is waited for. */
static void
add(struct waits *w, pid_t pid, unsigned fd, const char *name)
{
    if (w->terminal == STATE_YES && w->has_others) {
        return;
    }

    enum state_answer one = state_is_terminal(pid, fd, name);

    w->has_others = w->has_others || one != STATE_YES;
    if (one != STATE_NO && w->terminal != STATE_YES) {
        w->terminal = one;
    }
}

static const struct waits unknown = {.terminal = STATE_UNKNOWN, .has_others = true};

/* Nothing yet, of so many. */
static struct waits
up_to(uint64_t n)
{
    return n <= WAITS_FDS ? (struct waits){.terminal = STATE_NO} : unknown;
}

static struct waits
by_poll(pid_t pid, const uint64_t arguments[2], const char *name, state_peek_fn *peek)
{
    struct pollfd fds[WAITS_FDS];
    size_t n = arguments[1] < WAITS_FDS ? (size_t)arguments[1] : WAITS_FDS;
    struct waits ret = up_to(arguments[1]);

    if (n > 0 && peek(pid, (uintptr_t)arguments[0], fds, n * sizeof(fds[0])) != 0) {
        return unknown;
    }
    for (size_t i = 0; i < n; i++) {
        if (fds[i].fd >= 0 && ((unsigned)fds[i].events & (POLLIN | POLLRDNORM)) != 0) {
            add(&ret, pid, (unsigned)fds[i].fd, name);
        }
    }
    return ret;
}

static struct waits
by_select(pid_t pid, const uint64_t arguments[2], const char *name, state_peek_fn *peek)
{
    unsigned char set[WAITS_FDS / 8] = {0};
    size_t n = arguments[0] < WAITS_FDS ? (size_t)arguments[0] : WAITS_FDS;
    struct waits ret = up_to(arguments[0]);

    if (n == 0 || arguments[1] == 0) {
        return up_to(0);
    }
    /* In whole words, as the kernel has them; the lowest byte comes first on all that we know. */
    if (peek(pid, (uintptr_t)arguments[1], set, (n + 63) / 64 * 8) != 0) {
        return unknown;
    }
    for (unsigned fd = 0; fd < n; fd++) {
        if (((unsigned)set[fd / 8] >> (fd % 8) & 1U) != 0) {
            add(&ret, pid, fd, name);
        }
    }
    return ret;
}

/* Each line of its descriptor's file: "tfd:        0 events:       19 data: ...". */
static struct waits
by_epoll(pid_t pid, const uint64_t arguments[2], const char *name)
{
    char path[64];
    char text[4096];
    ssize_t n = 0;
    SY_FD fd = -1;
    struct waits ret = up_to(0);

    (void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%u", (int)pid, (unsigned)arguments[0]);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (n <= 0) {
        return unknown;
    }
    text[n] = '\0';
    for (char *at = strstr(text, "tfd:"); at != NULL; at = strstr(at + 1, "tfd:")) {
        unsigned target = 0;
        unsigned events = 0;
        char *more = strstr(at, "events:");

        at += strspn(at + 4, " ") + 4;
        for (; *at >= '0' && *at <= '9'; at++) {
            target = target * 10 + (unsigned)(*at - '0');
        }
        for (more += more != NULL ? strspn(more + 7, " ") + 7 : 0; more != NULL && *more > ' ';
             more++) {
            events = events << 4U | ((unsigned)*more <= '9' ? (unsigned)(*more - '0')
                                                            : (unsigned)(*more - 'a' + 10));
        }
        if ((events & EPOLLIN) != 0) {
            add(&ret, pid, target, name);
        }
    }
    if ((size_t)n == sizeof(text) - 1) {
        ret.has_others = true;
        ret.terminal = ret.terminal == STATE_NO ? STATE_UNKNOWN : ret.terminal;
    }
    return ret;
}

static struct waits
by_form(pid_t pid, uint64_t number, const uint64_t arguments[2], const char *name,
        state_peek_fn *peek)
{
    switch (form_of(number)) {
    case WAITS_POLL:
        return peek != NULL ? by_poll(pid, arguments, name, peek) : unknown;
    case WAITS_SELECT:
        return peek != NULL ? by_select(pid, arguments, name, peek) : unknown;
    case WAITS_EPOLL:
        return by_epoll(pid, arguments, name);
    case WAITS_NONE:
        break;
    }
    return unknown;
}

enum state_answer
state_waits_for(struct state_waiter *waiter, uint64_t number, const char *arguments,
                const char *name, state_peek_fn *peek)
{
    uint64_t values[2];
    struct waits waits = unknown;

    if (read_arguments(values, arguments)) {
        waits = by_form(waiter->pid, number, values, name, peek);
    }
    waiter->is_alone = waits.terminal == STATE_YES && !waits.has_others;
    return waits.terminal;
}
