/*
 * The limits of one command: rlimits that its process gets, a control group
 * where there are any, and else a look at the tree from time to time.
 */
#include "process/process_internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "process/usage.h"

/* The first look comes early, since what grows fast has grown most by then; a
 * look may take at most a twentieth of the time. */
#define LOOK_FIRST_NS 20000000ULL
#define LOOK_EVERY_NS 100000000ULL
#define LOOK_SHARE    20U

/* A program that handles SIGXCPU may have this long before the tree is ended. */
#define CPU_GRACE_MS   500U
#define CPU_GRACE_SECS 1U

#define EXIT_SIGNAL_BASE 128

/* RLIMIT_NPROC counts all tasks of the user, wherever they come from. So it is no
 * limit here but a wall some way behind it, where sampling alone would have to
 * outrun a fork bomb. */
#define NPROC_TIMES 4U
#define NPROC_SLACK 1024U

/* What commands begin with, if not with our own limit. */
static struct rlimit open_files = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};

void
process_raise_open_files(uint64_t want)
{
    struct rlimit before;

    if (getrlimit(RLIMIT_NOFILE, &before) != 0 || before.rlim_cur >= want) {
        return;
    }

    struct rlimit raised = {.rlim_cur = want < before.rlim_max ? want : before.rlim_max,
                            .rlim_max = before.rlim_max};

    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        open_files = before;
    }
}

static void
add_rlimit(struct keeper_job *job, int resource, uint64_t soft, uint64_t hard)
{
    SY_ASSERT(job->n_rlimits < KEEPER_RLIMITS);
    job->rlimits[job->n_rlimits++] =
        (struct keeper_rlimit){.resource = resource, .soft = soft, .hard = hard};
}

/* All tasks of the machine: the fourth word of /proc/loadavg, "running/all". */
static bool
count_all_tasks(uint64_t *ret)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 256};

    if (fd_read_file("/proc/loadavg", &text, NULL) != SY_E_OK || text.len == 0) {
        return false;
    }

    char *slash = strchr(text.data, '/');

    if (slash == NULL) {
        return false;
    }
    slash++;
    slash[strcspn(slash, " ")] = '\0';
    return str_to_u64(ret, slash, 1, UINT32_MAX);
}

static void
add_rlimits(struct process *p)
{
    const uint64_t *most = p->limits.most;
    uint64_t all = 0;

    if (most[RESOURCE_OPEN_FILES] != 0) {
        add_rlimit(&p->job, RLIMIT_NOFILE, most[RESOURCE_OPEN_FILES], most[RESOURCE_OPEN_FILES]);
    } else if (open_files.rlim_cur != RLIM_INFINITY) {
        add_rlimit(&p->job, RLIMIT_NOFILE, open_files.rlim_cur, open_files.rlim_max);
    }
    if (most[RESOURCE_FILE_SIZE] != 0) {
        add_rlimit(&p->job, RLIMIT_FSIZE, most[RESOURCE_FILE_SIZE], most[RESOURCE_FILE_SIZE]);
    }
    if (most[RESOURCE_CPU] != 0) {
        /* At the soft one comes SIGXCPU, which says why; at the hard one SIGKILL. */
        add_rlimit(&p->job, RLIMIT_CPU, most[RESOURCE_CPU], most[RESOURCE_CPU] + CPU_GRACE_SECS);
    }
    if (most[RESOURCE_PROCESSES] != 0 &&
        cgroup_means(p->cgroup, RESOURCE_PROCESSES) == MEANS_ABSENT && geteuid() != 0 &&
        count_all_tasks(&all)) {
        uint64_t wall = all + most[RESOURCE_PROCESSES] * NPROC_TIMES + NPROC_SLACK;

        add_rlimit(&p->job, RLIMIT_NPROC, wall, wall);
    }
}

static bool
needs_look(const struct process *p, enum resource r)
{
    return p->limits.most[r] != 0 && cgroup_means(p->cgroup, r) == MEANS_ABSENT;
}

enum resource_means
process_limit_means(enum resource r, const struct cgroup_home *cgroups)
{
    enum resource_means held = MEANS_ABSENT;

    switch (r) {
    case RESOURCE_MEMORY:
    case RESOURCE_PROCESSES:
        held = cgroup_home_means(cgroups, r);
        return held == MEANS_ABSENT && usage_is_available() ? MEANS_SAMPLING : held;
    case RESOURCE_OPEN_FILES:
    case RESOURCE_FILE_SIZE:
    case RESOURCE_CPU:
        return MEANS_RLIMIT;
    case RESOURCE_OUTPUT:
    case RESOURCE_WALL_CLOCK:
        return MEANS_ENGINE;
    case RESOURCE_NONE:
    case RESOURCE_TEMP:
    case RESOURCE_COUNT:
        break;
    }
    return MEANS_ABSENT;
}

