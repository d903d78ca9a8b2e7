#include <string.h>

#include "base/str.h"
#include "cli/completions.h"
#include "cli/verbs.h"

/* Appends "a|b|c" with spaces for bars. */
static enum sy_code
add_words(struct buf *out, const char *choices)
{
    enum sy_code rc = SY_E_OK;

    for (const char *c = choices; *c != '\0' && rc == SY_E_OK; c++) {
        rc = *c == '|' ? buf_add_char(out, ' ') : buf_add_char(out, *c);
    }
    return rc;
}

static enum sy_code
add_verb_names(struct buf *out, const struct cli_verb *const *verbs)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; verbs[i] != NULL && rc == SY_E_OK; i++) {
        rc = buf_addf(out, "%s%s", i > 0 ? " " : "", verbs[i]->name);
    }
    return rc;
}

static enum sy_code
add_option_names(struct buf *out, const struct cli_option *options)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; options[i].name != NULL && rc == SY_E_OK; i++) {
        rc = buf_addf(out, "--%s ", options[i].name);
        if (rc == SY_E_OK && options[i].letter != '\0') {
            rc = buf_addf(out, "-%c ", options[i].letter);
        }
    }
    return rc == SY_E_OK ? buf_add_str(out, "--help -h") : rc;
}

/* Calls `fn` for each leaf with its path ("sandbox check"). */
typedef enum sy_code leaf_fn(struct buf *out, const struct cli_verb *parent,
                             const struct cli_verb *verb);

static enum sy_code
each_leaf(struct buf *out, leaf_fn *fn)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; cli_verbs[i] != NULL && rc == SY_E_OK; i++) {
        const struct cli_verb *const *subs = cli_verbs[i]->verbs;

        if (subs == NULL) {
            rc = fn(out, NULL, cli_verbs[i]);
        }
        for (size_t k = 0; subs != NULL && subs[k] != NULL && rc == SY_E_OK; k++) {
            rc = fn(out, cli_verbs[i], subs[k]);
        }
    }
    return rc;
}

static enum sy_code
bash_value_cases(struct buf *out, const struct cli_verb *verb)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; verb->options[i].name != NULL && rc == SY_E_OK; i++) {
        const struct cli_option *o = &verb->options[i];

        if (o->choices == NULL && !completions_is_key(o)) {
            continue;
        }
        rc = o->letter != '\0' ? buf_addf(out, "                --%s|-%c) ", o->name, o->letter)
                               : buf_addf(out, "                --%s) ", o->name);
        if (rc == SY_E_OK && completions_is_key(o)) {
            rc = buf_add_str(out, "words=$keys; compopt -o nospace 2>/dev/null ;;\n");
        } else if (rc == SY_E_OK && str_eq(o->choices, "DIR")) {
            rc = buf_add_str(out, "COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n");
        } else if (rc == SY_E_OK) {
            rc = buf_add_str(out, "words='");
            if (rc == SY_E_OK) {
                rc = add_words(out, o->choices);
            }
            if (rc == SY_E_OK) {
                rc = buf_add_str(out, "' ;;\n");
            }
        }
    }
    return rc;
}

static enum sy_code
bash_leaf(struct buf *out, const struct cli_verb *parent, const struct cli_verb *verb)
{
    enum sy_code rc = parent != NULL ? buf_addf(out, "        '%s %s')\n", parent->name, verb->name)
                                     : buf_addf(out, "        %s)\n", verb->name);

    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "            words='");
    }
    if (rc == SY_E_OK) {
        rc = add_option_names(out, verb->options);
    }
    if (rc == SY_E_OK && verb->operand_choices != NULL) {
        rc = buf_add_char(out, ' ');
        if (rc == SY_E_OK) {
            rc = add_words(out, verb->operand_choices);
        }
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "'\n");
    }
    if (rc == SY_E_OK && verb == &verb_help) {
        rc = completions_bash_help(out);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "            case \"$prev\" in\n");
    }
    if (rc == SY_E_OK) {
        rc = bash_value_cases(out, verb);
    }
    return rc == SY_E_OK ? buf_add_str(out, "                *) ;;\n            esac ;;\n") : rc;
}

