/* Commands of the full tier: in namespaces that shellyard-launch made. The first
 * argument is that program. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/launch_wire.h"
#include "process/launcher.h"
#include "process/pool.h"

#include "../fault.h"

#define SECOND_NS 1000000000ULL
#define DAEMONS   40

static char path_variable[] = "PATH=/usr/bin:/bin";
static char *const small_env[] = {path_variable, NULL};
static const char *launcher_program;

struct world {
    char dir[64];
    char mark[32]; /* in the command line of whatever a test starts */
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
    struct launcher *launcher;
    struct template *template;
    struct process_pool *pool;
};

static int
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
        launcher_start(&w.launcher, launcher_program, &err) != SY_E_OK ||
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

static int
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

struct command {
    struct process *process;
    struct output_chain *chain;
};

static struct exec_env
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

static void
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

/* The mark is $0 of the script, and so in all that it forks. */
static void
start(struct command *ret, const struct world *w, const char *script)
{
    char *argv[] = {mem_unconst("/bin/sh"), mem_unconst("-c"), mem_unconst(script),
                    mem_unconst(w->mark), NULL};
    const struct exec_env env = env_of(w, argv);

    start_env(ret, w, &env);
}

static bool
has_said(const struct command *c, const char *word)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};

    return word != NULL && output_text_all(c->chain, &text) == SY_E_OK &&
           strstr(buf_view(&text), word) != NULL;
}

/* Until it has ended, or has said that word. */
static void
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

static void
end(struct command *c)
{
    process_free(c->process);
    output_free(c->chain);
}

/* Runs a script to its end. Returns its exit code, -1 if it had none. */
static int
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

/* Processes of the whole machine that have the mark in their command line; zombies have none. */
static unsigned
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

static void
await_no_marked(const char *mark, uint64_t limit_ns)
{
    uint64_t give_up_ns = clock_mono_ns() + limit_ns;

    while (count_marked(mark) > 0) {
        assert_true(clock_mono_ns() < give_up_ns);
    }
}

/* The process with this name whose parent is `parent`; 0: none. */
static pid_t
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

/* SIGKILL to it, and no return before the kernel has let go of it. */
static void
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

static const char daemons[] =
    "i=0; while [ $i -lt 40 ]; do i=$((i+1)); "
    "(setsid sh -c 'trap \"\" TERM HUP INT; (sleep 1000; :) & sleep 1000; :' \"$0\" "
    ">/dev/null 2>&1 &) ; done; echo up; ";

static void
a_command_sees_its_own_processes_and_the_walls(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 65536};
    static const char script[] =
        "echo self=$$ keeper=$(cat /proc/1/comm) n=$(ls /proc | grep -c '^[0-9]');"
        "grep -E '^(NoNewPrivs|Seccomp|CapEff|CapPrm|NSpid):' /proc/self/status;"
        "echo x > here && rm here && echo inside=writable;"
        "(echo x > /var/tmp/sy-launcher-x) 2>/dev/null || echo outside=refused;"
        "(chmod 700 /etc/passwd) 2>/dev/null || echo metadata=refused;"
        "(echo x > /proc/sys/kernel/hostname) 2>/dev/null || echo proc=refused;"
        "[ -e /run/systemd/private ] || echo run=hidden; echo y > /tmp/y && cat /tmp/y";

    assert_int_equal(run(*state, script, &out), 0);
    assert_non_null(strstr(buf_view(&out), "self=2 keeper=sy-keeper n="));
    assert_non_null(strstr(buf_view(&out), "CapEff:\t0000000000000000\n"));
    assert_non_null(strstr(buf_view(&out), "CapPrm:\t0000000000000000\n"));
    assert_non_null(strstr(buf_view(&out), "NoNewPrivs:\t1\n"));
    assert_non_null(strstr(buf_view(&out), "Seccomp:\t2\n"));
    assert_non_null(strstr(buf_view(&out), "inside=writable\n"));
    assert_non_null(strstr(buf_view(&out), "outside=refused\n"));
    assert_non_null(strstr(buf_view(&out), "metadata=refused\n"));
    assert_non_null(strstr(buf_view(&out), "proc=refused\n"));
    assert_non_null(strstr(buf_view(&out), "run=hidden\ny\n"));
    assert_int_equal(access("/tmp/y", F_OK), -1);
    /* Temporary files are the session's: the next command has them. */
    assert_int_equal(run(*state, "cat /tmp/y", NULL), 0);
}

