/* Processes of one pool: made under a filter that they share. Run with "serve NAME" or
 * "connect NAME" this program is the command that it tests with. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/ancestry.h"
#include "process/pool.h"

#include "../fault.h"

#define SECOND_NS 1000000000ULL

static char path_variable[] = "PATH=/usr/bin:/bin";
static char *const small_env[] = {path_variable, NULL};
static char *self;

struct world {
    char dir[64];
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
    struct sandbox_base base;
};

static int
world_make(void **state)
{
    static struct world w;
    struct sandbox_caps caps;

    (void)snprintf(w.dir, sizeof(w.dir), "/var/tmp/sy-pool-XXXXXX");
    if (mkdtemp(w.dir) == NULL) {
        return -1;
    }
    w.policy = (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE, .cwd = mem_strdup(w.dir), .excludes_slash_tmp = true};
    sandbox_probe(&caps);
    if (sandbox_plan_new(&w.plan, &w.policy, &caps, NULL) != SY_E_OK ||
        sandbox_ready_new(&w.ready, w.plan, NULL) != SY_E_OK) {
        return -1;
    }
    w.base = sandbox_plan_base(w.plan);
    *state = &w;
    return 0;
}

static int
world_remove(void **state)
{
    struct world *w = *state;

    sandbox_ready_free(w->ready);
    sandbox_plan_free(w->plan);
    sandbox_policy_fini(&w->policy);
    return rmdir(w->dir);
}

static void
name_of(struct sockaddr_un *a, const char *path)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(a->sun_path, sizeof(a->sun_path), "%s", path);
}

/* Listens there, tells so, talks with itself and then with whoever comes. */
static int
serve(const char *path)
{
    struct sockaddr_un a;
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    name_of(&a, path);
    if (bind(server, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(server, 8) != 0 ||
        connect(client, (struct sockaddr *)&a, sizeof(a)) != 0 || write(1, "up\n", 3) != 3) {
        return 1;
    }
    for (;;) {
        pause();
    }
}

static int
try_connect(const char *path)
{
    struct sockaddr_un a;
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    name_of(&a, path);
    return connect(client, (struct sockaddr *)&a, sizeof(a)) == 0 ? 0 : errno;
}

struct command {
    struct process *process;
    struct output_chain *chain;
};

static void
start(struct command *ret, struct process_pool *pool, const struct world *w, char *const *argv)
{
    struct output_options options = {0};
    struct exec_env env = {
        .program = argv[0], .argv = argv, .envp = small_env, .cwd = w->dir, .sandbox = w->ready};
    struct sy_error err = {0};

    ret->chain = output_new(&options);
    assert_non_null(ret->chain);
    assert_int_equal(process_pool_take(pool, &ret->process, &w->base, &err), SY_E_OK);
    assert_int_equal(process_go(ret->process, &env, ret->chain, &err), SY_E_OK);
}

/* Looks after `n` commands until the last has ended, or the first has said something. */
static void
drive(struct command *commands, size_t n, bool until_first_speaks)
{
    uint64_t give_up_ns = clock_mono_ns() + 20 * SECOND_NS;

    for (;;) {
        struct pollfd fds[2 * PROCESS_WATCHES];
        struct process_watch watches[PROCESS_WATCHES];
        uint64_t now = clock_mono_ns();
        nfds_t n_fds = 0;
        bool is_done = false;

        for (size_t i = 0; i < n; i++) {
            assert_int_equal(process_step(commands[i].process, now, &is_done, NULL), SY_E_OK);

            size_t n_watches = process_watches(commands[i].process, watches);

            for (size_t k = 0; k < n_watches; k++) {
                fds[n_fds++] = (struct pollfd){.fd = watches[k].fd, .events = watches[k].events};
            }
        }
        if (until_first_speaks) {
            struct output_stats stats;

            output_stats_all(commands[0].chain, &stats);
            is_done = stats.total_bytes > 0;
        }
        if (is_done) {
            return;
        }
        assert_true(now < give_up_ns);
        poll(fds, n_fds, (int)((give_up_ns - now) / 1000000));
    }
}

/* Runs a script to its end. Returns its exit code. */
static int
run(struct process_pool *pool, const struct world *w, const char *script, struct buf *ret_out)
{
    char *argv[] = {mem_unconst("/bin/sh"), mem_unconst("-c"), mem_unconst(script), NULL};
    struct command c;

    start(&c, pool, w, argv);
    process_pool_make_spare(pool, &w->base);
    drive(&c, 1, false);

    const struct process_result *r = process_result(c.process);
    int code = r->outcome == PROCESS_EXITED ? r->exit_code : -1;

    assert_int_equal(output_finish(c.chain), SY_E_OK);
    if (ret_out != NULL) {
        assert_int_equal(output_text_all(c.chain, ret_out), SY_E_OK);
    }
    process_free(c.process);
    output_free(c.chain);
    return code;
}

static void
assert_no_child_is_left(void)
{
    uint64_t give_up_ns = clock_mono_ns() + 5 * SECOND_NS;

    while (waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD) {
        assert_true(clock_mono_ns() < give_up_ns);
    }
}

static void
each_command_is_confined(void **state)
{
    static const char script[] = "grep -E '^(NoNewPrivs|Seccomp|CapEff|Seccomp_filters):' "
                                 "/proc/self/status; trap; echo x > here && rm here; "
                                 "echo x > /var/tmp/sy-pool-$$ || echo refused";
    struct process_pool *pool = NULL;

    assert_int_equal(process_pool_new(&pool, true, NULL), SY_E_OK);
    for (int i = 0; i < 20; i++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 4096};

        assert_int_equal(run(pool, *state, script, &out), 0);
        assert_non_null(strstr(buf_view(&out), "CapEff:\t0000000000000000\n"));
        assert_non_null(strstr(buf_view(&out), "NoNewPrivs:\t1\n"));
        assert_non_null(strstr(buf_view(&out), "Seccomp:\t2\n"));
        assert_non_null(strstr(buf_view(&out), "Seccomp_filters:\t1\n"));
        assert_non_null(strstr(buf_view(&out), "refused\n"));
    }
    process_pool_free(pool);
    assert_no_child_is_left();
}

