#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "approval/assess_internal.h"
#include "approval/rules_read.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "command/command.h"
#include "command/danger.h"
#include "command/dialect.h"
#include "command/safe.h"
#include "guard/git_tame.h"

/* How a file looked when it was read. Zeroed: it was not there. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
    bool is_there;
};

struct assessor {
    char *home;
    char *user_path;
    char *system_path;
    struct script_reader *reader;
    struct judge_programs *programs;
    struct script script;
    struct rules rules;
    bool has_rules; /* they are those of the stamps */
    char *workspace;
    struct stamp system_stamp;
    struct stamp user_stamp;
    struct assess_rules more;
    uint64_t more_version;
    char note[SY_ERR_MSG_MAX];
};

static enum sy_code
copy_text(char **ret, const char *text)
{
    *ret = text != NULL ? mem_strdup(text) : NULL;
    return text == NULL || *ret != NULL ? SY_E_OK : SY_E_NOMEM;
}

enum sy_code
assessor_new(struct assessor **ret, const struct assessor_options *options, struct sy_error *err)
{
    struct assessor *a = mem_alloc_zero(1, sizeof(*a));

    if (a == NULL) {
        return sy_err_nomem(err);
    }
    a->more = options->more;
    if (copy_text(&a->home, options->home) != SY_E_OK ||
        copy_text(&a->user_path, options->user_path) != SY_E_OK ||
        copy_text(&a->system_path, options->system_path != NULL ? options->system_path
                                                                : RULES_SYSTEM_PATH) != SY_E_OK) {
        assessor_free(a);
        return sy_err_nomem(err);
    }
    *ret = a;
    return SY_E_OK;
}

void
assessor_free(struct assessor *a)
{
    if (a == NULL) {
        return;
    }
    script_fini(&a->script);
    script_reader_free(a->reader);
    judge_programs_free(a->programs);
    rules_fini(&a->rules);
    mem_free(a->home);
    mem_free(a->user_path);
    mem_free(a->system_path);
    mem_free(a->workspace);
    mem_free(a);
}

static void
stamp_take(struct stamp *ret, const char *path)
{
    struct stat st;

    *ret = (struct stamp){0};
    if (path != NULL && stat(path, &st) == 0) {
        *ret = (struct stamp){
            .dev = st.st_dev,
            .ino = st.st_ino,
            .size = st.st_size,
            .changed = st.st_ctim,
            .is_there = true,
        };
    }
}