static enum sy_code
bash_groups(struct buf *out)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; cli_verbs[i] != NULL && rc == SY_E_OK; i++) {
        if (cli_verbs[i]->verbs == NULL) {
            continue;
        }
        rc = buf_addf(out, "        %s) words='", cli_verbs[i]->name);
        if (rc == SY_E_OK) {
            rc = add_verb_names(out, cli_verbs[i]->verbs);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, "' ;;\n");
        }
    }
    return rc;
}

/* The first word of `exec` that is no option, nor the value of one, is the command: from there on
 * its own completion serves. (bash makes three words of KEY=VALUE.) */
static const char bash_head[] =
    "# bash completion for shellyard, made by `shellyard completions bash`\n"
    "_shellyard()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= path= i\n"
    "    COMPREPLY=()\n"
    "    path=${COMP_WORDS[1]}\n"
    "    if [ \"$path\" = exec ]; then\n"
    "        for ((i = 2; i <= COMP_CWORD; i++)); do\n"
    "            case ${COMP_WORDS[i]} in\n"
    "                --) ((i++)); break ;;\n"
    "                ";

static const char bash_command[] =
    ") [ \"${COMP_WORDS[i+1]}\" != = ] || ((i++))\n"
    "                    ((i++))\n"
    "                    while [ \"${COMP_WORDS[i+1]}\" = = ]; do ((i += 2)); done ;;\n"
    "                -*|'') ;;\n"
    "                *) break ;;\n"
    "            esac\n"
    "        done\n"
    "        if [ \"$i\" -le \"$COMP_CWORD\" ]; then\n"
    "            if declare -F _command_offset >/dev/null; then\n"
    "                _command_offset \"$i\"\n"
    "            else\n"
    "                COMPREPLY=($(compgen -f -c -- \"$cur\"))\n"
    "            fi\n"
    "            return\n"
    "        fi\n"
    "    fi\n";

static const char bash_subcommands[] = "    if [ \"$COMP_CWORD\" -gt 2 ]; then\n"
                                       "        case \"$path ${COMP_WORDS[2]}\" in\n";

static enum sy_code
bash_script(struct buf *out)
{
    enum sy_code rc = buf_add_str(out, bash_head);

    if (rc == SY_E_OK) {
        rc = completions_bash_with_values(out, verb_exec.options);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, bash_command);
    }
    if (rc == SY_E_OK) {
        rc = completions_bash_keys(out);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, bash_subcommands);
    }
    for (size_t i = 0; cli_verbs[i] != NULL && rc == SY_E_OK; i++) {
        const struct cli_verb *const *subs = cli_verbs[i]->verbs;

        for (size_t k = 0; subs != NULL && subs[k] != NULL && rc == SY_E_OK; k++) {
            rc = buf_addf(out, "        '%s %s') path='%s %s' ;;\n", cli_verbs[i]->name,
                          subs[k]->name, cli_verbs[i]->name, subs[k]->name);
        }
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "        *) ;;\n        esac\n    fi\n"
                              "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        path=\n    fi\n"
                              "    case \"$path\" in\n        '') words='");
    }
    if (rc == SY_E_OK) {
        rc = add_verb_names(out, cli_verbs);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, " --help --version' ;;\n");
    }
    if (rc == SY_E_OK) {
        rc = bash_groups(out);
    }
    if (rc == SY_E_OK) {
        rc = each_leaf(out, bash_leaf);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "        *) ;;\n    esac\n"
                              "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                              "}\n"
                              "complete -F _shellyard shellyard\n");
    }
    return rc;
}

/* Text inside '...' of zsh and fish: quotes left out, brackets and colons
 * escaped where zsh gives them a meaning. */
