#include "process/ancestry.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

#define WAY_MAX 1000
#define TRIES   16

/* The fourth field of /proc/PID/stat, 0 if it can't be read. */
static pid_t
parent_of(pid_t pid)
{
    char path[64];
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    uint64_t parent = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fd_read_file(path, &text, NULL) != SY_E_OK || text.len == 0) {
        return 0;
    }

    /* The name in brackets may hold anything: count from its last bracket. */
    char *at = strrchr(text.data, ')');

    if (at == NULL || strlen(at) < 5) {
        return 0;
    }
    at += 4;
    at[strcspn(at, " ")] = '\0';
    return str_to_u64(&parent, at, 1, INT32_MAX) ? (pid_t)parent : 0;
}

/* One try. *ret_changed: a parent has ended meanwhile, so look again. */
static pid_t
find_once(pid_t pid, bool (*is_wanted)(const void *arg, pid_t pid), const void *arg,
          bool *ret_changed)
{
    pid_t way[WAY_MAX];
    size_t n = 0;

    *ret_changed = false;
    way[n++] = pid;
    do {
        pid_t parent = parent_of(way[n - 1]);

        if (parent <= 1 || n == WAY_MAX) {
            /* Gone, or another's. */
            *ret_changed = parent == 0;
            return 0;
        }
        way[n++] = parent;
    } while (!is_wanted(arg, way[n - 1]));
    for (size_t i = n - 1; i > 0; i--) {
        if (parent_of(way[i - 1]) != way[i]) {
            *ret_changed = true;
            return 0;
        }
    }
    return way[n - 1];
}

/*
 * Up from the caller, then the same way down. The caller lives, so a parent that
 * it had before and has still has lived in between, and what was read of that
 * parent in between was its own; and so on, from below. The way down must
 * therefore begin at the top.
 */
pid_t
ancestry_find(pid_t pid, bool (*is_wanted)(const void *arg, pid_t pid), const void *arg)
{
    for (int i = 0; i < TRIES; i++) {
        bool has_changed = false;
        pid_t found = find_once(pid, is_wanted, arg, &has_changed);

        if (found != 0 || !has_changed) {
            return found;
        }
    }
    return 0;
}
