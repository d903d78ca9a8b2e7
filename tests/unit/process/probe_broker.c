/*
 * What a sandboxed command may try with connect(2). Prints nothing; the exit
 * code is the errno of the act, 0 for success, or 200 and above for a failure
 * of the probe's own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/netlink.h>

#define WRONG   200
#define THREADS 100

static socklen_t
fill(struct sockaddr_un *a, const char *name)
{
    size_t n = strlen(name);

    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n >= sizeof(a->sun_path)) {
        exit(WRONG);
    }
    memcpy(a->sun_path, name, n);
    if (name[0] == '@') {
        a->sun_path[0] = '\0';
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    }
    return (socklen_t)sizeof(*a);
}

static int
new_socket(int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        exit(WRONG + 1);
    }
    return fd;
}

static int
listen_at(const char *name, int type, int backlog)
{
    struct sockaddr_un a;
    socklen_t n = fill(&a, name);
    int fd = new_socket(type);

    if (bind(fd, (struct sockaddr *)&a, n) != 0 || listen(fd, backlog) != 0) {
        exit(WRONG + 2);
    }
    return fd;
}

/* Connects fd; 0 or errno. */
static int
reach(int fd, const char *name)
{
    struct sockaddr_un a;
    socklen_t n = fill(&a, name);

    return connect(fd, (struct sockaddr *)&a, n) == 0 ? 0 : errno;
}

/* Its port. */
static uint16_t
port_of(const char *text)
{
    return htons((uint16_t)strtoul(text, NULL, 10));
}

static int
connect_to(int type, const struct sockaddr *to, socklen_t size)
{
    int fd = socket(to->sa_family, type | SOCK_CLOEXEC, 0);
    int sys = fd < 0 ? WRONG + 1 : connect(fd, to, size) == 0 ? 0 : errno;

    close(fd);
    return sys;
}

static int
connect_inet4(const char *port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = port_of(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return connect_to(SOCK_STREAM, (const struct sockaddr *)&to, sizeof(to));
}

static int
connect_nonblocking(const char *port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = port_of(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int sys = 0;
    socklen_t size = sizeof(sys);

    if (fd < 0 ||
        (connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0 && errno != EINPROGRESS)) {
        return fd < 0 ? WRONG + 1 : errno;
    }
    if (poll(&ready, 1, 10000) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &size) != 0) {
        return WRONG + 2;
    }
    close(fd);
    return sys;
}

/* As IPv6 carries IPv4. */
static int
connect_inet6(const char *port)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = port_of(port)};

    if (inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr) != 1) {
        return WRONG + 3;
    }
    return connect_to(SOCK_STREAM, (const struct sockaddr *)&to, sizeof(to));
}

static int
serve_inet(const char *unused)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int sys = fd < 0 ? WRONG + 1 : listen(fd, 1) == 0 ? 0 : errno;

    (void)unused;
    close(fd);
    return sys;
}

static int
connect_once(const char *name)
{
    int fd = new_socket(SOCK_STREAM);
    int sys = reach(fd, name);

    close(fd);
    return sys;
}

/* The ways of one process to talk with itself. */
static int
talk_with_itself(const char *name, int type)
{
    int server = listen_at(name, type, 8);
    int client = new_socket(type);
    int sys = reach(client, name);
    char got[4] = "";

    if (sys != 0) {
        return sys;
    }

    int peer = accept(server, NULL, NULL);

    if (peer < 0 || write(client, "hi", 3) != 3 || read(peer, got, sizeof(got)) != 3 ||
        strcmp(got, "hi") != 0) {
        return WRONG + 3;
    }
    return reach(client, name) == EISCONN ? 0 : WRONG + 4;
}

/* A server in a session of its own, whose parent is gone: an orphan. */
static int
talk_with_an_orphan(const char *name)
{
    int ready[2];
    char byte = 0;

    if (pipe(ready) != 0) {
        return WRONG + 5;
    }

    pid_t pid = fork();

    if (pid == 0) {
        if (fork() != 0) {
            _exit(0);
        }
        setsid();

        int server = listen_at(name, SOCK_STREAM, 8);

        (void)!write(ready[1], "r", 1);
        _exit(accept(server, NULL, NULL) < 0);
    }
    (void)waitpid(pid, NULL, 0);
    if (read(ready[0], &byte, 1) != 1) {
        return WRONG + 6;
    }
    return connect_once(name);
}