static enum sy_code
add_quoted(struct buf *out, const char *text, const char *escape)
{
    enum sy_code rc = SY_E_OK;

    for (const char *c = text; *c != '\0' && rc == SY_E_OK; c++) {
        if (*c == '\'') {
            continue;
        }
        if (strchr(escape, *c) != NULL) {
            rc = buf_add_char(out, '\\');
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, *c);
        }
    }
    return rc;
}

/* What follows an option: ":DIR:_files -/", ":MODE:(a b)", or nothing. */
static enum sy_code
zsh_value(struct buf *out, const struct cli_option *o)
{
    enum sy_code rc = o->arg != NULL ? buf_addf(out, ":%s:", o->arg) : SY_E_OK;

    if (rc == SY_E_OK && completions_is_key(o)) {
        return buf_add_str(out, "_shellyard_keys");
    }
    if (rc != SY_E_OK || o->choices == NULL) {
        return rc;
    }
    if (str_eq(o->choices, "DIR")) {
        return buf_add_str(out, "_files -/");
    }
    rc = buf_add_char(out, '(');
    if (rc == SY_E_OK) {
        rc = add_words(out, o->choices);
    }
    return rc == SY_E_OK ? buf_add_char(out, ')') : rc;
}

/* One spec for the letter, if there is one, and one for the name. */
static enum sy_code
zsh_option(struct buf *out, const struct cli_option *o)
{
    for (int form = o->letter != '\0' ? 0 : 1; form < 2; form++) {
        enum sy_code rc = form == 0 ? buf_addf(out, "                '-%c[", o->letter)
                                    : buf_addf(out, "                '--%s[", o->name);

        if (rc == SY_E_OK) {
            rc = add_quoted(out, o->help, "[]:");
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, ']');
        }
        if (rc == SY_E_OK) {
            rc = zsh_value(out, o);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, "' \\\n");
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
zsh_leaf(struct buf *out, const struct cli_verb *parent, const struct cli_verb *verb)
{
    enum sy_code rc = parent != NULL ? buf_addf(out, "        '%s %s')\n", parent->name, verb->name)
                                     : buf_addf(out, "        %s)\n", verb->name);

    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "            _arguments -S \\\n");
    }
    for (size_t i = 0; verb->options[i].name != NULL && rc == SY_E_OK; i++) {
        rc = zsh_option(out, &verb->options[i]);
    }
    if (rc == SY_E_OK) {
        rc = zsh_option(out, &cli_common_options[0]);
    }
    if (rc == SY_E_OK && verb == &verb_help) {
        rc = completions_zsh_help(out);
    } else if (rc == SY_E_OK && verb->ends_options) {
        rc = buf_add_str(out, "                '*::command: _normal' ;;\n");
    } else if (rc == SY_E_OK && verb->operand_choices != NULL) {
        rc = buf_add_str(out, "                '1:argument:(");
        if (rc == SY_E_OK) {
            rc = add_words(out, verb->operand_choices);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, ")' '*:file:_files' ;;\n");
        }
    } else if (rc == SY_E_OK) {
        rc = buf_add_str(out, "                '*:file:_files' ;;\n");
    }
    return rc;
}

static enum sy_code
zsh_describe(struct buf *out, const struct cli_verb *const *verbs)
{
    enum sy_code rc = buf_add_str(out, "            words_of=(");

    for (size_t i = 0; verbs[i] != NULL && rc == SY_E_OK; i++) {
        rc = buf_addf(out, " '%s:", verbs[i]->name);
        if (rc == SY_E_OK) {
            rc = add_quoted(out, verbs[i]->summary, ":");
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, '\'');
        }
    }
    return rc == SY_E_OK ? buf_add_str(out, ")\n            _describe command words_of ;;\n") : rc;
}

