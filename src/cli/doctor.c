#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/approvals.h"
#include "cli/clients.h"
#include "cli/doctor_internal.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "command/command.h"
#include "guard/guard.h"
#include "hook/hook.h"
#include "orchestrator/orchestrator.h"
#include "process/launcher.h"
#include "tools/comment.h"
#include "tools/tools.h"

static const char *const level_names[] = {
    [LEVEL_OK] = "ok", [LEVEL_WARN] = "warn", [LEVEL_FAIL] = "fail"};

/* A login shell slower than this is felt at the first command. */
#define SLOW_LOGIN_MS 1000

static void
doctor_fini(struct doctor *d)
{
    if (d->session != NULL) {
        session_free(d->session);
    }
    cli_engine_fini(&d->engine);
}

void
doctor_find(struct doctor *d, enum level level, const char *name, const char *fix, const char *fmt,
            ...)
{
    SY_ASSERT(d->n < FINDINGS_MAX);

    struct finding *f = &d->findings[d->n++];
    va_list ap;

    f->level = level;
    f->name = name;
    va_start(ap, fmt);
    if (vsnprintf(f->text, sizeof(f->text), fmt, ap) < 0) {
        f->text[0] = '\0';
    }
    va_end(ap);
    if (fix != NULL && strlen(fix) < sizeof(f->fix)) {
        memcpy(f->fix, fix, strlen(fix) + 1);
    }
}

static void
check_program(struct doctor *d)
{
    struct sy_error err = {0};
    char path[LIMIT_PATH];

    if (cli_self_path(path, &err) != SY_E_OK) {
        doctor_find(d, LEVEL_WARN, "program", "mount /proc", "%s", err.msg);
        return;
    }
    doctor_find(d, LEVEL_OK, "program", NULL, "shellyard %s, %s", SY_VERSION, path);
}

/* What needs it does without, and says so in the log; hence no failure. */
static void
check_http(struct doctor *d)
{
    char path[LIMIT_PATH];

    if (cli_http_path(path) != NULL) {
        doctor_find(d, LEVEL_OK, "connections", NULL, "%.200s", path);
    } else {
        doctor_find(d, LEVEL_WARN, "connections", "install Shellyard whole (libexec/shellyard)",
                    "shellyard-http is missing: nothing can be sent anywhere");
    }
}

static void
check_config(struct doctor *d)
{
    struct session_options options = {0};
    char launcher[LIMIT_PATH];
    struct sy_error err = {0};
    enum sy_code rc = cli_engine_load(&d->engine, d->args, NULL, NULL, &err);

    if (rc == SY_E_OK) {
        rc = cli_engine_turn_found(&d->engine, &err);
    }
    if (rc != SY_E_OK) {
        doctor_find(d, LEVEL_FAIL, err.code == SY_E_CWD ? "working directory" : "configuration",
                    err.code == SY_E_CWD ? "go to a directory that is there"
                                         : "correct the file, variable or flag it names",
                    "%s", err.msg);
        return;
    }
    doctor_find(d, LEVEL_OK, "configuration", NULL, "sandbox %s, approval %s",
                d->engine.config.sandbox.mode, d->engine.config.approval.policy);
    session_options_from_config(&options, &d->engine.config, environ);
    rc = session_new(&d->session, &options, &err);
    if (rc == SY_E_OK) {
        rc = session_use_launcher(d->session, cli_launcher_path(launcher), &err);
    }
    if (rc != SY_E_OK) {
        doctor_find(d, LEVEL_FAIL, "engine", NULL, "%s", err.msg);
    }
}

static void
check_sandbox(struct doctor *d)
{
    static const char fix[] = "see 'shellyard sandbox check'";
    struct sandbox_plan *plan = NULL;
    struct sandbox_caps caps;
    char launcher[LIMIT_PATH];
    struct sy_error err = {0};
    char absent[SY_ERR_MSG_MAX] = "";
    size_t len = 0;

    if (d->session == NULL) {
        return;
    }
    sandbox_probe(&caps);
    launcher_probe(&caps, cli_launcher_path(launcher), &d->engine.turn.sandbox);
    if (sandbox_plan_new(&plan, &d->engine.turn.sandbox, &caps, &err) != SY_E_OK) {
        doctor_find(d, LEVEL_FAIL, "sandbox", fix, "%s", err.msg);
        sandbox_plan_free(plan);
        return;
    }
    doctor_find(d, LEVEL_OK, "sandbox", NULL, "%s, Landlock ABI %d, Linux %s",
                sandbox_tier_name(sandbox_plan_tier(plan)), sandbox_plan_abi(plan), caps.release);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        enum sandbox_feature f = (enum sandbox_feature)i;
        size_t more = strlen(sandbox_feature_name(f)) + 2;

        if (sandbox_plan_feature(plan, f) == FEATURE_ABSENT && sandbox_feature_is_wall(f) &&
            len + more < sizeof(absent)) {
            len += (size_t)snprintf(absent + len, sizeof(absent) - len, "%s%s", len > 0 ? ", " : "",
                                    sandbox_feature_name(f));
        }
    }
    if (len > 0 && sandbox_mode_is_enforced(d->engine.turn.sandbox.mode)) {
        doctor_find(d, LEVEL_WARN, "sandbox features", fix, "absent here: %s", absent);
    }
    sandbox_plan_free(plan);
}

