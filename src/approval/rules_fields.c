#include <string.h>

#include "approval/rules_internal.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

/* An absolute path as it is: nothing in it that means another place than it
 * reads. "~/" is the home directory. */
static enum sy_code
expand_path(struct rules_reader *r, char **path, const struct place *at)
{
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
    const char *text = *path;
    struct place_shown shown;
    enum sy_code rc = SY_E_OK;

    (void)place_visible(&shown, text, strlen(text));
    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0')) {
        if (r->home == NULL || r->home[0] != '/') {
            return place_error(r->err, at, "'%s': HOME is not set to an absolute path", shown.text);
        }
        rc = buf_add_str(&whole, r->home);
        text++;
    } else if (text[0] != '/') {
        return place_error(r->err, at,
                           "expected an absolute path or one that begins with '~/', got '%s'",
                           shown.text);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(&whole, text);
    }
    while (whole.len > 1 && whole.data[whole.len - 1] == '/') {
        whole.data[--whole.len] = '\0';
    }
    if (rc == SY_E_OK) {
        rc = path_normalize(&plain, buf_view(&whole));
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_LIMIT
                   ? place_error(r->err, at, "a path of more than %u bytes", LIMIT_PATH)
                   : sy_err_nomem(r->err);
    }
    if (!str_eq(buf_view(&whole), buf_view(&plain))) {
        return place_error(r->err, at, "'%s': write the path out, without '.', '..' and '//'",
                           shown.text);
    }
    mem_free(*path);
    *path = buf_take(&plain);
    return *path != NULL ? SY_E_OK : sy_err_nomem(r->err);
}

static enum sy_code
read_programs(struct rules_reader *r, void *into)
{
    struct rule *rule = into;
    struct place at = rules_here(r);
    enum sy_code rc = rules_read_words(r, &rule->programs, "the name of a program", false);

    for (size_t i = 0; rc == SY_E_OK && i < rule->programs.n; i++) {
        char **program = &rule->programs.v[i];

        if ((*program)[0] == '/' || (*program)[0] == '~') {
            rc = expand_path(r, program, &at);
        }
    }
    return rc == SY_E_OK ? rules_check_programs(&rule->programs, &at, r->err) : rc;
}

static enum sy_code
read_position(struct rules_reader *r, void *into)
{
    struct rule *rule = into;
    struct place at = rules_here(r);

    if (rule->args_n == LIMIT_RULE_WORDS) {
        return place_error(r->err, &at, "more than %u arguments", LIMIT_RULE_WORDS);
    }

    struct strv *more = mem_realloc(rule->args, (rule->args_n + 1) * sizeof(*more));

    if (more == NULL) {
        return sy_err_nomem(r->err);
    }
    rule->args = more;
    more[rule->args_n++] = (struct strv){0};
    return rules_read_words(r, &more[rule->args_n - 1], "an argument", true);
}

static enum sy_code
read_args(struct rules_reader *r, void *into)
{
    return rules_read_list(r, "a list of arguments such as [status, [-s, --short]]", read_position,
                           into);
}

static enum sy_code
read_decision(struct rules_reader *r, void *into)
{
    struct rule *rule = into;

    return rules_read_decision(r, &rule->decision);
}

static enum sy_code
read_outside(struct rules_reader *r, void *into)
{
    struct rule *rule = into;

    return rules_read_bool(r, &rule->lifts_sandbox);
}

static enum sy_code
read_cwd(struct rules_reader *r, void *into)
{
    struct rule *rule = into;
    struct place at = rules_here(r);
    enum sy_code rc = rules_read_words(r, &rule->cwds, "a directory", false);

    for (size_t i = 0; rc == SY_E_OK && i < rule->cwds.n; i++) {
        rc = expand_path(r, &rule->cwds.v[i], &at);
    }
    return rc;
}

static bool
is_variable(const char *entry)
{
    static const char digits[] = "0123456789";
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t len = strspn(entry, letters);

    return len > 0 && strchr(digits, entry[0]) == NULL && (entry[len] == '\0' || entry[len] == '=');
}

static enum sy_code
read_env(struct rules_reader *r, void *into)
{
    struct rule *rule = into;
    struct place at = rules_here(r);
    enum sy_code rc = rules_read_words(r, &rule->env, "NAME or NAME=value", false);

    for (size_t i = 0; rc == SY_E_OK && i < rule->env.n; i++) {
        struct place_shown shown;

        if (!is_variable(rule->env.v[i])) {
            rc = place_error(r->err, &at,
                             "expected NAME or NAME=value (letters, digits and '_', no digit "
                             "first), got '%s'",
                             place_visible(&shown, rule->env.v[i], strlen(rule->env.v[i])));
        }
    }
    return rc;
}

