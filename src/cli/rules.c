#include "cli/rules.h"
#include "cli/approvals.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "approval/inner.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/command.h"
#include "guard/guard.h"
#include "store/access.h"
#include "store/rule.h"

void
cli_rules_place_fini(struct cli_rules_place *p)
{
    mem_free(p->user_path);
    mem_free(p->home);
    *p = (struct cli_rules_place){0};
}

enum sy_code
cli_rules_place_find(struct cli_rules_place *ret, char *const *environ_list, struct sy_error *err)
{
    SY_AUTO(mem_free_charp) char *passwd_shell = NULL;
    SY_AUTO(mem_free_charp) char *passwd_home = NULL;
    struct config_sources sources = {.environ_list = environ_list};
    enum sy_code rc = SY_E_OK;

    *ret = (struct cli_rules_place){0};
    if (config_user_home(&sources) == NULL) {
        rc = passwd_lookup(getuid(), &passwd_shell, &passwd_home, err);
        sources.home = passwd_home;
    }
    if (rc == SY_E_OK) {
        rc = config_user_file(&ret->user_path, &sources, "rules.yaml", err);
    }
    if (rc == SY_E_OK && config_user_home(&sources) != NULL) {
        ret->home = mem_strdup(config_user_home(&sources));
        rc = ret->home != NULL ? SY_E_OK : sy_err_nomem(err);
    }
    return rc;
}

static int64_t
now_seconds(void)
{
    return clock_wall_ns() / 1000000000;
}

/* Both files; `workspace`: the directory of the commands they are for, or NULL. */
static enum sy_code
load(struct rules *ret, const char *workspace, struct sy_error *err)
{
    SY_AUTO(cli_rules_place_fini) struct cli_rules_place place = {0};
    enum sy_code rc = cli_rules_place_find(&place, environ, err);
    const struct rules_sources sources = {
        .user_path = place.user_path, .workspace = workspace, .home = place.home};

    return rc == SY_E_OK ? rules_load(ret, &sources, err) : rc;
}

static int
finish(enum sy_code rc, const struct buf *text, int status)
{
    struct sy_error err = {0};

    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "printing the rules: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(text, status);
}

static enum sy_code
list_text(struct buf *out, const struct rules *r, size_t answers_len)
{
    enum sy_code rc = r->n + r->programs_n + r->network_n + answers_len == 0
                          ? buf_add_str(out, "no rules\n")
                          : SY_E_OK;
    struct rule_title title;
    int64_t now = now_seconds();

    for (size_t i = 0; rc == SY_E_OK && i < r->n; i++) {
        const struct rule *rule = &r->rules[i];

        rc = buf_addf(out, "%-7s %s%s%s%s  (%s:%zu)%s%s\n", rule_decision_name(rule->decision),
                      rule_title(&title, rule), rule->cwds.n > 0 ? ", in some directories" : "",
                      rule->lifts_sandbox ? ", outside the sandbox" : "",
                      rule_has_expired(rule, now) ? ", expired" : "", rule->at.name, rule->at.line,
                      rule->reason != NULL ? " " : "", rule->reason != NULL ? rule->reason : "");
    }
    for (size_t i = 0; rc == SY_E_OK && i < r->network_n; i++) {
        const struct rule_network *n = &r->network[i];

        rc = buf_addf(out, "%-7s %s by %s  (%s:%zu)%s%s\n", rule_decision_name(n->decision),
                      n->host, rule_protocol_name(n->protocol), n->at.name, n->at.line,
                      n->reason != NULL ? " " : "", n->reason != NULL ? n->reason : "");
    }
    for (size_t i = 0; rc == SY_E_OK && i < r->programs_n; i++) {
        rc = buf_addf(out, "program %s: %zu paths  (%s:%zu)\n", r->programs[i].name,
                      r->programs[i].paths.n, r->programs[i].at.name, r->programs[i].at.line);
    }
    return rc;
}

static void
json_place(struct jw *w, const struct place *at)
{
    jw_key_str(w, "file", at->name);
    jw_key_int(w, "line", (int64_t)at->line);
}

static void
json_rule(struct jw *w, const struct rule *r, int64_t now)
{
    struct rule_title title;

    jw_object(w);
    jw_key_str(w, "decision", rule_decision_name(r->decision));
    jw_key_str(w, "title", rule_title(&title, r));
    jw_key_list(w, "program", strv_view(&r->programs));
    jw_key(w, "args");
    jw_array(w);
    for (size_t i = 0; i < r->args_n; i++) {
        jw_array(w);
        for (size_t k = 0; k < r->args[i].n; k++) {
            jw_str(w, r->args[i].v[k]);
        }
        jw_end_array(w);
    }
    jw_end_array(w);
    jw_key_bool(w, "outside_sandbox", r->lifts_sandbox);
    jw_key_list(w, "cwd", strv_view(&r->cwds));
    jw_key_list(w, "env", strv_view(&r->env));
    jw_key_bool(w, "expired", rule_has_expired(r, now));
    if (r->steer.n > 0) {
        jw_key_list(w, "steer", strv_view(&r->steer));
        jw_key_bool(w, "steer_runs", r->steer_runs);
    }
    if (r->reason != NULL) {
        jw_key_str(w, "reason", r->reason);
    }
    json_place(w, &r->at);
    jw_end_object(w);
}

