#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

/* A reply of tools/list is some 10 KB; that of a peer has been seen at 1.3 MB. */
#define LINE_MAX_BYTES ((size_t)64 << 20)
#define STATUS_MAX     ((size_t)64 << 10)
/* Processes of one server. Desktop Commander has been seen with 5. */
#define TREE_MAX 256U

enum sy_code
series_init(struct series *s, size_t cap)
{
    *s = (struct series){.v = mem_alloc_zero(cap, sizeof(double)), .cap = cap};
    return s->v != NULL ? SY_E_OK : SY_E_NOMEM;
}

void
series_fini(struct series *s)
{
    mem_free(s->v);
    *s = (struct series){0};
}

void
series_add(struct series *s, double value)
{
    if (s->n < s->cap) {
        s->v[s->n++] = value;
    }
}

static int
double_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double
series_quantile(const struct series *s, double q)
{
    if (s->n == 0) {
        return 0;
    }
    double *sorted = mem_alloc(s->n * sizeof(double));

    if (sorted == NULL) {
        return 0;
    }
    memcpy(sorted, s->v, s->n * sizeof(double));
    qsort(sorted, s->n, sizeof(double), double_compare);
    double rank = q * (double)(s->n - 1) + 0.5;
    double value = sorted[(size_t)rank];

    mem_free(sorted);
    return value;
}

double
series_ratio(const struct series *a, const struct series *b)
{
    struct series ratios = {0};
    size_t n = a->n < b->n ? a->n : b->n;

    if (n == 0 || series_init(&ratios, n) != SY_E_OK) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (b->v[i] > 0) {
            series_add(&ratios, a->v[i] / b->v[i]);
        }
    }
    double median = series_quantile(&ratios, 0.5);

    series_fini(&ratios);
    return median;
}

static void
key_real(struct jw *w, const char *key, double value)
{
    jw_key(w, key);
    jw_real(w, value, 4);
}

void
series_write(struct jw *w, const char *key, const struct series *s)
{
    jw_key(w, key);
    jw_object(w);
    jw_key_int(w, "n", (int64_t)s->n);
    key_real(w, "median", series_quantile(s, 0.5));
    key_real(w, "p10", series_quantile(s, 0.1));
    key_real(w, "p90", series_quantile(s, 0.9));
    key_real(w, "p99", series_quantile(s, 0.99));
    key_real(w, "min", series_quantile(s, 0));
    key_real(w, "max", series_quantile(s, 1));
    jw_end_object(w);
}

static void
complain(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

    (void)ignored;
}

size_t
variants_parse(struct variant out[BENCH_VARIANTS_MAX], char **args)
{
    size_t n = 0;
    bool is_start = true;

    for (char **a = args; *a != NULL; a++) {
        if (str_eq(*a, ":::")) {
            *a = NULL;
            is_start = true;
        } else if (is_start) {
            if (n == BENCH_VARIANTS_MAX) {
                complain("bench: too many variants\n");
                return 0;
            }
            out[n++] = (struct variant){.name = *a, .argv = a + 1};
            is_start = false;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (out[i].argv[0] == NULL) {
            complain("bench: a variant has a name but no command: ");
            complain(out[i].name);
            complain("\n");
            return 0;
        }
    }
    return n;
}

size_t
option_number(const char *name, const char *text, size_t max)
{
    uint64_t value = 0;

    if (text == NULL || !str_to_u64(&value, text, 1, max)) {
        complain("bench: wrong number for option ");
        complain(name);
        complain("\n");
        exit(2);
    }
    return (size_t)value;
}

void
bench_die(const struct sy_error *err)
{
    complain("bench: ");
    complain(err->msg);
    complain("\n");
    exit(1);
}

void
bench_usage(const char *text)
{
    complain(text);
    exit(2);
}

size_t
rounds_parse(struct variant out[BENCH_VARIANTS_MAX], size_t *rounds, size_t *warmup, char **args,
             const char *usage)
{
    char **a = args;

    for (; *a != NULL && !str_eq(*a, "--"); a += 2) {
        if (str_eq(*a, "-n")) {
            *rounds = option_number("-n", a[1], BENCH_ROUNDS_MAX);
        } else if (str_eq(*a, "-w")) {
            *warmup = option_number("-w", a[1], BENCH_ROUNDS_MAX);
        } else {
            bench_usage(usage);
        }
    }
    if (*a == NULL || a[1] == NULL) {
        bench_usage(usage);
    }
    return variants_parse(out, a + 1);
}

void
variant_open(struct jw *w, const char *name, const struct series *s, const struct series *base)
{
    jw_object(w);
    jw_key_str(w, "name", name);
    jw_key(w, "ratio");
    jw_real(w, series_ratio(s, base), 4);
}

void
bench_print(int fd, struct jw *w)
{
    struct sy_error err = {0};
    enum sy_code rc = jw_done(w);

    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "writing the result failed");
        bench_die(&err);
    }
    if (fd_write_all(fd, w->out->data, w->out->len, &err) != SY_E_OK ||
        fd_write_all(fd, "\n", 1, &err) != SY_E_OK) {
        bench_die(&err);
    }
}

