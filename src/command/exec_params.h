#ifndef SY_COMMAND_EXEC_PARAMS_H
#define SY_COMMAND_EXEC_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* The per-call sandbox override (specification, SandboxPermissions). */
enum sandbox_permissions { PERMISSIONS_USE_DEFAULT, PERMISSIONS_REQUIRE_ESCALATED };

/* When a command must end (specification, ExecExpiration). */
enum expiration_kind {
    EXPIRE_DEFAULT,     /* LIMIT_TIMEOUT_DEFAULT_MS */
    EXPIRE_TIMEOUT,     /* timeout_ms */
    EXPIRE_CANCELLATION /* only when cancelled */
};

struct exec_expiration {
    enum expiration_kind kind;
    uint64_t timeout_ms;
};

/*
 * A command as the caller means it, before approval and sandbox (the specification,
 * ExecParams). Made once by a tool, then only read. Owns its strings.
 */
struct exec_params {
    struct strv argv;
    char *cwd; /* absolute */
    struct exec_expiration expiration;
    struct strv env; /* "NAME=value" laid over the session's environment */
    enum sandbox_permissions permissions;
    char *justification; /* may be NULL */
    char *arg0;          /* argv[0] override, may be NULL */
};

void exec_params_fini(struct exec_params *p);

#endif
