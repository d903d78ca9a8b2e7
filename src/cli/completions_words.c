#include "cli/completions.h"

#include <string.h>

#include "base/str.h"
#include "cli/verbs.h"
#include "config/config.h"

bool
completions_is_key(const struct cli_option *o)
{
    return o->arg != NULL && str_eq(o->arg, "KEY=VALUE");
}

/* "a|b" of a choice or a boolean; NULL if any value may stand there. */
static const char *
values_of(const struct config_key_info *k)
{
    if (k->choices[0] != '\0') {
        return k->choices;
    }
    return str_eq(k->type, "boolean") ? "true|false" : NULL;
}

/* Each word of "a|b" after a space, with `prefix` and '=' in front if there is one. */
static enum sy_code
add_values(struct buf *out, const char *values, const char *prefix)
{
    enum sy_code rc = SY_E_OK;

    for (const char *v = values; rc == SY_E_OK; v++) {
        size_t len = strcspn(v, "|");

        rc = buf_addf(out, " %s%s%.*s", prefix, prefix[0] != '\0' ? "=" : "", (int)len, v);
        v += len;
        if (*v == '\0') {
            break;
        }
    }
    return rc;
}

/* " KEY=" for each key. */
static enum sy_code
add_keys(struct buf *out)
{
    const struct config_key_info *k = NULL;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && (k = config_key(i)) != NULL; i++) {
        rc = buf_addf(out, " %s=", k->key);
    }
    return rc;
}

/* A line "KEY) BEFORE a b AFTER" for each key that has values to choose of. */
static enum sy_code
add_value_cases(struct buf *out, const char *before, const char *after)
{
    const struct config_key_info *k = NULL;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && (k = config_key(i)) != NULL; i++) {
        const char *values = values_of(k);

        if (values == NULL) {
            continue;
        }
        rc = buf_addf(out, "        %s) %s", k->key, before);
        rc = rc == SY_E_OK ? add_values(out, values, "") : rc;
        rc = rc == SY_E_OK ? buf_addf(out, "%s\n", after) : rc;
    }
    return rc;
}

enum sy_code
completions_bash_keys(struct buf *out)
{
    enum sy_code rc = buf_add_str(out, "    local key= keys='");

    rc = rc == SY_E_OK ? add_keys(out) : rc;
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "'\n"
                              "    if [ \"$cur\" = = ]; then\n"
                              "        key=$prev cur= i=2\n"
                              "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -gt 3 ]; then\n"
                              "        key=${COMP_WORDS[COMP_CWORD-2]} i=3\n"
                              "    fi\n"
                              "    if [ -n \"$key\" ]; then\n"
                              "        case \"${COMP_WORDS[COMP_CWORD-i]}\" in\n"
                              "        -c|--config) ;;\n"
                              "        *) key= ;;\n"
                              "        esac\n"
                              "        case \"$key\" in\n");
    }
    rc = rc == SY_E_OK ? add_value_cases(out, "words='", "' ;;") : rc;
    return rc == SY_E_OK ? buf_add_str(out, "        *) ;;\n        esac\n"
                                            "        COMPREPLY=($(compgen -W \"$words\" -- "
                                            "\"$cur\"))\n"
                                            "        return\n    fi\n")
                         : rc;
}

static enum sy_code
add_verbs(struct buf *out, const struct cli_verb *const *verbs, bool with_help)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; verbs[i] != NULL && rc == SY_E_OK; i++) {
        if (with_help || verbs[i] != &verb_help) {
            rc = buf_addf(out, " %s", verbs[i]->name);
        }
    }
    return rc;
}

/* "BEFORE NAME MIDDLE subs AFTER" for each verb that has subcommands. */
static enum sy_code
add_groups(struct buf *out, const char *before, const char *middle, const char *after)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; cli_verbs[i] != NULL && rc == SY_E_OK; i++) {
        if (cli_verbs[i]->verbs != NULL) {
            rc = buf_addf(out, "%s%s%s", before, cli_verbs[i]->name, middle);
            rc = rc == SY_E_OK ? add_verbs(out, cli_verbs[i]->verbs, true) : rc;
            rc = rc == SY_E_OK ? buf_add_str(out, after) : rc;
        }
    }
    return rc;
}

enum sy_code
completions_bash_help(struct buf *out)
{
    enum sy_code rc = buf_add_str(out, "            case \"$COMP_CWORD $prev\" in\n"
                                       "                '2 help') words=\"$words");

    rc = rc == SY_E_OK ? add_verbs(out, cli_verbs, false) : rc;
    rc = rc == SY_E_OK ? buf_add_str(out, "\" ;;\n") : rc;
    rc =
        rc == SY_E_OK ? add_groups(out, "                '3 ", "') words=\"$words", "\" ;;\n") : rc;
    return rc == SY_E_OK ? buf_add_str(out, "                *) ;;\n            esac\n") : rc;
}

enum sy_code
completions_zsh_keys(struct buf *out)
{
    enum sy_code rc = buf_add_str(out, "_shellyard_keys()\n{\n"
                                       "    local key=${PREFIX%%=*}\n"
                                       "    if compset -P '*='; then\n"
                                       "        case $key in\n");

    rc = rc == SY_E_OK ? add_value_cases(out, "compadd --", " ;;") : rc;
    rc = rc == SY_E_OK ? buf_add_str(out, "        esac\n    else\n        compadd -S '' --") : rc;
    rc = rc == SY_E_OK ? add_keys(out) : rc;
    return rc == SY_E_OK ? buf_add_str(out, "\n    fi\n}\n") : rc;
}

enum sy_code
completions_zsh_help(struct buf *out)
{
    enum sy_code rc = buf_add_str(out, "                '1:command:(");

    rc = rc == SY_E_OK ? add_verbs(out, cli_verbs, false) : rc;
    rc = rc == SY_E_OK ? buf_add_str(out, ")' \\\n                '2:subcommand:{case $words[2] in")
                       : rc;
    rc = rc == SY_E_OK ? add_groups(out, " ", ") compadd --", ";;") : rc;
    return rc == SY_E_OK ? buf_add_str(out, " esac}' ;;\n") : rc;
}

enum sy_code
completions_fish_keys(struct buf *out)
{
    const struct config_key_info *k = NULL;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && (k = config_key(i)) != NULL; i++) {
        const char *values = values_of(k);

        rc = values != NULL ? add_values(out, values, k->key) : buf_addf(out, " %s=", k->key);
    }
    return rc;
}

enum sy_code
completions_fish_help(struct buf *out)
{
    enum sy_code rc =
        buf_add_str(out, "complete -c shellyard -n '__fish_seen_subcommand_from help; "
                         "and not __fish_seen_subcommand_from");

    rc = rc == SY_E_OK ? add_verbs(out, cli_verbs, false) : rc;
    rc = rc == SY_E_OK ? buf_add_str(out, "' -f -a '") : rc;
    rc = rc == SY_E_OK ? add_verbs(out, cli_verbs, false) : rc;
    return rc == SY_E_OK ? buf_add_str(out, "'\n") : rc;
}

enum sy_code
completions_bash_with_values(struct buf *out, const struct cli_option *options)
{
    enum sy_code rc = SY_E_OK;
    const char *between = "";

    for (size_t i = 0; options[i].name != NULL && rc == SY_E_OK; i++) {
        if (options[i].arg == NULL) {
            continue;
        }
        rc = buf_addf(out, "%s--%s", between, options[i].name);
        if (rc == SY_E_OK && options[i].letter != '\0') {
            rc = buf_addf(out, "|-%c", options[i].letter);
        }
        between = "|";
    }
    return rc;
}
