#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/verbs.h"

/* `list` and `kill`: what the daemon has. */

/* A member that must be there. */
static const char *
text_of(const struct js *item, const char *name)
{
    const char *text = js_str(js_get(item, name));

    return text != NULL ? text : "?";
}

/* The end of each row: age, and what `name` says, made visible. */
static enum sy_code
add_rest(struct buf *out, const struct js *item, const char *name)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)4 * LIMIT_PATH};
    char age[24];
    int64_t age_ms = 0;

    if (!js_int(&age_ms, js_get(item, "age_ms"))) {
        return SY_E_PARSE;
    }
    cli_add_age(age, age_ms);

    enum sy_code rc =
        str_add_visible(&text, text_of(item, name), strlen(text_of(item, name)), LIMIT_PATH);

    return rc == SY_E_OK ? buf_addf(out, "%-8s %s\n", age, buf_view(&text)) : rc;
}

static enum sy_code
add_client(struct buf *out, const struct js *item)
{
    int64_t pid = 0;
    enum sy_code rc = js_int(&pid, js_get(item, "pid")) ? SY_E_OK : SY_E_PARSE;

    rc = rc == SY_E_OK ? buf_addf(out, "%-6s %-8s process %-8lld ", text_of(item, "id"),
                                  text_of(item, "kind"), (long long)pid)
                       : rc;
    return rc == SY_E_OK ? add_rest(out, item, "cwd") : rc;
}

static enum sy_code
add_session(struct buf *out, const struct js *item)
{
    enum sy_code rc = buf_addf(out, "%s/%-8s %-8s %-16s ", text_of(item, "owner"),
                               text_of(item, "id"), text_of(item, "kind"), text_of(item, "state"));

    return rc == SY_E_OK ? add_rest(out, item, "command") : rc;
}

/* What `list` tells, part by part. */
static const struct {
    const char *name;
    const char *none; /* when it is empty; NULL: nothing is said */
    enum sy_code (*add)(struct buf *out, const struct js *item);
} parts[] = {
    {"clients",  "no clients", add_client },
    {"sessions", NULL,         add_session},
};

static enum sy_code
add_text(struct buf *out, const struct js *answer)
{
    enum sy_code rc = SY_E_OK;
    int64_t n_silent = 0;
    bool is_silent = js_int(&n_silent, js_get(answer, "silent_hosts")) && n_silent > 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && rc == SY_E_OK; i++) {
        const struct js *list = js_get(answer, parts[i].name);

        if (js_count(list) == 0 && parts[i].none != NULL && !is_silent) {
            rc = buf_addf(out, "%s\n", parts[i].none);
        }
        for (size_t k = 0; k < js_count(list) && rc == SY_E_OK; k++) {
            rc = parts[i].add(out, js_at(list, k));
        }
    }
    if (rc == SY_E_OK && is_silent) {
        rc = buf_addf(out, "%lld %s not answered within %u s: what is there is not listed\n",
                      (long long)n_silent, n_silent == 1 ? "host has" : "hosts have",
                      LIMIT_HOSTS_ASKED_MS / 1000U);
    }
    return rc;
}

static int
list_main(const struct cli_args *args)
{
    static const char *const words[] = {"list", NULL};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLI_TEXT};
    struct json_doc doc = {0};
    struct sy_error err = {0};
    enum sy_code rc = cli_ask(&doc, words, &err);

    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }
    if (cli_get(args, "json") != NULL) {
        struct jw w = {.out = &out};

        jw_value(&w, doc.root);
        rc = jw_done(&w);
        rc = rc == SY_E_OK ? buf_add_char(&out, '\n') : rc;
    } else {
        rc = add_text(&out, doc.root);
    }
    json_doc_fini(&doc);
    if (rc != SY_E_OK) {
        (void)sy_err_set(&err, rc, "printing the daemon's answer: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(&out, 0);
}

static int
kill_main(const struct cli_args *args)
{
    int status = 0;

    for (size_t i = 0; i < args->n_operands; i++) {
        const char *const words[] = {"kill", args->operands[i], NULL};
        struct json_doc doc = {0};
        struct sy_error err = {0};

        if (cli_ask(&doc, words, &err) != SY_E_OK) {
            status = cli_fail(&err);
        }
        json_doc_fini(&doc);
    }
    return status;
}

static const struct cli_option list_options[] = {CLI_OPTION_JSON, CLI_OPTION_END};
static const struct cli_option no_options[] = {CLI_OPTION_END};

const struct cli_verb verb_list = {
    .name = "list",
    .summary = "List what the daemon serves",
    .operands = "",
    .text = "One line a client: id, kind, process, age, directory. One line a session:\n"
            "client and id, kind, state, age, command.\n",
    .page = "shellyard-serve.1",
    .options = list_options,
    .run = list_main,
};

const struct cli_verb verb_kill = {
    .name = "kill",
    .summary = "End what the daemon serves, by its id",
    .operands = "ID...",
    .text = "Ids are those of 'shellyard list'. What runs for a client is ended first;\n"
            "sessions may be named without their client where there is one of that id.\n",
    .examples = "  shellyard kill c2\n  shellyard kill 4711\n  shellyard kill c2/build\n",
    .page = "shellyard-serve.1",
    .options = no_options,
    .min_operands = 1,
    .max_operands = LIMIT_ARGV,
    .run = kill_main,
};