static enum sy_code
read_expires(struct rules_reader *r, void *into)
{
    struct rule *rule = into;
    struct place at = rules_here(r);
    SY_AUTO(mem_free_charp) char *text = NULL;
    struct place_shown shown;
    enum sy_code rc = rules_read_text(r, &text, "a time such as 2026-12-31", false);

    if (rc == SY_E_OK && !rules_parse_time(&rule->expires, text)) {
        return place_error(r->err, &at,
                           "expected a time such as 2026-12-31 or 2026-12-31T12:00:00Z, got '%s'",
                           place_visible(&shown, text, strlen(text)));
    }
    return rc;
}

static enum sy_code
read_reason(struct rules_reader *r, void *into)
{
    struct rule *rule = into;

    return rules_read_text(r, &rule->reason, "a sentence", false);
}

static enum sy_code
read_steer_command(struct rules_reader *r, void *into)
{
    struct rule *rule = into;

    if (r->y.event.type != YAML_SEQUENCE_START_EVENT) {
        return yaml_walk_wrong_part(&r->y, "a list of words such as [uv, pip, \"" RULE_REST "\"]");
    }
    return rules_read_words(r, &rule->steer, "a word", true);
}

static enum sy_code
read_steer_run(struct rules_reader *r, void *into)
{
    struct rule *rule = into;

    return rules_read_bool(r, &rule->steer_runs);
}

static enum sy_code
read_steer(struct rules_reader *r, void *into)
{
    static const struct rules_key keys[] = {
        {"command", read_steer_command},
        {"run",     read_steer_run    },
    };
    static const struct rules_schema schema = {"a better command (command, run)", keys, 2};
    const struct rule *rule = into;
    struct place at = rules_here(r);
    enum sy_code rc = rules_read_mapping(r, &schema, into);

    return rc == SY_E_OK && rule->steer.n == 0
               ? place_error(r->err, &at, "'steer' needs 'command', the better command as a list")
               : rc;
}

static enum sy_code
split_example(struct rules_reader *r, struct strv *ret, const struct place *at)
{
    SY_AUTO(mem_free_charp) char *text = NULL;
    const char *fault = NULL;
    struct place_shown shown;
    enum sy_code rc = rules_read_text(r, &text, "a command", false);

    if (rc != SY_E_OK) {
        return rc;
    }
    ret->max = LIMIT_RULE_WORDS;
    rc = rules_split(ret, text, false, &fault);
    if (rc == SY_E_LIMIT) {
        return place_error(r->err, at, "more than %u words", LIMIT_RULE_WORDS);
    }
    if (rc == SY_E_OK && fault != NULL) {
        return place_error(r->err, at, "'%s' %s", place_visible(&shown, text, strlen(text)), fault);
    }
    return rc != SY_E_OK ? sy_err_nomem(r->err) : SY_E_OK;
}

static enum sy_code
add_example(struct rules_reader *r, struct rule *rule, bool is_match)
{
    struct place at = rules_here(r);

    if (rule->examples_n == LIMIT_RULE_EXAMPLES) {
        return place_error(r->err, &at, "more than %u examples", LIMIT_RULE_EXAMPLES);
    }

    struct rule_example *more = mem_realloc(rule->examples, (rule->examples_n + 1) * sizeof(*more));

    if (more == NULL) {
        return sy_err_nomem(r->err);
    }
    rule->examples = more;
    more += rule->examples_n++;
    *more = (struct rule_example){.at = at, .is_match = is_match};
    return r->y.event.type == YAML_SEQUENCE_START_EVENT
               ? rules_read_words(r, &more->argv, "a word", true)
               : split_example(r, &more->argv, &at);
}

static enum sy_code
add_match(struct rules_reader *r, void *into)
{
    return add_example(r, into, true);
}

static enum sy_code
add_not_match(struct rules_reader *r, void *into)
{
    return add_example(r, into, false);
}

static enum sy_code
read_match(struct rules_reader *r, void *into)
{
    return rules_read_list(r, "a list of commands", add_match, into);
}

static enum sy_code
read_not_match(struct rules_reader *r, void *into)
{
    return rules_read_list(r, "a list of commands", add_not_match, into);
}