static void
a_socket_of_another_command_is_out_of_reach(void **state)
{
    struct world *w = *state;
    struct process_pool *pool = NULL;
    struct command both[2];
    char path[128];
    int status = 0;

    (void)snprintf(path, sizeof(path), "%s/s", w->dir);

    char *server[] = {self, mem_unconst("serve"), path, NULL};
    char *client[] = {self, mem_unconst("connect"), path, NULL};

    assert_int_equal(process_pool_new(&pool, true, NULL), SY_E_OK);
    start(&both[0], pool, w, server);
    drive(both, 1, true); // it has reached its own socket
    start(&both[1], pool, w, client);
    drive(both, 2, false);
    assert_int_equal(process_result(both[1].process)->outcome, PROCESS_EXITED);
    assert_int_equal(process_result(both[1].process)->exit_code, EACCES);

    /* Without a sandbox the same act succeeds. */
    pid_t free_client = fork();

    if (free_client == 0) {
        _exit(try_connect(path));
    }
    assert_int_equal(waitpid(free_client, &status, 0), free_client);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < 2; i++) {
        process_free(both[i].process);
        output_free(both[i].chain);
    }
    process_pool_free(pool);
    assert_int_equal(unlink(path), 0);
}

/* The tasks of ours with this name. */
static size_t
find_tasks(const char *name, pid_t *ret, size_t max)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    char path[64];
    size_t n = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    assert_int_equal(fd_read_file(path, &text, NULL), SY_E_OK);
    for (char *at = text.data; at != NULL && *at >= '0' && *at <= '9' && n < max;) {
        SY_AUTO(buf_fini) struct buf comm = {.max = 64};
        pid_t pid = (pid_t)strtol(at, &at, 10); // NOLINT(cert-err34-c): the kernel wrote it

        at += *at == ' ';
        (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        if (fd_read_file(path, &comm, NULL) == SY_E_OK && str_starts(buf_view(&comm), name)) {
            ret[n++] = pid;
        }
    }
    return n;
}

static void
a_template_that_was_killed_is_replaced(void **state)
{
    struct process_pool *pool = NULL;
    pid_t tasks[4];

    assert_int_equal(process_pool_new(&pool, true, NULL), SY_E_OK);
    for (int i = 0; i < 3; i++) {
        siginfo_t info;
        uint64_t give_up_ns = clock_mono_ns() + 5 * SECOND_NS;

        assert_int_equal(run(pool, *state, "exit 3", NULL), 3);
        while (find_tasks("sy-template", tasks, 4) != 1) {
            /* A keeper has its name for a moment. */
            assert_true(clock_mono_ns() < give_up_ns);
        }
        assert_int_equal(kill(tasks[0], SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t)tasks[0], &info, WEXITED | WNOWAIT | __WALL), 0);
        /* What it has made already is still good. */
        assert_int_equal(run(pool, *state, "exit 4", NULL), 4);
        assert_int_equal(run(pool, *state, "exit 5", NULL), 5);
    }
    process_pool_free(pool);
    assert_no_child_is_left();
}

