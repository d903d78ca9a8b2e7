/*
 * The process room inside an engine, against bare C:
 *
 *     bench_spawn spawn [-n ROUNDS] [-m HEAP_MIB] [-l LAUNCHER]
 *     bench_spawn capture [-n ROUNDS] [-m MIB] WRITER
 *
 * spawn: with a touched heap of HEAP_MIB, a bare posix_spawn and wait of
 * /bin/true against the same in the engine, without and with the
 * workspace-write sandbox: as sessions run it, which make the next process
 * ready while a command runs (that work is inside the measured time), and with
 * nothing made ready; with shellyard-launch both in its full tier too, and prepared with an allow
 * list, whose proxy sockets are in the namespace. capture: MIB mebibytes
 * written by pipe_writer through process and output chain, against bare read loops. Prints JSON.
 */
#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "measure.h"
#include "output/output.h"
#include "process/launcher.h"
#include "process/pool.h"
#include "sandbox/sandbox.h"

static const char usage[] = "usage: bench_spawn spawn [-n ROUNDS] [-m HEAP_MIB] [-l LAUNCHER]\n"
                            "       bench_spawn capture [-n ROUNDS] [-m MIB] WRITER\n";

#define WARMUP_ROUNDS 2

enum run_kind {
    BARE,
    NO_SANDBOX,
    SANDBOXED,
    UNPREPARED,
    FULL,
    FULL_UNPREPARED,
    FULL_ALLOW,
    RUN_KINDS
};

/* A policy and what is made of it. */
struct walls {
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
    struct template *template; /* NULL: no namespaces */
};

enum { PLAIN, IN_FULL, IN_FULL_ALLOW, WALLS };

struct engine {
    struct process_pool *pools[WALLS + 1]; /* of each, and without: each has a spare */
    struct launcher *launcher;
    struct walls walls[WALLS]; /* without a launcher the first alone */
    char *cwd;
};

static void
check(enum sy_code rc, struct sy_error *err, const char *what)
{
    if (rc != SY_E_OK) {
        if (err->code == SY_E_OK) {
            sy_err_set(err, rc, "%s", sy_code_text(rc));
        }
        sy_err_wrap(err, "%s", what);
        bench_die(err);
    }
}

static void
walls_init(struct walls *w, const char *cwd, struct launcher *launcher, bool has_allow_list)
{
    struct sandbox_caps caps;
    struct sy_error err = {0};

    w->policy.mode = SANDBOX_WORKSPACE_WRITE;
    w->policy.cwd = mem_strdup(cwd);
    w->policy.writable_roots.max = LIMIT_ROOTS;
    w->policy.network_allow.max = 1;
    check(w->policy.cwd != NULL ? SY_E_OK : SY_E_NOMEM, &err, "policy");
    if (has_allow_list) {
        check(strv_add(&w->policy.network_allow, "example.com"), &err, "policy");
    }
    sandbox_probe(&caps);
    if (launcher != NULL) {
        w->policy.max_tier = TIER_FULL;
        caps.has_full_tier = true;
    }
    check(sandbox_plan_new(&w->plan, &w->policy, &caps, &err), &err, "planning the sandbox");
    check(sandbox_ready_new(&w->ready, w->plan, &err), &err, "preparing the sandbox");
    if (launcher != NULL) {
        check(launcher_make_template(launcher, &w->template, &w->policy, &err), &err,
              "making a template");
    }
}

static void
engine_init(struct engine *e, const char *launcher)
{
    struct sy_error err = {0};
    static char cwd[LIMIT_PATH];

    if (getcwd(cwd, sizeof cwd) == NULL) {
        check(sy_err_sys(&err, errno, "getcwd"), &err, "working directory");
    }
    *e = (struct engine){.cwd = cwd};
    for (size_t i = 0; i <= WALLS; i++) {
        check(process_pool_new(&e->pools[i], true, &err), &err, "making a pool");
    }
    walls_init(&e->walls[PLAIN], cwd, NULL, false);
    if (launcher != NULL) {
        check(launcher_start(&e->launcher, launcher, &err), &err, "starting the launcher");
        walls_init(&e->walls[IN_FULL], cwd, e->launcher, false);
        walls_init(&e->walls[IN_FULL_ALLOW], cwd, e->launcher, true);
    }
}