static void
what_never_ran_is_told_by_its_stage(void **state)
{
    struct world *w = *state;
    char *argv[] = {mem_unconst("/nonexistent/program"), NULL};
    char *good[] = {mem_unconst("/bin/true"), NULL};
    struct exec_env env = env_of(w, argv);
    struct command c;

    start_env(&c, w, &env);
    drive(&c, NULL);
    assert_int_equal(process_result(c.process)->outcome, PROCESS_FAILED);
    assert_int_equal(process_result(c.process)->err.code, SY_E_NOTFOUND);
    end(&c);
    env = env_of(w, good);
    env.cwd = "/nonexistent";
    start_env(&c, w, &env);
    drive(&c, NULL);
    assert_int_equal(process_result(c.process)->outcome, PROCESS_FAILED);
    assert_int_equal(process_result(c.process)->err.code, SY_E_CWD);
    end(&c);
    /* The command's own 126 and 127 are results. */
    assert_int_equal(run(w, "exit 126", NULL), 126);
    assert_int_equal(run(w, "exit 127", NULL), 127);
}

static void
a_long_command_arrives_whole(void **state)
{
    struct world *w = *state;
    SY_AUTO(strv_fini) struct strv argv = {.max = 5000};
    SY_AUTO(buf_fini) struct buf out = {.max = 65536};
    SY_AUTO(buf_fini) struct buf word = {.max = 100000};
    struct command c;

    for (int i = 0; i < 90000; i++) {
        assert_int_equal(buf_add_char(&word, (char)('a' + i % 26)), SY_E_OK);
    }
    assert_int_equal(strv_add(&argv, "/bin/sh"), SY_E_OK);
    assert_int_equal(strv_add(&argv, "-c"), SY_E_OK);
    assert_int_equal(strv_add(&argv, "echo $# ${#1} \"[$2]\" ${#4000}"), SY_E_OK);
    assert_int_equal(strv_add(&argv, w->mark), SY_E_OK);
    assert_int_equal(strv_add(&argv, buf_view(&word)), SY_E_OK);
    assert_int_equal(strv_add(&argv, ""), SY_E_OK);
    for (int i = 0; i < 3998; i++) {
        assert_int_equal(strv_add(&argv, "0123456789"), SY_E_OK);
    }

    const struct exec_env env = env_of(w, strv_view(&argv));

    start_env(&c, w, &env);
    drive(&c, NULL);
    assert_int_equal(output_text_all(c.chain, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "4000 90000 [] 10\n");
    end(&c);
}

static void
daemons_are_gone_with_their_command(void **state)
{
    struct world *w = *state;
    struct command c;
    SY_AUTO(buf_fini) struct buf script = {.max = 4096};

    /* Ended by an order. */
    assert_int_equal(buf_addf(&script, "%s sleep 1000", daemons), SY_E_OK);
    start(&c, w, buf_view(&script));
    drive(&c, "up");
    assert_true(count_marked(w->mark) >= DAEMONS); /* the control: they do live */
    process_kill(c.process);
    drive(&c, NULL);
    assert_int_equal(count_marked(w->mark), 0);
    end(&c);
    /* Left behind by a command that ends. */
    assert_int_equal(run(w, daemons, NULL), 0);
    assert_int_equal(count_marked(w->mark), 0);
}

static void
the_end_of_the_keeper_is_the_end_of_all(void **state)
{
    struct world *w = *state;
    struct command c;
    pid_t launcher = find_child(getpid(), "sy-launch");
    pid_t template = find_child(launcher, "sy-template");
    SY_AUTO(buf_fini) struct buf script = {.max = 4096};

    assert_int_equal(buf_addf(&script, "%s sleep 1000", daemons), SY_E_OK);
    start(&c, w, buf_view(&script));
    drive(&c, "up");
    assert_int_equal(kill(find_child(template, "sy-keeper"), SIGKILL), 0);
    drive(&c, NULL);
    assert_int_equal(process_result(c.process)->outcome, PROCESS_FAILED);
    assert_non_null(strstr(process_result(c.process)->err.msg, "keeper"));
    assert_int_equal(count_marked(w->mark), 0);
    end(&c);
}

static void
a_command_outlives_launcher_and_template(void **state)
{
    struct world *w = *state;
    struct command c;
    struct template *other = NULL;
    pid_t launcher = find_child(getpid(), "sy-launch");
    pid_t template = find_child(launcher, "sy-template");

    start(&c, w, "mkfifo gate; echo up; read x < gate; echo went on");
    drive(&c, "up");
    kill_for_certain(launcher);
    kill_for_certain(template);
    assert_false(template_is_there(w->template));
    assert_int_equal(launcher_make_template(w->launcher, &other, &w->policy, NULL), SY_E_NOTFOUND);

    char gate[128];

    (void)snprintf(gate, sizeof(gate), "%s/gate", w->dir);

    SY_FD fd = open(gate, O_WRONLY | O_CLOEXEC);

    assert_int_equal(write(fd, "x\n", 2), 2);
    drive(&c, NULL);
    assert_true(has_said(&c, "went on"));
    assert_int_equal(process_result(c.process)->outcome, PROCESS_EXITED);
    end(&c);
    /* What is asked for next says what happened. */
    struct process *p = NULL;
    char *argv[] = {mem_unconst("/bin/true"), NULL};
    const struct exec_env env = env_of(w, argv);
    const struct sandbox_base base = process_base(&env);
    struct sy_error err = {0};

    assert_int_equal(process_pool_take(w->pool, &p, &base, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "killed"));
}

/* An engine of its own, as a child of the test, that is killed after `wait_us`. */
static void
kill_engine_after(const struct world *w, long wait_us)
{
    int gone[2];
    pid_t engine = -1;
    SY_AUTO(buf_fini) struct buf script = {.max = 4096};

    assert_int_equal(buf_addf(&script, "%s sleep 1000", daemons), SY_E_OK);
    assert_int_equal(pipe2(gone, O_CLOEXEC), 0);
    engine = fork();
    if (engine == 0) {
        struct world own = *w;
        struct command c;

        own.pool = NULL;
        own.template = NULL;
        if (launcher_start(&own.launcher, launcher_program, NULL) == SY_E_OK &&
            launcher_make_template(own.launcher, &own.template, &own.policy, NULL) == SY_E_OK &&
            process_pool_new(&own.pool, true, NULL) == SY_E_OK) {
            start(&c, &own, buf_view(&script));
            drive(&c, "never");
        }
        _exit(0);
    }

    struct pollfd never = {.fd = gone[0], .events = POLLIN};
    struct timespec wait = {.tv_nsec = wait_us * 1000};

    /* A moment, not an event, is what this is about. */
    (void)ppoll(&never, 1, &wait, NULL);
    assert_int_equal(kill(engine, SIGKILL), 0);
    assert_int_equal(waitpid(engine, NULL, 0), engine);
    close(gone[0]);
    close(gone[1]);
    await_no_marked(w->mark, 2 * SECOND_NS);
}

static void
nothing_is_left_of_an_engine_that_was_killed(void **state)
{
    for (long us = 0; us < 40000; us += 1300) {
        kill_engine_after(*state, us);
    }
}

static void
many_runs_leave_no_zombie_and_no_descriptor(void **state)
{
    struct world *w = *state;
    pid_t launcher = find_child(getpid(), "sy-launch");
    pid_t template = find_child(launcher, "sy-template");
    size_t live = 0;
    int before = -1;
    int after = -1;
    uint64_t give_up_ns = 0;

    assert_int_equal(run(w, "exit 3", NULL), 3);
    live = mem_live();
    before = dup(0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(run(w, "exit 3", NULL), 3);
    }
    after = dup(0);
    assert_int_equal(mem_live(), live);
    assert_int_equal(after, before + 1);
    fd_close(&before);
    fd_close(&after);
    give_up_ns = clock_mono_ns() + 5 * SECOND_NS;
    while (find_child(template, "sy-keeper") != 0) {
        assert_true(clock_mono_ns() < give_up_ns); /* the last one may be on its way out */
    }
}

static void
put_file(const struct world *w, const char *name, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);

    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void
put_dir(const struct world *w, const char *name)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void
add_mark(struct buf *marks, const struct world *w, char kind, const char *name)
{
    assert_int_equal(buf_addf(marks, "%c%s/%s", kind, w->dir, name), SY_E_OK);
    assert_int_equal(buf_add_char(marks, '\0'), SY_E_OK);
}

static const char attack[] =
    "(echo ok > g/index.lock && mv g/index.lock g/index) && echo index=written;"
    "(echo bad > g/config) 2>/dev/null && echo config=written;"
    "(echo bad > n; mv -f n g/config) 2>/dev/null && echo config=replaced;"
    "rm -f g/config 2>/dev/null && echo config=removed;"
    "(echo bad > g/hooks/post-checkout) 2>/dev/null && echo hook=planted;"
    "mv g/hooks g/h2 2>/dev/null && echo hooks=moved; mv g g2 2>/dev/null && echo g=moved;"
    "cat secret 2>/dev/null; ls private; (echo x >> secret) 2>/dev/null && echo secret=written;"
    "true";

static void
marks_hold(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = 4096};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    SY_AUTO(buf_fini) struct buf control = {.max = 4096};
    struct command early;

    put_dir(w, "g");
    put_dir(w, "g/hooks");
    put_dir(w, "private");
    put_file(w, "g/config", "good\n");
    put_file(w, "secret", "the secret\n");
    put_file(w, "private/key", "the key\n");
    /* A command that runs already when they come. */
    start(&early, w,
          "echo up; while [ ! -e go ]; do sleep 0.01; done; (echo bad > g/config) 2>&1; "
          "cat secret");
    drive(&early, "up");
    add_mark(&marks, w, LAUNCH_MARK_PIN, "g");
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "g/config");
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "g/hooks");
    add_mark(&marks, w, LAUNCH_MARK_HIDE, "secret");
    add_mark(&marks, w, LAUNCH_MARK_HIDE, "private");
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "not/there");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w, attack, &out), 0);
    assert_string_equal(buf_view(&out), "index=written\n");
    put_file(w, "go", "");
    drive(&early, NULL);
    assert_true(has_said(&early, "Read-only file system"));
    assert_false(has_said(&early, "the secret"));
    end(&early);

    /* A person's git replaces the file: the kernel drops what lay on it, and it is marked again. */
    char from[128];
    char to[128];

    put_file(w, "g/config.lock", "newer\n");
    (void)snprintf(from, sizeof(from), "%s/g/config.lock", w->dir);
    (void)snprintf(to, sizeof(to), "%s/g/config", w->dir);
    assert_int_equal(rename(from, to), 0);
    buf_reset(&marks);
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "g/config");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w, "(echo bad > g/config) 2>/dev/null && exit 1; cat g/config", &control),
                     0);
    assert_string_equal(buf_view(&control), "newer\n");
}