static enum sy_code
write_answers(struct buf *out, bool is_json, const struct store_rules *list)
{
    struct jw w = {.out = out};

    if (is_json) {
        jw_array(&w);
        for (size_t i = 0; i < list->n; i++) {
            jw_object(&w);
            jw_key_str(&w, "id", list->v[i].id);
            jw_key_list(&w, "prefix", strv_view(&list->v[i].prefix));
            jw_key_bool(&w, "outside_sandbox", list->v[i].lifts_sandbox);
            jw_key_int(&w, "created_ms", list->v[i].created_ms);
            jw_key_str(&w, "decided_by", list->v[i].decided_by);
            jw_end_object(&w);
        }
        jw_end_array(&w);
        return jw_done(&w);
    }

    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        const struct store_rule *r = &list->v[i];

        rc = buf_add_str(out, "allow  ");
        for (size_t k = 0; k < r->prefix.n && rc == SY_E_OK; k++) {
            rc = buf_add_char(out, ' ');
            if (rc == SY_E_OK) {
                rc = str_add_visible(out, r->prefix.v[k], strlen(r->prefix.v[k]), 200);
            }
        }
        if (rc == SY_E_OK) {
            rc = buf_addf(out, "%s  (an answer, %s)\n",
                          r->lifts_sandbox ? ", outside the sandbox" : "", r->id);
        }
    }
    return rc;
}

static enum sy_code
list_json(struct buf *out, const struct rules *r, const char *answers, const char *accesses)
{
    struct jw w = {.out = out};
    int64_t now = now_seconds();

    jw_object(&w);
    jw_key(&w, "rules");
    jw_array(&w);
    for (size_t i = 0; i < r->n; i++) {
        json_rule(&w, &r->rules[i], now);
    }
    jw_end_array(&w);
    jw_key(&w, "programs");
    jw_array(&w);
    for (size_t i = 0; i < r->programs_n; i++) {
        jw_object(&w);
        jw_key_str(&w, "name", r->programs[i].name);
        jw_key_list(&w, "paths", strv_view(&r->programs[i].paths));
        json_place(&w, &r->programs[i].at);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_key(&w, "network");
    jw_array(&w);
    for (size_t i = 0; i < r->network_n; i++) {
        const struct rule_network *n = &r->network[i];

        jw_object(&w);
        jw_key_str(&w, "host", n->host);
        jw_key_str(&w, "protocol", rule_protocol_name(n->protocol));
        jw_key_str(&w, "decision", rule_decision_name(n->decision));
        if (n->reason != NULL) {
            jw_key_str(&w, "reason", n->reason);
        }
        json_place(&w, &n->at);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_key(&w, "answers");
    jw_raw(&w, answers, strlen(answers));
    jw_key(&w, "accesses");
    jw_raw(&w, accesses, strlen(accesses));
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

/* Behind the rules of the files: those that answers made; SY_E_OK without a store. */
static enum sy_code
list_answers(struct buf *out, struct buf *accesses, bool is_json, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    struct store *st = NULL;
    struct store_rules list = {0};
    enum sy_code rc = SY_E_OK;

    if (guard_state_dir(&dir, environ) == SY_E_OK && store_exists(buf_view(&dir))) {
        rc = cli_approvals_open(&st, err);
    }
    if (rc == SY_E_OK && st != NULL) {
        rc = store_rules_get(&list, st, err);
    }
    rc = rc == SY_E_OK ? write_answers(out, is_json, &list) : rc;
    rc = rc == SY_E_OK ? cli_rules_list_accesses(accesses, is_json, st, err) : rc;
    store_rules_fini(&list);
    store_close(st);
    return rc;
}

static int
remove_main(const struct cli_args *args)
{
    struct store *st = NULL;
    struct sy_error err = {0};
    enum sy_code rc = cli_approvals_open(&st, &err);

    if (rc == SY_E_OK) {
        rc = store_rule_remove(st, args->operands[0], &err);
    }
    if (rc == SY_E_NOTFOUND) {
        rc = store_access_remove(st, args->operands[0], &err);
    }
    store_close(st);
    return rc == SY_E_OK ? 0 : cli_fail(&err);
}

static int
list_main(const struct cli_args *args)
{
    bool is_json = cli_get(args, "json") != NULL;
    SY_AUTO(rules_fini) struct rules rules = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    SY_AUTO(buf_fini) struct buf answers = {.max = LIMIT_CLI_TEXT};
    SY_AUTO(buf_fini) struct buf accesses = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc = load(&rules, NULL, &err);

    if (rc == SY_E_OK) {
        rc = list_answers(&answers, &accesses, is_json, &err);
    }
    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }
    rc = is_json ? list_json(&text, &rules, buf_view(&answers), buf_view(&accesses))
                 : list_text(&text, &rules, answers.len + accesses.len);
    if (rc == SY_E_OK && !is_json) {
        rc = buf_addf(&text, "%s%s", buf_view(&answers), buf_view(&accesses));
    }
    return finish(rc, &text, 0);
}

/* Rules that allow more than they seem to. */
static enum sy_code
note_wide(struct buf *out, const struct rules *r)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->n; i++) {
        const struct rule *rule = &r->rules[i];
        SY_AUTO(strv_fini) struct strv prefix = {.max = LIMIT_RULE_WORDS + 1};
        struct rule_title title;

        rc = strv_add(&prefix, rule->programs.v[0]);
        for (size_t k = 0; rc == SY_E_OK && k < rule->args_n; k++) {
            rc = strv_add(&prefix, rule->args[k].v[0]);
        }
        if (rc == SY_E_OK && rule->decision == RULE_ALLOW && !rule_may_propose(&prefix)) {
            rc = buf_addf(out, "%s:%zu: note: to allow '%s' is to allow whatever it runs\n",
                          rule->at.name, rule->at.line, rule_title(&title, rule));
        }
        if (rc == SY_E_OK && rule_has_expired(rule, now_seconds())) {
            rc = buf_addf(out, "%s:%zu: note: the rule for '%s' has expired\n", rule->at.name,
                          rule->at.line, rule_title(&title, rule));
        }
    }
    return rc;
}