static void
engine_fini(struct engine *e)
{
    for (size_t i = 0; i <= WALLS; i++) {
        process_pool_free(e->pools[i]);
    }
    for (size_t i = 0; i < WALLS; i++) {
        template_unref(e->walls[i].template);
        sandbox_ready_free(e->walls[i].ready);
        sandbox_plan_free(e->walls[i].plan);
        sandbox_policy_fini(&e->walls[i].policy);
    }
    launcher_free(e->launcher);
}

/* Number in walls; WALLS: none. */
static size_t
walls_of(enum run_kind kind)
{
    switch (kind) {
    case SANDBOXED:
    case UNPREPARED:
        return PLAIN;
    case FULL:
    case FULL_UNPREPARED:
        return IN_FULL;
    case FULL_ALLOW:
        return IN_FULL_ALLOW;
    case BARE:
    case NO_SANDBOX:
    case RUN_KINDS:
        break;
    }
    return WALLS;
}

/* What an event loop does for one process, on poll(2). */
static enum sy_code
process_drive(struct process *p, struct sy_error *err)
{
    for (;;) {
        struct process_watch watches[PROCESS_WATCHES];
        struct pollfd fds[PROCESS_WATCHES];
        bool is_done = false;
        uint64_t now_ns = clock_mono_ns();
        enum sy_code rc = process_step(p, now_ns, &is_done, err);

        if (rc != SY_E_OK || is_done) {
            return rc;
        }
        size_t n = process_watches(p, watches);
        uint64_t deadline_ns = process_deadline_ns(p);
        int wait_ms = -1;

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        if (deadline_ns != UINT64_MAX) {
            wait_ms = deadline_ns <= now_ns ? 0 : (int)((deadline_ns - now_ns) / 1000000U) + 1;
        }
        if (poll(fds, (nfds_t)n, wait_ms) < 0 && errno != EINTR) {
            return sy_err_sys(err, errno, "poll");
        }
    }
}

/* As a session does it: the spare takes the command, then the next is made. */
static enum sy_code
start_in_engine(struct process_pool *pool, struct process **ret, const struct exec_env *env,
                struct output_chain *chain, struct sy_error *err)
{
    const struct sandbox_base base = process_base(env);
    enum sy_code rc = process_pool_take(pool, ret, &base, err);

    if (rc == SY_E_OK) {
        rc = process_go(*ret, env, chain, err);
    }
    if (rc == SY_E_OK) {
        process_pool_make_spare(pool, &base);
    }
    return rc;
}

/* Start to end of a command in the engine, as a call does it. */
static void
run_in_engine(struct engine *e, enum run_kind kind, char *const argv[], uint64_t expect_bytes)
{
    struct output_options options = {0};
    struct exec_env env = {.program = argv[0], .argv = argv, .envp = environ, .cwd = e->cwd};
    struct sy_error err = {0};
    struct process *p = NULL;
    struct output_chain *chain = output_new(&options);
    struct output_stats stats;
    size_t n = walls_of(kind);

    check(chain != NULL ? SY_E_OK : SY_E_NOMEM, &err, "output chain");
    if (n < WALLS) {
        env.sandbox = e->walls[n].ready;
        env.template = e->walls[n].template;
    }
    check(kind != UNPREPARED && kind != FULL_UNPREPARED
              ? start_in_engine(e->pools[n], &p, &env, chain, &err)
              : process_start(&p, &env, chain, &err),
          &err, "starting");
    check(process_drive(p, &err), &err, "running");
    check(output_finish(chain), &err, "finishing the output");
    const struct process_result *r = process_result(p);

    if (r->outcome != PROCESS_EXITED || r->exit_code != 0) {
        sy_err_set(&err, SY_E_INTERNAL, "'%s': outcome %d, exit code %d, signal %d: %s", argv[0],
                   (int)r->outcome, r->exit_code, r->signal, r->err.msg);
        bench_die(&err);
    }
    output_stats_stream(chain, STREAM_STDOUT, &stats);
    if (stats.total_bytes != expect_bytes) {
        sy_err_set(&err, SY_E_INTERNAL, "%llu bytes arrived, not %llu",
                   (unsigned long long)stats.total_bytes, (unsigned long long)expect_bytes);
        bench_die(&err);
    }
    process_free(p);
    output_free(chain);
}