/* The names of events, each with the number of what it is of; the directory itself is "". */
static void
read_events(struct buf *ret, int fd)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t got = read(fd, events, sizeof(events));

    for (ssize_t i = 0; i < got;) {
        struct inotify_event event;

        memcpy(&event, events + i, sizeof(event));
        i += (ssize_t)sizeof(event);
        assert_int_equal(buf_addf(ret, "%d:%s ", event.wd, event.len > 0 ? events + i : ""),
                         SY_E_OK);
        i += (ssize_t)event.len;
    }
}

static void
what_is_hidden_keeps_its_names_where_they_are_asked_for(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = 4096};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    SY_AUTO(buf_fini) struct buf events = {.max = 4096};

    put_dir(w, "shown");
    put_dir(w, "shown/deep");
    put_file(w, "shown/deep/key", "the deep key\n");
    put_file(w, "shown/key", "the key\n");
    put_dir(w, "many");
    for (unsigned i = 0; i < LIMIT_HIDDEN_NAMES + 8; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "many/%u", i);
        put_file(w, name, "");
    }
    put_dir(w, "private");
    put_file(w, "private/key", "the key\n");
    assert_int_equal(run(w, "ln -s key shown/link; mkfifo shown/pipe", NULL), 0);
    add_mark(&marks, w, LAUNCH_MARK_HIDE_NAMED, "shown");
    add_mark(&marks, w, LAUNCH_MARK_HIDE, "private");
    add_mark(&marks, w, LAUNCH_MARK_HIDE_NAMED, "many");
    add_mark(&marks, w, LAUNCH_MARK_HIDE_NAMED, "not/there");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w,
                         "cat shown/key; cat shown/link; test -d shown/deep; cat shown/deep/key "
                         "private/key 2>/dev/null; echo x 2>/dev/null >shown/key; "
                         "rm -rf shown/key 2>/dev/null; touch shown/new 2>/dev/null; true",
                         &out),
                     0);
    assert_string_equal(buf_view(&out), "");
    read_events(&events, template_watch_fd(w->template));
    assert_non_null(strstr(buf_view(&events), "1:key 1:link "));
    assert_null(strstr(buf_view(&events), "2:"));
    assert_int_equal(run(w, "ls shown private; ls many | wc -l", &out), 0);
    assert_string_equal(buf_view(&out), "private:\n\nshown:\ndeep\nkey\nlink\n64\n");
    buf_reset(&events);
    read_events(&events, template_watch_fd(w->template));
    assert_string_equal(buf_view(&events), "2: 1: 3: ");
}

