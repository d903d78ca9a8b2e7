#ifndef SY_PROCESS_PROCESS_INTERNAL_H
#define SY_PROCESS_PROCESS_INTERNAL_H

#include "process/keeper.h"
#include "process/process.h"

struct process {
    uint64_t id; /* never used twice in one program */
    struct keeper_job job;
    bool has_gone; /* told to execute its command */
    char **script_argv;
    void *stack;
    pid_t keeper_pid; /* 0: waited for */
    int channel_fd;
    int listener_fd; /* connect(2) of the tree is judged here; -1: never called, or free */
    int read_fd[STREAM_COUNT];
    struct output_chain *chain;
    char *large; /* READ_LARGE bytes once a read has filled READ_SMALL */
    bool grew_pipe[STREAM_COUNT];
    bool has_exited; /* the command, others may live */
    bool has_ended;  /* the keeper's last word is here */
    bool is_killing;
    uint64_t started_ns;
    uint64_t linger_ns; /* when what lingers is ended; UINT64_MAX: never */
    struct process_result result;
};

/* Gives a keeper's stack back once it has been waited for. */
void process_stack_put(void *stack);

#endif
