#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <linux/netlink.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "process/listener.h"
#include "process/process.h"
#include "sandbox/sandbox.h"

#define SECOND_NS 1000000000ULL

static char *probe; /* absolute */

struct world {
    char base[256]; /* with a workspace W, and O outside of it */
    char cwd[300];
    struct sandbox_policy policy;
    struct sandbox_caps caps;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
    struct process_gate *gate;  /* of the next act; NULL: none */
    struct denial_list denials; /* of the last one with a gate */
};

static void
prepare(struct world *w, bool has_network)
{
    sandbox_ready_free(w->ready);
    sandbox_plan_free(w->plan);
    w->ready = NULL;
    w->plan = NULL;
    w->policy.has_network = has_network;
    assert_int_equal(sandbox_plan_new(&w->plan, &w->policy, &w->caps, NULL), SY_E_OK);
    assert_int_equal(sandbox_ready_new(&w->ready, w->plan, NULL), SY_E_OK);
}

static int
setup(void **state)
{
    struct world *w = mem_alloc_zero(1, sizeof(*w));
    char template[] = "/tmp/broker-test-XXXXXX"; /* short: a socket's name has 107 bytes */
    char outside[300];

    assert_non_null(w);
    assert_non_null(mkdtemp(template));
    (void)snprintf(w->base, sizeof(w->base), "%s", template);
    (void)snprintf(w->cwd, sizeof(w->cwd), "%s/W", w->base);
    (void)snprintf(outside, sizeof(outside), "%s/O", w->base);
    assert_int_equal(mkdir(w->cwd, 0755), 0);
    assert_int_equal(mkdir(outside, 0755), 0);
    w->policy = (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE,
        .cwd = mem_strdup(w->cwd),
        .excludes_slash_tmp = true,
    };
    sandbox_probe(&w->caps);
    assert_true(w->caps.has_seccomp_notify);
    prepare(w, false);
    *state = w;
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
teardown(void **state)
{
    struct world *w = *state;

    sandbox_ready_free(w->ready);
    sandbox_plan_free(w->plan);
    sandbox_policy_fini(&w->policy);
    (void)nftw(w->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(w);
    return 0;
}

/* Drives it to its end, or until it waits for so many things; returns how long the longest step
 * took. */
static uint64_t
drive_until(struct process *p, size_t n_watches)
{
    struct sy_error err = {0};
    uint64_t give_up_ns = clock_mono_ns() + 60 * SECOND_NS;
    uint64_t longest_ns = 0;

    for (;;) {
        struct process_watch watches[PROCESS_WATCHES];
        struct pollfd fds[PROCESS_WATCHES];
        bool is_done = false;
        uint64_t now = clock_mono_ns();

        assert_int_equal(process_step(p, now, &is_done, &err), SY_E_OK);

        uint64_t took_ns = clock_mono_ns() - now;
        size_t n = process_watches(p, watches);

        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        if (is_done || n == n_watches) {
            return longest_ns;
        }
        assert_true(now < give_up_ns);

        uint64_t wake = process_deadline_ns(p);

        wake = wake < give_up_ns ? wake : give_up_ns;
        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        poll(fds, (nfds_t)n, wake > now ? (int)((wake - now) / 1000000) + 1 : 0);
    }
}

/* The exit code of one act of the probe. */
static int
act_timed(const struct world *w, const char *name, const char *one, const char *two,
          uint64_t *ret_longest_ns)
{
    struct output_options options = {0};
    struct output_chain *chain = output_new(&options);
    char *argv[] = {probe, mem_unconst(name), mem_unconst(one), mem_unconst(two), NULL};
    char *envp[] = {NULL};
    struct exec_env env = {.program = probe,
                           .argv = argv,
                           .envp = envp,
                           .cwd = w->cwd,
                           .sandbox = w->ready,
                           .plan = w->gate != NULL ? w->plan : NULL,
                           .gate = w->gate};
    struct process *p = NULL;
    struct sy_error err = {0};

    assert_non_null(chain);
    assert_int_equal(process_start(&p, &env, chain, &err), SY_E_OK);
    *ret_longest_ns = drive_until(p, SIZE_MAX);
    assert_int_equal(process_result(p)->outcome, PROCESS_EXITED);

    int code = process_result(p)->exit_code;

    if (w->gate != NULL) {
        denial_list_fini(mem_unconst(&w->denials));
        process_take_denials(p, mem_unconst(&w->denials));
    }
    process_free(p);
    output_free(chain);
    return code;
}

static int
act(const struct world *w, const char *name, const char *one, const char *two)
{
    uint64_t longest_ns;

    return act_timed(w, name, one, two, &longest_ns);
}

/* Listens in this process, so outside every sandbox. */
static int
listen_outside(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && n < sizeof(a.sun_path));
    memcpy(a.sun_path, name, n);
    if (name[0] == '@') {
        a.sun_path[0] = '\0';
    }
    assert_int_equal(
        bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
        0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static bool
somebody_came(int fd)
{
    struct pollfd came = {.fd = fd, .events = POLLIN};

    return poll(&came, 1, 0) == 1;
}

static void
a_command_reaches_its_own_sockets(void **state)
{
    const struct world *w = *state;
    char absolute[400];
    char abstract[64];

    (void)snprintf(absolute, sizeof(absolute), "%s/absolute", w->cwd);
    (void)snprintf(abstract, sizeof(abstract), "@broker-own-%d", (int)getpid());
    assert_int_equal(act(w, "stream", "relative", NULL), 0);
    assert_int_equal(act(w, "seqpacket", "packets", NULL), 0);
    assert_int_equal(act(w, "stream", absolute, NULL), 0);
    assert_int_equal(act(w, "stream", "../W/dots", NULL), 0);
    assert_int_equal(act(w, "stream", abstract, NULL), 0);
    assert_int_equal(act(w, "orphan", "orphan", NULL), 0);
}

static void
an_idle_commands_listener_rests_and_comes_again(void **state)
{
    const struct world *w = *state;
    struct output_options options = {0};
    struct output_chain *chain = output_new(&options);
    char script[] = "\"$0\" stream first && read -r line && \"$0\" stream second";
    char *argv[] = {mem_unconst("bash"), mem_unconst("-c"), script, probe, NULL};
    struct exec_env env = {
        .program = "/bin/bash", .argv = argv, .envp = argv + 4, .cwd = w->cwd, .sandbox = w->ready};
    const struct sandbox_base base = process_base(&env);
    const struct process_input_way way = {.kind = INPUT_PIPE};
    struct process *p = NULL;

    assert_int_equal(process_prepare_input(&p, &base, &way, NULL), SY_E_OK);
    assert_int_equal(process_go(p, &env, chain, NULL), SY_E_OK);
    /* Both streams and the channel; with the listener one more. */
    (void)drive_until(p, 4);
    (void)drive_until(p, 3);
    /* Closed with the step after that: an epoll must have let go of it before. */
    assert_int_equal(process_deadline_ns(p), 0);
    (void)drive_until(p, 3);
    assert_int_equal(process_deadline_ns(p), UINT64_MAX);
    assert_int_equal(process_write(p, "on\n", 3, NULL), SY_E_OK);
    (void)drive_until(p, 4);
    (void)drive_until(p, SIZE_MAX);
    assert_int_equal(process_result(p)->exit_code, 0);
    process_free(p);
    output_free(chain);
}

static void
a_socket_of_another_process_is_out_of_reach(void **state)
{
    struct world *w = *state;
    char names[3][400];

    (void)snprintf(names[0], sizeof(names[0]), "%s/host", w->cwd);
    (void)snprintf(names[1], sizeof(names[1]), "%s/O/host", w->base);
    (void)snprintf(names[2], sizeof(names[2]), "@broker-host-%d", (int)getpid());
    for (size_t i = 0; i < 3; i++) {
        SY_FD fd = listen_outside(names[i]);
        int code = act(w, "connect", names[i], NULL);

        assert_int_equal(code, i == 2 ? EPERM : EACCES);
        assert_false(somebody_came(fd));
        if (i < 2) {
            /* The control: nothing but the network's being off holds it. */
            prepare(w, true);
            code = act(w, "connect", names[i], NULL);
            prepare(w, false);
            assert_int_equal(code, w->caps.landlock_abi >= 9 && i == 1 ? EACCES : 0);
            assert_true(code != 0 || somebody_came(fd));
        }
    }
}

static void
a_link_to_a_foreign_socket_leads_nowhere(void **state)
{
    const struct world *w = *state;
    char name[400];
    char link_name[400];

    (void)snprintf(name, sizeof(name), "%s/O/host", w->base);

    SY_FD fd = listen_outside(name);

    (void)snprintf(link_name, sizeof(link_name), "%s/soft", w->cwd);
    assert_int_equal(symlink(name, link_name), 0);
    assert_int_equal(act(w, "connect", "soft", NULL), EACCES);
    (void)snprintf(link_name, sizeof(link_name), "%s/hard", w->cwd);
    assert_int_equal(link(name, link_name), 0);
    assert_int_equal(act(w, "connect", "hard", NULL), EACCES);
    assert_false(somebody_came(fd));
}

static void
what_is_exchanged_during_the_call_leads_nowhere(void **state)
{
    const struct world *w = *state;
    char name[400];

    (void)snprintf(name, sizeof(name), "%s/O/host", w->base);

    SY_FD fd = listen_outside(name);

    assert_int_equal(act(w, "exchange", "own", name), 0);
    assert_false(somebody_came(fd));
}

static void
names_that_are_no_socket_give_the_kernels_errno(void **state)
{
    const struct world *w = *state;

    assert_int_equal(act(w, "connect", "missing", NULL), ENOENT);
    assert_int_equal(act(w, "connect", "/etc/passwd", NULL), ECONNREFUSED);
    assert_int_equal(act(w, "connect", "/proc/self/cwd/x", NULL), ELOOP);
}

static void
an_address_of_any_length_is_survived(void **state)
{
    static const char *const wrong[] = {"-1", "0", "1", "2", "111", "127", "128", "129", "4096"};
    const struct world *w = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(act(w, "long", wrong[i], NULL), EINVAL);
    }
    assert_int_equal(act(w, "long", "3", NULL), ENOENT);
    assert_int_equal(act(w, "long", "110", NULL), ENOENT);
}

static void
a_crowd_signals_and_kills_disturb_nobody(void **state)
{
    const struct world *w = *state;

    assert_int_equal(act(w, "parallel", "crowd", NULL), 0);
    assert_int_equal(act(w, "signals", "signals", NULL), 0);
    assert_int_equal(act(w, "killed", "killed", NULL), 0);
}

static void
a_full_backlog_gives_eagain_in_bounded_time(void **state)
{
    assert_int_equal(act(*state, "backlog", "full", NULL), 0);
}

/* The time limit of the caller's socket is no wall: the caller can lift it. */
static void
no_queue_stops_the_engine(void **state)
{
    uint64_t longest_ns = 0;

    assert_int_equal(act_timed(*state, "insist", "full", NULL, &longest_ns), 0);
    assert_true(longest_ns < SECOND_NS);
}

static void
no_number_of_threads_and_descriptors_stops_the_engine(void **state)
{
    const struct world *w = *state;
    uint64_t longest_ns = 0;
    char name[400];

    (void)snprintf(name, sizeof(name), "%s/O/host", w->base);

    SY_FD fd = listen_outside(name);

    assert_int_equal(act_timed(w, "many", name, NULL, &longest_ns), EACCES);
    assert_true(longest_ns < 2 * SECOND_NS / 5);
    assert_false(somebody_came(fd));
}

static void
a_dead_servers_name_refuses_as_the_kernel_does(void **state)
{
    assert_int_equal(act(*state, "dead", "dead", NULL), ECONNREFUSED);
}

/* The engine of root may look into every directory, the command may not: what
 * is in there is none of its business. */
static void
a_closed_directory_tells_nothing(void **state)
{
    const struct world *w = *state;
    char closed[400];
    char inside[500];
    struct stat st;

    (void)snprintf(closed, sizeof(closed), "%s/O/closed", w->base);
    (void)snprintf(inside, sizeof(inside), "%s/file", closed);
    assert_int_equal(mkdir(closed, 0755), 0);

    SY_FD fd = open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(act(w, "connect", inside, NULL), ECONNREFUSED); /* no socket: the control */
    if (geteuid() == 0) {
        assert_int_equal(chown(closed, 65534, 65534), 0);
        assert_int_equal(chmod(closed, 0700), 0);
        assert_int_equal(stat(inside, &st), 0); /* we may look */
    } else {
        assert_int_equal(chmod(closed, 0), 0);
    }
    assert_int_equal(act(w, "connect", inside, NULL), EACCES);
    (void)snprintf(inside, sizeof(inside), "%s/missing", closed);
    assert_int_equal(act(w, "connect", inside, NULL), EACCES);
    assert_int_equal(chmod(closed, 0700), 0);
}

/* A number that comes again after 2^32 sockets makes no stranger ours. */
static void
a_sockets_number_alone_proves_nothing(void **state)
{
    const struct world *w = *state;
    uint64_t until_ns = clock_mono_ns() + 10 * SECOND_NS;
    char name[400];
    struct listener l;

    (void)snprintf(name, sizeof(name), "@broker-own-%d", (int)getpid());

    SY_FD fd = listen_outside(name);
    struct listener_key key = {.name = name, .name_length = strlen(name)};

    (void)w;
    assert_true(fd >= 0); // it listens to the end of the test
    name[0] = '\0';
    assert_int_equal(listener_find(&key, -1, until_ns, &l), LISTENER_ONE);

    SY_FD held = listener_hold(&l, getpid(), 1, until_ns);

    assert_true(held >= 0);
    l.cookie ^= 1;
    assert_int_equal(listener_hold(&l, getpid(), 1, until_ns), -1);
}

/* Half of a file's number is known to all; the whole file only to those who may ask. */
static void
a_listener_is_told_from_a_file_that_looks_alike(void **state)
{
    const struct world *w = *state;
    char names[2][400];
    int listeners[2];

    (void)snprintf(names[0], sizeof(names[0]), "%s/one", w->cwd);
    (void)snprintf(names[1], sizeof(names[1]), "%s/two", w->cwd);
    listeners[0] = listen_outside(names[0]);
    listeners[1] = listen_outside(names[1]);

    SY_FD file = open(names[0], O_PATH | O_CLOEXEC);

    assert_true(listener_is_bound_to(listeners[0], file));
    assert_int_equal(listener_is_bound_to(listeners[1], file), geteuid() != 0);
    fd_close(&listeners[0]);
    fd_close(&listeners[1]);
}

static void
netlink_reaches_the_kernel_and_no_program(void **state)
{
    struct sockaddr_nl own = {.nl_family = AF_NETLINK};
    socklen_t size = sizeof(own);
    char port[16];
    SY_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    (void)snprintf(port, sizeof(port), "%u", own.nl_pid);
    assert_int_equal(act(*state, "netlink", "0", NULL), 0);
    assert_int_equal(act(*state, "netlink", port, NULL), EPERM);
}

static void
// NOLINTNEXTLINE(readability-non-const-parameter): a callback that may take it
count_connected(void *arg, int *fd)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof(a);

    /* A descriptor of the very socket, which has its port by now. */
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&a, &size), 0);
    ++*(int *)arg;
}