/* A process made ready by a template that is let go of is not taken for one of the next. */
static void
a_spare_is_of_its_template_alone(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = 4096};
    struct sandbox_base base = sandbox_plan_base(w->plan);
    struct sy_error err = {0};

    put_file(w, "held", "good\n");
    base.template = w->template;
    process_pool_make_spare(w->pool, &base);
    template_unref(w->template);
    w->template = NULL;
    assert_int_equal(launcher_make_template(w->launcher, &w->template, &w->policy, &err), SY_E_OK);
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "held");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w, "! echo bad 2>/dev/null >held", NULL), 0);
    assert_int_equal(run(w, "echo good >free", NULL), 0);
}

static void
without_marks_the_same_attack_succeeds(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    put_dir(w, "g");
    put_dir(w, "g/hooks");
    put_dir(w, "private");
    put_file(w, "g/config", "good\n");
    put_file(w, "secret", "the secret\n");
    put_file(w, "private/key", "the key\n");
    assert_int_equal(run(w, attack, &out), 0);
    assert_string_equal(
        buf_view(&out),
        "index=written\nconfig=written\nconfig=replaced\nconfig=removed\nhook=planted\nhooks=moved\n"
        "g=moved\nthe secret\nkey\nsecret=written\n");
}

static void
marks_that_are_none_end_the_template(void **state)
{
    struct world *w = *state;
    static const char no_end[] = {'r', '/', 'x'};
    static const char no_kind[] = "x/etc";
    struct sy_error err = {0};

    assert_int_equal(launcher_add_marks(w->template, no_end, sizeof(no_end), &err), SY_E_SANDBOX);
    assert_int_equal(launcher_add_marks(w->template, no_kind, sizeof(no_kind), &err),
                     SY_E_NOTFOUND);
}