static enum sy_code
read_one(struct rules *ret, const char *path, struct sy_error *err)
{
    SY_AUTO(cli_rules_place_fini) struct cli_rules_place place = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_RULES_FILE};
    enum sy_code rc = cli_rules_place_find(&place, environ, err);

    if (rc == SY_E_OK) {
        rc = fd_read_file(path, &text, err);
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "%s: the file is larger than %u bytes", path,
                          LIMIT_RULES_FILE);
    }

    const struct place_text in = {.name = path, .text = buf_view(&text), .len = text.len};

    return rc == SY_E_OK ? rules_read(ret, &in, place.home, err) : rc;
}

static int
check_main(const struct cli_args *args)
{
    SY_AUTO(rules_fini) struct rules rules = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc =
        args->n_operands > 0 ? read_one(&rules, args->operands[0], &err) : load(&rules, NULL, &err);

    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }
    rc = note_wide(&text, &rules);
    if (rc == SY_E_OK) {
        rc = buf_addf(&text, "good: %zu rules, %zu programs, %zu network rules\n", rules.n,
                      rules.programs_n, rules.network_n);
    }
    return finish(rc, &text, 0);
}

static enum sy_code
verdict_text(struct buf *out, const struct rule_verdict *v)
{
    enum sy_code rc = buf_addf(out, "%s\n", rule_decision_name(v->decision));

    if (rc == SY_E_OK && v->by == NULL) {
        return buf_add_str(out, "  no rule matches: the approval policy decides\n");
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "  %s\n  rule: %s:%zu\n", v->reason, v->by->at.name, v->by->at.line);
    }
    if (rc == SY_E_OK && v->lifts_sandbox) {
        rc =
            buf_add_str(out, "  outside the sandbox, unless a sandboxed command could have put the "
                             "program there\n");
    }
    return rc == SY_E_OK && v->steers
               ? buf_addf(out, "  the better command is %s\n", v->steer_runs ? "run" : "told")
               : rc;
}

static enum sy_code
verdict_json(struct buf *out, const struct rule_verdict *v)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_str(&w, "decision", rule_decision_name(v->decision));
    if (v->by != NULL) {
        jw_key_bool(&w, "outside_sandbox", v->lifts_sandbox);
        jw_key_str(&w, "reason", v->reason);
        jw_key(&w, "rule");
        json_rule(&w, v->by, now_seconds());
    }
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static enum sy_code
resolve_cwd(char ret[LIMIT_PATH], const char *dir, struct sy_error *err)
{
    SY_AUTO(mem_free_charp) char *real = NULL;
    char buffer[LIMIT_PATH];

    real = realpath(dir, buffer) != NULL ? mem_strdup(buffer) : NULL;
    if (real == NULL) {
        return sy_err_set(err, SY_E_CWD, "the directory '%s' can't be resolved", dir);
    }
    memcpy(ret, real, strlen(real) + 1);
    return SY_E_OK;
}