static void
check_shell(struct doctor *d)
{
    const struct shell *shell = NULL;
    struct sy_error err = {0};

    if (d->session == NULL) {
        return;
    }
    if (session_shell(d->session, &shell, &err) != SY_E_OK) {
        doctor_find(d, LEVEL_FAIL, "shell", "set shell.path to a bash, zsh or sh", "%s", err.msg);
        return;
    }
    doctor_find(d, LEVEL_OK, "shell", NULL, "%s (%s)", shell->path, shell->kind->name);
}

/* Runs `true` through the whole pipeline; milliseconds in *ret_ms. */
static bool
run_true(struct doctor *d, bool login, double *ret_ms, char note[SY_ERR_MSG_MAX])
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = "exec", .login = login};
    struct orch_call *call = NULL;
    struct sy_error err = {0};

    note[0] = '\0';
    request.params.argv.max = LIMIT_ARGV;
    request.params.env.max = LIMIT_ENV;
    request.params.expiration.kind = EXPIRE_DEFAULT;
    request.params.cwd = mem_strdup(d->engine.cwd);
    request.call_id = mem_strdup("doctor");
    request.script = mem_strdup("true");
    if (request.params.cwd == NULL || request.call_id == NULL || request.script == NULL) {
        sy_err_nomem(&err);
    }

    uint64_t start = clock_mono_ns();

    if (err.code != SY_E_OK ||
        orch_submit(&call, d->session, &d->engine.turn, &request, &err) != SY_E_OK) {
        memcpy(note, err.msg, SY_ERR_MSG_MAX);
        return false;
    }
    orch_run(call, -1);
    *ret_ms = (double)(clock_mono_ns() - start) / 1e6;

    const struct exec_output *o = orch_output(call);
    bool good = o->status == EXEC_EXITED && o->exit_code == 0;

    d->tier = o->plan != NULL ? sandbox_tier_name(sandbox_plan_tier(o->plan)) : "no sandbox";

    if (o->err.code != SY_E_OK) {
        memcpy(note, o->err.msg, SY_ERR_MSG_MAX);
    } else if (o->note[0] != '\0') {
        (void)snprintf(note, SY_ERR_MSG_MAX, "%.*s",
                       exec_sentence_room(o->note, SY_ERR_MSG_MAX - 1), o->note);
    } else if (!good) {
        (void)snprintf(note, SY_ERR_MSG_MAX, "it ended with status %d", o->exit_code);
    }
    orch_call_free(call);
    return good;
}

static void
check_commands(struct doctor *d)
{
    char note[SY_ERR_MSG_MAX];
    double ms = 0;

    if (d->session == NULL) {
        return;
    }
    if (run_true(d, false, &ms, note)) {
        doctor_find(d, LEVEL_OK, "a command", NULL, "'true' ran, %s, %.2f ms", d->tier, ms);
    } else {
        doctor_find(d, LEVEL_FAIL, "a command", "see 'shellyard sandbox check'",
                    "'true' did not run in the sandbox: %s", note);
        return;
    }
    if (!d->engine.config.shell.snapshot) {
        doctor_find(d, LEVEL_OK, "login environment", NULL, "not taken (shell.snapshot is false)");
    } else if (!run_true(d, true, &ms, note) || note[0] != '\0') {
        doctor_find(d, LEVEL_WARN, "login environment",
                    "look at what your profile does when no terminal is there", "%s", note);
    } else if (ms > SLOW_LOGIN_MS) {
        doctor_find(d, LEVEL_WARN, "login environment", "make your profile faster",
                    "taking it takes %.0f ms, once per engine", ms);
    } else {
        doctor_find(d, LEVEL_OK, "login environment", NULL, "taken in %.0f ms, once per engine",
                    ms);
    }
}

