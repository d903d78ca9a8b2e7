/*
 * By hand: how fast a terminal is fed, in MiB/s, next to a bare copy of the same bytes in
 * reads of 4 KiB, as a PTY gives them; and what a look costs.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "terminal/terminal.h"

#define PIECE ((size_t)4096)
#define TOTAL ((size_t)64 * 1024 * 1024)

struct sample {
    const char *name;
    const char *text;
};

static const struct sample samples[] = {
    {"log",      "2024-01-01 12:00:00 INFO some module: a line of a usual length, number 12345\r\n"},
    {"yes",      "y\r\n"                                                                           },
    {"colours",
     "\x1b[01;34mdir\x1b[0m  \x1b[01;32mprogram\x1b[0m  file.txt  \x1b[31merror\x1b[m: x\r\n"      },
    {"progress", "\r\x1b[K 42% [##########          ] 1.2 MB/s"                                    },
    {"one line", "0123456789abcdef"                                                                },
    {"drawing",  "\x1b[5;10H\x1b[7m status \x1b[m\x1b[12;1Hsome text\x1b[K\x1b[2;40H12:34:56"      },
};

static double
seconds_since(uint64_t start)
{
    return (double)(clock_mono_ns() - start) / 1e9;
}

static void
run(const struct sample *s)
{
    struct terminal_options o = {.rows = 24, .cols = 80};
    struct terminal *t = NULL;
    struct terminal_screen screen;
    char *bytes = mem_alloc(TOTAL);
    size_t n = strlen(s->text);
    uint64_t start = 0;
    double feed = 0;
    double look = 0;
    double rest = 0;

    if (bytes == NULL || terminal_new(&t, &o, NULL) != SY_E_OK) {
        abort();
    }
    for (size_t i = 0; i < TOTAL; i++) {
        bytes[i] = s->text[i % n];
    }
    start = clock_mono_ns();
    for (size_t i = 0; i < TOTAL; i += PIECE) {
        if (terminal_feed(t, bytes + i, PIECE) != SY_E_OK) {
            abort();
        }
    }
    feed = seconds_since(start);
    start = clock_mono_ns();
    if (terminal_look(t, &screen) != SY_E_OK) {
        abort();
    }
    look = seconds_since(start);
    terminal_rest(t);
    rest = (double)terminal_memory(t);
    printf("%-10s %8.0f MiB/s   look %6.0f us   at rest %6.0f bytes\n", s->name,
           (double)TOTAL / 1048576 / feed, look * 1e6, rest);
    terminal_free(t);
    mem_free(bytes);
}

int
main(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        run(&samples[i]);
    }
    return 0;
}
