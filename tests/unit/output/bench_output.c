/*
 * Not a test: prints how fast output_push takes bytes, in MiB/s, for the
 * chunk sizes that pipes give and with and without deltas.
 *
 *     build/tests/unit/output/bench_output [MIB]
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "output/output.h"

#define MIB            ((uint64_t)1024 * 1024)
#define DEFAULT_AMOUNT 4096U

static void
count_bytes(void *arg, enum output_stream s, uint64_t seq, const char *text, size_t n)
{
    uint64_t *sum = arg;

    (void)s;
    (void)seq;
    (void)text;
    *sum += n;
}

static double
run(const char *chunk, size_t n, uint64_t amount, bool has_deltas)
{
    uint64_t delta_bytes = 0;
    struct output_options opt = {
        .on_delta = has_deltas ? count_bytes : NULL,
        .arg = &delta_bytes,
        .max_deltas = SIZE_MAX, /* the worst case: never over the limit */
    };
    struct output_chain *c = output_new(&opt);
    uint64_t start = clock_mono_ns();

    if (c == NULL) {
        return 0;
    }
    for (uint64_t done = 0; done < amount; done += n) {
        if (output_push(c, STREAM_STDOUT, chunk, n) != SY_E_OK) {
            output_free(c);
            return 0;
        }
    }

    double seconds = (double)(clock_mono_ns() - start) / 1e9;

    output_free(c);
    return (double)amount / (double)MIB / seconds;
}

int
main(int argc, char **argv)
{
    static const size_t sizes[] = {(size_t)256 * 1024, (size_t)64 * 1024, 4096, 128};
    static const char line[] = "0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXY\n";
    uint64_t mib = DEFAULT_AMOUNT;
    char *chunk = mem_alloc(sizes[0]);

    if (chunk == NULL || (argc > 1 && !str_to_u64(&mib, argv[1], 1, UINT32_MAX))) {
        mem_free(chunk);
        fprintf(stderr, "usage: bench_output [MIB, 1 to 4294967295]\n");
        return 2;
    }
    for (size_t i = 0; i < sizes[0]; i++) {
        chunk[i] = line[i % (sizeof(line) - 1)];
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        fprintf(stdout, "push %7zu B: %8.0f MiB/s, with deltas %8.0f MiB/s\n", sizes[i],
                run(chunk, sizes[i], mib * MIB, false), run(chunk, sizes[i], mib * MIB, true));
    }
    mem_free(chunk);
    return 0;
}
