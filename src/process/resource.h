#ifndef SY_PROCESS_RESOURCE_H
#define SY_PROCESS_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a command may use (configuration, `limits`), and what became of a limit.
 * X-macro: id, name in every answer, the key that sets it, what it counts.
 */
#define RESOURCES(X)                                                                               \
    X(RESOURCE_NONE, "none", "", "")                                                               \
    X(RESOURCE_MEMORY, "memory", "limits.memory_bytes", "bytes")                                   \
    X(RESOURCE_PROCESSES, "processes", "limits.processes", "processes and threads")                \
    X(RESOURCE_OPEN_FILES, "open_files", "limits.open_files", "open files")                        \
    X(RESOURCE_FILE_SIZE, "file_size", "limits.file_bytes", "bytes in a file")                     \
    X(RESOURCE_CPU, "cpu", "limits.cpu_seconds", "seconds of CPU time")                            \
    X(RESOURCE_OUTPUT, "output", "limits.output_bytes", "bytes of output")                         \
    X(RESOURCE_WALL_CLOCK, "wall_clock", "timeout_ms", "milliseconds")                             \
    X(RESOURCE_TEMP, "temp", "limits.temp_bytes", "bytes of temporary files")

enum resource {
#define RESOURCE_ENUM(id, name, key, unit) id,
    RESOURCES(RESOURCE_ENUM)
#undef RESOURCE_ENUM
        RESOURCE_COUNT
};

const char *resource_name(enum resource r);
const char *resource_key(enum resource r);
const char *resource_unit(enum resource r);

/* Who holds a limit. */
enum resource_means {
    MEANS_ABSENT,
    MEANS_CGROUP_V2,
    MEANS_CGROUP_V1,
    MEANS_RLIMIT,   /* setrlimit(2), for each process */
    MEANS_SAMPLING, /* the engine looks at the tree from time to time, and kills it */
    MEANS_ENGINE,   /* counted by the engine itself: output, the clock */
    MEANS_TMPFS     /* the size of a file system in memory */
};

/* "absent", "cgroup v2", "cgroup v1", "rlimit", "sampling", "engine", "tmpfs". */
const char *resource_means_name(enum resource_means m);

/* The most that a command may use of each; 0: no limit of ours. */
struct resource_limits {
    uint64_t most[RESOURCE_COUNT];
};

/* The limit that a command met. */
struct resource_hit {
    enum resource resource; /* RESOURCE_NONE: it met none that we know of */
    enum resource_means means;
    bool is_exact;  /* a record of the kernel or our own count says so; else inferred */
    bool has_ended; /* it ended the command; else something was refused to it */
    uint64_t most;  /* what the limit was */
};

#endif