/* As for a call: what it starts in its turn is asked about and forbidden too. */
static enum sy_code
find_hidden(struct inner *ret, const struct strv *argv, const char *cwd, struct sy_error *err)
{
    struct script_reader *reader = script_reader_new();
    char *const *words = strv_view(argv) + rule_assignments(argv);
    const struct judge_world world = {
        .reader = reader,
        .cwd = cwd,
        .path_list = getenv("PATH"),
        .find_program = judge_find_program,
        .has_file = judge_has_file,
    };
    enum sy_code rc = reader == NULL     ? sy_err_nomem(err)
                      : words[0] == NULL ? SY_E_OK
                                         : inner_find(ret, &world, words, false, err);

    script_reader_free(reader);
    return rc;
}

static int
test_main(const struct cli_args *args)
{
    static const bool is_trusted = true;
    SY_AUTO(inner_fini) struct inner hidden = {0};
    SY_AUTO(rules_fini) struct rules rules = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    SY_AUTO(strv_fini) struct strv argv = {.max = LIMIT_ARGV};
    char cwd[LIMIT_PATH];
    struct rule_script script = {.commands = &argv,
                                 .n = 1,
                                 .is_whole = true,
                                 .has_assignments = true,
                                 .is_trusted = &is_trusted,
                                 .cwd = cwd,
                                 .now = now_seconds()};
    struct rule_verdict v;
    struct sy_error err = {0};
    const char *dir = cli_get(args, "cwd");
    enum sy_code rc = resolve_cwd(cwd, dir != NULL ? dir : ".", &err);

    if (rc == SY_E_OK) {
        rc = load(&rules, cwd, &err);
    }
    if (rc == SY_E_OK && strv_add_all(&argv, args->operands) != SY_E_OK) {
        rc = sy_err_nomem(&err);
    }
    if (rc == SY_E_OK) {
        rc = find_hidden(&hidden, &argv, cwd, &err);
    }
    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }
    script.hidden = hidden.v;
    script.hidden_n = hidden.n;
    rules_decide(&v, &rules, &script);
    rc = cli_get(args, "json") != NULL ? verdict_json(&text, &v) : verdict_text(&text, &v);
    return finish(rc, &text, v.decision == RULE_ALLOW ? 0 : 1);
}

static const struct cli_option json_options[] = {
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

static const struct cli_option no_options[] = {
    CLI_OPTION_END,
};

static const struct cli_option test_options[] = {
    {'C', "cwd", "DIR", "DIR", "the command's directory"},
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

static const struct cli_verb verb_rules_list = {
    .name = "list",
    .summary = "List the rules that count here, and where each stands",
    .operands = "",
    .page = "shellyard-rules.1",
    .options = json_options,
    .run = list_main,
};

static const struct cli_verb verb_rules_check = {
    .name = "check",
    .summary = "Read rules and their examples, and tell the first thing that is wrong",
    .operands = "[FILE]",
    .text = "Without FILE the rules of the system and of the user are read.\n",
    .page = "shellyard-rules.1",
    .options = no_options,
    .max_operands = 1,
    .run = check_main,
};

static const struct cli_verb verb_rules_test = {
    .name = "test",
    .summary = "Tell which rule decides about a command, without running it",
    .operands = "[--] COMMAND [ARGUMENT...]",
    .text = "Words NAME=value in front of the command are variables, as in a shell.\n"
            "The exit status is 0 if a rule allows it, else 1.\n",
    .page = "shellyard-rules.1",
    .options = test_options,
    .min_operands = 1,
    .max_operands = LIMIT_ARGV,
    .ends_options = true,
    .examples = "  shellyard rules test -- git push origin main\n",
    .run = test_main,
};

static const struct cli_verb verb_rules_remove = {
    .name = "remove",
    .summary = "Take back a rule that an answer made",
    .operands = "ID",
    .text = "ID is shown by `rules list`. Rules in files are yours to edit.\n",
    .page = "shellyard-rules.1",
    .options = no_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = remove_main,
};

static const struct cli_verb *const rules_verbs[] = {
    &verb_rules_list,   &verb_rules_check,  &verb_rules_test,
    &verb_rules_remove, &verb_rules_import, NULL,
};

const struct cli_verb verb_rules = {
    .name = "rules",
    .summary = "List, check, test, remove and import rules about commands",
    .operands = "list|check|test|remove|import",
    .page = "shellyard-rules.1",
    .options = no_options,
    .verbs = rules_verbs,
};
