#ifndef SY_TOOLS_PATCH_CALL_H
#define SY_TOOLS_PATCH_CALL_H

#include "tools/tools_internal.h"

/* A patch that a tool was given, or that stood in a command. */
struct patch_order {
    const char *text;
    size_t len;
    const char *cwd;           /* absolute */
    const char *workdir;       /* from there on; NULL or "": there */
    const char *tool;          /* static */
    const char *justification; /* may be NULL */
    size_t max_bytes;          /* of the model text */
    bool is_dry;               /* show what would change */
};

/* Reads the patch and starts the call. SY_E_PARSE, SY_E_LIMIT: it is none. */
enum sy_code patch_call_submit(struct tool_call *call, const struct patch_order *order,
                               struct sy_error *err) SY_NODISCARD;
/* The answer of such a call. */
enum sy_code patch_call_result(struct tool_output *ret, const struct tool_call *call,
                               const struct exec_output *output) SY_NODISCARD;
/* The JSON text of the schema that patch_call_result fills. */
extern const char patch_call_schema[];

/*
 * If a request is a call of apply_patch, that is started in its place and *ret_is_taken is true.
 * SY_E_ARG for a patch that stands where a command should.
 */
enum sy_code patch_call_intercept(bool *ret_is_taken, struct tool_call *call,
                                  const struct exec_request *request, size_t max_bytes,
                                  struct sy_error *err) SY_NODISCARD;

#endif