static void
nothing_is_left_of_a_pool(void **state)
{
    const struct world *w = *state;
    size_t live = mem_live();
    int before = dup(0);
    int after = -1;

    for (int i = 0; i < 20; i++) {
        struct process_pool *pool = NULL;

        assert_int_equal(process_pool_new(&pool, true, NULL), SY_E_OK);
        process_pool_make_spare(pool, &w->base);
        process_pool_free(pool);
    }
    assert_no_child_is_left();
    assert_int_equal(mem_live(), live);
    after = dup(0);
    assert_int_equal(after, before + 1);
    fd_close(&before);
    fd_close(&after);
}

#define TERMINALS 3U

/* Answers each line with what became of a connection. */
static void
terminal_start(struct command *ret, struct process_pool *pool, const struct world *w)
{
    static const char script[] = "while read -r line; do \"$0\" connect /var/tmp/sy-pool-none; "
                                 "echo \"<$line $?>\"; done";
    char *argv[] = {mem_unconst("/bin/bash"), mem_unconst("-c"), mem_unconst(script), self, NULL};
    struct output_options options = {0};
    const struct exec_env env = {.program = argv[0],
                                 .argv = argv,
                                 .envp = small_env,
                                 .cwd = w->dir,
                                 .sandbox = w->ready,
                                 .plan = w->plan};
    const struct process_input_way way = {.kind = INPUT_TERMINAL, .pool = pool};
    struct sy_error err = {0};

    ret->chain = output_new(&options);
    assert_non_null(ret->chain);
    assert_int_equal(process_prepare_input(&ret->process, &w->base, &way, &err), SY_E_OK);
    assert_int_equal(process_go(ret->process, &env, ret->chain, &err), SY_E_OK);
    /* The strings are borrowed until it runs. */
    for (int i = 0; i < 20000 && !process_has_executed(ret->process); i++) {
        (void)poll(NULL, 0, 1);
    }
    assert_true(process_has_executed(ret->process));
}

static size_t
watch_all(const struct command *commands, size_t n, struct pollfd *ret)
{
    struct process_watch watches[PROCESS_WATCHES];
    size_t n_fds = 0;

    for (size_t i = 0; i < n; i++) {
        const size_t n_watches = process_watches(commands[i].process, watches);

        for (size_t k = 0; k < n_watches; k++) {
            ret[n_fds++] = (struct pollfd){.fd = watches[k].fd, .events = watches[k].events};
        }
    }
    return n_fds;
}

/* Types a line, and looks after all of them until it is answered. */
static void
ask(struct command *commands, size_t n, size_t which, const char *line, const char *answer)
{
    const uint64_t give_up_ns = clock_mono_ns() + 20 * SECOND_NS;
    struct pollfd fds[TERMINALS * PROCESS_WATCHES];

    assert_int_equal(process_write(commands[which].process, line, strlen(line), NULL), SY_E_OK);
    for (;;) {
        SY_AUTO(buf_fini) struct buf said = {.max = 65536};
        bool is_done = false;

        for (size_t i = 0; i < n; i++) {
            assert_int_equal(process_step(commands[i].process, clock_mono_ns(), &is_done, NULL),
                             SY_E_OK);
            assert_false(is_done);
        }
        assert_int_equal(output_text_all(commands[which].chain, &said), SY_E_OK);
        if (strstr(buf_view(&said), answer) != NULL) {
            return;
        }
        assert_true(clock_mono_ns() < give_up_ns);
        (void)poll(fds, watch_all(commands, n, fds), 20000);
    }
}

/* Who waits for one thing more than the others; where nobody does, the first. */
static size_t
holder(const struct command *commands, size_t n)
{
    struct process_watch watches[PROCESS_WATCHES];

    for (size_t i = 0; i < n; i++) {
        if (process_watches(commands[i].process, watches) > 2) {
            return i;
        }
    }
    return 0;
}

