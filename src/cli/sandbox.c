#include "cli/verbs.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "process/audit.h"
#include "process/launcher.h"
#include "process/process.h"
#include "sandbox/sandbox.h"

static void
plan_close(struct sandbox_plan **plan)
{
    if (*plan != NULL) {
        sandbox_plan_free(*plan);
    }
}

/*
 * What each Landlock version added, so that one can say what an older kernel
 * lacks. Where something else holds `feature` all the same, nothing is missing.
 */
static const struct {
    int abi;
    enum sandbox_feature feature; /* FEATURE_COUNT: none is made of it */
    const char *kernel;
    const char *adds;
} landlock_ladder[] = {
    {1, FEATURE_FS_WRITE,      "5.13", "writes outside of writable roots refused"     },
    {2, FEATURE_FS_REFER,      "5.19", "rename and link across directories"           },
    {3, FEATURE_FS_TRUNCATE,   "6.2",  "truncate(2) outside of writable roots refused"},
    {4, FEATURE_NETWORK,       "6.7",  "TCP bind and connect by port"                 },
    {5, FEATURE_DEVICE_IOCTL,  "6.10", "ioctl on devices"                             },
    {6, FEATURE_SIGNAL_SCOPE,  "6.12", "signals kept inside"                          },
    {6, FEATURE_UNIX_ABSTRACT, "6.12", "abstract Unix sockets kept inside"            },
    {7, FEATURE_COUNT,         "6.15", "denials in the audit log"                     },
    {9, FEATURE_UNIX_PATH,     "7.1",  "named Unix sockets of others unreachable"     },
};

#define LADDER_ROWS (sizeof(landlock_ladder) / sizeof(landlock_ladder[0]))

struct check {
    struct sandbox_caps caps;
    struct sandbox_plan *plan; /* NULL: not even planned */
    struct sandbox_ready *ready;
    struct cgroup_home *cgroups; /* NULL: none */
    struct sy_error no_cgroups;  /* why */
    struct sy_error no_audit;    /* why nothing is read from the audit log; SY_E_OK: it is */
    struct sy_error err;         /* why workspace-write can't be held */
    bool loses_deny_read;        /* since what it denies can't be */
};

static void
check_fini(struct check *c)
{
    if (c->ready != NULL) {
        sandbox_ready_free(c->ready);
    }
    cgroup_home_free(c->cgroups);
    plan_close(&c->plan);
}

/* What there is to know about each limit beyond who holds it. */
static const struct {
    enum resource resource;
    const char *text;
} check_limits[] = {
    {RESOURCE_MEMORY,     "of the whole tree"                             },
    {RESOURCE_PROCESSES,  "of the whole tree, threads too"                },
    {RESOURCE_OPEN_FILES, "of each process"                               },
    {RESOURCE_FILE_SIZE,  "of each file"                                  },
    {RESOURCE_CPU,        "of each process; of the whole tree by sampling"},
    {RESOURCE_OUTPUT,     "of the whole tree"                             },
    {RESOURCE_WALL_CLOCK, "of the whole tree"                             },
    {RESOURCE_TEMP,       "of all commands of a session; full tier alone" },
};

#define CHECK_LIMITS (sizeof(check_limits) / sizeof(check_limits[0]))

static const char *
check_means(const struct check *c, enum resource r)
{
    if (r == RESOURCE_TEMP && c->plan != NULL &&
        sandbox_plan_feature(c->plan, FEATURE_TEMP_LIMIT) == FEATURE_ENFORCED) {
        return resource_means_name(MEANS_TMPFS);
    }
    return resource_means_name(process_limit_means(r, c->cgroups));
}

static enum sy_code
check_limits_text(struct buf *out, const struct check *c)
{
    enum sy_code rc = buf_add_str(out, "limits, once they are set:\n");

    for (size_t i = 0; i < CHECK_LIMITS && rc == SY_E_OK; i++) {
        enum resource r = check_limits[i].resource;

        rc = buf_addf(out, "  %-15s %-9s %s\n", resource_name(r), check_means(c, r),
                      check_limits[i].text);
    }
    if (rc == SY_E_OK && c->no_cgroups.code != SY_E_OK) {
        rc = buf_addf(out, "  %s\n", c->no_cgroups.msg);
    }
    return rc;
}

static void
check_limits_json(struct jw *w, const struct check *c)
{
    jw_key(w, "limits");
    jw_object(w);
    for (size_t i = 0; i < CHECK_LIMITS; i++) {
        enum resource r = check_limits[i].resource;

        jw_key(w, resource_name(r));
        jw_object(w);
        jw_key_str(w, "by", check_means(c, r));
        jw_key_str(w, "text", check_limits[i].text);
        jw_end_object(w);
    }
    jw_end_object(w);
    if (c->no_cgroups.code != SY_E_OK) {
        jw_key_str(w, "no_cgroups", c->no_cgroups.msg);
    }
}

