#include <string.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/verbs.h"

/* `list` and `kill`: what the daemon has. */

/* What `list` heads each part of the answer with. */
static const struct {
    const char *name;
    const char *none; /* when it is empty */
} parts[] = {
    {"clients", "no clients"},
};

static enum sy_code
add_row(struct buf *out, const struct js *item)
{
    char age[24];
    int64_t age_ms = 0;
    int64_t pid = 0;
    const char *const texts[] = {js_str(js_get(item, "id")), js_str(js_get(item, "kind")),
                                 js_str(js_get(item, "cwd"))};
    SY_AUTO(buf_fini) struct buf cwd = {.max = (size_t)4 * LIMIT_PATH};

    if (texts[0] == NULL || texts[1] == NULL || texts[2] == NULL ||
        !js_int(&age_ms, js_get(item, "age_ms")) || !js_int(&pid, js_get(item, "pid"))) {
        return SY_E_PARSE;
    }
    cli_add_age(age, age_ms);

    enum sy_code rc = str_add_visible(&cwd, texts[2], strlen(texts[2]), LIMIT_PATH);

    return rc == SY_E_OK ? buf_addf(out, "%-6s %-8s process %-8lld %-8s %s\n", texts[0], texts[1],
                                    (long long)pid, age, buf_view(&cwd))
                         : rc;
}

static enum sy_code
add_text(struct buf *out, const struct js *answer)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && rc == SY_E_OK; i++) {
        const struct js *list = js_get(answer, parts[i].name);

        if (js_count(list) == 0) {
            rc = buf_addf(out, "%s\n", parts[i].none);
        }
        for (size_t k = 0; k < js_count(list) && rc == SY_E_OK; k++) {
            rc = add_row(out, js_at(list, k));
        }
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
    .text = "One line each: id, kind, process, age, directory.\n",
    .page = "shellyard-serve.1",
    .options = list_options,
    .run = list_main,
};

const struct cli_verb verb_kill = {
    .name = "kill",
    .summary = "End what the daemon serves, by its id",
    .operands = "ID...",
    .text = "Ids are those of 'shellyard list'. What runs for a client is ended first.\n",
    .examples = "  shellyard kill c2\n",
    .page = "shellyard-serve.1",
    .options = no_options,
    .min_operands = 1,
    .max_operands = LIMIT_ARGV,
    .run = kill_main,
};
