/*
 * What runs on a terminal that is measured:
 *
 *     pty_program answer    answers each line "N" by "RNZ"
 *     pty_program stamp     answers each line by the time before the answer was written, "TNS;",
 *                           and a line "x" by ending
 *     pty_program end       writes that time and ends, after END_MS: whoever started it waits by
 * then
 *
 * NS: nanoseconds of CLOCK_MONOTONIC. Its terminal echoes nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "measure.h"

#define END_MS 20

static void
say(const char *text, size_t n)
{
    struct sy_error err = {0};

    if (fd_write_all(STDOUT_FILENO, text, n, &err) != SY_E_OK) {
        bench_die(&err);
    }
}

static void
say_time(void)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "T%llu;\n", (unsigned long long)clock_mono_ns());

    say(text, (size_t)n);
}

static void
answer(const char *line, size_t n)
{
    char text[128];
    int length = snprintf(text, sizeof(text), "R%.*sZ\n", (int)n, line);

    say(text, (size_t)length);
}

int
main(int argc, char **argv)
{
    char line[64];
    struct termios t;
    const char *what = argc == 2 ? argv[1] : "";
    bool is_stamp = str_eq(what, "stamp");

    if (str_eq(what, "end")) {
        const struct timespec some = {.tv_nsec = END_MS * 1000000L};

        (void)nanosleep(&some, NULL);
        say_time();
        _exit(0);
    }
    if (!is_stamp && !str_eq(what, "answer")) {
        bench_usage("usage: pty_program answer | stamp | end\n");
    }
    if (tcgetattr(STDIN_FILENO, &t) == 0) {
        t.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &t);
    }
    say("ready\n", 6);
    for (;;) {
        ssize_t n = read(STDIN_FILENO, line, sizeof(line)); /* a line at a time: ICANON */

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return 0;
        }
        if (is_stamp) {
            say_time();
        } else {
            answer(line, (size_t)n - 1);
        }
        if (line[0] == 'x') {
            _exit(0);
        }
    }
}
