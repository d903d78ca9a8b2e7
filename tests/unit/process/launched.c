#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "launched.h"

static char path_variable[] = "PATH=/usr/bin:/bin";
static char *const small_env[] = {path_variable, NULL};
static const char *program;

bool
launched_by(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s LAUNCHER\n", argv[0]);
        return false;
    }
    program = argv[1];
    return true;
}

const char *
launched_program(void)
{
    return program;
}

int
world_make(void **state)
{
    static struct world w;
    static unsigned n;
    struct sandbox_caps caps;
    struct sy_error err = {0};

    w = (struct world){0};
    (void)snprintf(w.dir, sizeof(w.dir), "/var/tmp/sy-launcher-XXXXXX");
    (void)snprintf(w.mark, sizeof(w.mark), "sy%d-%u", (int)getpid(), n++);
    if (mkdtemp(w.dir) == NULL) {
        return -1;
    }
    w.policy = (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE, .cwd = mem_strdup(w.dir), .max_tier = TIER_FULL};
    sandbox_probe(&caps);
    caps.has_full_tier = true;
    if (sandbox_plan_new(&w.plan, &w.policy, &caps, &err) != SY_E_OK ||
        sandbox_ready_new(&w.ready, w.plan, &err) != SY_E_OK ||
        launcher_start(&w.launcher, program, &err) != SY_E_OK ||
        launcher_make_template(w.launcher, &w.template, &w.policy, &err) != SY_E_OK ||
        process_pool_new(&w.pool, true, &err) != SY_E_OK) {
        (void)fprintf(stderr, "no full tier here: %s\n", err.msg);
        return -1;
    }
    *state = &w;
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
world_remove(void **state)
{
    struct world *w = *state;

    process_pool_free(w->pool);
    template_unref(w->template);
    launcher_free(w->launcher);
    sandbox_ready_free(w->ready);
    sandbox_plan_free(w->plan);
    sandbox_policy_fini(&w->policy);
    return nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct exec_env
env_of(const struct world *w, char *const *argv)
{
    return (struct exec_env){.program = argv[0],
                             .argv = argv,
                             .envp = small_env,
                             .cwd = w->dir,
                             .sandbox = w->ready,
                             .plan = w->plan,
                             .template = w->template};
}

void
start_env(struct command *ret, const struct world *w, const struct exec_env *env)
{
    const struct sandbox_base base = process_base(env);
    struct output_options options = {0};
    struct sy_error err = {0};

    ret->chain = output_new(&options);
    assert_non_null(ret->chain);
    assert_int_equal(process_pool_take(w->pool, &ret->process, &base, &err), SY_E_OK);
    assert_int_equal(process_go(ret->process, env, ret->chain, &err), SY_E_OK);
}

void
start(struct command *ret, const struct world *w, const char *script)
{
    char *argv[] = {mem_unconst("/bin/sh"), mem_unconst("-c"), mem_unconst(script),
                    mem_unconst(w->mark), NULL};
    const struct exec_env env = env_of(w, argv);

    start_env(ret, w, &env);
}

bool
has_said(const struct command *c, const char *word)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};

    return word != NULL && output_text_all(c->chain, &text) == SY_E_OK &&
           strstr(buf_view(&text), word) != NULL;
}

void
drive(struct command *c, const char *word)
{
    uint64_t give_up_ns = clock_mono_ns() + 20 * SECOND_NS;
    bool is_done = false;

    while (!is_done && !has_said(c, word)) {
        struct pollfd fds[PROCESS_WATCHES];
        struct process_watch watches[PROCESS_WATCHES];
        uint64_t now = clock_mono_ns();

        assert_true(now < give_up_ns);
        assert_int_equal(process_step(c->process, now, &is_done, NULL), SY_E_OK);

        size_t n = process_watches(c->process, watches);
        uint64_t deadline = process_deadline_ns(c->process);
        uint64_t until = deadline < give_up_ns ? deadline : give_up_ns;

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        if (!is_done && !has_said(c, word)) {
            poll(fds, (nfds_t)n, until > now ? (int)((until - now) / 1000000) + 1 : 0);
        }
    }
}

void
end(struct command *c)
{
    process_free(c->process);
    output_free(c->chain);
}

int
run(const struct world *w, const char *script, struct buf *ret_out)
{
    struct command c;

    start(&c, w, script);
    drive(&c, NULL);

    const struct process_result *r = process_result(c.process);
    int code = r->outcome == PROCESS_EXITED ? r->exit_code : -1;

    assert_int_equal(output_finish(c.chain), SY_E_OK);
    if (ret_out != NULL) {
        assert_int_equal(output_text_all(c.chain, ret_out), SY_E_OK);
    }
    end(&c);
    return code;
}

unsigned
count_marked(const char *mark)
{
    DIR *proc = opendir("/proc");
    unsigned n = 0;

    assert_non_null(proc);
    for (const struct dirent *e = readdir(proc); e != NULL; e = readdir(proc)) {
        SY_AUTO(buf_fini) struct buf text = {.max = 65536};
        char path[300];

        (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        if (e->d_name[0] < '0' || e->d_name[0] > '9' ||
            fd_read_file(path, &text, NULL) != SY_E_OK || text.len == 0) {
            continue;
        }
        n += memmem(text.data, text.len, mark, strlen(mark)) != NULL ? 1 : 0;
    }
    closedir(proc);
    return n;
}

void
await_no_marked(const char *mark, uint64_t limit_ns)
{
    uint64_t give_up_ns = clock_mono_ns() + limit_ns;

    while (count_marked(mark) > 0) {
        assert_true(clock_mono_ns() < give_up_ns);
    }
}

pid_t
find_child(pid_t parent, const char *name)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    if (fd_read_file(path, &text, NULL) != SY_E_OK) {
        return 0;
    }
    for (char *at = text.data; at != NULL && *at >= '0' && *at <= '9';) {
        SY_AUTO(buf_fini) struct buf comm = {.max = 64};
        pid_t pid = (pid_t)strtol(at, &at, 10); // NOLINT(cert-err34-c): the kernel wrote it

        at += *at == ' ';
        (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        if (fd_read_file(path, &comm, NULL) == SY_E_OK && str_starts(buf_view(&comm), name)) {
            return pid;
        }
    }
    return 0;
}

void
kill_for_certain(pid_t pid)
{
    uint64_t give_up_ns = clock_mono_ns() + 5 * SECOND_NS;

    assert_true(pid > 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    for (;;) {
        SY_AUTO(buf_fini) struct buf text = {.max = 4096};
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        if (fd_read_file(path, &text, NULL) != SY_E_OK || strstr(buf_view(&text), ") Z ") != NULL) {
            return;
        }
        assert_true(clock_mono_ns() < give_up_ns);
    }
}

void
put_file(const struct world *w, const char *name, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);

    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

void
put_dir(const struct world *w, const char *name)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

void
add_mark(struct buf *marks, const struct world *w, char kind, const char *name)
{
    assert_int_equal(buf_addf(marks, "%c%s/%s", kind, w->dir, name), SY_E_OK);
    assert_int_equal(buf_add_char(marks, '\0'), SY_E_OK);
}
