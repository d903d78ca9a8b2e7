#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"

/*
 * A descriptor 0, 1 or 2 that is closed would be given to the next file that
 * we open, and output would go there. Fill the hole with something on which
 * the wrong direction fails loudly.
 */
static void
fill_standard_descriptors(void)
{
    struct pollfd fds[3] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};

    if (poll(fds, 3, 0) <= 0) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        if ((fds[i].revents & POLLNVAL) == 0) {
            continue;
        }

        /* To be inherited, as standard descriptors are; lint: allow open */
        int fd = open("/dev/null", (i == 0 ? O_WRONLY : O_RDONLY) | O_NOCTTY);

        if (fd >= 0 && fd != i) {
            (void)dup2(fd, i);
        }
    }
}

void
cli_start(void)
{
    /* Writing to a closed pipe, or beyond a limit of file sizes (setrlimit(2)), is an error to
     * answer, not a death. Commands get the default back. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    fill_standard_descriptors();
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigaction(SIGXFSZ, &ignore, NULL);
}

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#    define MADV_POPULATE_WRITE 23
#endif

#define STACK_BYTES ((size_t)32 * 1024)
/* As the allocator has taken it when main begins (M_TOP_PAD). */
#define HEAP_BYTES ((size_t)128 * 1024)

/* Of the linker: memory that begins as zeros (with the front's stock). */
extern char __bss_start[]; // NOLINT(bugprone-reserved-identifier,cert-dcl*): the linker's name
extern char end[];

static void
touch(const char *from, const char *to)
{
    /* 4 KiB, but on aarch64 it may be 16 or 64: from a place within a page nothing is touched. */
    const uintptr_t bytes = getauxval(AT_PAGESZ);
    const char *page = bytes != 0 ? from - (uintptr_t)from % bytes : from;

    /* Where the kernel can't, pages come one by one. */
    (void)madvise(mem_unconst(page), (size_t)((uintptr_t)to - (uintptr_t)page),
                  MADV_POPULATE_WRITE);
}

void
cli_touch_memory(void)
{
    const char *here = __builtin_frame_address(0);

    touch(__bss_start, end);
    touch(here - STACK_BYTES, here);
}

void
cli_touch_heap(void)
{
    /* It fails for no increment of 0 (sbrk(2)). */
    const char *heap_end = sbrk(0);

    touch(heap_end - HEAP_BYTES, heap_end);
}

const char *
cli_called_as(void)
{
    /* The kernel hands the name's address over as a number. */
    return (const char *)(uintptr_t)getauxval(AT_EXECFN); /* NOLINT(performance-no-int-to-ptr) */
}

int
cli_executable(char ret[LIMIT_PATH], bool *ret_by_proc)
{
    ssize_t n = readlink("/proc/self/exe", ret, LIMIT_PATH - 1);
    int failed = n < 0 ? errno : 0;

    *ret_by_proc = n >= 0;
    if (n >= 0) {
        ret[n] = '\0';
        return 0;
    }

    const char *called = cli_called_as();
    char path[PATH_MAX];

    if (called == NULL || realpath(called, path) == NULL) {
        return called == NULL ? failed : errno;
    }

    size_t len = strlen(path);

    if (len >= LIMIT_PATH) {
        return ENAMETOOLONG;
    }
    memcpy(ret, path, len + 1);
    return 0;
}

/* Beside the program, or where installed programs of ours are. */
static const char *
find_program(char ret[LIMIT_PATH], const char *name)
{
    static const char *const places[] = {"", "libexec/shellyard/", "../libexec/shellyard/"};
    char self[LIMIT_PATH];
    bool by_proc = true;

    if (cli_executable(self, &by_proc) == 0) {
        char *slash = strrchr(self, '/');

        if (slash != NULL) {
            *slash = '\0';
        }
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            if (snprintf(ret, LIMIT_PATH, "%s/%s%s", self, places[i], name) < (int)LIMIT_PATH &&
                access(ret, X_OK) == 0) {
                return ret;
            }
        }
    }
    (void)snprintf(ret, LIMIT_PATH, SY_LIBEXECDIR "/shellyard/%s", name);
    return access(ret, X_OK) == 0 ? ret : NULL;
}

const char *
cli_launcher_path(char ret[LIMIT_PATH])
{
    return find_program(ret, "shellyard-launch");
}

const char *
cli_http_path(char ret[LIMIT_PATH])
{
    return find_program(ret, "shellyard-http");
}
