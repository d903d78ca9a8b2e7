/*
 * The interleaving runner: runs each command and BASE (a bare posix_spawn and
 * wait of /bin/true) once a round, and prints a table and, with -j, JSON. The
 * order within a round is shuffled, the same way each time, and an untimed BASE
 * runs before each: what one variant leaves behind (filters, rulesets and
 * namespaces that the kernel frees after their owner has ended) would otherwise
 * fall on the next one.
 *
 *     bench_run [-n ROUNDS] [-w WARMUP] [-t SECONDS] [-j FILE] -- NAME ARG... [::: NAME ARG...]
 *
 * Wall time is CLOCK_MONOTONIC around posix_spawn..wait4; CPU time and maximum
 * resident size are the kernel's rusage of the ended tree. This program is
 * static and small on purpose: a vfork-style child is charged with the
 * resident size of its parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "measure.h"

static const char usage[] = "usage: bench_run [-n ROUNDS] [-w WARMUP] [-t SECONDS] [-j FILE] -- "
                            "NAME ARG... [::: NAME ARG...]\n";

struct track {
    struct variant variant;
    struct series wall_ms;
    struct series cpu_ms;
    struct series rss_kb;
    size_t failures; /* runs that did not exit 0 */
    int last_status;
};

struct options {
    size_t rounds;
    size_t warmup;
    size_t limit_s; /* one run; more and it is killed */
    const char *json;
};

static volatile sig_atomic_t running_pid;

static void
on_alarm(int signal)
{
    (void)signal;
    if (running_pid > 0) {
        kill(-(pid_t)running_pid, SIGKILL);
    }
}

static double
timeval_ms(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static void
track_run(struct track *t, const posix_spawnattr_t *attr, const struct options *o, bool is_untimed)
{
    struct rusage usage_of = {0};
    pid_t pid = 0;
    int status = 0;

    alarm((unsigned)o->limit_s);
    uint64_t start_ns = clock_mono_ns();
    int rc = posix_spawnp(&pid, t->variant.argv[0], NULL, attr, t->variant.argv, environ);

    if (rc != 0) {
        struct sy_error err = {0};

        sy_err_sys(&err, rc, "starting '%s'", t->variant.argv[0]);
        bench_die(&err);
    }
    running_pid = pid;
    while (wait4(pid, &status, 0, &usage_of) < 0 && errno == EINTR) {
    }
    uint64_t end_ns = clock_mono_ns();

    running_pid = 0;
    alarm(0);
    if (is_untimed) {
        return;
    }
    if (status != 0) {
        t->failures++;
        t->last_status = status;
    }
    series_add(&t->wall_ms, (double)(end_ns - start_ns) / 1e6);
    series_add(&t->cpu_ms, timeval_ms(usage_of.ru_utime) + timeval_ms(usage_of.ru_stime));
    series_add(&t->rss_kb, (double)usage_of.ru_maxrss);
}

/* Children inherit /dev/null as input and output, without any file action that
 * would be charged to them; their errors go where ours go. Returns our standard
 * output, close-on-exec. */
static int
detach_stdio(void)
{
    SY_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    if (null < 0 || out < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) {
        struct sy_error err = {0};

        sy_err_sys(&err, errno, "opening /dev/null");
        bench_die(&err);
    }
    return out;
}

static void
write_text(int out, const struct track *tracks, size_t n)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 65536};
    enum sy_code rc = buf_addf(&b, "%-28s %9s %9s %9s %8s %8s %8s\n", "variant", "median ms", "p10",
                               "p90", "ratio", "cpu ms", "rss kB");

    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        const struct track *t = &tracks[i];

        rc = buf_addf(&b, "%-28s %9.3f %9.3f %9.3f %8.2f %8.2f %8.0f", t->variant.name,
                      series_quantile(&t->wall_ms, 0.5), series_quantile(&t->wall_ms, 0.1),
                      series_quantile(&t->wall_ms, 0.9),
                      series_ratio(&t->wall_ms, &tracks[0].wall_ms),
                      series_quantile(&t->cpu_ms, 0.5), series_quantile(&t->rss_kb, 0.5));
        if (rc == SY_E_OK) {
            rc = t->failures == 0 ? buf_add_str(&b, "\n")
                                  : buf_addf(&b, "  %zu of %zu FAILED (wait status %#x)\n",
                                             t->failures, t->wall_ms.n, (unsigned)t->last_status);
        }
    }
    if (rc == SY_E_OK) {
        rc = fd_write_all(out, b.data, b.len, NULL);
    }
    if (rc != SY_E_OK) {
        exit(1);
    }
}