static enum sy_code
zsh_script(struct buf *out)
{
    enum sy_code rc =
        buf_add_str(out, "#compdef shellyard\n"
                         "# zsh completion for shellyard, made by `shellyard completions zsh`\n");

    if (rc == SY_E_OK) {
        rc = completions_zsh_keys(out);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "_shellyard()\n{\n"
                              "    local -a words_of\n"
                              "    local verb=${words[2]}\n"
                              "    if (( CURRENT == 2 )); then\n        verb=\n    else\n"
                              "        shift words; (( CURRENT-- ))\n    fi\n"
                              "    case $verb in\n    ");
    }

    for (size_t i = 0; cli_verbs[i] != NULL && rc == SY_E_OK; i++) {
        rc = cli_verbs[i]->verbs == NULL ? SY_E_OK : buf_addf(out, "%s|", cli_verbs[i]->name);
    }
    if (rc == SY_E_OK && out->len > 0) {
        out->data[--out->len] = '\0';
        rc = buf_add_str(out, ")\n        if (( CURRENT > 2 )); then\n"
                              "            verb=\"$verb ${words[2]}\"\n"
                              "            shift words; (( CURRENT-- ))\n        fi ;;\n"
                              "    esac\n    case $verb in\n        '')\n");
    }
    if (rc == SY_E_OK) {
        rc = zsh_describe(out, cli_verbs);
    }
    for (size_t i = 0; cli_verbs[i] != NULL && rc == SY_E_OK; i++) {
        if (cli_verbs[i]->verbs != NULL) {
            rc = buf_addf(out, "        %s)\n", cli_verbs[i]->name);
            if (rc == SY_E_OK) {
                rc = zsh_describe(out, cli_verbs[i]->verbs);
            }
        }
    }
    if (rc == SY_E_OK) {
        rc = each_leaf(out, zsh_leaf);
    }
    return rc == SY_E_OK ? buf_add_str(out, "    esac\n}\n"
                                            "if [ \"$funcstack[1]\" = _shellyard ]; then\n"
                                            "    _shellyard \"$@\"\nelse\n"
                                            "    compdef _shellyard shellyard\nfi\n")
                         : rc;
}

/* The condition under which a fish line of this leaf counts. */
static enum sy_code
fish_condition(struct buf *out, const struct cli_verb *parent, const struct cli_verb *verb)
{
    enum sy_code rc = buf_addf(out, "complete -c shellyard -n '__fish_seen_subcommand_from %s",
                               parent != NULL ? parent->name : verb->name);

    if (rc == SY_E_OK && parent != NULL) {
        rc = buf_addf(out, "; and __fish_seen_subcommand_from %s", verb->name);
    }
    return rc == SY_E_OK ? buf_add_char(out, '\'') : rc;
}

static enum sy_code
fish_option(struct buf *out, const struct cli_option *o)
{
    enum sy_code rc = buf_addf(out, " -l %s", o->name);

    if (rc == SY_E_OK && o->letter != '\0') {
        rc = buf_addf(out, " -s %c", o->letter);
    }
    if (rc == SY_E_OK && o->arg != NULL) {
        rc = buf_add_str(out, " -r");
    }
    if (rc == SY_E_OK && o->choices != NULL && str_eq(o->choices, "DIR")) {
        rc = buf_add_str(out, " -a '(__fish_complete_directories)'");
    } else if (rc == SY_E_OK && completions_is_key(o)) {
        rc = buf_add_str(out, " -f -a '");
        rc = rc == SY_E_OK ? completions_fish_keys(out) : rc;
        rc = rc == SY_E_OK ? buf_add_char(out, '\'') : rc;
    } else if (rc == SY_E_OK && o->choices != NULL) {
        rc = buf_add_str(out, " -f -a '");
        if (rc == SY_E_OK) {
            rc = add_words(out, o->choices);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, '\'');
        }
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, " -d '");
    }
    if (rc == SY_E_OK) {
        rc = add_quoted(out, o->help, "");
    }
    return rc == SY_E_OK ? buf_add_str(out, "'\n") : rc;
}

