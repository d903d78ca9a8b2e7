#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "approval/question.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/approvals.h"

/* `approvals`: a person looks at what waits for them, in any terminal, and answers it. */

#define TITLE_BYTES 100U

enum sy_code
cli_approvals_open(struct store **ret, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    enum sy_code rc = cli_state_dir(&dir, err);
    const struct store_options options = {.dir = buf_view(&dir)};

    return rc == SY_E_OK ? store_open(ret, &options, err) : rc;
}

/* Whoever stands at this terminal. */
const char *
cli_approvals_decider(char ret[64])
{
    const char *tty = ttyname(STDIN_FILENO);

    (void)snprintf(ret, 64, "uid %u%s%.40s", (unsigned)getuid(), tty != NULL ? " at " : "",
                   tty != NULL ? tty : "");
    return ret;
}

/* Commands that an agent runs must not answer for the person. */
enum sy_code
cli_approvals_check(struct sy_error *err)
{
    const char *inside = getenv("SHELLYARD");

    return inside == NULL
               ? SY_E_OK
               : sy_err_set(err, SY_E_DENIED,
                            "SHELLYARD is set: this was started by a command of an agent, which "
                            "can't answer for a person; use a terminal of your own");
}

/* The id of the only request that waits and begins so. */
static enum sy_code
find(char ret[STORE_ID_SIZE], struct store *st, const char *start, struct sy_error *err)
{
    struct store_requests list = {0};
    size_t len = strlen(start);
    size_t n = 0;
    enum sy_code rc = SY_E_OK;

    if (len >= STORE_ID_SIZE - 1) {
        if (len > STORE_ID_SIZE - 1) {
            return sy_err_set(err, SY_E_ARG, "'%.40s...' is too long for the id of a request",
                              start);
        }
        memcpy(ret, start, STORE_ID_SIZE);
        return rc;
    }
    rc = store_requests_pending(&list, st, err);
    for (size_t i = 0; i < list.n; i++) {
        if (strncmp(list.v[i].id, start, len) == 0) {
            memcpy(ret, list.v[i].id, STORE_ID_SIZE);
            n++;
        }
    }
    store_requests_fini(&list);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (len < 4 || n == 0) {
        return sy_err_set(err, SY_E_NOTFOUND,
                          "no request that waits has an id that begins with '%.32s' (at least 4 "
                          "characters): shellyard approvals list",
                          start);
    }
    return n == 1 ? SY_E_OK
                  : sy_err_set(err, SY_E_ARG, "%zu requests have ids that begin with '%.32s'", n,
                               start);
}

static enum sy_code
list_line(struct buf *out, struct store *st, const struct store_request *r, struct sy_error *err)
{
    struct store_request q = {0};
    SY_AUTO(buf_fini) struct buf title = {.max = (size_t)TITLE_BYTES * 8};
    struct sy_error why = {0};
    enum sy_code rc = store_request_get(&q, st, r->id, err);

    if (rc == SY_E_OK && question_title(&title, q.text, TITLE_BYTES, &why) != SY_E_OK) {
        buf_reset(&title);
        rc = buf_add_str(&title, "(not readable)");
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "%.12s  %4llu s left  %s\n", r->id,
                      (unsigned long long)(r->left_ms / 1000), buf_view(&title));
    }
    store_request_fini(&q);
    return rc;
}

static void
json_request(struct jw *w, const struct store_request *r)
{
    jw_object(w);
    jw_key_str(w, "id", r->id);
    jw_key_str(w, "status", store_status_name(r->status));
    jw_key_int(w, "created_ms", r->created_ms);
    jw_key_int(w, "expires_ms", r->expires_ms);
    jw_key_int(w, "left_ms", (int64_t)r->left_ms);
    jw_key_str(w, "session", r->session);
    jw_key_str(w, "principal", r->principal);
    if (r->decided_by[0] != '\0') {
        jw_key_str(w, "decided_by", r->decided_by);
    }
    if (r->reason[0] != '\0') {
        jw_key_str(w, "reason", r->reason);
    }
    if (r->text != NULL) {
        jw_key(w, "question");
        jw_raw(w, r->text, strlen(r->text));
    }
    jw_end_object(w);
}

