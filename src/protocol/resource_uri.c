#include "protocol/resource_uri.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "shellyard://session/";
#define PREFIX (sizeof(prefix) - 1)

static const char *const parts[] = {[TOOL_SESSION_SCREEN] = "screen", [TOOL_SESSION_LOG] = "log"};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

const char *
resource_uri_part_name(enum tool_session_part part)
{
    return parts[part];
}

static size_t
id_length(const char *text, size_t len)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = 0;

    while (n < len && text[n] != '\0' && strchr(allowed, text[n]) != NULL) {
        n++;
    }
    return n;
}

bool
resource_uri_parse(struct resource_uri *ret, const char *text, size_t len)
{
    if (len < PREFIX || memcmp(text, prefix, PREFIX) != 0) {
        return false;
    }
    text += PREFIX;
    len -= PREFIX;

    size_t n = id_length(text, len);

    if (n == 0 || n > LIMIT_SESSION_ID || n == len || text[n] != '/') {
        return false;
    }
    for (size_t i = 0; i < N_PARTS; i++) {
        if (strlen(parts[i]) == len - n - 1 && memcmp(parts[i], text + n + 1, len - n - 1) == 0) {
            ret->part = (enum tool_session_part)i;
            memcpy(ret->id, text, n);
            ret->id[n] = '\0';
            return true;
        }
    }
    return false;
}

void
resource_uri_text(char ret[RESOURCE_URI_ROOM], const char *id, enum tool_session_part part)
{
    (void)snprintf(ret, RESOURCE_URI_ROOM, "%s%s/%s", prefix, id, parts[part]);
}
