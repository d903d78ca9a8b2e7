#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "sandbox/sandbox.h"
#include "tools/tools.h"

/* What a place in a text is about: "$(". */
struct told_place {
    const char *name;
    size_t len;
    const char *yes; /* NULL: a value */
    const char *no;
    const char *end; /* at its ')' */
};

static bool
is_named(const struct told_place *p, const char *name)
{
    return str_is(name, p->name, p->len);
}

static int64_t
default_tokens(const struct told_for *who)
{
    return who->front == FRONT_MCP ? who->config->output.max_bytes / LIMIT_BYTES_PER_TOKEN
                                   : who->config->output.max_tokens;
}

static enum sy_code
add_value(struct buf *out, const struct told_place *p, const struct told_for *who)
{
    const struct config *config = who->config;
    int64_t n = 0;

    if (is_named(p, "login")) {
        return buf_add_str(out, config->shell.login ? "true" : "false");
    }
    if (is_named(p, "timeout_ms")) {
        n = config->tools.timeout_ms;
    } else if (is_named(p, "tokens")) {
        n = default_tokens(who);
    } else {
        SY_ASSERT(is_named(p, "max_tokens"));
        n = config->output.max_tokens;
    }
    return buf_addf(out, "%lld", (long long)n);
}

/* Does a person decide whether a command runs outside of the sandbox (requirement_decide)? */
static bool
escalates(const struct config *config)
{
    return str_eq(config->approval.policy, "on-request") &&
           (str_eq(config->sandbox.mode, "read-only") ||
            str_eq(config->sandbox.mode, "workspace-write"));
}

/* Do commands run in a sandbox, ours or another? Where it is not required, that is the kernel's to
 * say: it is asked without making anything, as this is told when a server begins. */
static bool
is_sandboxed(const struct config *config)
{
    struct sandbox_caps caps;

    if (str_eq(config->sandbox.mode, "danger-full-access")) {
        return false;
    }
    if (config->sandbox.required || str_eq(config->sandbox.mode, "external-sandbox")) {
        return true;
    }
    sandbox_probe(&caps);
    return caps.landlock_abi >= 1 && caps.has_seccomp_filter;
}

static enum sy_code
add_choice(struct buf *out, const struct told_place *p, const struct config *config)
{
    bool holds = false;

    if (is_named(p, "sandbox")) {
        holds = is_sandboxed(config);
    } else {
        SY_ASSERT(is_named(p, "escalates"));
        holds = escalates(config);
    }
    return holds ? buf_add(out, p->yes, (size_t)(p->no - 1 - p->yes))
                 : buf_add(out, p->no, (size_t)(p->end - p->no));
}

/* Texts are ours: one that is wrong shows in the first list of tools. */
static void
read_place(struct told_place *ret, const char *begin)
{
    ret->name = begin + 2;
    ret->len = strcspn(ret->name, "?)");
    ret->yes = NULL;
    ret->end = ret->name + ret->len;
    if (*ret->end == '?') {
        ret->yes = ret->end + 1;
        ret->no = strchr(ret->yes, '|');
        SY_ASSERT(ret->no != NULL);
        ret->no++;
        ret->end = strchr(ret->no, ')');
    }
    SY_ASSERT(ret->end != NULL && *ret->end == ')');
}

enum sy_code
tool_add_text(struct buf *out, const char *text, const struct told_for *who)
{
    enum sy_code rc = SY_E_OK;

    for (const char *at = strstr(text, "$("); at != NULL && rc == SY_E_OK;
         at = strstr(text, "$(")) {
        struct told_place p = {0};

        read_place(&p, at);
        rc = buf_add(out, text, (size_t)(at - text));
        if (rc == SY_E_OK) {
            rc = p.yes != NULL ? add_choice(out, &p, who->config) : add_value(out, &p, who);
        }
        text = p.end + 1;
    }
    return rc == SY_E_OK ? buf_add_str(out, text) : rc;
}

/* A value is no longer than its name and this. */
#define VALUE_MAX  24U
#define PLACES_MAX 16U

static void
write_text(struct jw *w, void (*write)(struct jw *w, const char *s, size_t n), const char *text,
           const struct told_for *who)
{
    SY_AUTO(buf_fini) struct buf out = {.max = strlen(text) + (size_t)VALUE_MAX * PLACES_MAX};
    enum sy_code rc = tool_add_text(&out, text, who);

    if (rc == SY_E_OK) {
        write(w, buf_view(&out), out.len);
    } else {
        w->rc = rc;
    }
}

void
tool_write_description(struct jw *w, const struct tool_handler *t, const struct told_for *who)
{
    write_text(w, jw_strn, t->description, who);
}

void
tool_write_input_schema(struct jw *w, const struct tool_handler *t, const struct told_for *who)
{
    write_text(w, jw_raw, t->input_schema, who);
}
