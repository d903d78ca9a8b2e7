#ifndef SY_CLI_DOCTOR_INTERNAL_H
#define SY_CLI_DOCTOR_INTERNAL_H

#include <stddef.h>

#include "cli/verbs.h"
#include "orchestrator/orchestrator.h"

enum level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL };

/* The checks make some twenty findings, and one for each client. */
#define FINDINGS_MAX 48

struct finding {
    enum level level;
    const char *name;
    char text[SY_ERR_MSG_MAX];
    char fix[SY_ERR_MSG_MAX];
};

struct doctor {
    const struct cli_args *args;
    struct cli_engine engine;
    struct session *session; /* NULL while configuration or sandbox fail */
    const char *tier;        /* what held the command that was run */
    struct finding findings[FINDINGS_MAX];
    size_t n;
};

/* Adds a finding; `fix` NULL: nothing to do. Texts are cut if too long. */
void doctor_find(struct doctor *d, enum level level, const char *name, const char *fix,
                 const char *fmt, ...) SY_PRINTF(5, 6);

/* The machine and the environment (doctor_machine.c). */

/* What commands' own Unix sockets and the proxy need of it, beside the sandbox. After a command was
 * run. */
void doctor_check_kernel(struct doctor *d);
void doctor_check_path(struct doctor *d);
void doctor_check_tmpdir(struct doctor *d);
void doctor_check_tool(struct doctor *d, const char *name);

#endif