/* A descriptor for each would be one more for hours, and wake all of them at each call. */
static void
terminals_of_a_pool_share_one_listener(void **state)
{
    const struct world *w = *state;
    struct process_pool *pool = NULL;
    struct command t[TERMINALS];
    struct pollfd fds[TERMINALS * PROCESS_WATCHES];

    assert_int_equal(process_pool_new(&pool, true, NULL), SY_E_OK);
    for (size_t i = 0; i < TERMINALS; i++) {
        terminal_start(&t[i], pool, w);
    }

    const bool has_broker = process_has_broker(t[0].process);
    /* ENOENT; else whatever the filter says. With the line's end: nothing comes behind it. */
    const char *answer = has_broker ? " 2>\r\n" : ">\r\n";
    const size_t shared = has_broker ? 1 : 0;

    /* Its terminal and its channel. */
    assert_int_equal(watch_all(t, TERMINALS, fds), (size_t)2 * TERMINALS + shared);
    for (size_t i = 0; i < TERMINALS; i++) {
        ask(t, TERMINALS, i, "one\n", answer);
    }

    /* Whoever has it goes: another has it at once, and is told. */
    for (size_t left = TERMINALS - 1; left > 0; left--) {
        const size_t which = holder(t, left + 1);
        const struct command gone = t[which];

        t[which] = t[left];

        const size_t n = watch_all(t, left, fds);

        process_free(gone.process);
        output_free(gone.chain);
        if (has_broker) {
            assert_int_equal(poll(fds, n, 20000), 1);
        }
        assert_int_equal(watch_all(t, left, fds), 2 * left + shared);
        for (size_t i = 0; i < left; i++) {
            ask(t, left, i, left > 1 ? "two\n" : "three\n",
                !has_broker ? ">\r\n"
                : left > 1  ? "<two 2>\r\n"
                            : "<three 2>\r\n");
        }
    }
    process_free(t[0].process);
    output_free(t[0].chain);
    process_pool_free(pool);
    assert_no_child_is_left();
}

static void
a_pool_dies_with_the_engine_at_any_moment(void **state)
{
    struct world *w = *state;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); // what it leaves comes to us
    for (int i = 0; i < 40; i++) {
        int ready[2];
        char byte = 0;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);

        pid_t engine = fork();

        if (engine == 0) {
            struct process_pool *pool = NULL;

            if (process_pool_new(&pool, true, NULL) != SY_E_OK ||
                fd_write_all(ready[1], "!", 1, NULL) != SY_E_OK) {
                _exit(1);
            }
            for (;;) {
                (void)run(pool, w, "setsid sleep 1000 & sleep 1000 & exit 0", NULL);
            }
        }
        fd_close(&ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        for (volatile int spin = 0; spin < i * 40000; spin++) {
        }
        assert_int_equal(kill(engine, SIGKILL), 0);
        assert_no_child_is_left();
        fd_close(&ready[0]);
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static bool
is_it(const void *arg, pid_t pid)
{
    return pid == *(const pid_t *)arg;
}

static void
an_ancestor_is_found_and_a_stranger_not(void **state)
{
    pid_t parent = getppid();
    pid_t stranger = INT32_MAX;

    (void)state;
    assert_int_equal(ancestry_find(getpid(), is_it, &parent), parent);
    assert_int_equal(ancestry_find(getpid(), is_it, &stranger), 0);
    assert_int_equal(ancestry_find(stranger, is_it, &parent), 0);
}

static enum sy_code
one_run(void *arg)
{
    struct world *w = arg;
    struct output_options options = {0};
    char *argv[] = {mem_unconst("/bin/true"), NULL};
    struct exec_env env = {
        .program = argv[0], .argv = argv, .envp = small_env, .cwd = w->dir, .sandbox = w->ready};
    struct process_pool *pool = NULL;
    struct process *p = NULL;
    struct output_chain *chain = output_new(&options);
    enum sy_code rc = chain != NULL ? process_pool_new(&pool, true, NULL) : SY_E_NOMEM;

    if (rc == SY_E_OK) {
        rc = process_pool_take(pool, &p, &w->base, NULL);
    }
    if (rc == SY_E_OK) {
        rc = process_go(p, &env, chain, NULL);
    }
    process_free(p);
    process_pool_free(pool);
    output_free(chain);
    return rc;
}

static void
each_failing_allocation_is_told(void **state)
{
    fault_run(one_run, *state);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_is_confined),
        cmocka_unit_test(a_socket_of_another_command_is_out_of_reach),
        cmocka_unit_test(a_template_that_was_killed_is_replaced),
        cmocka_unit_test(nothing_is_left_of_a_pool),
        cmocka_unit_test(terminals_of_a_pool_share_one_listener),
        cmocka_unit_test(a_pool_dies_with_the_engine_at_any_moment),
        cmocka_unit_test(an_ancestor_is_found_and_a_stranger_not),
        cmocka_unit_test(each_failing_allocation_is_told),
    };

    if (argc == 3 && str_eq(argv[1], "serve")) {
        _exit(serve(argv[2]));
    }
    if (argc == 3 && str_eq(argv[1], "connect")) {
        _exit(try_connect(argv[2]));
    }
    self = realpath(argv[0], NULL); // NOLINT: the test program's own path
    return cmocka_run_group_tests(tests, world_make, world_remove);
}