/* As a server does, for its time. */
static void
check_audit(struct check *c, bool is_wanted)
{
    struct audit_reader *r = NULL;

    if (!is_wanted) {
        sy_err_set(&c->no_audit, SY_E_NOTFOUND, "sandbox.read_audit is false");
        return;
    }
    c->caps.reads_audit = audit_reader_new(&r, c->caps.landlock_abi, &c->no_audit) == SY_E_OK;
    audit_reader_free(r);
}

/* Where it could be read, and what is refused does not stand there. */
static void
check_logged(struct check *c)
{
    if (c->no_audit.code == SY_E_OK && c->plan != NULL && !sandbox_plan_is_logged(c->plan)) {
        sy_err_set(&c->no_audit, SY_E_NOTFOUND,
                   sandbox_plan_tier(c->plan) == TIER_FULL
                       ? "in the full tier mounts refuse, of which the audit log tells nothing"
                       : "there is no sandbox");
    }
}

/* Could it be held if it denied nothing to be read? Then that feature is not there, whatever the
 * kernel has for it. */
static bool
check_is_denied(const struct check *c, const struct sandbox_policy *policy)
{
    SY_AUTO(sandbox_policy_fini) struct sandbox_policy open = {0};
    struct sandbox_plan *plan = NULL;
    struct sandbox_ready *ready = NULL;
    bool ret = false;

    if (sandbox_policy_copy(&open, policy) != SY_E_OK) {
        return false;
    }
    strv_fini(&open.deny_read);
    strv_fini(&open.deny_homes);
    open.n_default_deny_read = 0;
    open.denies_system = false;
    open.closes_devices = false;
    ret = sandbox_plan_new(&plan, &open, &c->caps, NULL) == SY_E_OK &&
          sandbox_ready_new(&ready, plan, NULL) == SY_E_OK;
    sandbox_ready_free(ready);
    sandbox_plan_free(plan);
    return ret;
}

static enum feature_state
check_state(const struct check *c, enum sandbox_feature f)
{
    return f == FEATURE_DENY_READ && c->loses_deny_read ? FEATURE_ABSENT
                                                        : sandbox_plan_feature(c->plan, f);
}

/* Plans workspace-write and makes it ready, as a call would. */
static bool
check_run(struct check *c, const struct sandbox_policy *policy, bool reads_audit)
{
    bool is_held = false;
    char launcher[LIMIT_PATH];

    sandbox_probe_deep(&c->caps);
    check_audit(c, reads_audit);
    if (policy->max_tier == TIER_FULL) {
        launcher_probe(&c->caps, cli_launcher_path(launcher), policy);
    }
    (void)!cgroup_home_new(&c->cgroups, NULL, NULL, &c->no_cgroups);
    is_held = sandbox_plan_new(&c->plan, policy, &c->caps, &c->err) == SY_E_OK &&
              sandbox_ready_new(&c->ready, c->plan, &c->err) == SY_E_OK &&
              sandbox_plan_adopt(c->plan, c->ready, &c->err) == SY_E_OK;
    c->loses_deny_read = !is_held && check_is_denied(c, policy);
    check_logged(c);
    return is_held;
}

static enum sy_code
check_features_text(struct buf *out, const struct check *c)
{
    enum sy_code rc = SY_E_OK;

    for (int i = 0; i < FEATURE_COUNT && c->plan != NULL && rc == SY_E_OK; i++) {
        enum sandbox_feature f = (enum sandbox_feature)i;

        rc = buf_addf(out, "  %-15s %-9s %s\n", sandbox_feature_name(f),
                      feature_state_name(check_state(c, f)), sandbox_feature_text(f));
    }
    return rc;
}

/* What of deny_read is not held here. */
static enum sy_code
check_unheld_text(struct buf *out, const struct check *c)
{
    enum sy_code rc = SY_E_OK;
    const char *path = NULL;

    for (size_t i = 0;
         c->ready != NULL && rc == SY_E_OK && (path = sandbox_ready_unheld(c->ready, i)) != NULL;
         i++) {
        rc = buf_addf(out, "  deny_read does not hold %s\n", path);
    }
    /* What a command keeps quiet about is told by mounts, the audit log, or who asks for it. */
    if (rc == SY_E_OK && c->err.code == SY_E_OK && c->no_audit.code != SY_E_OK &&
        sandbox_plan_tier(c->plan) != TIER_FULL && !sandbox_plan_base(c->plan).is_observed) {
        rc = buf_add_str(out, "  hidden refusals are not told: what a command is refused and says "
                              "nothing of (sandbox.report: full tells it)\n");
    }
    return rc;
}