static int
fill_the_backlog(const char *name)
{
    (void)listen_at(name, SOCK_STREAM, 0);
    for (int i = 0; i < 4; i++) {
        int fd = new_socket(SOCK_STREAM | SOCK_NONBLOCK);
        int sys = reach(fd, name);

        if (sys == EAGAIN) {
            /* Blocking ones wait, but not for ever. */
            return connect_once(name) == EAGAIN ? 0 : WRONG + 7;
        }
        if (sys != 0) {
            return sys;
        }
    }
    return WRONG + 8;
}

static int contested_fd;
static atomic_bool is_over;

static void *
wait_for_ever(void *arg)
{
    struct timeval never = {0};

    (void)arg;
    while (!is_over) {
        (void)setsockopt(contested_fd, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof(never));
    }
    return NULL;
}

/* Somebody lifts the socket's time limit again and again while it is connected
 * to a queue that is full for good. */
static int
insist_on_waiting(const char *name)
{
    pthread_t thread;

    (void)listen_at(name, SOCK_STREAM, 0);
    while (reach(new_socket(SOCK_STREAM | SOCK_NONBLOCK), name) == 0) {
    }
    contested_fd = new_socket(SOCK_STREAM);
    if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) {
        return WRONG + 16;
    }
    for (int i = 0; i < 10; i++) {
        int sys = reach(contested_fd, name);

        if (sys != EAGAIN) {
            return sys;
        }
    }
    is_over = true;
    pthread_join(thread, NULL);
    return 0;
}

/* The file of a server that is gone, and a name that nobody has. */
static int
knock_at_the_dead(const char *name)
{
    close(listen_at(name, SOCK_STREAM, 8));

    int sys = connect_once(name);

    return sys == ECONNREFUSED ? connect_once("@nobody-listens-at-this-name") : sys;
}

static atomic_int n_started;
static int release_pipe[2];

static void *
sit_there(void *arg)
{
    char byte;

    (void)arg;
    n_started++;
    (void)!read(release_pipe[0], &byte, 1);
    return NULL;
}

/* Takes long to look through: threads, and descriptors unless they are few. */
static int
fill_with_threads(void)
{
    pthread_attr_t small;
    int n = 0;

    if (pipe(release_pipe) != 0 || pthread_attr_init(&small) != 0 ||
        pthread_attr_setstacksize(&small, 16384) != 0) {
        exit(WRONG + 17);
    }
    while (n < 4000 && dup(0) >= 0) {
        n++;
    }
    n = 0;
    for (pthread_t t; n < 6000 && pthread_create(&t, &small, sit_there, NULL) == 0; n++) {
    }
    while (n_started < n) {
        (void)poll(NULL, 0, 1);
    }
    return n;
}

#define CROWD 2

static int
connect_from_a_crowd(const char *name)
{
    int ready[2];
    char byte;

    if (pipe(ready) != 0) {
        return WRONG + 19;
    }
    for (int i = 0; i < CROWD; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            return WRONG + 20;
        }
        if (pid == 0) {
            (void)fill_with_threads();
            (void)!write(ready[1], "r", 1);
            (void)pause();
        }
    }
    close(ready[1]);
    for (int i = 0; i < CROWD; i++) {
        (void)!read(ready[0], &byte, 1);
    }
    return connect_once(name);
}

static const char *shared_name;
static atomic_int n_failed;

static void *
connect_and_read(void *arg)
{
    int fd = new_socket(SOCK_STREAM);
    char byte = 0;

    (void)arg;
    if (reach(fd, shared_name) != 0 || read(fd, &byte, 1) != 1) {
        n_failed++;
    }
    close(fd);
    return NULL;
}

static int
connect_in_parallel(const char *name)
{
    pthread_t threads[THREADS];
    int server = listen_at(name, SOCK_STREAM, THREADS);

    shared_name = name;
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, connect_and_read, NULL) != 0) {
            return WRONG + 9;
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        int peer = accept(server, NULL, NULL);

        (void)!write(peer, "!", 1);
        close(peer);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return n_failed == 0 ? 0 : WRONG + 10;
}

static void
on_alarm(int n)
{
    (void)n;
}

static int
connect_under_signals(const char *name)
{
    struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}};
    int server = listen_at(name, SOCK_STREAM, 8);

    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 200; i++) {
        int sys = connect_once(name);

        if (sys != 0) {
            return sys;
        }
        close(accept(server, NULL, NULL));
    }
    return 0;
}

