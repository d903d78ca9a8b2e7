#include "protocol/mcp_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

/* Oldest first; the last one is offered to a client that asks for another. */
static const struct mcp_version versions[] = {
    {"2024-11-05", false, false, false},
    {"2025-03-26", true,  true,  false},
    {"2025-06-18", true,  false, true },
    {"2025-11-25", true,  false, true },
};
#define N_VERSIONS (sizeof(versions) / sizeof(versions[0]))

/* A request of the stateless era (2026-07-28 and later) names its version here. */
#define META_VERSION "io.modelcontextprotocol/protocolVersion"

/* What a client of both eras asks first on a pipe. */
#define PROBE "server/discover"

/* Bytes of a version that are told again. */
#define SHOWN 32

static const struct mcp_version *
version_find(const char *name)
{
    for (size_t i = 0; i < N_VERSIONS; i++) {
        if (str_eq(versions[i].name, name)) {
            return &versions[i];
        }
    }
    return NULL;
}

const struct mcp_version *
mcp_version_newest(void)
{
    return &versions[N_VERSIONS - 1];
}

const struct mcp_version *
mcp_version_offer(const char *asked)
{
    const struct mcp_version *v = version_find(asked);

    return v != NULL ? v : mcp_version_newest();
}

/* `asked` NULL: the request named none. */
static void
refuse(struct mcp *m, const struct mcp_request *r, int code, const char *asked, const char *why)
{
    char text[SY_ERR_MSG_MAX];
    struct jw w;

    (void)snprintf(text, sizeof(text), "%s: begin with initialize (versions %s to %s)", why,
                   versions[0].name, mcp_version_newest()->name);
    out_begin(&m->base, &w);
    rpc_error_data_open(&w, &r->id, code, text);
    jw_key(&w, "supported");
    jw_array(&w);
    for (size_t i = 0; i < N_VERSIONS; i++) {
        jw_str(&w, versions[i].name);
    }
    jw_end_array(&w);
    if (asked != NULL) {
        jw_key_strn(&w, "requested", asked, (size_t)utf8_room(asked, SHOWN));
    }
    rpc_error_data_close(&w);
    /* OUT_RESERVE holds it. */
    SY_ASSERT(jw_done(&w) == SY_E_OK);
    mcp_deliver(m, r->batch);
}

bool
mcp_refuse_modern(struct mcp *m, const struct mcp_request *r)
{
    const char *asked = js_str(js_get(js_get(r->params, "_meta"), META_VERSION));
    char why[100];

    if (str_eq(r->method, PROBE)) {
        /* Not RPC_VERSION, which says "a server of the stateless era, try
         * another of its versions": whoever speaks both falls back to
         * initialize on any other error. */
        refuse(m, r, RPC_METHOD, asked, "unknown method '" PROBE "'");
        return true;
    }
    /* Answered by the rules of initialize, a result would lack what such a
     * client needs to read it. */
    if (asked != NULL && version_find(asked) == NULL) {
        (void)snprintf(why, sizeof(why), "protocol version '%.*s' is not supported",
                       utf8_room(asked, SHOWN), asked);
        refuse(m, r, RPC_VERSION, asked, why);
        return true;
    }
    return false;
}