static bool
stamp_eq(const struct stamp *a, const struct stamp *b)
{
    return a->is_there == b->is_there && a->dev == b->dev && a->ino == b->ino &&
           a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Could the file have been written again within the same tick of its clock? */
static bool
stamp_is_young(const struct stamp *s)
{
    int64_t changed = (int64_t)s->changed.tv_sec * 1000000000 + s->changed.tv_nsec;
    int64_t age = clock_wall_ns() - changed;

    return s->is_there && age < 100000000;
}

static uint64_t
version_of_more(struct assessor *a)
{
    struct sy_error err = {0};
    uint64_t version = 0;

    if (a->more.version != NULL && a->more.version(a->more.arg, &version, &err) != SY_E_OK) {
        (void)snprintf(a->note, sizeof(a->note), "rules made by answers are not used: %.180s",
                       err.msg);
        return UINT64_MAX;
    }
    return version;
}

static void
read_more(struct assessor *a)
{
    struct sy_error err = {0};

    if (a->more.read != NULL && a->more_version != UINT64_MAX &&
        a->more.read(a->more.arg, &a->rules, &err) != SY_E_OK) {
        (void)snprintf(a->note, sizeof(a->note), "rules made by answers are not used: %.180s",
                       err.msg);
    }
}

/* The rules as they are now. What can't be read stays unread: the next call tries again. */
static enum sy_code
refresh_rules(struct assessor *a, const struct assess_input *in, struct sy_error *err)
{
    /* Not the call's directory: that may be any. */
    const char *workspace = in->roots[0];
    struct stamp system_stamp;
    struct stamp user_stamp;
    uint64_t version = 0;

    a->note[0] = '\0';
    version = version_of_more(a);
    stamp_take(&system_stamp, a->system_path);
    stamp_take(&user_stamp, a->user_path);
    if (a->has_rules && a->more_version == version && version != UINT64_MAX &&
        stamp_eq(&system_stamp, &a->system_stamp) && stamp_eq(&user_stamp, &a->user_stamp) &&
        str_eq(a->workspace, workspace)) {
        return SY_E_OK;
    }

    const struct rules_sources sources = {
        .system_path = a->system_path,
        .user_path = a->user_path,
        .workspace = workspace,
        .home = a->home,
    };

    rules_fini(&a->rules);
    a->has_rules = false;
    mem_free(a->workspace);
    a->workspace = mem_strdup(workspace);
    if (a->workspace == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = rules_load(&a->rules, &sources, err);

    if (rc == SY_E_OK) {
        a->system_stamp = system_stamp;
        a->user_stamp = user_stamp;
        a->more_version = version;
        read_more(a);
        a->has_rules = !stamp_is_young(&system_stamp) && !stamp_is_young(&user_stamp);
    }
    return rc;
}

static void
find_real_cwd(char ret[PATH_MAX], const char *cwd)
{
    if (realpath(cwd, ret) == NULL) {
        ret[0] = '\0';
    }
}

static void
ask_rules(struct rule_verdict *ret, const struct rules *rules, struct assess_commands *c,
          const char *cwd)
{
    find_real_cwd(c->cwd, cwd);

    const struct rule_script script = {
        .commands = c->v,
        .n = c->n,
        .is_whole = c->is_whole && c->n > 0,
        .has_assignments = c->is_script,
        .hidden = c->hidden.v,
        .hidden_n = c->hidden.n,
        .is_trusted = c->is_trusted,
        .cwd = c->cwd[0] != '\0' ? c->cwd : NULL,
        .now = clock_wall_ns() / 1000000000,
    };

    rules_decide(ret, rules, &script);
    rules_allowed(c->is_allowed, rules, &script);
}

/* The worst of the commands that no rule allows; all of them when any is not known. */
static enum sy_code
judge_rest(struct danger_verdict *ret, const struct assess_commands *c,
           const struct judge_world *world, struct sy_error *err)
{
    struct danger_verdict worst = {.level = DANGER_NONE, .verdict = ret->verdict};

    for (size_t i = 0; i < c->n; i++) {
        struct danger_verdict one = {0};
        size_t at = c->is_script ? rule_assignments(&c->v[i]) : 0;

        if (c->is_allowed[i] || at >= c->v[i].n) {
            continue;
        }

        enum sy_code rc = danger_judge(&one, world, strv_view(&c->v[i]) + at, NULL, NULL, err);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (one.level > worst.level) {
            worst = one;
        }
    }
    *ret = worst;
    return SY_E_OK;
}

static bool
has_allowed(const struct assess_commands *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->is_allowed[i]) {
            return true;
        }
    }
    return false;
}

static enum approval_class
class_of(const struct danger_verdict *d, const struct safe_verdict *s,
         const struct assess_input *in)
{
    switch (d->level) {
    case DANGER_CATASTROPHIC:
        return APPROVAL_CLASS_CATASTROPHIC;
    case DANGER_DANGEROUS:
        return APPROVAL_CLASS_DANGEROUS;
    case DANGER_UNKNOWN:
        /* Whatever it holds, the sandbox holds it. */
        return sandbox_mode_is_enforced(in->mode) && !in->escalates ? APPROVAL_CLASS_OTHER
                                                                    : APPROVAL_CLASS_DANGEROUS;
    case DANGER_NONE:
    case DANGER_NOTED:
        break;
    }
    return s->is_safe ? APPROVAL_CLASS_SAFE : APPROVAL_CLASS_OTHER;
}

