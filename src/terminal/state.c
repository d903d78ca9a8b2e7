#include "terminal/state.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <sys/ioctl.h>
#include <termios.h>

enum state_kind
state_of(const struct state_facts *f)
{
    bool is_first = f->foreground != 0 && f->foreground == f->shell;
    bool asks_password = f->asks_password && !f->is_shell_line;

    if (f->canonical) {
        if (!f->echo) {
            return STATE_PASSWORD;
        }
        if (f->reads_commands == STATE_YES) {
            return STATE_PROMPT;
        }
        if (f->reads == STATE_YES) {
            return asks_password ? STATE_PASSWORD : STATE_LINE;
        }
        return STATE_RUNNING;
    }
    if (asks_password) {
        return STATE_PASSWORD;
    }
    return is_first || f->is_shell_line ? STATE_PROMPT : STATE_SCREEN;
}

const char *
state_name(enum state_kind kind)
{
    switch (kind) {
    case STATE_RUNNING:
        return "running";
    case STATE_PROMPT:
        return "prompt";
    case STATE_PASSWORD:
        return "password";
    case STATE_SCREEN:
        return "screen";
    case STATE_LINE:
        return "line";
    }
    return "running";
}

bool
state_asks_password(const char *line, size_t n)
{
    static const char *const words[] = {"password",  "passphrase", "encryption key",
                                        "key again", "passcode",   "enter pin"};

    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '*')) {
        n--;
    }
    if (n == 0 || line[n - 1] != ':') {
        return false;
    }
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        size_t len = strlen(words[w]);

        for (size_t i = 0; i + len <= n; i++) {
            if (strncasecmp(line + i, words[w], len) == 0) {
                return true;
            }
        }
    }
    return false;
}

enum sy_code
state_read(int master, struct state_facts *facts, struct sy_error *err)
{
    struct termios modes;
    pid_t foreground = 0;

    if (tcgetattr(master, &modes) != 0) {
        return sy_err_sys(err, errno, "reading the modes of a terminal");
    }
    if (ioctl(master, TIOCGPGRP, &foreground) != 0) {
        return sy_err_sys(err, errno, "reading who is in the foreground of a terminal");
    }
    facts->echo = (modes.c_lflag & ECHO) != 0;
    facts->canonical = (modes.c_lflag & ICANON) != 0;
    facts->foreground = foreground > 0 ? foreground : 0;
    return SY_E_OK;
}
