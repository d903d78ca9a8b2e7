#include "config/config.h"

#include "base/json.h"
#include "cli/verbs.h"

static int
finish(enum sy_code rc, const struct buf *text)
{
    struct sy_error err = {0};

    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "printing the configuration: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(text, 0);
}

static int
show_main(const struct cli_args *args)
{
    SY_AUTO(cli_engine_fini) struct cli_engine engine = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};

    if (cli_engine_load(&engine, args, NULL, NULL, &err) != SY_E_OK) {
        return cli_fail(&err);
    }
    return finish(config_show(&engine.config, &text, cli_get(args, "json") != NULL), &text);
}

static enum sy_code
keys_text(struct buf *out)
{
    enum sy_code rc = SY_E_OK;
    const struct config_key_info *k = NULL;

    for (size_t i = 0; rc == SY_E_OK && (k = config_key(i)) != NULL; i++) {
        rc = buf_addf(out, "%-32s %-8s %s\n", k->key, k->type, k->help);
        if (rc == SY_E_OK) {
            rc = buf_addf(out, "%32s default %s%s%s\n", "",
                          k->fallback[0] != '\0' ? k->fallback : "(empty)",
                          k->choices[0] != '\0' ? "; one of " : "", k->choices);
        }
    }
    return rc;
}

static enum sy_code
keys_json(struct buf *out)
{
    struct jw w = {.out = out};
    const struct config_key_info *k = NULL;

    jw_array(&w);
    for (size_t i = 0; (k = config_key(i)) != NULL; i++) {
        jw_object(&w);
        jw_key_str(&w, "key", k->key);
        jw_key_str(&w, "type", k->type);
        if (k->choices[0] != '\0') {
            jw_key_str(&w, "choices", k->choices);
        }
        jw_key_str(&w, "default", k->fallback);
        jw_key_str(&w, "help", k->help);
        jw_end_object(&w);
    }
    jw_end_array(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static int
keys_main(const struct cli_args *args)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};

    return finish(cli_get(args, "json") != NULL ? keys_json(&text) : keys_text(&text), &text);
}

static const struct cli_option show_options[] = {
    CLI_OPTION_JSON,
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

static const struct cli_verb verb_config_show = {
    .name = "show",
    .summary = "Print the effective configuration and where each value comes from",
    .operands = "",
    .page = "shellyard.1",
    .options = show_options,
    .run = show_main,
};

static const struct cli_option keys_options[] = {
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

static const struct cli_verb verb_config_keys = {
    .name = "keys",
    .summary = "List every configuration key with its type, default and meaning",
    .operands = "",
    .page = "shellyard.1",
    .options = keys_options,
    .run = keys_main,
};

static const struct cli_verb *const config_verbs[] = {
    &verb_config_show,
    &verb_config_keys,
    NULL,
};

static const struct cli_option no_options[] = {
    CLI_OPTION_END,
};

const struct cli_verb verb_config = {
    .name = "config",
    .summary = "Show the configuration, or list its keys",
    .operands = "show|keys",
    .page = "shellyard.1",
    .options = no_options,
    .verbs = config_verbs,
};