static void
check_rules(struct doctor *d)
{
    SY_AUTO(cli_rules_place_fini) struct cli_rules_place place = {0};
    SY_AUTO(rules_fini) struct rules rules = {0};
    struct sy_error err = {0};
    enum sy_code rc = cli_rules_place_find(&place, environ, &err);
    const struct rules_sources sources = {
        .user_path = place.user_path, .workspace = d->engine.cwd, .home = place.home};

    if (rc == SY_E_OK) {
        rc = rules_load(&rules, &sources, &err);
    }
    if (rc == SY_E_OK) {
        doctor_find(d, LEVEL_OK, "rules", NULL, "%zu in files", rules.n);
    } else {
        doctor_find(d, LEVEL_FAIL, "rules", "mend the file: commands are refused until then", "%s",
                    err.msg);
    }
}

/* By the configuration's own sandbox; a turn may ask for another, and they are looked at then. */
static void
check_hooks(struct doctor *d)
{
    const struct config *c = &d->engine.config;
    const struct strv *lists[] = {&c->hooks.pre_exec, &c->hooks.permission_request};
    struct sy_error err = {0};
    size_t n = 0;

    if (d->session == NULL) {
        return;
    }
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        for (size_t i = 0; i < lists[k]->n; i++, n++) {
            if (hook_check_program(lists[k]->v[i], &d->engine.turn.sandbox, NULL, &err) !=
                SY_E_OK) {
                doctor_find(d, LEVEL_FAIL, "hooks", "commands are refused until then", "%s",
                            err.msg);
                return;
            }
        }
    }
    if (n > 0) {
        doctor_find(d, LEVEL_OK, "hooks", NULL,
                    "%zu before a command, %zu before a person is asked", lists[0]->n, lists[1]->n);
    }
}

/* Where people's answers are kept. */
static void
check_approvals(struct doctor *d)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    struct store *st = NULL;
    struct sy_error err = {0};

    if (guard_state_dir(&dir, environ) != SY_E_OK) {
        doctor_find(
            d, LEVEL_WARN, "approvals",
            "set HOME, to a directory that is there, or XDG_STATE_HOME where shellyard is started",
            "no state directory: what needs a person's approval is refused");
        return;
    }
    if (!store_exists(buf_view(&dir))) {
        if (store_dir_probe(buf_view(&dir), &err) == SY_E_OK) {
            doctor_find(d, LEVEL_OK, "approvals", NULL, "nobody was asked so far");
        } else {
            doctor_find(d, LEVEL_FAIL, "approvals",
                        "mend it, or set XDG_STATE_HOME to a directory of your own; what needs a "
                        "person's approval is refused until then",
                        "%s", err.msg);
        }
        return;
    }
    if (cli_approvals_open(&st, &err) == SY_E_OK) {
        doctor_find(d, LEVEL_OK, "approvals", NULL, "%s", store_path(st));
    } else {
        doctor_find(d, LEVEL_FAIL, "approvals",
                    "what needs a person's approval is refused until then", "%s", err.msg);
    }
    store_close(st);
}

/* It only comments: a warning at most. */
static void
check_assessment(struct doctor *d)
{
    const struct config *config = &d->engine.config;
    struct buf key = {.max = LIMIT_COMMENT_KEY};
    struct sy_error err = {0};

    if (d->session == NULL || config->assessment.url[0] == '\0') {
        return;
    }
    if (config->assessment.model[0] == '\0') {
        doctor_find(d, LEVEL_WARN, "assessment", "set assessment.model",
                    "assessment.url is set and no model: most servers refuse that");
    } else if (config->assessment.key_file[0] != '\0' &&
               commenter_read_key(&key, config->assessment.key_file, &err) != SY_E_OK) {
        doctor_find(d, LEVEL_WARN, "assessment",
                    "without a key requests for approval have no comment", "%s", err.msg);
    } else {
        doctor_find(d, LEVEL_OK, "assessment", NULL,
                    "commands that a person is asked about are sent to %s", config->assessment.url);
    }
    mem_free_secret(key.data, key.cap);
}

static void
check_roots(struct doctor *d)
{
    struct cli_wide list[CLI_WIDE_MAX];
    size_t n = d->session != NULL ? cli_wide_roots(list, &d->engine) : 0;

    for (size_t i = 0; i < n; i++) {
        doctor_find(d, LEVEL_WARN, "writable roots", list[i].fix,
                    "%s: commands may write %s (%.100s)", list[i].what, list[i].extent,
                    list[i].path);
    }
}

