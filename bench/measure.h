#ifndef SY_BENCH_MEASURE_H
#define SY_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* What the bench programs share. They run interleaved (A B C A B C) and print
 * one JSON object each; bench.py makes the table out of them. */

/* The baseline of everything: a bare posix_spawn and wait of this program. */
#define BASE_PROGRAM "/bin/true"

/* More rounds add nothing but time. */
#define BENCH_ROUNDS_MAX   100000U
#define BENCH_VARIANTS_MAX 32U

/* The values of one variant, one a round; owns them. */
struct series {
    double *v;
    size_t n;
    size_t cap;
};

enum sy_code series_init(struct series *s, size_t cap) SY_NODISCARD;
void series_fini(struct series *s);
/* Ignored once `cap` values are there. */
void series_add(struct series *s, double value);
/* Nearest-rank quantile, q in [0, 1]; 0 of an empty series. Sorts a copy. */
double series_quantile(const struct series *s, double q);
/* Median over the rounds of a[i] / b[i]: drift of the machine cancels out. */
double series_ratio(const struct series *a, const struct series *b);
/* "key": {"n", "median", "p10", "p90", "p99", "min", "max"} */
void series_write(struct jw *w, const char *key, const struct series *s);

/* The program and its arguments out of a command line "NAME ARG... ::: NAME
 * ARG..."; argv arrays are borrowed from (and cut in) the program's argv. */
struct variant {
    const char *name;
    char **argv;
};
/* Returns how many, 0 with a message on standard error if the line is wrong. */
size_t variants_parse(struct variant out[BENCH_VARIANTS_MAX], char **args);

/* The same behind "-n ROUNDS -w WARMUP --", of which each may be missing; ends the program with
 * `usage` where the line is another. */
size_t rounds_parse(struct variant out[BENCH_VARIANTS_MAX], size_t *rounds, size_t *warmup,
                    char **args, const char *usage);
/* {"name", "ratio", ...the caller adds the rest and ends it. */
void variant_open(struct jw *w, const char *name, const struct series *s,
                  const struct series *base);

/* "-n 30" as a number in [1, max]; ends the program with status 2 otherwise. */
size_t option_number(const char *name, const char *text, size_t max);
/* Writes the message to standard error and ends the program with status 1. */
__attribute__((noreturn)) void bench_die(const struct sy_error *err);
__attribute__((noreturn)) void bench_usage(const char *text);
/* Writes the finished JSON document to `fd` with a newline. */
void bench_print(int fd, struct jw *w);

/* A child with two pipes, of which the parent has the other ends. */
struct piped_child {
    pid_t pid;
    int in;  /* -1: its standard input is /dev/null */
    int out; /* what it writes */
};
/*
 * Starts argv in a process group of its own (PATH is searched), standard error
 * to /dev/null. `with_input`: a pipe to its standard input too. `pipe_bytes`:
 * size of the output pipe, 0 leaves the default.
 */
enum sy_code piped_start(struct piped_child *ret, char *const argv[], bool with_input,
                         size_t pipe_bytes, struct sy_error *err) SY_NODISCARD;
/* Kills the process group, reaps, closes. */
void piped_end(struct piped_child *c);

/* A line from `fd` (without its newline) into b, within timeout_ms. What came
 * after it stays in `rest`. SY_E_CANCELLED when the time is over. */
struct line_reader {
    int fd;
    struct buf rest;
};
enum sy_code line_read(struct line_reader *r, struct buf *line, int timeout_ms,
                       struct sy_error *err) SY_NODISCARD;

/* A member of /proc/<pid>/status in kB ("VmRSS"), 0 if it is not there. */
uint64_t proc_status_kb(pid_t pid, const char *field);
/* The sum over the process and its descendants. */
uint64_t proc_tree_kb(pid_t pid, const char *field);

#endif