static void
run_bare(char *const argv[])
{
    pid_t pid = 0;
    int status = 0;
    int rc = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    struct sy_error err = {0};

    if (rc != 0) {
        check(sy_err_sys(&err, rc, "posix_spawn '%s'", argv[0]), &err, "baseline");
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
}

/* A read loop that drops what it reads. */
static void
read_bare(char *const argv[], size_t pipe_bytes, size_t read_bytes, uint64_t expect_bytes)
{
    struct piped_child c = {.in = -1, .out = -1};
    struct sy_error err = {0};
    uint64_t total = 0;
    char *block = mem_alloc(read_bytes);

    check(block != NULL ? SY_E_OK : SY_E_NOMEM, &err, "read buffer");
    check(piped_start(&c, argv, false, pipe_bytes, &err), &err, "baseline");
    for (;;) {
        ssize_t n = read(c.out, block, read_bytes);

        if (n == 0 || (n < 0 && errno != EINTR)) {
            break;
        }
        total += n > 0 ? (uint64_t)n : 0;
    }
    piped_end(&c);
    mem_free(block);
    if (total != expect_bytes) {
        sy_err_set(&err, SY_E_INTERNAL, "baseline read %llu bytes, not %llu",
                   (unsigned long long)total, (unsigned long long)expect_bytes);
        bench_die(&err);
    }
}

/* Memory as a grown engine has it: small pages, all touched. */
static void
heap_touch(size_t mib)
{
    size_t bytes = mib << 20;
    struct sy_error err = {0};
    char *heap = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (heap == MAP_FAILED) {
        check(sy_err_sys(&err, errno, "a heap of %zu MiB", mib), &err, "spawn");
    }
    madvise(heap, bytes, MADV_NOHUGEPAGE);
    memset(heap, 1, bytes);
}

static void
write_variants(const char *unit, const char *const *names, struct series *series, size_t n,
               int64_t hwm_growth_kb)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1U << 20};
    struct jw w = {.out = &b};

    jw_object(&w);
    jw_key_int(&w, "hwm_growth_kb", hwm_growth_kb);
    jw_key(&w, "variants");
    jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        variant_open(&w, names[i], &series[i], &series[0]);
        series_write(&w, unit, &series[i]);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    bench_print(STDOUT_FILENO, &w);
    for (size_t i = 0; i < n; i++) {
        series_fini(&series[i]);
    }
}

