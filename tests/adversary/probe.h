#ifndef SY_TESTS_ADVERSARY_PROBE_H
#define SY_TESTS_ADVERSARY_PROBE_H

#include <stddef.h>
#include <sys/types.h>

/* One thing to try; gives 0 or the errno value. */
struct probe_act {
    const char *name;
    int (*act)(void);
};

extern const struct probe_act probe_process_acts[];
extern const size_t probe_n_process_acts;
extern const struct probe_act probe_file_acts[];
extern const size_t probe_n_file_acts;
extern const struct probe_act probe_socket_acts[];
extern const size_t probe_n_socket_acts;
extern const struct probe_act probe_wall_acts[];
extern const size_t probe_n_wall_acts;
extern const struct probe_act probe_session_acts[];
extern const size_t probe_n_session_acts;

extern pid_t probe_parent; /* of the process that runs all acts */

int probe_result(long r);
const char *probe_env(const char *name);
long probe_env_number(const char *name);

#endif