static void
tell_finding(struct assessment *ret, const struct danger_verdict *d)
{
    struct sy_error sentence = {0};

    if (d->level < DANGER_UNKNOWN) {
        return;
    }
    (void)sy_err_set(&sentence, SY_E_DENIED, "%s: %s%s%s", d->verdict.command, d->verdict.argument,
                     d->verdict.argument[0] != '\0' ? ": " : "", d->verdict.why);
    memcpy(ret->finding, sentence.msg, sizeof(ret->finding));
}

static bool
gives_rights(const char *word)
{
    static const char *const programs[] = {"sudo", "sudoedit", "doas",    "su",
                                           "run0", "pkexec",   "runuser", "machinectl"};

    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (str_eq(path_base(word), programs[i])) {
            return true;
        }
    }
    return false;
}

/* Wherever it stands among the words: behind wrappers (env, xargs, timeout), and where it is only
 * meant as text, which costs a word in what people read. */
static bool
asks_for_rights(const struct assess_commands *c)
{
    for (size_t i = 0; i < c->n; i++) {
        for (size_t k = 0; k < c->v[i].n; k++) {
            if (gives_rights(c->v[i].v[k])) {
                return true;
            }
        }
    }
    return false;
}

/* A rule is offered for one command alone, which stands by itself. */
static enum sy_code
propose(struct assessment *ret, const struct assess_commands *c, const struct assess_input *in)
{
    if (!c->is_whole || !c->is_literal || c->n != 1 ||
        (c->is_script && rule_assignments(&c->v[0]) > 0) ||
        ret->class == APPROVAL_CLASS_CATASTROPHIC) {
        return SY_E_OK;
    }
    return rule_propose(&ret->prefix, &c->v[0], in->wanted_prefix);
}