static void
bench_spawn(size_t rounds, size_t heap_mib, const char *launcher)
{
    static const char *const names[] = {
        "BASE",
        "engine, no sandbox",
        "engine, workspace-write",
        "engine, workspace-write, nothing prepared",
        "engine, full tier",
        "engine, full tier, nothing prepared",
        "engine, full tier, allow list",
    };
    static char program[] = BASE_PROGRAM;
    char *argv[] = {program, NULL};
    struct series series[RUN_KINDS];
    struct sy_error err = {0};
    struct engine e;

    size_t kinds = launcher != NULL ? RUN_KINDS : FULL;

    engine_init(&e, launcher);
    heap_touch(heap_mib);
    for (size_t i = 0; i < kinds; i++) {
        check(series_init(&series[i], rounds), &err, "series");
    }
    uint64_t before_kb = proc_status_kb(getpid(), "VmHWM");

    for (size_t round = 0; round < WARMUP_ROUNDS + rounds; round++) {
        for (size_t i = 0; i < kinds; i++) {
            uint64_t start_ns = clock_mono_ns();

            if (i == BARE) {
                run_bare(argv);
            } else {
                run_in_engine(&e, (enum run_kind)i, argv, 0);
            }
            if (round >= WARMUP_ROUNDS) {
                series_add(&series[i], (double)(clock_mono_ns() - start_ns) / 1e6);
            }
        }
    }
    write_variants("wall_ms", names, series, kinds,
                   (int64_t)(proc_status_kb(getpid(), "VmHWM") - before_kb));
    engine_fini(&e);
}

static void
bench_capture(size_t rounds, size_t mib, char *writer)
{
    static const char *const names[] = {
        "bare, default pipe, read 64 KiB", "bare, 1 MiB pipe, read 1 MiB",
        "engine, writes of 64 KiB",        "bare, writes of 4 KiB, 1 MiB pipe, read 1 MiB",
        "engine, writes of 4 KiB",
    };
    static char kib_64[] = "64";
    static char kib_4[] = "4";
    SY_AUTO(buf_fini) struct buf size = {.max = 32};
    struct sy_error err = {0};
    struct series series[5];
    struct engine e;
    uint64_t bytes = (uint64_t)mib << 20;

    engine_init(&e, NULL);
    check(buf_addf(&size, "%zu", mib), &err, "size");
    char *big[] = {writer, size.data, kib_64, NULL};
    char *small[] = {writer, size.data, kib_4, NULL};

    for (size_t i = 0; i < 5; i++) {
        check(series_init(&series[i], rounds), &err, "series");
    }
    read_bare(big, 1U << 20, 1U << 20, bytes);
    uint64_t before_kb = proc_status_kb(getpid(), "VmHWM");

    run_in_engine(&e, UNPREPARED, big, bytes);
    int64_t growth_kb = (int64_t)(proc_status_kb(getpid(), "VmHWM") - before_kb);

    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < 5; i++) {
            uint64_t start_ns = clock_mono_ns();

            if (i == 0) {
                read_bare(big, 0, 65536, bytes);
            } else if (i == 1 || i == 3) {
                read_bare(i == 1 ? big : small, 1U << 20, 1U << 20, bytes);
            } else {
                run_in_engine(&e, UNPREPARED, i == 2 ? big : small, bytes);
            }
            double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;

            series_add(&series[i], (double)mib / seconds);
        }
    }
    write_variants("mib_s", names, series, 5, growth_kb);
    engine_fini(&e);
}

int
main(int argc, char **argv)
{
    size_t rounds = 0;
    size_t mib = 0;
    const char *launcher = NULL;
    char **a = argv + 2;

    if (argc < 2) {
        bench_usage(usage);
    }
    for (; *a != NULL && (*a)[0] == '-'; a += 2) {
        if (str_eq(*a, "-n")) {
            rounds = option_number("-n", a[1], BENCH_ROUNDS_MAX);
        } else if (str_eq(*a, "-m")) {
            mib = option_number("-m", a[1], 1U << 14);
        } else if (str_eq(*a, "-l") && a[1] != NULL) {
            launcher = a[1];
        } else {
            bench_usage(usage);
        }
    }
    if (str_eq(argv[1], "spawn") && *a == NULL) {
        bench_spawn(rounds > 0 ? rounds : 60, mib > 0 ? mib : 512, launcher);
    } else if (str_eq(argv[1], "capture") && *a != NULL && a[1] == NULL) {
        bench_capture(rounds > 0 ? rounds : 5, mib > 0 ? mib : 512, *a);
    } else {
        bench_usage(usage);
    }
    return 0;
}
