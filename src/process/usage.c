/* How much a tree uses. Looked at only while a limit needs it. */
#include "process/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

/* Descendants that are known and still to be looked at. */
struct pids {
    pid_t *v;
    size_t n;
    size_t room;
};

static bool
add_pid(struct pids *p, pid_t pid)
{
    if (p->n == p->room) {
        size_t room = p->room == 0 ? 64 : p->room * 2;
        pid_t *grown = room > USAGE_PROCESSES ? NULL : mem_realloc(p->v, room * sizeof(*grown));

        if (grown == NULL) {
            return false; /* what is left out is seen at the next look, or never counts */
        }
        p->v = grown;
        p->room = room;
    }
    p->v[p->n++] = pid;
    return true;
}

static void
add_children(struct pids *p, pid_t pid, const char *tid)
{
    char path[300];
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)1 << 20};

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, tid);
    if (fd_read_file(path, &text, NULL) != SY_E_OK || text.len == 0) {
        return;
    }
    for (char *word = text.data; *word != '\0';) {
        uint64_t child = 0;
        size_t n = strcspn(word, " ");
        bool is_last = word[n] == '\0';

        word[n] = '\0';
        if (str_to_u64(&child, word, 1, INT32_MAX) && !add_pid(p, (pid_t)child)) {
            return;
        }
        word += is_last ? n : n + 1;
    }
}

static void
add_descendants(struct pids *p, pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);

    DIR *tasks = opendir(path);

    if (tasks == NULL) {
        return;
    }
    for (struct dirent *e = readdir(tasks); e != NULL; e = readdir(tasks)) {
        if (e->d_name[0] != '.') {
            add_children(p, pid, e->d_name);
        }
    }
    closedir(tasks);
}

/* Fields of /proc/PID/stat, counted from 3, the first behind the name. */
enum {
    STAT_UTIME = 14,
    STAT_STIME = 15,
    STAT_CUTIME = 16,
    STAT_CSTIME = 17,
    STAT_THREADS = 20,
    STAT_RSS = 24,
    STAT_FIELDS
};

/* False if the process is gone. */
static bool
read_stat(pid_t pid, uint64_t ret[STAT_FIELDS])
{
    char path[64];
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};

    memset(ret, 0, STAT_FIELDS * sizeof(*ret));
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fd_read_file(path, &text, NULL) != SY_E_OK || text.len == 0) {
        return false;
    }

    /* The name in brackets may hold anything: count from its last bracket. */
    char *at = strrchr(text.data, ')');

    if (at == NULL || strlen(at) < 2) {
        return false;
    }
    at += 2;
    for (int field = 3; field < STAT_FIELDS && *at != '\0'; field++) {
        size_t n = strcspn(at, " ");
        bool is_last = at[n] == '\0';

        at[n] = '\0';
        (void)!str_to_u64(&ret[field], at, 0, UINT64_MAX);
        at += is_last ? n : n + 1;
    }
    return true;
}

/* Bytes of "Pss:", by which each page is divided among those who map it. False
 * where that can't be read: a program that hides from its own user. */
static bool
read_proportional(pid_t pid, uint64_t *ret_bytes)
{
    static const char word[] = "\nPss:";
    char path[64];
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    if (fd_read_file(path, &text, NULL) != SY_E_OK || text.len == 0) {
        return false;
    }

    char *at = strstr(text.data, word);

    if (at == NULL) {
        return false;
    }
    at += sizeof(word) - 1;
    at += strspn(at, " \t");
    at[strcspn(at, " \n")] = '\0';

    uint64_t kib = 0;

    if (!str_to_u64(&kib, at, 0, UINT64_MAX / 1024)) {
        return false;
    }
    *ret_bytes = kib * 1024;
    return true;
}

static uint64_t
ticks_to_ms(uint64_t ticks)
{
    long per_second = sysconf(_SC_CLK_TCK);

    return ticks * 1000 / (uint64_t)(per_second > 0 ? per_second : 100);
}

bool
usage_is_available(void)
{
    return access("/proc/thread-self/children", R_OK) == 0;
}

void
usage_look(struct usage *ret, pid_t keeper, uint64_t tasks_max, bool is_proportional)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t stat[STAT_FIELDS];
    struct pids tree = {0};
    uint64_t ticks = 0;

    *ret = (struct usage){0};
    /* Whoever was waited for has left his time with who did; the keeper waits
     * for all orphans. Its own time is ours. */
    if (read_stat(keeper, stat)) {
        ticks = stat[STAT_CUTIME] + stat[STAT_CSTIME];
    }
    add_descendants(&tree, keeper);
    for (size_t i = 0; i < tree.n && ret->tasks <= tasks_max; i++) {
        uint64_t bytes = 0;

        if (!read_stat(tree.v[i], stat)) {
            continue;
        }
        ticks += stat[STAT_UTIME] + stat[STAT_STIME] + stat[STAT_CUTIME] + stat[STAT_CSTIME];
        ret->tasks += stat[STAT_THREADS];
        if (!is_proportional || !read_proportional(tree.v[i], &bytes)) {
            bytes = stat[STAT_RSS] * page;
        }
        ret->memory_bytes += bytes;
        add_descendants(&tree, tree.v[i]);
    }
    mem_free(tree.v);
    ret->cpu_ms = ticks_to_ms(ticks);
}