/* Callers that are killed in the middle do no harm to the next one. */
static int
kill_callers(const char *name)
{
    int server = listen_at(name, SOCK_STREAM, 8);

    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            for (;;) {
                (void)connect_once(name);
            }
        }
        for (volatile int spin = 0; spin < i * 10000; spin++) {
        }
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    while (close(accept(server, NULL, NULL)) == 0) {
    }
    return connect_once(name);
}

static int
connect_netlink(const char *port)
{
    struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = (uint32_t)strtoul(port, NULL, 10)};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? 0 : errno;
}

/* An address of any length, as no honest program gives it. */
static int
connect_long(const char *length)
{
    char bytes[4096];
    sa_family_t family = AF_UNIX;
    int fd = new_socket(SOCK_STREAM);

    memset(bytes, 'A', sizeof(bytes));
    memcpy(bytes, &family, sizeof(family));
    return connect(fd, (struct sockaddr *)(void *)bytes, (socklen_t)strtol(length, NULL, 10)) == 0
               ? 0
               : errno;
}

static struct sockaddr_un scribbled;
static struct sockaddr_un versions[2];
static const char *swapped[2];

static void *
scribble(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !is_over; i++) {
        memcpy(&scribbled, &versions[i % 2], sizeof(scribbled));
    }
    return NULL;
}

static void *
swap_links(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !is_over; i++) {
        (void)unlink("link.new");
        if (symlink(swapped[i % 2], "link.new") != 0 || rename("link.new", "link") != 0) {
            exit(WRONG + 11);
        }
    }
    return NULL;
}

/* Name and address change between own and foreign while connect(2) runs. */
static int
exchange(const char *own, const char *foreign)
{
    pthread_t threads[2];
    int server = listen_at(own, SOCK_STREAM, 8);
    int n_own = 0;
    int n_refused = 0;

    swapped[0] = own;
    swapped[1] = foreign;
    (void)fill(&versions[0], own);
    (void)fill(&versions[1], foreign);
    scribbled = versions[0];
    if (symlink(own, "link") != 0 || pthread_create(&threads[0], NULL, scribble, NULL) != 0 ||
        pthread_create(&threads[1], NULL, swap_links, NULL) != 0) {
        return WRONG + 12;
    }
    /* Until both were met often; the caller ends a probe that never is. */
    for (int i = 0; i < 600 || n_own == 0 || n_refused == 0; i++) {
        int fd = new_socket(SOCK_STREAM);
        int rc = i % 2 == 0 ? connect(fd, (struct sockaddr *)&scribbled, sizeof(scribbled))
                            : reach(fd, "link");

        n_own += rc == 0;
        n_refused += rc != 0;
        if (rc == 0) {
            struct pollfd came = {.fd = server, .events = POLLIN};

            if (poll(&came, 1, 0) != 1) {
                return WRONG + 13; /* reached somebody else */
            }
            close(accept(server, NULL, NULL));
        }
        close(fd);
    }
    is_over = true;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}

static int
run(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*act)(const char *);
    } acts[] = {
        {"connect",  connect_once         },
        {"inet4",    connect_inet4        },
        {"inet6",    connect_inet6        },
        {"inetwait", connect_nonblocking  },
        {"serve",    serve_inet           },
        {"orphan",   talk_with_an_orphan  },
        {"backlog",  fill_the_backlog     },
        {"insist",   insist_on_waiting    },
        {"dead",     knock_at_the_dead    },
        {"many",     connect_from_a_crowd },
        {"parallel", connect_in_parallel  },
        {"signals",  connect_under_signals},
        {"killed",   kill_callers         },
        {"netlink",  connect_netlink      },
        {"long",     connect_long         },
    };

    if (argc == 4 && strcmp(argv[1], "exchange") == 0) {
        return exchange(argv[2], argv[3]);
    }
    if (argc != 3) {
        return WRONG + 14;
    }
    if (strcmp(argv[1], "stream") == 0 || strcmp(argv[1], "seqpacket") == 0) {
        return talk_with_itself(argv[2], argv[1][1] == 't' ? SOCK_STREAM : SOCK_SEQPACKET);
    }
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (strcmp(argv[1], acts[i].name) == 0) {
            return acts[i].act(argv[2]);
        }
    }
    return WRONG + 15;
}

int
main(int argc, char **argv)
{
    int status = run(argc, argv);

    (void)fflush(stdout);
    _exit(status); /* a leak checker would want ptrace, which is among the refused */
}