static bool
is_missing(const struct check *c, size_t row)
{
    enum sandbox_feature f = landlock_ladder[row].feature;

    return landlock_ladder[row].abi > c->caps.landlock_abi &&
           (f == FEATURE_COUNT || c->plan == NULL || check_state(c, f) == FEATURE_ABSENT);
}

static enum sy_code
check_missing_text(struct buf *out, const struct check *c)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < LADDER_ROWS && rc == SY_E_OK; i++) {
        if (is_missing(c, i)) {
            rc = buf_addf(out, "  missing: %s (Landlock ABI %d, Linux %s)\n",
                          landlock_ladder[i].adds, landlock_ladder[i].abi,
                          landlock_ladder[i].kernel);
        }
    }
    return rc;
}

/* Else the sentence itself says what to do. */
static bool
check_has_fix(const struct check *c)
{
    return c->err.code != SY_E_OK && (c->caps.landlock_abi == 0 || !c->caps.has_seccomp_filter);
}

/* The one thing to do when the kernel can't hold the policy. */
static const char *
check_fix(const struct check *c)
{
    if (!check_has_fix(c)) {
        return c->err.code == SY_E_OK ? "" : "see 'error'";
    }
    if (c->caps.landlock_abi == 0) {
        return "use Linux 5.13 or newer with Landlock on: add 'landlock' to the 'lsm=' boot "
               "parameter (see /sys/kernel/security/lsm); inside a container, let its seccomp "
               "profile pass the landlock_* calls";
    }
    return "use a kernel with CONFIG_SECCOMP_FILTER, or a container runtime that lets "
           "seccomp(2) pass";
}

static enum sy_code
check_text(struct buf *out, const struct check *c)
{
    const struct sandbox_caps *k = &c->caps;
    enum sy_code rc = buf_addf(out, "kernel %s, Landlock ABI %d, seccomp %s, user namespaces %s\n",
                               k->release, k->landlock_abi, k->has_seccomp_filter ? "yes" : "no",
                               k->has_user_namespaces ? "yes" : "no");

    if (rc == SY_E_OK && k->landlock_abi == 0) {
        rc = buf_addf(out, "Landlock: %s\n", sy_errno_text(k->landlock_errno));
    }
    if (rc == SY_E_OK) {
        rc = c->err.code == SY_E_OK
                 ? buf_addf(out, "workspace-write: can be held (tier %s)\n",
                            sandbox_tier_name(sandbox_plan_tier(c->plan)))
                 : buf_addf(out, "workspace-write: can NOT be held: %s\n", c->err.msg);
    }
    if (rc == SY_E_OK && check_has_fix(c)) {
        rc = buf_addf(out, "  fix: %s\n", check_fix(c));
    }
    if (rc == SY_E_OK && c->err.code != SY_E_OK && c->plan != NULL) {
        rc =
            buf_add_str(out, "  so no command runs here; for what can be held this machine has:\n");
    }
    if (rc == SY_E_OK && !c->caps.has_full_tier && c->caps.full_reason[0] != '\0') {
        rc = buf_addf(out, "  tier full: can't be had: %s\n", c->caps.full_reason);
    }
    if (rc == SY_E_OK) {
        rc = check_features_text(out, c);
    }
    if (rc == SY_E_OK && c->no_audit.code != SY_E_OK) {
        rc = buf_addf(out, "  audit_records are not read: %s\n", c->no_audit.msg);
    }
    if (rc == SY_E_OK) {
        rc = check_unheld_text(out, c);
    }
    if (rc == SY_E_OK) {
        rc = check_missing_text(out, c);
    }
    return rc == SY_E_OK ? check_limits_text(out, c) : rc;
}