static enum sy_code
list_json(struct buf *out, struct store *st, const struct store_requests *list,
          struct sy_error *err)
{
    struct jw w = {.out = out};
    enum sy_code rc = SY_E_OK;

    jw_object(&w);
    jw_key(&w, "requests");
    jw_array(&w);
    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        struct store_request q = {0};

        rc = store_request_get(&q, st, list->v[i].id, err);
        if (rc == SY_E_OK) {
            json_request(&w, &q);
        }
        store_request_fini(&q);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    rc = rc == SY_E_OK ? jw_done(&w) : rc;
    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static int
list_main(const struct cli_args *args)
{
    struct store *st = NULL;
    struct store_requests list = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)LIMIT_STORE_TEXT * LIMIT_STORE_PENDING};
    struct sy_error err = {0};
    enum sy_code rc = cli_approvals_open(&st, &err);

    if (rc == SY_E_OK) {
        rc = store_requests_pending(&list, st, &err);
    }
    if (rc == SY_E_OK && cli_get(args, "json") != NULL) {
        rc = list_json(&out, st, &list, &err);
    } else if (rc == SY_E_OK) {
        rc = list.n == 0 ? buf_add_str(&out, "nothing waits for an answer\n") : SY_E_OK;
        for (size_t i = 0; i < list.n && rc == SY_E_OK; i++) {
            rc = list_line(&out, st, &list.v[i], &err);
        }
    }
    store_requests_fini(&list);
    store_close(st);
    if (rc != SY_E_OK && err.code == SY_E_OK) {
        (void)sy_err_set(&err, rc, "listing the requests: %s", sy_code_text(rc));
    }
    return rc == SY_E_OK ? cli_out(&out, 0) : cli_fail(&err);
}

enum sy_code
cli_approvals_show(struct buf *out, const struct store_request *r, struct sy_error *err)
{
    enum sy_code rc = buf_addf(out, "Request %s: %s", r->id, store_status_name(r->status));

    if (rc == SY_E_OK && r->status == STORE_PENDING) {
        rc = buf_addf(out, ", %llu s left", (unsigned long long)(r->left_ms / 1000));
    }
    if (rc == SY_E_OK && r->decided_by[0] != '\0') {
        rc = buf_addf(out, ", by %s", r->decided_by);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_char(out, '\n');
    }
    return rc == SY_E_OK ? question_text(out, r->text, err) : rc;
}

static int
show_main(const struct cli_args *args)
{
    struct store *st = NULL;
    struct store_request q = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)LIMIT_STORE_TEXT * 16};
    char id[STORE_ID_SIZE];
    struct sy_error err = {0};
    enum sy_code rc = cli_approvals_open(&st, &err);

    if (rc == SY_E_OK) {
        rc = find(id, st, args->operands[0], &err);
    }
    if (rc == SY_E_OK) {
        rc = store_request_get(&q, st, id, &err);
    }
    if (rc == SY_E_OK && cli_get(args, "json") != NULL) {
        struct jw w = {.out = &out};

        json_request(&w, &q);
        rc = jw_done(&w);
        rc = rc == SY_E_OK ? buf_add_char(&out, '\n') : rc;
    } else if (rc == SY_E_OK) {
        rc = cli_approvals_show(&out, &q, &err);
    }
    store_request_fini(&q);
    store_close(st);
    if (rc != SY_E_OK && err.code == SY_E_OK) {
        (void)sy_err_set(&err, rc, "showing the request: %s", sy_code_text(rc));
    }
    return rc == SY_E_OK ? cli_out(&out, 0) : cli_fail(&err);
}

