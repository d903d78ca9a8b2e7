#ifndef SY_PROCESS_KEEPER_SPEC_H
#define SY_PROCESS_KEEPER_SPEC_H

#include <stdint.h>

#include "base/err.h"
#include "process/keeper.h"

/*
 * A command for a keeper that doesn't share our memory: a file without a name
 * (memfd_create(2)) that the keeper's child maps. It begins with this struct;
 * each uint64_t beside the counts is an offset from there. Lists are arrays of such
 * offsets, ended by 0, so that the child can turn them into pointers where they stand.
 */
struct keeper_spec {
    uint64_t size; /* of the whole */
    uint64_t program;
    uint64_t cwd;
    uint64_t argv;
    uint64_t script_argv;
    uint64_t envp;
    uint64_t has_terminal; /* 0 or 1 */
    uint64_t n_rlimits;
    struct keeper_rlimit rlimits[KEEPER_RLIMITS];
};

/* Writes what `job` says into a new file; *ret_fd is the caller's. */
enum sy_code keeper_spec_new(int *ret_fd, const struct keeper_job *job,
                             struct sy_error *err) SY_NODISCARD;

/*
 * The child's side: maps the file and points the job into it. Raw system calls
 * only. 0, or an errno value: EPROTO for a file that is none of ours.
 */
int keeper_spec_load(struct keeper_job *job, int fd);

#endif