/* True if it is connected, be it in another form. */
static bool
check_client(struct doctor *d, const struct client *c, const char *program, const char *path)
{
    char fix[SY_ERR_MSG_MAX];
    struct sy_error err = {0};

    (void)snprintf(fix, sizeof(fix), "shellyard setup %s --write", c->name);
    switch (client_look(c, program, path, &err)) {
    case CLIENT_NO_FILE:
        return false;
    case CLIENT_SET:
        doctor_find(d, LEVEL_OK, c->title, NULL, "configured");
        return true;
    case CLIENT_NOT_SET:
        doctor_find(d, LEVEL_WARN, c->title, fix, "installed, but does not know Shellyard");
        return false;
    case CLIENT_DIFFERS:
        doctor_find(d, LEVEL_WARN, c->title, fix, "configured for another program or form");
        return true;
    case CLIENT_UNREADABLE:
        break;
    }
    (void)snprintf(fix, sizeof(fix), "see 'shellyard setup %s'", c->name);
    doctor_find(d, LEVEL_WARN, c->title, fix, "can't tell: %s", err.msg);
    return false;
}

static void
check_clients(struct doctor *d)
{
    SY_AUTO(buf_fini) struct buf home = {.max = LIMIT_PATH};
    char program[LIMIT_PATH];
    struct sy_error err = {0};
    size_t set = 0;

    if (cli_self_path(program, NULL) != SY_E_OK) {
        return;
    }
    if (client_home(&home, environ, &err) != SY_E_OK) {
        /* Once; those whose directory is named elsewhere can still be looked at. */
        doctor_find(d, LEVEL_WARN, "home", "set HOME where shellyard is started", "%s", err.msg);
    }
    for (size_t i = 0; clients[i].name != NULL; i++) {
        SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

        if (client_path(&path, &clients[i], environ, buf_view(&home), NULL) == SY_E_OK &&
            check_client(d, &clients[i], program, buf_view(&path))) {
            set++;
        }
    }
    if (set == 0) {
        doctor_find(d, LEVEL_WARN, "clients", "shellyard setup CLIENT --write",
                    "none is configured");
    }
}

static enum sy_code
report_text(struct buf *out, const struct doctor *d)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < d->n && rc == SY_E_OK; i++) {
        const struct finding *f = &d->findings[i];

        rc = buf_addf(out, "%-5s %-19s %s\n", level_names[f->level], f->name, f->text);
        if (rc == SY_E_OK && f->fix[0] != '\0') {
            rc = buf_addf(out, "%25s fix: %s\n", "", f->fix);
        }
    }
    return rc;
}

static enum sy_code
report_json(struct buf *out, const struct doctor *d, bool is_failed)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_bool(&w, "ok", !is_failed);
    jw_key(&w, "checks");
    jw_array(&w);
    for (size_t i = 0; i < d->n; i++) {
        jw_object(&w);
        jw_key_str(&w, "level", level_names[d->findings[i].level]);
        jw_key_str(&w, "name", d->findings[i].name);
        jw_key_str(&w, "text", d->findings[i].text);
        if (d->findings[i].fix[0] != '\0') {
            jw_key_str(&w, "fix", d->findings[i].fix);
        }
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static int
doctor_main(const struct cli_args *args)
{
    SY_AUTO(doctor_fini) struct doctor d = {.args = args};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    bool is_failed = false;

    check_program(&d);
    check_http(&d);
    check_config(&d);
    check_sandbox(&d);
    check_shell(&d);
    check_commands(&d);
    doctor_check_kernel(&d);
    doctor_check_path(&d);
    doctor_check_tmpdir(&d);
    check_roots(&d);
    check_rules(&d);
    check_hooks(&d);
    check_approvals(&d);
    check_assessment(&d);
    doctor_check_tool(&d, "git");
    doctor_check_tool(&d, "node");
    check_clients(&d);
    for (size_t i = 0; i < d.n; i++) {
        is_failed = is_failed || d.findings[i].level == LEVEL_FAIL;
    }

    enum sy_code rc =
        cli_get(args, "json") != NULL ? report_json(&text, &d, is_failed) : report_text(&text, &d);

    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "printing the report: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(&text, is_failed ? 1 : 0);
}

static const struct cli_option doctor_options[] = {
    CLI_OPTION_JSON,
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

const struct cli_verb verb_doctor = {
    .name = "doctor",
    .summary = "Check that everything is in place, and say what to do where it is not",
    .operands = "",
    .text = "Ends with 1 if a check failed; warnings do not count.\n",
    .page = "shellyard-doctor.1",
    .options = doctor_options,
    .run = doctor_main,
};