enum sy_code
cli_approvals_answer(struct buf *out, struct store *st, const char *id,
                     const struct review_reply *reply, struct sy_error *err)
{
    struct store_answer answer = {0};
    enum sy_code rc = review_decide(&answer, st, id, reply, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    switch (answer.verdict) {
    case STORE_TAKEN:
        return buf_addf(out, "%.12s %s\n", id, store_status_name(answer.status));
    case STORE_ALREADY_DECIDED:
        return sy_err_set(err, SY_E_DENIED, "somebody was faster: it is %s",
                          store_status_name(answer.status));
    case STORE_ENDED:
        return sy_err_set(err, SY_E_DENIED, "too late, it is %s: the answer changes nothing",
                          store_status_name(answer.status));
    case STORE_UNKNOWN:
        break;
    }
    return sy_err_set(err, SY_E_NOTFOUND, "there is no such request for approval");
}

static int
answer(const struct cli_args *args, enum store_status status, const char *reason)
{
    struct store *st = NULL;
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    char id[STORE_ID_SIZE];
    char by[64];
    const struct review_reply reply = {
        .status = status,
        .reason = reason,
        .decided_by = cli_approvals_decider(by),
    };
    struct sy_error err = {0};
    enum sy_code rc = cli_approvals_check(&err);

    if (rc == SY_E_OK) {
        rc = cli_approvals_open(&st, &err);
    }
    if (rc == SY_E_OK) {
        rc = find(id, st, args->operands[0], &err);
    }
    if (rc == SY_E_OK) {
        rc = cli_approvals_answer(&out, st, id, &reply, &err);
    }
    store_close(st);
    return rc == SY_E_OK ? cli_out(&out, 0) : cli_fail(&err);
}

static int
approve_main(const struct cli_args *args)
{
    bool is_session = cli_get(args, "session") != NULL;
    bool is_rule = cli_get(args, "rule") != NULL;
    struct sy_error err = {0};

    if (is_session && is_rule) {
        (void)sy_err_set(&err, SY_E_ARG, "approve: --session and --rule exclude each other");
        return cli_fail(&err);
    }
    return answer(args,
                  is_session ? STORE_APPROVED_FOR_SESSION
                  : is_rule  ? STORE_APPROVED_WITH_RULE
                             : STORE_APPROVED,
                  NULL);
}

static int
deny_main(const struct cli_args *args)
{
    return answer(args, cli_get(args, "abort") != NULL ? STORE_ABORTED : STORE_DENIED,
                  cli_get(args, "reason"));
}

static const struct cli_option json_options[] = {CLI_OPTION_JSON, CLI_OPTION_END};
static const struct cli_option no_options[] = {CLI_OPTION_END};
static const struct cli_option approve_options[] = {
    {0, "session", NULL, NULL, "and the same again, as long as the session lasts"                  },
    {0, "rule",    NULL, NULL, "and from now on all commands that begin with the words after Rule:"},
    CLI_OPTION_END,
};
static const struct cli_option deny_options[] = {
    {'m', "reason", "TEXT", NULL, "what the agent is told"   },
    {0,   "abort",  NULL,   NULL, "and the agent's turn ends"},
    CLI_OPTION_END,
};

static const struct cli_verb verb_approvals_list = {
    .name = "list",
    .summary = "List the requests that wait for an answer",
    .operands = "",
    .page = "shellyard-approvals.1",
    .options = json_options,
    .run = list_main,
};

static const struct cli_verb verb_approvals_show = {
    .name = "show",
    .summary = "Show all that a request asks for",
    .operands = "ID",
    .page = "shellyard-approvals.1",
    .options = json_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = show_main,
};

static const struct cli_verb verb_approvals_approve = {
    .name = "approve",
    .summary = "Allow exactly what a request shows to run",
    .operands = "ID",
    .text = "ID may be cut to its first characters, at least four.\n",
    .page = "shellyard-approvals.1",
    .options = approve_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = approve_main,
};

static const struct cli_verb verb_approvals_deny = {
    .name = "deny",
    .summary = "Refuse a request, and tell the agent why",
    .operands = "ID",
    .page = "shellyard-approvals.1",
    .options = deny_options,
    .examples = "  shellyard approvals deny 3f2a -m 'use the staging server'\n",
    .min_operands = 1,
    .max_operands = 1,
    .run = deny_main,
};

static const struct cli_verb *const approvals_verbs[] = {
    &verb_approvals_list,    &verb_approvals_show, &verb_approvals_follow,
    &verb_approvals_approve, &verb_approvals_deny, NULL,
};

const struct cli_verb verb_approvals = {
    .name = "approvals",
    .summary = "Look at what agents ask for, and answer",
    .operands = "list|show|follow|approve|deny",
    .page = "shellyard-approvals.1",
    .options = no_options,
    .verbs = approvals_verbs,
};