enum sy_code
rules_read_rule(struct rules_reader *r, void *unused)
{
    static const struct rules_key keys[] = {
        {"program",         read_programs },
        {"args",            read_args     },
        {"decision",        read_decision },
        {"outside_sandbox", read_outside  },
        {"cwd",             read_cwd      },
        {"env",             read_env      },
        {"expires",         read_expires  },
        {"reason",          read_reason   },
        {"steer",           read_steer    },
        {"match",           read_match    },
        {"not_match",       read_not_match},
    };
    static const struct rules_schema schema = {"a rule", keys, sizeof(keys) / sizeof(keys[0])};
    SY_AUTO(rule_fini) struct rule rule = {.at = rules_here(r)};
    struct place at = rule.at;
    enum sy_code rc = rules_read_mapping(r, &schema, &rule);

    (void)unused;
    if (rc == SY_E_OK) {
        rc = rules_check_rule(&rule, r->err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = rules_add(r->rules, &rule);
    return rc == SY_E_LIMIT ? place_error(r->err, &at, "more than %u rules", LIMIT_RULES)
           : rc != SY_E_OK  ? sy_err_nomem(r->err)
                            : SY_E_OK;
}

static enum sy_code
read_program_name(struct rules_reader *r, void *into)
{
    struct rule_program *p = into;

    return rules_read_text(r, &p->name, "the name of a program", false);
}

static enum sy_code
read_program_path(struct rules_reader *r, void *into)
{
    struct rule_program *p = into;
    struct place at = rules_here(r);
    enum sy_code rc = rules_read_word(r, &p->paths, "an absolute path", false);

    return rc == SY_E_OK ? expand_path(r, &p->paths.v[p->paths.n - 1], &at) : rc;
}

static enum sy_code
read_program_paths(struct rules_reader *r, void *into)
{
    struct rule_program *p = into;

    /* An empty list says that no path is that program. */
    p->paths.max = LIMIT_RULE_WORDS;
    return rules_read_list(r, "a list of absolute paths", read_program_path, into);
}

enum sy_code
rules_read_program(struct rules_reader *r, void *unused)
{
    static const struct rules_key keys[] = {
        {"name",  read_program_name },
        {"paths", read_program_paths},
    };
    static const struct rules_schema schema = {"a program", keys, 2};
    SY_AUTO(rule_program_fini) struct rule_program p = {.at = rules_here(r)};
    struct place at = p.at;
    enum sy_code rc = rules_read_mapping(r, &schema, &p);

    (void)unused;
    if (rc == SY_E_OK) {
        rc = p.name == NULL || p.paths.max == 0 ? place_error(r->err, &at, "a program needs '%s'",
                                                              p.name == NULL ? "name" : "paths")
                                                : rules_check_program(r->rules, &p, r->err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = rules_add_program(r->rules, &p);
    return rc == SY_E_LIMIT ? place_error(r->err, &at, "more than %u programs", LIMIT_RULES)
           : rc != SY_E_OK  ? sy_err_nomem(r->err)
                            : SY_E_OK;
}

static enum sy_code
read_host(struct rules_reader *r, void *into)
{
    struct rule_network *n = into;
    struct place at = rules_here(r);
    enum sy_code rc = rules_read_text(r, &n->host, "a host such as example.com", false);

    return rc == SY_E_OK ? rules_check_host(n->host, &at, r->err) : rc;
}

/* The protocol and whether it was there. */
struct network_entry {
    struct rule_network n; /* first, so that it is what the others read into */
    bool has_protocol;
};

static enum sy_code
read_protocol(struct rules_reader *r, void *into)
{
    struct network_entry *entry = into;
    struct place at = rules_here(r);
    SY_AUTO(mem_free_charp) char *text = NULL;
    struct place_shown shown;
    enum sy_code rc = rules_read_text(r, &text, "a protocol", false);

    for (int p = RULE_PROTOCOL_HTTP; rc == SY_E_OK && p <= RULE_PROTOCOL_SOCKS5_UDP; p++) {
        if (str_eq(text, rule_protocol_name((enum rule_protocol)p))) {
            entry->n.protocol = (enum rule_protocol)p;
            entry->has_protocol = true;
            return SY_E_OK;
        }
    }
    return rc != SY_E_OK ? rc
                         : place_error(r->err, &at,
                                       "expected http, https, socks5_tcp or socks5_udp, got '%s'",
                                       place_visible(&shown, text, strlen(text)));
}

static enum sy_code
read_network_decision(struct rules_reader *r, void *into)
{
    struct network_entry *entry = into;

    return rules_read_decision(r, &entry->n.decision);
}

static enum sy_code
read_network_reason(struct rules_reader *r, void *into)
{
    struct network_entry *entry = into;

    return rules_read_text(r, &entry->n.reason, "a sentence", false);
}

enum sy_code
rules_read_network(struct rules_reader *r, void *unused)
{
    static const struct rules_key keys[] = {
        {"host",     read_host            },
        {"protocol", read_protocol        },
        {"decision", read_network_decision},
        {"reason",   read_network_reason  },
    };
    static const struct rules_schema schema = {"a network rule", keys, 4};
    struct network_entry entry = {.n = {.at = rules_here(r)}};
    struct place at = entry.n.at;
    enum sy_code rc = rules_read_mapping(r, &schema, &entry);
    const char *missing = entry.n.host == NULL            ? "host"
                          : !entry.has_protocol           ? "protocol"
                          : entry.n.decision == RULE_NONE ? "decision"
                                                          : NULL;

    (void)unused;
    if (rc == SY_E_OK && missing != NULL) {
        rc = place_error(r->err, &at, "a network rule needs '%s'", missing);
    } else if (rc == SY_E_OK) {
        rc = rules_add_network(r->rules, &entry.n);
        rc = rc == SY_E_LIMIT ? place_error(r->err, &at, "more than %u network rules", LIMIT_RULES)
             : rc != SY_E_OK  ? sy_err_nomem(r->err)
                              : SY_E_OK;
    }
    rule_network_fini(&entry.n);
    return rc;
}