static int
listen_on_loopback(char port[16])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    (void)snprintf(port, 16, "%u", (unsigned)ntohs(a.sin_port));
    return fd;
}

static void
an_allow_list_reaches_the_gate_and_no_other_port(void **state)
{
    static const char *const acts[] = {"inet4", "inet6", "inetwait"};
    struct world *w = *state;
    int connected = 0;
    struct process_gate gate = {.on_connected = count_connected, .arg = &connected};
    char port[16];
    char other_port[16];
    SY_FD fd = listen_on_loopback(port);
    SY_FD other = listen_on_loopback(other_port);

    w->policy.network_allow.max = 4;
    assert_int_equal(strv_add(&w->policy.network_allow, "name.invalid"), SY_E_OK);
    prepare(w, false);
    gate.port = (uint16_t)strtoul(port, NULL, 10);
    for (size_t i = 0; i < 3; i++) {
        w->gate = &gate;
        assert_int_equal(act(w, acts[i], port, NULL), 0);
        assert_int_equal(connected, (int)i + 1);
        assert_true(somebody_came(fd));
        assert_int_equal(w->denials.n, 0);
        assert_int_equal(act(w, acts[i], other_port, NULL), EACCES);
        assert_int_equal(w->denials.n, 1);
        assert_int_equal(w->denials.v[0].layer, DENIAL_BROKER);
        assert_non_null(w->denials.v[0].fix);
        w->gate = NULL;
        assert_int_equal(act(w, acts[i], port, NULL), EACCES);
    }
    assert_int_equal(connected, 3);
    assert_false(somebody_came(other));
    prepare(w, true);
    assert_int_equal(act(w, "inet4", other_port, NULL), 0);
    assert_true(somebody_came(other));
    denial_list_fini(&w->denials);
}

