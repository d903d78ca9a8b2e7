#include "process/keeper_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "sandbox/linux/raw_syscall.h"

/* Writes "<prefix><number><suffix>" with its NUL; returns its length. */
RAW_CODE static size_t
put_path(char *out, const char *prefix, pid_t number, const char *suffix)
{
    char digits[12];
    size_t n = 0;
    size_t len = 0;

    while (*prefix != '\0') {
        out[len++] = *prefix++;
    }
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (n > 0) {
        out[len++] = digits[--n];
    }
    while (*suffix != '\0') {
        out[len++] = *suffix++;
    }
    out[len] = '\0';
    return len;
}

/*
 * listener.c walks the same list from the engine, with the C library: two walks
 * on purpose. Returns false when it can't be read (no /proc, or a kernel
 * without CONFIG_PROC_CHILDREN).
 */
RAW_CODE static bool
kill_listed_children(pid_t self)
{
    char path[64];
    char text[1024];
    size_t at = put_path(path, "/proc/", self, "/task/");

    put_path(path + at, "", self, "/children");

    int fd = (int)sy_raw4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0) {
        return false;
    }

    pid_t number = 0;

    for (;;) {
        long got = sy_raw3(SYS_read, fd, (long)text, sizeof(text));

        if (got <= 0) {
            break;
        }
        for (long i = 0; i < got; i++) {
            /* The kernel filled it. NOLINTNEXTLINE(clang-analyzer-core.*) */
            if (text[i] >= '0' && text[i] <= '9') {
                number = number * 10 + (text[i] - '0');
            } else if (number > 0) {
                sy_raw2(SYS_kill, number, SIGKILL);
                number = 0;
            }
        }
    }
    sy_raw1(SYS_close, fd);
    return true;
}

struct kernel_dirent {
    unsigned long long inode;
    long long offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Parent of a process by the fourth field of /proc/PID/stat, 0 if unknown. */
RAW_CODE static pid_t
parent_of(pid_t pid)
{
    char path[64];
    char text[512];

    put_path(path, "/proc/", pid, "/stat");

    int fd = (int)sy_raw4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0) {
        return 0;
    }

    long got = sy_raw3(SYS_read, fd, (long)text, sizeof(text));
    long at = 0;
    pid_t parent = 0;

    sy_raw1(SYS_close, fd);
    /* The name in brackets may hold anything: count from its last bracket. */
    for (long i = 0; i < got; i++) {
        /* The kernel filled it. NOLINTNEXTLINE(clang-analyzer-core.*) */
        if (text[i] == ')') {
            at = i;
        }
    }
    for (at += 4; at > 4 && at < got && text[at] >= '0' && text[at] <= '9'; at++) {
        parent = parent * 10 + (text[at] - '0');
    }
    return parent;
}

/* The same by a walk over /proc. */
RAW_CODE static void
kill_scanned_children(pid_t self)
{
    _Alignas(struct kernel_dirent) char entries[2048];
    int fd =
        (int)sy_raw4(SYS_openat, AT_FDCWD, (long)"/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0) {
        return;
    }
    for (;;) {
        long got = sy_raw3(SYS_getdents64, fd, (long)entries, sizeof(entries));

        if (got <= 0) {
            break;
        }
        for (long at = 0; at < got;) {
            const struct kernel_dirent *entry = (const void *)(entries + at);
            pid_t pid = 0;

            /* The kernel filled it. NOLINTNEXTLINE(clang-analyzer-core.*) */
            for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++) {
                pid = pid * 10 + (*c - '0');
            }
            if (pid > 1 && parent_of(pid) == self) {
                sy_raw2(SYS_kill, pid, SIGKILL);
            }
            at += entry->length;
        }
    }
    sy_raw1(SYS_close, fd);
}

RAW_CODE void
keeper_kill_children(pid_t self)
{
    if (!kill_listed_children(self)) {
        kill_scanned_children(self);
    }
}