static enum sy_code
spawn_with(pid_t *ret, char *const argv[], int in, int out, struct sy_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    if (in >= 0) {
        posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    } else {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(ret, argv[0], &actions, &attr, argv, environ);

    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return rc == 0 ? SY_E_OK : sy_err_sys(err, rc, "starting '%s'", argv[0]);
}

enum sy_code
piped_start(struct piped_child *ret, char *const argv[], bool with_input, size_t pipe_bytes,
            struct sy_error *err)
{
    SY_FD in_read = -1;
    SY_FD in_write = -1;
    SY_FD out_read = -1;
    SY_FD out_write = -1;
    pid_t pid = 0;
    enum sy_code rc = fd_pipe(&out_read, &out_write, err);

    if (rc == SY_E_OK && with_input) {
        rc = fd_pipe(&in_read, &in_write, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (pipe_bytes != 0 && fcntl(out_read, F_SETPIPE_SZ, (int)pipe_bytes) < 0) {
        return sy_err_sys(err, errno, "setting the size of a pipe to %zu", pipe_bytes);
    }
    rc = spawn_with(&pid, argv, in_read, out_write, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    *ret = (struct piped_child){.pid = pid, .in = fd_take(&in_write), .out = fd_take(&out_read)};
    return SY_E_OK;
}

void
piped_end(struct piped_child *c)
{
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    fd_close(&c->in);
    fd_close(&c->out);
    c->pid = 0;
}

/* Moves a complete line from r->rest into `line`; false if there is none. */
static bool
line_cut(struct line_reader *r, struct buf *line, enum sy_code *ret_rc)
{
    const char *end = r->rest.len > 0 ? memchr(r->rest.data, '\n', r->rest.len) : NULL;

    if (end == NULL) {
        return false;
    }
    size_t n = (size_t)(end - r->rest.data);

    buf_reset(line);
    *ret_rc = buf_add(line, r->rest.data, n);
    buf_drop(&r->rest, n + 1);
    return true;
}

enum sy_code
line_read(struct line_reader *r, struct buf *line, int timeout_ms, struct sy_error *err)
{
    uint64_t end_ns = clock_mono_ns() + (uint64_t)timeout_ms * 1000000U;
    enum sy_code rc = SY_E_OK;

    r->rest.max = LINE_MAX_BYTES;
    line->max = LINE_MAX_BYTES;
    while (!line_cut(r, line, &rc)) {
        uint64_t now_ns = clock_mono_ns();
        struct pollfd p = {.fd = r->fd, .events = POLLIN};

        if (now_ns >= end_ns) {
            return sy_err_set(err, SY_E_CANCELLED, "no answer within %d ms", timeout_ms);
        }
        if (poll(&p, 1, (int)((end_ns - now_ns) / 1000000U) + 1) <= 0) {
            continue;
        }
        rc = buf_reserve(&r->rest, 65536);
        if (rc != SY_E_OK) {
            return sy_err_set(err, rc, "an answer of more than %zu bytes", LINE_MAX_BYTES);
        }
        ssize_t n = read(r->fd, r->rest.data + r->rest.len, 65536);

        if (n == 0) {
            return sy_err_set(err, SY_E_SYS, "the program ended without an answer");
        }
        if (n > 0) {
            r->rest.len += (size_t)n;
            r->rest.data[r->rest.len] = '\0';
        }
    }
    return rc;
}

uint64_t
proc_status_kb(pid_t pid, const char *field)
{
    SY_AUTO(buf_fini) struct buf name = {.max = 64};
    SY_AUTO(buf_fini) struct buf text = {.max = STATUS_MAX};
    uint64_t kb = 0;

    if (buf_addf(&name, "/proc/%d/status", (int)pid) != SY_E_OK) {
        return 0;
    }
    if (fd_read_file(buf_view(&name), &text, NULL) == SY_E_OK) {
        const char *at = strstr(buf_view(&text), field);

        if (at != NULL && at[strlen(field)] == ':') {
            kb = strtoull(at + strlen(field) + 1, NULL, 10);
        }
    }
    return kb;
}

/* Adds the children of `pid` to pids[*n...]; what exceeds TREE_MAX is left out. */
static void
add_children(pid_t pids[TREE_MAX], size_t *n, pid_t pid)
{
    SY_AUTO(buf_fini) struct buf path = {.max = 128};
    SY_AUTO(buf_fini) struct buf text = {.max = STATUS_MAX};

    if (buf_addf(&path, "/proc/%d/task/%d/children", (int)pid, (int)pid) != SY_E_OK ||
        fd_read_file(buf_view(&path), &text, NULL) != SY_E_OK) {
        return;
    }
    const char *at = buf_view(&text);

    while (*at != '\0' && *n < TREE_MAX) {
        char *end = NULL;
        uint64_t child = strtoull(at, &end, 10);

        if (end == at || child == 0) {
            return;
        }
        pids[(*n)++] = (pid_t)child;
        at = *end == ' ' ? end + 1 : end;
    }
}

uint64_t
proc_tree_kb(pid_t pid, const char *field)
{
    pid_t pids[TREE_MAX] = {pid};
    size_t n = 1;
    uint64_t kb = 0;

    for (size_t i = 0; i < n; i++) {
        kb += proc_status_kb(pids[i], field);
        add_children(pids, &n, pids[i]);
    }
    return kb;
}
