/*
 * Programs on terminals, against a bare loop:
 *
 *     bench_pty trip    [-n ROUNDS] -p PROGRAM -- NAME KIND [ARG...] [::: ...]
 *     bench_pty capture [-n ROUNDS] -m MIB -p PROGRAM -- NAME KIND [ARG...] [::: ...]
 *     bench_pty cause   [-n ROUNDS] -p PROGRAM -- NAME SERVER [ARG...] [::: ...]
 *
 * KIND: @engine (this process), @mcp, @tmux or @peer with their command. The bare loop is always
 * the first. trip: PROGRAM is a shell, or pty_program; a line is typed and its answer awaited, in
 * bursts of ten of a kind. capture: PROGRAM is pipe_writer, whose output is taken up to its end,
 * MIB mebibytes (others than the engine: an eighth of that). cause: pty_cause.c; PROGRAM is
 * pty_program. Prints JSON. A row that could not be measured has a reason, "why".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "pty.h"

#define BURST  10U
#define WARMUP 10U

static const char usage[] =
    "usage: bench_pty trip|capture|cause [-n ROUNDS] [-m MIB] -p PROGRAM -- NAME KIND ARG... "
    "[::: ...]\n";

enum side_kind { BARE, ENGINE, OTHER };

struct side {
    const char *name;
    enum side_kind kind;
    enum pty_kind other_kind;
    char **argv;
    struct pty_bare bare;
    struct pty_engine *engine;
    struct pty_other other;
    struct series values;
    struct sy_error err;
    bool has_failed;
};

struct options {
    const char *program;
    size_t rounds;
    size_t mib;
};

static void
side_init(struct side *s, const struct variant *v, size_t rounds)
{
    *s = (struct side){.name = v->name, .kind = OTHER, .argv = v->argv + 1};
    s->bare.master = -1;
    if (series_init(&s->values, rounds) != SY_E_OK) {
        bench_usage("bench_pty: out of memory\n");
    }
    if (str_eq(v->argv[0], "@bare")) {
        s->kind = BARE;
    } else if (str_eq(v->argv[0], "@engine")) {
        s->kind = ENGINE;
    } else if (str_eq(v->argv[0], "@mcp")) {
        s->other_kind = PTY_MCP;
    } else if (str_eq(v->argv[0], "@tmux")) {
        s->other_kind = PTY_TMUX;
    } else if (str_eq(v->argv[0], "@peer")) {
        s->other_kind = PTY_PEER;
    } else {
        bench_usage(usage);
    }
}

static enum sy_code
side_open(struct side *s, const struct pty_task *task)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1U << 16};
    enum sy_code rc = SY_E_OK;

    switch (s->kind) {
    case BARE:
        rc = pty_bare_open(&s->bare, task->argv, &s->err);
        return rc == SY_E_OK ? pty_bare_read(&s->bare, task->ready, NULL, &text, &s->err) : rc;
    case ENGINE:
        rc = pty_engine_new(&s->engine, &s->err);
        return rc == SY_E_OK ? pty_engine_open(s->engine, task->argv, task->ready, &s->err) : rc;
    case OTHER:
        break;
    }
    return pty_other_open(&s->other, s->other_kind, s->argv, task, &s->err);
}

static void
side_close(struct side *s)
{
    pty_bare_close(&s->bare);
    pty_engine_free(s->engine);
    if (s->kind == OTHER && s->other.argv != NULL) {
        pty_other_close(&s->other);
    }
    series_fini(&s->values);
}

static enum sy_code
side_trip(struct side *s, const struct pty_task *task, unsigned number, double *ret_us)
{
    switch (s->kind) {
    case BARE:
        return pty_bare_trip(&s->bare, task, number, ret_us, &s->err);
    case ENGINE:
        return pty_engine_trip(s->engine, task, number, ret_us, &s->err);
    case OTHER:
        break;
    }
    return pty_other_trip(&s->other, number, ret_us, &s->err);
}

static enum sy_code
side_burst(struct side *s, const struct pty_task *task, unsigned first, unsigned count,
           bool is_warmup)
{
    enum sy_code rc = SY_E_OK;

    if (s->kind == OTHER && s->other_kind == PTY_PEER) {
        return pty_other_burst(&s->other, first, count, is_warmup ? NULL : &s->values, &s->err);
    }
    for (unsigned i = 0; i < count && rc == SY_E_OK; i++) {
        double us = 0;

        rc = side_trip(s, task, first + i, &us);
        if (rc == SY_E_OK && !is_warmup) {
            series_add(&s->values, us);
        }
    }
    return rc;
}

static void
print_sides(const struct side *sides, size_t n, const char *unit)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1U << 20};
    struct jw w = {.out = &b};

    jw_object(&w);
    jw_key(&w, "variants");
    jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        variant_open(&w, sides[i].name, &sides[i].values, &sides[0].values);
        jw_key_str(&w, "why", sides[i].has_failed ? sides[i].err.msg : "");
        series_write(&w, unit, &sides[i].values);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    bench_print(STDOUT_FILENO, &w);
}

static void
run_trip(struct side *sides, size_t n, const struct options *o)
{
    char *shell[] = {mem_unconst(o->program), mem_unconst("--norc"), mem_unconst("--noprofile"),
                     NULL};
    char *plain[] = {mem_unconst(o->program), mem_unconst("answer"), NULL};
    bool is_shell = str_ends(o->program, "/bash");
    const struct pty_task task = {
        .argv = is_shell ? shell : plain, .is_shell = is_shell, .ready = "ready"};
    unsigned number = 1000;

    for (size_t i = 0; i < n; i++) {
        sides[i].has_failed = side_open(&sides[i], &task) != SY_E_OK;
    }
    for (size_t done = 0; done < o->rounds + WARMUP; done += BURST, number += BURST) {
        size_t left = o->rounds + WARMUP - done;
        unsigned count = left < BURST ? (unsigned)left : BURST;

        for (size_t i = 0; i < n; i++) {
            sides[i].has_failed = sides[i].has_failed || side_burst(&sides[i], &task, number, count,
                                                                    done < WARMUP) != SY_E_OK;
        }
    }
    print_sides(sides, n, "us");
}

/* Seconds from the first byte to the end, and how many came. */
static enum sy_code
drain_bare(struct side *s, const struct pty_task *task, double *ret_s, uint64_t *ret_bytes)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1U << 17};
    struct buf none = {.max = 0};
    enum sy_code rc = pty_bare_open(&s->bare, task->argv, &s->err);

    *ret_bytes = 0;
    rc = rc == SY_E_OK ? pty_bare_read(&s->bare, "x", ret_bytes, &text, &s->err) : rc;

    uint64_t start_ns = clock_mono_ns();

    rc = rc == SY_E_OK ? pty_bare_read(&s->bare, NULL, ret_bytes, &none, &s->err) : rc;
    pty_bare_wait(&s->bare);
    *ret_s = (double)(clock_mono_ns() - start_ns) / 1e9;
    pty_bare_close(&s->bare);
    return rc;
}