static void
check_json_features(struct jw *w, const struct check *c)
{
    jw_key(w, "features");
    jw_object(w);
    for (int i = 0; i < FEATURE_COUNT && c->plan != NULL; i++) {
        enum sandbox_feature f = (enum sandbox_feature)i;

        jw_key(w, sandbox_feature_name(f));
        jw_object(w);
        jw_key_str(w, "state", feature_state_name(check_state(c, f)));
        jw_key_str(w, "text", sandbox_feature_text(f));
        jw_end_object(w);
    }
    jw_end_object(w);
    jw_key(w, "deny_read_unheld");
    jw_array(w);
    for (size_t i = 0; c->ready != NULL && sandbox_ready_unheld(c->ready, i) != NULL; i++) {
        jw_str(w, sandbox_ready_unheld(c->ready, i));
    }
    jw_end_array(w);
    jw_key(w, "missing_landlock");
    jw_array(w);
    for (size_t i = 0; i < LADDER_ROWS; i++) {
        if (is_missing(c, i)) {
            jw_object(w);
            jw_key_int(w, "abi", landlock_ladder[i].abi);
            jw_key_str(w, "kernel", landlock_ladder[i].kernel);
            jw_key_str(w, "adds", landlock_ladder[i].adds);
            jw_end_object(w);
        }
    }
    jw_end_array(w);
}

static enum sy_code
check_json(struct buf *out, const struct check *c)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_bool(&w, "can_hold_workspace_write", c->err.code == SY_E_OK);
    jw_key_str(&w, "kernel", c->caps.release);
    jw_key_int(&w, "landlock_abi", c->caps.landlock_abi);
    if (c->caps.landlock_abi == 0) {
        jw_key_str(&w, "landlock_error", sy_errno_name(c->caps.landlock_errno));
    }
    jw_key_bool(&w, "seccomp_filter", c->caps.has_seccomp_filter);
    jw_key_bool(&w, "seccomp_notify", c->caps.has_seccomp_notify);
    jw_key_bool(&w, "user_namespaces", c->caps.has_user_namespaces);
    if (c->plan != NULL) {
        jw_key_str(&w, "tier", sandbox_tier_name(sandbox_plan_tier(c->plan)));
    }
    jw_key_bool(&w, "full_tier", c->caps.has_full_tier);
    if (c->caps.full_reason[0] != '\0') {
        jw_key_str(&w, "full_tier_reason", c->caps.full_reason);
    }
    if (c->no_audit.code != SY_E_OK) {
        jw_key_str(&w, "audit_records_reason", c->no_audit.msg);
    }
    if (c->err.code != SY_E_OK) {
        jw_key_str(&w, "error", c->err.msg);
        jw_key_str(&w, "fix", check_fix(c));
    }
    check_json_features(&w, c);
    check_limits_json(&w, c);
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static int
print_or_fail(enum sy_code rc, const struct buf *text, int status)
{
    struct sy_error err = {0};

    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "printing the result: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(text, status);
}

static int
check_main(const struct cli_args *args)
{
    SY_AUTO(cli_engine_fini) struct cli_engine engine = {0};
    SY_AUTO(check_fini) struct check check = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};

    if (cli_engine_load(&engine, args, NULL, "workspace-write", &err) != SY_E_OK ||
        cli_engine_turn_found(&engine, &err) != SY_E_OK) {
        return cli_fail(&err);
    }

    int status = check_run(&check, &engine.turn.sandbox, engine.config.sandbox.read_audit) ? 0 : 1;
    enum sy_code rc =
        cli_get(args, "json") != NULL ? check_json(&text, &check) : check_text(&text, &check);

    return print_or_fail(rc, &text, status);
}

static enum sy_code
explain_text(struct buf *out, const struct sandbox_explanation *e)
{
    enum sy_code rc = buf_add_str(out, e->is_allowed ? "allowed: " : "denied: ");

    if (rc == SY_E_OK) {
        rc = str_add_visible(out, e->resolved, strlen(e->resolved), LIMIT_CLI_TEXT);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "\n  rule: ");
    }
    if (rc == SY_E_OK) {
        rc = str_add_visible(out, e->rule, strlen(e->rule), LIMIT_CLI_TEXT);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_char(out, '\n');
    }
    if (rc == SY_E_OK && e->fix[0] != '\0') {
        rc = buf_addf(out, "  fix:  %s\n", e->fix);
    }
    return rc;
}

static enum sy_code
explain_json(struct buf *out, const struct cli_args *args, const struct sandbox_explanation *e)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_bool(&w, "allowed", e->is_allowed);
    jw_key_str(&w, "operation", args->operands[0]);
    jw_key_str(&w, "object", args->operands[1]);
    jw_key_str(&w, "resolved", e->resolved);
    jw_key_str(&w, "rule", e->rule);
    if (e->fix[0] != '\0') {
        jw_key_str(&w, "fix", e->fix);
    }
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

#define OPERATION_WORDS "read, write, create, delete, rename, truncate, chmod, connect"

static enum sy_code
parse_operation(enum sandbox_operation *ret, const char *word, struct sy_error *err)
{
    if (sandbox_operation_parse(ret, word)) {
        return SY_E_OK;
    }
    return sy_err_set(err, SY_E_ARG,
                      "sandbox explain: unknown operation '%s'; right are " OPERATION_WORDS, word);
}

