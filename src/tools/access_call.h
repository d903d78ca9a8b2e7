#ifndef SY_TOOLS_ACCESS_CALL_H
#define SY_TOOLS_ACCESS_CALL_H

#include "sandbox/access.h"
#include "tools/tools_internal.h"

/* What an agent asks for by request_access. Borrowed. */
struct access_order {
    enum access_kind kind;
    const char *object; /* as the agent wrote it */
    enum grant_scope wish;
    const char *justification;
};

/* "once", "session", "rule". */
const char *access_call_scope_name(enum grant_scope scope);

/* Starts the call. */
enum sy_code access_call_submit(struct tool_call *call, const struct invocation *inv,
                                const struct access_order *order,
                                struct sy_error *err) SY_NODISCARD;
/* The answer of such a call. */
enum sy_code access_call_result(struct tool_output *ret, const struct tool_call *call,
                                const struct exec_output *output) SY_NODISCARD;
/* The JSON text of the schema that access_call_result fills. */
extern const char access_call_schema[];

/* access_find.c */

/* What was asked for, found in the file system or read as a host. */
struct access_found {
    struct access access;
    struct buf asked; /* the path that was looked for, if it is another one */
    uint64_t dev;     /* of the file; 0: a host */
    uint64_t ino;
};
void access_found_fini(struct access_found *f);
/* `path_list`: where programs are looked for. SY_E_DENIED: it is nothing that can be granted. */
enum sy_code access_find(struct access_found *ret, enum access_kind kind, const char *object,
                         const char *path_list, struct sy_error *err) SY_NODISCARD;
/* Is the same file still there? */
bool access_find_is_same(const struct access_found *f);

#endif