static void
a_policy_that_can_not_be_had_says_why(void **state)
{
    struct world *w = *state;
    struct sandbox_policy missing = w->policy;
    struct template *t = NULL;
    struct launcher *l = NULL;
    struct sy_error err = {0};

    missing.cwd = mem_unconst("/nonexistent/workspace");
    assert_int_equal(launcher_make_template(w->launcher, &t, &missing, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "/nonexistent/workspace"));
    assert_int_equal(launcher_start(&l, "/nonexistent/launcher", &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "/nonexistent/launcher"));
    /* The launcher lives on. */
    assert_int_equal(launcher_make_template(w->launcher, &t, &w->policy, &err), SY_E_OK);
    template_unref(t);
}

/* SO_NETNS_COOKIE: in whose network it is; 0 before Linux 5.14. */
static uint64_t
network_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t size = sizeof(cookie);

    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

struct gate_log {
    unsigned n;
    uint16_t port; /* of the last */
};

static void
note_connected(void *arg, int *fd)
{
    struct gate_log *log = arg;
    struct sockaddr_in peer = {0};
    socklen_t size = sizeof(peer);

    assert_int_equal(getpeername(*fd, (struct sockaddr *)&peer, &size), 0);
    log->port = ntohs(peer.sin_port);
    log->n++;
    fd_close(fd);
}

