/*
 * How long after its cause an answer comes: from just before a program's last write to when the
 * line with the answer is here. The program tells its clock (pty_program, EPOCHREALTIME of bash).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "pty.h"

enum cause { BY_PATTERN, BY_PROMPT, BY_EXIT, BY_EXIT_PIPE, CAUSES };
static const char *const cause_names[] = {"pattern", "prompt", "exit", "exit, no terminal"};

struct watched {
    const char *name; /* NULL: a bare loop */
    struct pty_other stamps;
    struct pty_other shell;
    struct series us[CAUSES];
    struct sy_error err;
    bool has_failed;
};

static enum sy_code
measured(struct series *us, const char *text, uint64_t now_ns, struct sy_error *err)
{
    uint64_t then_ns = 0;

    if (!pty_stamp(text, &then_ns) || then_ns > now_ns) {
        return sy_err_set(err, SY_E_INTERNAL, "no time in %.200s", text);
    }
    if (us != NULL) {
        series_add(us, (double)(now_ns - then_ns) / 1e3);
    }
    return SY_E_OK;
}

/* A server with a session of its own. */
static enum sy_code
open_one(struct pty_other *o, char **server, char *const argv[], const char *more,
         struct sy_error *err)
{
    enum sy_code rc = pty_other_open(o, PTY_MCP, server, NULL, err);

    return rc == SY_E_OK ? pty_other_exec(o, argv, true, more, err) : rc;
}

static enum sy_code
watched_open(struct watched *w, char **server, const char *program)
{
    char *argv[] = {mem_unconst(program), mem_unconst("stamp"), NULL};
    char *shell_argv[] = {mem_unconst("/bin/bash"), mem_unconst("--norc"),
                          mem_unconst("--noprofile"), NULL};
    enum sy_code rc = open_one(&w->stamps, server, argv,
                               ",\"pattern\":\"ready\",\"yield_time_ms\":20000", &w->err);

    if (rc == SY_E_OK) {
        rc = open_one(&w->shell, server, shell_argv,
                      ",\"env\":{\"PS1\":\"T$EPOCHREALTIME;> \"},\"until\":\"prompt\","
                      "\"yield_time_ms\":20000",
                      &w->err);
    }
    return rc;
}

static enum sy_code
once(struct watched *w, const char *program, bool counts)
{
    char *end_argv[] = {mem_unconst(program), mem_unconst("end"), NULL};
    struct series *none[CAUSES] = {NULL};
    struct series *us[CAUSES];
    struct sy_error *err = &w->err;

    for (size_t i = 0; i < CAUSES; i++) {
        us[i] = counts ? &w->us[i] : none[i];
    }

    enum sy_code rc =
        pty_other_type(&w->stamps, "p\n", ",\"pattern\":\"T[0-9]+;\",\"yield_time_ms\":20000", err);

    rc = rc == SY_E_OK ? measured(us[BY_PATTERN], buf_view(&w->stamps.line), clock_mono_ns(), err)
                       : rc;
    rc = rc == SY_E_OK ? pty_other_type(&w->shell, ":\n",
                                        ",\"until\":\"prompt\",\"yield_time_ms\":20000", err)
                       : rc;
    rc = rc == SY_E_OK
             ? measured(us[BY_PROMPT], buf_view(&w->shell.line), (uint64_t)clock_wall_ns(), err)
             : rc;
    for (int tty = 1; tty >= 0 && rc == SY_E_OK; tty--) {
        rc = pty_other_exec(&w->stamps, end_argv, tty != 0, ",\"yield_time_ms\":20000", err);
        rc = rc == SY_E_OK ? measured(us[tty != 0 ? BY_EXIT : BY_EXIT_PIPE],
                                      buf_view(&w->stamps.line), clock_mono_ns(), err)
                           : rc;
    }
    return rc;
}