enum sy_code
process_limits_begin(struct process *p, const struct exec_env *env, struct sy_error *err)
{
    static const enum resource looked_at[] = {RESOURCE_MEMORY, RESOURCE_PROCESSES, RESOURCE_CPU};

    p->limits = env->limits;
    if (env->cgroups != NULL &&
        (p->limits.most[RESOURCE_MEMORY] != 0 || p->limits.most[RESOURCE_PROCESSES] != 0)) {
        enum sy_code rc = cgroup_new(&p->cgroup, env->cgroups, &p->limits, err);

        if (rc != SY_E_OK) {
            return rc;
        }
        cgroup_paths(p->cgroup, p->job.cgroups);
    }
    add_rlimits(p);
    for (size_t i = 0; i < sizeof(looked_at) / sizeof(looked_at[0]); i++) {
        if (!needs_look(p, looked_at[i])) {
            continue;
        }
        if (!usage_is_available()) {
            /* A process alone is held by RLIMIT_CPU; nothing holds the others. */
            return sy_err_set(err, SY_E_LIMIT,
                              "%s can't be held here: there is no control group, and the kernel "
                              "does not list the children of a process (CONFIG_PROC_CHILDREN)",
                              resource_key(looked_at[i]));
        }
        p->look_ns = p->started_ns + LOOK_FIRST_NS;
    }
    return SY_E_OK;
}

static void
hit(struct process *p, enum resource r, enum resource_means means, bool is_exact)
{
    p->result.hit = (struct resource_hit){
        .resource = r,
        .means = means,
        .is_exact = is_exact,
        .most = p->limits.most[r],
    };
}

static void
end_tree(struct process *p, enum resource r, enum resource_means means)
{
    if (p->result.hit.resource == RESOURCE_NONE && !p->is_killing) {
        hit(p, r, means, true);
        p->result.hit.has_ended = true;
        process_kill(p);
    }
}

/* Pages that many share are counted once for each of them at first, so a second,
 * dearer look decides. */
static bool
is_over_memory(const struct process *p, struct usage *u)
{
    uint64_t most = p->limits.most[RESOURCE_MEMORY];

    if (!needs_look(p, RESOURCE_MEMORY) || u->memory_bytes <= most) {
        return false;
    }
    usage_look(u, process_keeper(p), USAGE_PROCESSES, true);
    return u->memory_bytes > most;
}

void
process_limits_look(struct process *p, uint64_t now_ns)
{
    uint64_t tasks_max = USAGE_PROCESSES;
    struct usage u;

    if (now_ns < p->look_ns || p->has_ended || p->is_killing || process_keeper(p) <= 0) {
        return;
    }
    if (needs_look(p, RESOURCE_PROCESSES)) {
        tasks_max = p->limits.most[RESOURCE_PROCESSES];
    }
    usage_look(&u, process_keeper(p), tasks_max, false);
    if (u.tasks > tasks_max) {
        end_tree(p, RESOURCE_PROCESSES, MEANS_SAMPLING);
    } else if (p->limits.most[RESOURCE_CPU] != 0 &&
               u.cpu_ms >= p->limits.most[RESOURCE_CPU] * 1000 + CPU_GRACE_MS) {
        end_tree(p, RESOURCE_CPU, MEANS_SAMPLING);
    } else if (is_over_memory(p, &u)) {
        end_tree(p, RESOURCE_MEMORY, MEANS_SAMPLING);
    }
    if (!p->is_killing) {
        uint64_t after_ns = clock_mono_ns();
        uint64_t rest_ns = (after_ns - now_ns) * LOOK_SHARE;

        p->look_ns = after_ns + (rest_ns > LOOK_EVERY_NS ? rest_ns : LOOK_EVERY_NS);
    }
}

size_t
process_limits_output(struct process *p, size_t n)
{
    uint64_t most = p->limits.most[RESOURCE_OUTPUT];

    if (most != 0 && n > most - p->output_bytes) {
        n = (size_t)(most - p->output_bytes);
        if (!p->has_ended) {
            end_tree(p, RESOURCE_OUTPUT, MEANS_ENGINE);
        } else if (p->result.hit.resource == RESOURCE_NONE) {
            hit(p, RESOURCE_OUTPUT, MEANS_ENGINE, true); /* what it had left in the pipes */
        }
    }
    p->output_bytes += n;
    return n;
}

/* The kernel's records of the group. */
static bool
find_group_hit(struct process *p)
{
    static const enum resource held[] = {RESOURCE_MEMORY, RESOURCE_PROCESSES};

    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
        if (p->limits.most[held[i]] != 0 && cgroup_was_hit(p->cgroup, held[i])) {
            hit(p, held[i], cgroup_means(p->cgroup, held[i]), true);
            p->result.hit.has_ended = held[i] == RESOURCE_MEMORY &&
                                      p->result.outcome == PROCESS_SIGNALED &&
                                      p->result.signal == SIGKILL;
            return true;
        }
    }
    return false;
}

void
process_limits_end(struct process *p)
{
    static const struct {
        enum resource resource;
        int signal;
    } signals[] = {
        {RESOURCE_CPU,       SIGXCPU},
        {RESOURCE_FILE_SIZE, SIGXFSZ},
    };
    struct process_result *r = &p->result;

    /* It had exited before the end of its tree came. */
    r->hit.has_ended = r->hit.has_ended && r->outcome != PROCESS_EXITED;
    if (r->hit.resource != RESOURCE_NONE || (p->cgroup != NULL && find_group_hit(p))) {
        return;
    }
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        bool is_itself = r->outcome == PROCESS_SIGNALED && r->signal == signals[i].signal;
        /* A shell tells by its own status what ended its child. */
        bool is_child =
            r->outcome == PROCESS_EXITED && r->exit_code == EXIT_SIGNAL_BASE + signals[i].signal;

        if (p->limits.most[signals[i].resource] != 0 && (is_itself || is_child)) {
            hit(p, signals[i].resource, MEANS_RLIMIT, is_itself);
            r->hit.has_ended = true;
            return;
        }
    }
}