/* The sockets are in the network of commands, who serves them is not. */
static void
serve_one(const struct world *w, int listener, uint16_t port)
{
    struct gate_log log = {0};
    const struct process_gate gate = {.port = LAUNCH_HTTP_PORT,
                                      .socks_port = LAUNCH_SOCKS_PORT,
                                      .on_connected = note_connected,
                                      .arg = &log};
    char script[200];
    char *argv[] = {mem_unconst("/bin/bash"), mem_unconst("-c"), script, mem_unconst(w->mark),
                    NULL};
    struct exec_env env = env_of(w, argv);
    struct command c;

    (void)snprintf(script, sizeof(script),
                   "exec 3<>/dev/tcp/127.0.0.1/%u && echo connected; read -r x <&3; echo got $x",
                   (unsigned)port);
    env.gate = &gate;
    assert_int_equal(listen(listener, 4), 0);
    start_env(&c, w, &env);
    drive(&c, "connected");
    assert_int_equal(log.n, 1);
    assert_int_equal(log.port, port);

    SY_FD end_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    assert_true(end_fd >= 0);
    assert_int_equal(write(end_fd, "hello\n", 6), 6);
    drive(&c, "got hello");
    end(&c);
}

static void
an_allow_list_has_its_sockets_inside(void **state)
{
    struct world *w = *state;
    SY_FD http = -1;
    SY_FD socks = -1;
    SY_FD outside = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    template_take_proxy(w->template, &http, &socks);
    assert_int_equal(http, -1); /* of no use with the network off */
    assert_int_equal(socks, -1);
    template_unref(w->template);
    w->template = NULL;
    w->policy.network_allow.max = 1;
    assert_int_equal(strv_add(&w->policy.network_allow, "example.com"), SY_E_OK);
    assert_int_equal(launcher_make_template(w->launcher, &w->template, &w->policy, NULL), SY_E_OK);
    template_take_proxy(w->template, &http, &socks);
    assert_true(http >= 0 && socks >= 0);
    assert_true(network_of(http) == 0 || network_of(http) != network_of(outside));
    assert_int_equal(network_of(http), network_of(socks));
    serve_one(w, http, LAUNCH_HTTP_PORT);
    serve_one(w, socks, LAUNCH_SOCKS_PORT);
    /* They are ours alone: nobody is left who listens. */
    fd_close(&http);
    assert_int_equal(run(w, "! bash -c ': <>/dev/tcp/127.0.0.1/3128' 2>/dev/null", NULL), 0);
}

static enum sy_code
make_and_run(void *arg)
{
    struct world *w = arg;
    struct template *t = NULL;
    struct process *p = NULL;
    struct output_options options = {0};
    char *argv[] = {mem_unconst("/bin/true"), NULL};
    struct output_chain *chain = output_new(&options);
    enum sy_code rc =
        chain != NULL ? launcher_make_template(w->launcher, &t, &w->policy, NULL) : SY_E_NOMEM;

    if (rc == SY_E_OK) {
        struct exec_env env = env_of(w, argv);

        env.template = t;
        rc = process_start(&p, &env, chain, NULL);
    }
    process_free(p);
    template_unref(t);
    output_free(chain);
    return rc;
}

static void
a_start_survives_each_failed_allocation(void **state)
{
    fault_run(make_and_run, *state);
}

int
main(int argc, char **argv)
{
#define LAUNCHED(name) cmocka_unit_test_setup_teardown(name, world_make, world_remove)
    const struct CMUnitTest tests[] = {
        LAUNCHED(a_command_sees_its_own_processes_and_the_walls),
        LAUNCHED(what_never_ran_is_told_by_its_stage),
        LAUNCHED(a_long_command_arrives_whole),
        LAUNCHED(daemons_are_gone_with_their_command),
        LAUNCHED(the_end_of_the_keeper_is_the_end_of_all),
        LAUNCHED(a_command_outlives_launcher_and_template),
        LAUNCHED(nothing_is_left_of_an_engine_that_was_killed),
        LAUNCHED(many_runs_leave_no_zombie_and_no_descriptor),
        LAUNCHED(marks_hold),
        LAUNCHED(what_is_hidden_keeps_its_names_where_they_are_asked_for),
        LAUNCHED(a_spare_is_of_its_template_alone),
        LAUNCHED(without_marks_the_same_attack_succeeds),
        LAUNCHED(marks_that_are_none_end_the_template),
        LAUNCHED(a_policy_that_can_not_be_had_says_why),
        LAUNCHED(an_allow_list_has_its_sockets_inside),
        LAUNCHED(a_start_survives_each_failed_allocation),
    };

    if (argc != 2) {
        (void)fprintf(stderr, "usage: test_launcher LAUNCHER\n");
        return 2;
    }
    launcher_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