static void
an_allow_list_has_no_server_but_on_unix_sockets(void **state)
{
    struct world *w = *state;
    struct process_gate gate = {.on_connected = count_connected, .port = 1};

    w->policy.network_allow.max = 4;
    assert_int_equal(strv_add(&w->policy.network_allow, "name.invalid"), SY_E_OK);
    prepare(w, false);
    w->gate = &gate;
    assert_int_equal(act(w, "serve", "", NULL), EACCES);
    assert_int_equal(w->denials.n, 1);
    assert_string_equal(w->denials.v[0].operation, "listen");
    assert_int_equal(act(w, "stream", "relative", NULL), 0);
    assert_int_equal(w->denials.n, 0);
    prepare(w, true);
    assert_int_equal(act(w, "serve", "", NULL), 0);
    denial_list_fini(&w->denials);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define BROKER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        BROKER_TEST(a_command_reaches_its_own_sockets),
        BROKER_TEST(an_idle_commands_listener_rests_and_comes_again),
        BROKER_TEST(a_socket_of_another_process_is_out_of_reach),
        BROKER_TEST(a_link_to_a_foreign_socket_leads_nowhere),
        BROKER_TEST(what_is_exchanged_during_the_call_leads_nowhere),
        BROKER_TEST(names_that_are_no_socket_give_the_kernels_errno),
        BROKER_TEST(an_address_of_any_length_is_survived),
        BROKER_TEST(a_crowd_signals_and_kills_disturb_nobody),
        BROKER_TEST(a_full_backlog_gives_eagain_in_bounded_time),
        BROKER_TEST(no_queue_stops_the_engine),
        BROKER_TEST(no_number_of_threads_and_descriptors_stops_the_engine),
        BROKER_TEST(a_dead_servers_name_refuses_as_the_kernel_does),
        BROKER_TEST(a_closed_directory_tells_nothing),
        BROKER_TEST(a_sockets_number_alone_proves_nothing),
        BROKER_TEST(a_listener_is_told_from_a_file_that_looks_alike),
        BROKER_TEST(netlink_reaches_the_kernel_and_no_program),
        BROKER_TEST(an_allow_list_reaches_the_gate_and_no_other_port),
        BROKER_TEST(an_allow_list_has_no_server_but_on_unix_sockets),
    };
    static char absolute[4096];

    probe = argc == 2 ? realpath(argv[1], absolute) : NULL;
    if (probe == NULL) {
        (void)fprintf(stderr, "usage: test_broker PROBE\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