static enum sy_code
side_drain(struct side *s, const struct pty_task *task, double *ret_s, uint64_t *ret_bytes)
{
    enum sy_code rc = SY_E_OK;

    switch (s->kind) {
    case BARE:
        return drain_bare(s, task, ret_s, ret_bytes);
    case ENGINE:
        rc = s->engine == NULL ? pty_engine_new(&s->engine, &s->err) : SY_E_OK;
        rc = rc == SY_E_OK ? pty_engine_open(s->engine, task->argv, NULL, &s->err) : rc;
        return rc == SY_E_OK ? pty_engine_drain(s->engine, ret_s, ret_bytes, &s->err) : rc;
    case OTHER:
        break;
    }
    rc = pty_other_open(&s->other, s->other_kind, s->argv, task, &s->err);
    rc = rc == SY_E_OK ? pty_other_drain(&s->other, ret_s, ret_bytes, &s->err) : rc;
    pty_other_close(&s->other);
    s->other.argv = NULL;
    return rc;
}

static void
run_capture(struct side *sides, size_t n, const struct options *o)
{
    char mib[32];
    char *argv[] = {mem_unconst(o->program), mib, mem_unconst("64"), NULL};
    const struct pty_task task = {.argv = argv};

    (void)snprintf(mib, sizeof(mib), "%zu", o->mib);
    for (size_t r = 0; r < o->rounds; r++) {
        for (size_t i = 0; i < n && !sides[i].has_failed; i++) {
            double s = 0;
            uint64_t bytes = 0;

            sides[i].has_failed = side_drain(&sides[i], &task, &s, &bytes) != SY_E_OK;
            if (!sides[i].has_failed && bytes < o->mib << 20 && sides[i].kind != OTHER) {
                sides[i].has_failed = true;
                sy_err_set(&sides[i].err, SY_E_INTERNAL, "only %llu bytes came",
                           (unsigned long long)bytes);
            }
            if (!sides[i].has_failed && s > 0) {
                series_add(&sides[i].values, (double)bytes / s / (1U << 20));
            }
        }
    }
    print_sides(sides, n, "mib_s");
}

static char **
parse_options(struct options *ret, char **a)
{
    *ret = (struct options){.rounds = 20, .mib = 32};
    for (; *a != NULL && !str_eq(*a, "--"); a += 2) {
        if (str_eq(*a, "-n")) {
            ret->rounds = option_number("-n", a[1], BENCH_ROUNDS_MAX);
        } else if (str_eq(*a, "-m")) {
            ret->mib = option_number("-m", a[1], 4096);
        } else if (str_eq(*a, "-p") && a[1] != NULL) {
            ret->program = a[1];
        } else {
            bench_usage(usage);
        }
    }
    if (*a == NULL || a[1] == NULL || ret->program == NULL) {
        bench_usage(usage);
    }
    return a + 1;
}

int
main(int argc, char **argv)
{
    static struct side sides[BENCH_VARIANTS_MAX];
    struct variant variants[BENCH_VARIANTS_MAX];
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct options o;

    if (argc < 2) {
        bench_usage(usage);
    }

    size_t n = variants_parse(variants, parse_options(&o, argv + 2));

    if (n == 0 || setenv("PS1", "ready> ", 1) != 0 || setenv("TERM", "dumb", 1) != 0) {
        return 2;
    }
    sigaction(SIGPIPE, &ignore, NULL);
    if (str_eq(argv[1], "cause")) {
        pty_cause(variants, n, o.program, o.rounds);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        side_init(&sides[i], &variants[i], o.rounds);
    }
    if (str_eq(argv[1], "trip")) {
        run_trip(sides, n, &o);
    } else if (str_eq(argv[1], "capture")) {
        run_capture(sides, n, &o);
    } else {
        bench_usage(usage);
    }
    for (size_t i = 0; i < n; i++) {
        side_close(&sides[i]);
    }
    return 0;
}
