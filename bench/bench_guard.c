/*
 * What the guard of protected paths costs: bench_guard DIR [DIRS]. Makes DIRS (10,000)
 * directories below DIR (which must not exist), a repository among a hundred of them, and
 * measures the first walk, a refresh with nothing to do, and what a run pays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard.h"

#define ROUNDS 2000

static void
die(const char *what)
{
    fprintf(stderr, "bench_guard: %s\n", what);
    exit(1);
}

static void
make(const char *path)
{
    if (mkdir(path, 0755) != 0) {
        die(path);
    }
}

static void
make_tree(const char *base, uint64_t dirs)
{
    char path[4096];
    FILE *f;

    make(base);
    for (uint64_t i = 0; i < dirs; i++) {
        snprintf(path, sizeof(path), "%s/%llu", base, (unsigned long long)(i / 100));
        if (i % 100 == 0) {
            make(path);
        }
        snprintf(path, sizeof(path), "%s/%llu/%llu", base, (unsigned long long)(i / 100),
                 (unsigned long long)i);
        make(path);
        if (i % 1000 == 0) {
            size_t len = strlen(path);

            snprintf(path + len, sizeof(path) - len, "/.git");
            make(path);
            snprintf(path + len, sizeof(path) - len, "/.git/config");
            f = fopen(path, "w");
            if (f == NULL || fclose(f) != 0) {
                die(path);
            }
        }
    }
}

static double
us_since(uint64_t start, unsigned rounds)
{
    return (double)(clock_mono_ns() - start) / 1e3 / rounds;
}

int
main(int argc, char **argv)
{
    uint64_t dirs = 10000;
    struct guard *g = NULL;
    struct sy_error err = {0};
    struct guard_status st;

    if (argc < 2 || (argc > 2 && !str_to_u64(&dirs, argv[2], 0, 1000000))) {
        die("usage: bench_guard DIR [DIRS]");
    }
    make_tree(argv[1], dirs);
    for (int is_short = 0; is_short < 2; is_short++) {
        char *roots[] = {argv[1], NULL};
        const struct guard_options o = {.roots = roots, .is_short = is_short != 0, .walk_ms = 0};
        uint64_t start = clock_mono_ns();
        unsigned rounds = is_short != 0 ? 5 : ROUNDS;

        if (guard_new(&g, &o, &err) != SY_E_OK) {
            die(err.msg);
        }
        guard_status(g, &st);
        printf("%s: walk of %u directories %.1f ms, complete %d",
               is_short != 0 ? "short" : "watched", st.dirs, us_since(start, 1) / 1e3,
               st.is_complete);
        start = clock_mono_ns();
        for (unsigned i = 0; i < rounds; i++) {
            if (guard_refresh(g, NULL, &err) != SY_E_OK) {
                die(err.msg);
            }
        }
        printf(", refresh %.2f us", us_since(start, rounds));
        start = clock_mono_ns();
        for (unsigned i = 0; i < rounds; i++) {
            struct guard_findings f;

            if (guard_begin(g, NULL, &err) != SY_E_OK || guard_after(g, &f, &err) != SY_E_OK) {
                die(err.msg);
            }
            guard_findings_fini(&f);
        }
        printf(", begin and after %.2f us\n", us_since(start, rounds));
        guard_free(g);
        g = NULL;
    }
    return 0;
}