/* The full tier, where the policy may have it, as a server takes it. */
static void
probe_tiers(struct sandbox_caps *ret, const struct sandbox_policy *policy)
{
    char launcher[LIMIT_PATH];

    sandbox_probe(ret);
    if (policy->max_tier == TIER_FULL && sandbox_mode_is_enforced(policy->mode)) {
        launcher_probe(ret, cli_launcher_path(launcher), policy);
    }
}

static int
explain_main(const struct cli_args *args)
{
    SY_AUTO(cli_engine_fini) struct cli_engine engine = {0};
    SY_AUTO(plan_close) struct sandbox_plan *plan = NULL;
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    enum sandbox_operation operation = OPERATION_READ;
    struct sandbox_explanation e = {0};
    struct sandbox_ready *ready = NULL;
    struct sandbox_caps caps;
    struct sy_error err = {0};
    enum sy_code rc = parse_operation(&operation, args->operands[0], &err);

    if (rc == SY_E_OK) {
        rc = cli_engine_load(&engine, args, cli_get(args, "cwd"), cli_get(args, "sandbox"), &err);
    }
    rc = rc == SY_E_OK ? cli_engine_turn_found(&engine, &err) : rc;
    if (rc == SY_E_OK) {
        probe_tiers(&caps, &engine.turn.sandbox);
        rc = sandbox_plan_new(&plan, &engine.turn.sandbox, &caps, &err);
    }
    /* What keeps every command from running keeps this one from it. */
    if (rc == SY_E_OK && sandbox_plan_tier(plan) != TIER_NONE) {
        rc = sandbox_ready_new(&ready, plan, &err);
        sandbox_ready_free(ready);
    }
    if (rc == SY_E_OK) {
        rc = sandbox_explain(&e, plan, operation, args->operands[1], &err);
    }
    if (rc == SY_E_OK) {
        rc = cli_explain_protected(&e, &engine, plan, operation, &err);
    }
    if (rc != SY_E_OK) {
        return cli_fail_judging(&err);
    }
    rc = cli_get(args, "json") != NULL ? explain_json(&text, args, &e) : explain_text(&text, &e);
    return print_or_fail(rc, &text, e.is_allowed ? 0 : 1);
}

static const struct cli_option check_options[] = {
    CLI_OPTION_JSON,
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

static const struct cli_verb verb_sandbox_check = {
    .name = "check",
    .summary = "Tell what of the sandbox this kernel enforces, emulates or lacks",
    .operands = "",
    .text = "Ends with 0 only if workspace-write could be held here.\n",
    .page = "shellyard-sandbox.1",
    .options = check_options,
    .run = check_main,
};

static const struct cli_option explain_options[] = {
    CLI_OPTION_JSON,
    {'s', "sandbox", "MODE", "read-only|workspace-write|danger-full-access|external-sandbox",
      "sandbox mode, instead of the configured one"                                                                       },
    {'C', "cwd",     "DIR",  "DIR",                                                           "as if commands ran in DIR"},
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

static const struct cli_verb verb_sandbox_explain = {
    .name = "explain",
    .summary = "Tell what the policy does with a file or an address, and which rule says so",
    .operands = "OPERATION OBJECT",
    .text = "OPERATION is one of " OPERATION_WORDS ".\n"
            "OBJECT is a path, or for connect HOST:PORT, [ADDRESS]:PORT, unix:PATH or\n"
            "unix:@NAME. Ends with 0 if it is allowed, with 1 if it is denied.\n",
    .examples = "  shellyard sandbox explain write ~/.ssh/config\n"
                "  shellyard sandbox explain connect github.com:443\n",
    .page = "shellyard-sandbox.1",
    .options = explain_options,
    .operand_choices = "read|write|create|delete|rename|truncate|chmod|connect",
    .min_operands = 2,
    .max_operands = 2,
    .run = explain_main,
};

static const struct cli_verb *const sandbox_verbs[] = {
    &verb_sandbox_check, &verb_sandbox_explain, &verb_sandbox_learn, &verb_sandbox_plan, NULL,
};

static const struct cli_option no_options[] = {
    CLI_OPTION_END,
};

const struct cli_verb verb_sandbox = {
    .name = "sandbox",
    .summary = "Look at the sandbox: check what holds, explain a rule, learn what a command needs",
    .operands = "check|explain|learn|plan",
    .page = "shellyard-sandbox.1",
    .options = no_options,
    .verbs = sandbox_verbs,
};