/* The same by a bare loop: what the kernel takes. */
static enum sy_code
bare_once(struct watched *w, struct pty_bare *stamps, const char *program)
{
    char *end_argv[] = {mem_unconst(program), mem_unconst("end"), NULL};
    struct pty_bare end = {.master = -1};
    struct piped_child child = {.in = -1, .out = -1};
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    enum sy_code rc = write(stamps->master, "p\n", 2) == 2 ? SY_E_OK : SY_E_SYS;

    rc = rc == SY_E_OK ? pty_bare_read(stamps, ";", NULL, &text, &w->err) : rc;
    rc = rc == SY_E_OK ? measured(&w->us[BY_PATTERN], buf_view(&text), clock_mono_ns(), &w->err)
                       : rc;
    rc = rc == SY_E_OK ? pty_bare_open(&end, end_argv, &w->err) : rc;
    rc = rc == SY_E_OK ? pty_bare_read(&end, NULL, NULL, &text, &w->err) : rc;
    pty_bare_wait(&end);
    rc = rc == SY_E_OK ? measured(&w->us[BY_EXIT], buf_view(&text), clock_mono_ns(), &w->err) : rc;
    pty_bare_close(&end);
    rc = rc == SY_E_OK ? piped_start(&child, end_argv, false, 0, &w->err) : rc;
    if (rc == SY_E_OK) {
        struct pty_bare pipe = {.pid = child.pid, .master = child.out};

        rc = pty_bare_read(&pipe, NULL, NULL, &text, &w->err);
        pty_bare_wait(&pipe);
        rc = rc == SY_E_OK
                 ? measured(&w->us[BY_EXIT_PIPE], buf_view(&text), clock_mono_ns(), &w->err)
                 : rc;
        child.pid = 0;
    }
    piped_end(&child);
    return rc;
}

/* Median over the rounds of what it takes beyond the bare loop. */
static double
more_us(const struct series *us, const struct series *bare)
{
    struct series more;
    double ret = 0;

    if (series_init(&more, us->n + 1) != SY_E_OK) {
        return 0;
    }
    for (size_t i = 0; i < us->n && i < bare->n; i++) {
        series_add(&more, us->v[i] - bare->v[i]);
    }
    ret = series_quantile(&more, 0.5);
    series_fini(&more);
    return ret;
}

static void
write_all(struct watched *all, size_t n)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1U << 20};
    struct jw w = {.out = &b};

    jw_object(&w);
    jw_key(&w, "servers");
    jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        jw_object(&w);
        jw_key_str(&w, "name", all[i].name != NULL ? all[i].name : "bare loop");
        jw_key_str(&w, "why", all[i].has_failed ? all[i].err.msg : "");
        jw_key(&w, "causes");
        jw_array(&w);
        for (size_t c = 0; c < CAUSES; c++) {
            jw_object(&w);
            jw_key_str(&w, "cause", cause_names[c]);
            series_write(&w, "us", &all[i].us[c]);
            jw_key(&w, "ratio");
            jw_real(&w, series_ratio(&all[i].us[c], &all[0].us[c]), 4);
            jw_key(&w, "more_us");
            jw_real(&w, more_us(&all[i].us[c], &all[0].us[c]), 1);
            jw_end_object(&w);
        }
        jw_end_array(&w);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    bench_print(STDOUT_FILENO, &w);
}

void
pty_cause(struct variant *servers, size_t n, const char *program, size_t rounds)
{
    static struct watched all[BENCH_VARIANTS_MAX + 1];
    struct pty_bare bare = {.master = -1};
    struct sy_error err = {0};
    char *argv[] = {mem_unconst(program), mem_unconst("stamp"), NULL};
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};

    for (size_t i = 0; i <= n; i++) {
        for (size_t c = 0; c < CAUSES; c++) {
            if (series_init(&all[i].us[c], rounds) != SY_E_OK) {
                bench_usage("bench_pty: out of memory\n");
            }
        }
        if (i > 0) {
            all[i].name = servers[i - 1].name;
            all[i].has_failed = watched_open(&all[i], servers[i - 1].argv, program) != SY_E_OK;
        }
    }
    if (pty_bare_open(&bare, argv, &err) != SY_E_OK ||
        pty_bare_read(&bare, "ready", NULL, &text, &err) != SY_E_OK) {
        bench_die(&err);
    }
    for (size_t r = 0; r < rounds + 3; r++) {
        all[0].has_failed =
            all[0].has_failed || (r >= 3 && bare_once(&all[0], &bare, program) != SY_E_OK);
        for (size_t i = 1; i <= n; i++) {
            all[i].has_failed = all[i].has_failed || once(&all[i], program, r >= 3) != SY_E_OK;
        }
    }
    write_all(all, n + 1);
    pty_bare_close(&bare);
    for (size_t i = 0; i <= n; i++) {
        if (i > 0) {
            pty_other_close(&all[i].stamps);
            pty_other_close(&all[i].shell);
        }
        for (size_t c = 0; c < CAUSES; c++) {
            series_fini(&all[i].us[c]);
        }
    }
}