static enum sy_code
judge(struct assessment *ret, const struct assess_input *in, struct assess_commands *c,
      const struct judge_world *world, struct sy_error *err)
{
    struct danger_verdict danger = {0};
    struct safe_verdict safe = {0};
    enum sy_code rc = danger_judge(&danger, world, in->argv, NULL, NULL, err);

    if (rc == SY_E_OK && danger.level < DANGER_CATASTROPHIC && danger.level > DANGER_NOTED &&
        c->is_whole && !c->has_braces && has_allowed(c)) {
        rc = judge_rest(&danger, c, world, err);
    }
    if (rc == SY_E_OK) {
        rc = safe_judge(&safe, world, in->argv, NULL, NULL, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    ret->class = class_of(&danger, &safe, in);
    ret->is_safe = ret->class == APPROVAL_CLASS_SAFE;
    ret->env = ret->is_safe ? safe.env : NULL;
    ret->asks_for_rights = asks_for_rights(c);
    tell_finding(ret, &danger);
    return propose(ret, c, in) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
}

/* Made at the first use: a start must not pay for it. */
static bool
has_parser(struct assessor *a)
{
    if (a->reader == NULL) {
        a->reader = script_reader_new();
    }
    if (a->programs == NULL) {
        a->programs = judge_programs_new();
    }
    return a->reader != NULL && a->programs != NULL;
}

static bool
git_is_tame(void *arg, const char *cwd)
{
    (void)arg;
    return git_tame_check(cwd);
}

static void
decide(struct assessment *ret, const struct assess_input *in, const struct rule_verdict *rule)
{
    const struct requirement_input need = {
        .policy = in->policy,
        .granular = in->granular,
        .asks_for_all = in->asks_for_all,
        .mode = in->mode,
        .class = ret->class,
        .escalates = in->escalates,
        .rule = rule,
    };

    requirement_decide(&ret->need, &need);
}

static unsigned
typed_dialects(const struct assess_input *in)
{
    return in->typed_to == NULL
               ? 0
               : dialect_of(in->typed_to) | DIALECT_TYPED | (in->lacks_comments ? DIALECT_BARE : 0);
}

enum sy_code
assessor_assess(void *arg, struct assessment *ret, const struct assess_input *in,
                struct sy_error *err)
{
    struct assessor *a = arg;

    if (!has_parser(a)) {
        *ret = (struct assessment){0};
        return sy_err_nomem(err);
    }

    SY_AUTO(assess_commands_fini) struct assess_commands commands = {0};
    struct rule_verdict rule = {0};
    const struct judge_world world = {
        .reader = a->reader,
        .cwd = in->cwd,
        .home = a->home,
        .path_list = in->path_list,
        .roots = in->roots,
        .env = in->env,
        .find_program = judge_find_program,
        .has_file = judge_has_file,
        .git_is_tame = git_is_tame,
        .programs = a->programs,
        .typed = typed_dialects(in),
    };
    enum sy_code rc = refresh_rules(a, in, err);

    *ret = (struct assessment){.prefix = {.max = LIMIT_ARGV}, .better = {.max = LIMIT_ARGV}};
    judge_programs_begin(a->programs);
    if (rc == SY_E_OK) {
        rc = assess_commands_find(&commands, &a->script, in, &world, err);
    }
    if (rc == SY_E_OK && a->rules.n > 0) {
        rc = inner_find(&commands.hidden, &world, in->argv, commands.is_script, err);
    }
    if (rc == SY_E_OK) {
        ask_rules(&rule, &a->rules, &commands, in->cwd);
        rc = judge(ret, in, &commands, &world, err);
    }
    judge_programs_end(a->programs);
    if (rc == SY_E_OK && rule.steer_runs &&
        rule_steer(&ret->better, rule.by, &commands.v[0], commands.is_script) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc != SY_E_OK) {
        assessment_fini(ret);
        return rc;
    }
    memcpy(ret->note, a->note, sizeof(ret->note));
    ret->is_unreadable = shell_script_of(in->argv) != NULL && a->script.form == SCRIPT_UNREADABLE;
    decide(ret, in, &rule);
    return SY_E_OK;
}

static enum assess_host
refuse_host(const struct rule_network *by, const char *host, char ret_reason[SY_ERR_MSG_MAX])
{
    struct place_shown_path file;

    (void)snprintf(ret_reason, SY_ERR_MSG_MAX, "%.80s is %s by a rule (%.40s:%zu)%s%.60s", host,
                   by->decision == RULE_FORBID
                       ? "forbidden"
                       : "to be asked about, for which a connection can't wait,",
                   place_visible_path(&file, path_base(by->at.name)), by->at.line,
                   by->reason != NULL ? ": " : "", by->reason != NULL ? by->reason : "");
    return ASSESS_HOST_REFUSED;
}

enum assess_host
assessor_judge_host(void *arg, const char *protocol, const char *host,
                    char ret_reason[SY_ERR_MSG_MAX])
{
    static const enum rule_protocol all[] = {RULE_PROTOCOL_HTTP, RULE_PROTOCOL_HTTPS,
                                             RULE_PROTOCOL_SOCKS5_TCP};
    const struct assessor *a = arg;
    enum rule_protocol mine = str_eq(protocol, "http")      ? RULE_PROTOCOL_HTTP
                              : str_eq(protocol, "connect") ? RULE_PROTOCOL_HTTPS
                                                            : RULE_PROTOCOL_SOCKS5_TCP;
    const struct rule_network *by = NULL;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        enum rule_decision d = rules_decide_network(&a->rules, host, all[i], &by);

        if (d == RULE_FORBID || d == RULE_ASK) {
            return refuse_host(by, host, ret_reason);
        }
    }
    if (rules_decide_network(&a->rules, host, mine, &by) != RULE_ALLOW) {
        return ASSESS_HOST_OPEN;
    }
    (void)snprintf(ret_reason, SY_ERR_MSG_MAX, "a rule allows %.80s", host);
    return ASSESS_HOST_ALLOWED;
}