static enum sy_code
fish_leaf(struct buf *out, const struct cli_verb *parent, const struct cli_verb *verb)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; verb->options[i].name != NULL && rc == SY_E_OK; i++) {
        rc = fish_condition(out, parent, verb);
        if (rc == SY_E_OK) {
            rc = fish_option(out, &verb->options[i]);
        }
    }
    if (rc == SY_E_OK && verb->operand_choices != NULL) {
        rc = fish_condition(out, parent, verb);
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, " -f -a '");
        }
        if (rc == SY_E_OK) {
            rc = add_words(out, verb->operand_choices);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, "'\n");
        }
    }
    if (rc == SY_E_OK && verb->ends_options) {
        rc = fish_condition(out, parent, verb);
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, " -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n");
        }
    }
    return rc;
}

static enum sy_code
fish_verb(struct buf *out, const char *condition, const struct cli_verb *verb)
{
    enum sy_code rc =
        buf_addf(out, "complete -c shellyard -f -n '%s' -a %s -d '", condition, verb->name);

    if (rc == SY_E_OK) {
        rc = add_quoted(out, verb->summary, "");
    }
    return rc == SY_E_OK ? buf_add_str(out, "'\n") : rc;
}

static enum sy_code
fish_script(struct buf *out)
{
    enum sy_code rc =
        buf_add_str(out, "# fish completion for shellyard, made by `shellyard completions fish`\n");

    for (size_t i = 0; cli_verbs[i] != NULL && rc == SY_E_OK; i++) {
        const struct cli_verb *const *subs = cli_verbs[i]->verbs;
        SY_AUTO(buf_fini) struct buf condition = {.max = LIMIT_CLI_TEXT};

        rc = fish_verb(out, "__fish_use_subcommand", cli_verbs[i]);
        if (rc == SY_E_OK && subs != NULL) {
            rc = buf_addf(&condition,
                          "__fish_seen_subcommand_from %s; and not "
                          "__fish_seen_subcommand_from ",
                          cli_verbs[i]->name);
        }
        if (rc == SY_E_OK && subs != NULL) {
            rc = add_verb_names(&condition, subs);
        }
        for (size_t k = 0; subs != NULL && subs[k] != NULL && rc == SY_E_OK; k++) {
            rc = fish_verb(out, buf_view(&condition), subs[k]);
        }
    }
    if (rc == SY_E_OK) {
        rc = completions_fish_help(out);
    }
    return rc == SY_E_OK ? each_leaf(out, fish_leaf) : rc;
}

enum sy_code
cli_completions(struct buf *out, const char *shell)
{
    static const struct {
        const char *shell;
        enum sy_code (*make)(struct buf *out);
    } makers[] = {
        {"bash", bash_script},
        {"zsh",  zsh_script },
        {"fish", fish_script},
    };

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        if (str_eq(makers[i].shell, shell)) {
            return makers[i].make(out);
        }
    }
    return SY_E_ARG;
}

static int
completions_main(const struct cli_args *args)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc = cli_completions(&text, args->operands[0]);

    if (rc == SY_E_ARG) {
        sy_err_set(&err, rc, "completions: unknown shell '%s'; right are bash, zsh, fish",
                   args->operands[0]);
        return cli_fail(&err);
    }
    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "completions: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(&text, 0);
}

static const struct cli_option completions_options[] = {
    CLI_OPTION_END,
};

const struct cli_verb verb_completions = {
    .name = "completions",
    .summary = "Print the completion script for a shell",
    .operands = "bash|zsh|fish",
    .examples = "  eval \"$(shellyard completions bash)\"\n"
                "  shellyard completions fish > ~/.config/fish/completions/shellyard.fish\n",
    .page = "shellyard.1",
    .options = completions_options,
    .operand_choices = "bash|zsh|fish",
    .min_operands = 1,
    .max_operands = 1,
    .run = completions_main,
};
