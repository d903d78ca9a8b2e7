/*
 * Uses much of one thing: `probe_limits ACT AMOUNT`. What it could get is said on
 * standard output; "done" is its last word when nothing was in its way.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Should a limit fail, the bomb ends by itself. */
#define BOMB_FORKS 4000U
#define BURNERS    4

static int
done(void)
{
    (void)puts("done");
    return fflush(stdout) == 0 ? 0 : 1;
}

static int
refused(const char *what)
{
    perror(what);
    return 1;
}

static int
act_memory(uint64_t mib)
{
    for (uint64_t i = 0; i < mib; i++) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED) {
            return refused("mmap");
        }
        memset(p, 1, 1 << 20);
    }
    return done();
}

/* Many that share the same pages do not use more memory than one. */
static int
act_shared(uint64_t mib)
{
    char *p = malloc((size_t)mib << 20);
    pid_t pids[16];

    if (p == NULL) {
        return refused("malloc");
    }
    memset(p, 1, (size_t)mib << 20);
    for (int i = 0; i < 16; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            volatile char sum = 0;

            for (size_t at = 0; at < (size_t)mib << 20; at += 4096) {
                sum = (char)(sum + p[at]);
            }
            (void)poll(NULL, 0, 400); /* several looks long */
            _exit(0);
        }
    }
    for (int i = 0; i < 16; i++) {
        (void)waitpid(pids[i], NULL, 0);
    }
    return done();
}

static int
act_processes(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            return refused("fork");
        }
        if (pid == 0) {
            (void)poll(NULL, 0, 700);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    return done();
}

static int
act_bomb(uint64_t unused)
{
    unsigned *forks =
        mmap(NULL, sizeof(*forks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)unused;
    if (forks == MAP_FAILED) {
        return refused("mmap");
    }
    while (__atomic_fetch_add(forks, 1, __ATOMIC_RELAXED) < BOMB_FORKS) {
        if (fork() < 0) {
            /* Tells who started us that the limit was met. */
            (void)close(open("limits-met", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        }
    }
    (void)sleep(60);
    return 0;
}

static int
act_file(uint64_t mib)
{
    static char block[1 << 20];
    int fd = open("limits-probe", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0) {
        return refused("open");
    }
    (void)unlink("limits-probe");
    for (uint64_t i = 0; i < mib; i++) {
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block)) {
            return refused("write");
        }
    }
    return done();
}

/* A hole counts as well. */
static int
act_sparse(uint64_t mib)
{
    int fd = open("limits-probe", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0) {
        return refused("open");
    }
    (void)unlink("limits-probe");
    if (ftruncate(fd, (off_t)mib << 20) != 0) {
        return refused("ftruncate");
    }
    return done();
}

static int
act_files(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) {
            return refused("open");
        }
    }
    return done();
}

static uint64_t
cpu_ms(void)
{
    return (uint64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

static int
act_cpu(uint64_t ms)
{
    while (cpu_ms() < ms) {
    }
    return done();
}

/* Several at a time, so that none uses as much as all. */
static int
act_cpus(uint64_t ms)
{
    for (int i = 1; i < BURNERS; i++) {
        if (fork() == 0) {
            while (cpu_ms() < ms) {
            }
            _exit(0);
        }
    }
    while (cpu_ms() < ms) {
    }
    while (waitpid(-1, NULL, 0) > 0) {
    }
    return done();
}

static int
act_output(uint64_t kib)
{
    static char block[1024];

    memset(block, 'x', sizeof(block));
    block[sizeof(block) - 1] = '\n';
    for (uint64_t i = 0; i < kib; i++) {
        if (fwrite(block, sizeof(block), 1, stdout) != 1) {
            return refused("write");
        }
    }
    return done();
}

static int
run(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*act)(uint64_t amount);
    } acts[] = {
        {"memory",    act_memory   },
        {"shared",    act_shared   },
        {"processes", act_processes},
        {"bomb",      act_bomb     },
        {"file",      act_file     },
        {"sparse",    act_sparse   },
        {"files",     act_files    },
        {"cpu",       act_cpu      },
        {"cpus",      act_cpus     },
        {"output",    act_output   },
    };

    for (size_t i = 0; argc == 3 && i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (strcmp(argv[1], acts[i].name) == 0) {
            return acts[i].act(strtoull(argv[2], NULL, 10));
        }
    }
    (void)fprintf(stderr, "usage: probe_limits ACT AMOUNT\n");
    return 2;
}

int
main(int argc, char **argv)
{
    int status = run(argc, argv);

    (void)fflush(stdout);
    _exit(status); /* a leak checker would want ptrace, which is among the refused */
}