static void
write_json(const char *path, const struct track *tracks, size_t n)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1U << 20};
    struct jw w = {.out = &b};

    jw_object(&w);
    jw_key(&w, "variants");
    jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        const struct track *t = &tracks[i];

        variant_open(&w, t->variant.name, &t->wall_ms, &tracks[0].wall_ms);
        series_write(&w, "wall_ms", &t->wall_ms);
        series_write(&w, "cpu_ms", &t->cpu_ms);
        series_write(&w, "rss_kb", &t->rss_kb);
        jw_key_int(&w, "failures", (int64_t)t->failures);
        jw_key_int(&w, "last_wait_status", t->last_status);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0) {
        struct sy_error err = {0};

        sy_err_sys(&err, errno, "opening '%s'", path);
        bench_die(&err);
    }
    bench_print(fd, &w);
}

/* One step of xorshift32; the seed is fixed so that two runs compare. */
static uint32_t
random_next(uint32_t *state)
{
    uint32_t x = *state;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *state = x;
    return x;
}

static void
run_rounds(struct track *tracks, size_t n, const posix_spawnattr_t *attr, const struct options *o)
{
    size_t order[BENCH_VARIANTS_MAX + 1];
    uint32_t seed = 2463534242U;

    for (size_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (size_t round = 0; round < o->warmup + o->rounds; round++) {
        for (size_t left = n; left > 1; left--) {
            size_t k = random_next(&seed) % left;
            size_t swap = order[left - 1];

            order[left - 1] = order[k];
            order[k] = swap;
        }
        for (size_t i = 0; i < n; i++) {
            track_run(&tracks[0], attr, o, true);
            track_run(&tracks[order[i]], attr, o, round < o->warmup);
        }
    }
}

static char **
parse_options(struct options *o, char **argv)
{
    char **a = argv + 1;

    while (*a != NULL && !str_eq(*a, "--")) {
        if (str_eq(*a, "-n")) {
            o->rounds = option_number("-n", a[1], BENCH_ROUNDS_MAX);
        } else if (str_eq(*a, "-w")) {
            o->warmup = option_number("-w", a[1], BENCH_ROUNDS_MAX);
        } else if (str_eq(*a, "-t")) {
            o->limit_s = option_number("-t", a[1], 3600);
        } else if (str_eq(*a, "-j") && a[1] != NULL) {
            o->json = a[1];
        } else {
            bench_usage(usage);
        }
        a += 2;
    }
    if (*a == NULL || a[1] == NULL) {
        bench_usage(usage);
    }
    return a + 1;
}

int
main(int argc, char **argv)
{
    static char base_program[] = BASE_PROGRAM;
    static char *base_argv[] = {base_program, NULL};
    static struct track tracks[BENCH_VARIANTS_MAX + 1];
    struct variant variants[BENCH_VARIANTS_MAX];
    struct options o = {.rounds = 30, .warmup = 3, .limit_s = 60};
    struct sigaction action = {.sa_handler = on_alarm};
    posix_spawnattr_t attr;

    (void)argc;
    size_t n = variants_parse(variants, parse_options(&o, argv)) + 1;

    if (n == 1) {
        return 2;
    }
    tracks[0].variant = (struct variant){.name = "BASE", .argv = base_argv};
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            tracks[i].variant = variants[i - 1];
        }
        if (series_init(&tracks[i].wall_ms, o.rounds) != SY_E_OK ||
            series_init(&tracks[i].cpu_ms, o.rounds) != SY_E_OK ||
            series_init(&tracks[i].rss_kb, o.rounds) != SY_E_OK) {
            return 1;
        }
    }
    sigaction(SIGALRM, &action, NULL);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    int out = detach_stdio();

    run_rounds(tracks, n, &attr, &o);
    posix_spawnattr_destroy(&attr);
    write_text(out, tracks, n);
    if (o.json != NULL) {
        write_json(o.json, tracks, n);
    }
    for (size_t i = 0; i < n; i++) {
        series_fini(&tracks[i].wall_ms);
        series_fini(&tracks[i].cpu_ms);
        series_fini(&tracks[i].rss_kb);
    }
    fd_close(&out);
    return 0;
}
