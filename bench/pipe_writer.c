/*
 * Writes MIB mebibytes of text lines to standard output as fast as it can,
 * KIB kibibytes a write(2):
 *
 *     pipe_writer MIB KIB
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

#define LINE_BYTES 80U

int
main(int argc, char **argv)
{
    static char block[1U << 20];

    if (argc != 3) {
        bench_usage("usage: pipe_writer MIB KIB\n");
    }
    size_t total = option_number("MIB", argv[1], 1U << 20) << 20;
    size_t chunk = option_number("KIB", argv[2], sizeof block >> 10) << 10;

    memset(block, 'x', sizeof block);
    for (size_t i = LINE_BYTES - 1; i < sizeof block; i += LINE_BYTES) {
        block[i] = '\n';
    }
    while (total > 0) {
        ssize_t n = write(STDOUT_FILENO, block, total < chunk ? total : chunk);

        if (n < 0 && errno != EINTR) {
            return 1;
        }
        total -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}
