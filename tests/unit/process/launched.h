#ifndef SY_TESTS_UNIT_PROCESS_LAUNCHED_H
#define SY_TESTS_UNIT_PROCESS_LAUNCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "process/launch_wire.h"
#include "process/launcher.h"
#include "process/pool.h"

/* Commands of the full tier, for the tests of it: in namespaces that shellyard-launch made. */

#define SECOND_NS 1000000000ULL

struct world {
    char dir[64];
    char mark[32]; /* in the command line of whatever a test starts */
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
    struct launcher *launcher;
    struct template *template;
    struct process_pool *pool;
};

/* For cmocka: *state becomes the world. */
int world_make(void **state);
int world_remove(void **state);
#define LAUNCHED(name) cmocka_unit_test_setup_teardown(name, world_make, world_remove)

/* Of the one argument that each of these programs has. False, with a word on standard error. */
bool launched_by(int argc, char **argv);
const char *launched_program(void);

struct command {
    struct process *process;
    struct output_chain *chain;
};

struct exec_env env_of(const struct world *w, char *const *argv);
void start_env(struct command *ret, const struct world *w, const struct exec_env *env);
/* The mark is $0 of the script, and so in all that it forks. */
void start(struct command *ret, const struct world *w, const char *script);
bool has_said(const struct command *c, const char *word);
/* Until it has ended, or has said that word. */
void drive(struct command *c, const char *word);
void end(struct command *c);
/* Runs a script to its end. Returns its exit code, -1 if it had none. */
int run(const struct world *w, const char *script, struct buf *ret_out);

/* Processes of the whole machine that have the mark in their command line; zombies have none. */
unsigned count_marked(const char *mark);
void await_no_marked(const char *mark, uint64_t limit_ns);
/* The process with this name whose parent is `parent`; 0: none. */
pid_t find_child(pid_t parent, const char *name);
/* SIGKILL to it, and no return before the kernel has let go of it. */
void kill_for_certain(pid_t pid);

void put_file(const struct world *w, const char *name, const char *text);
void put_dir(const struct world *w, const char *name);
void add_mark(struct buf *marks, const struct world *w, char kind, const char *name);

#endif
