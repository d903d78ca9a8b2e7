#ifndef SY_PROTOCOL_RESOURCE_URI_H
#define SY_PROTOCOL_RESOURCE_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "tools/tools.h"

/*
 * The addresses of what MCP shows of a session: shellyard://session/ID/screen and
 * shellyard://session/ID/log. An id has only characters that no URI escapes. Pure.
 */
#define RESOURCE_URI_ROOM (LIMIT_SESSION_ID + 40U)

struct resource_uri {
    enum tool_session_part part;
    char id[LIMIT_SESSION_ID + 1];
};

/* False: it is none of these, to the letter. `text` may hold anything. */
bool resource_uri_parse(struct resource_uri *ret, const char *text, size_t len);
/* `id` as in sessions, or "{session_id}" for a template. */
void resource_uri_text(char ret[RESOURCE_URI_ROOM], const char *id, enum tool_session_part part);
/* "screen", "log". */
const char *resource_uri_part_name(enum tool_session_part part);

#endif
