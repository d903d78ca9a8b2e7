#include <errno.h>
#include <poll.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "approval/question.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/approvals.h"
#include "store/watch.h"

/* `approvals follow`: shows each request as it comes and takes its answer at the terminal. */

#define LINE_BYTES 4096U

struct follow {
    struct store *st;
    struct store_watch *watch;
    char shown[STORE_ID_SIZE];   /* the one that is asked; "" none */
    char skipped[STORE_ID_SIZE]; /* left for later: it and those before it are not asked again */
    bool may_remember;
    bool may_rule;
    bool is_grave;     /* a single letter does not allow it */
    bool is_commented; /* a model's comment was shown */
    char line[LINE_BYTES];
    size_t line_len;
    bool is_over;
};

static enum sy_code
write_out(struct buf *out)
{
    return cli_out(out, 0) == 0 ? SY_E_OK : SY_E_SYS;
}

static enum sy_code
say(const char *text)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LINE_BYTES};
    enum sy_code rc = buf_add_str(&out, text);

    return rc == SY_E_OK ? write_out(&out) : rc;
}

static enum sy_code
prompt(const struct follow *f)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LINE_BYTES};
    enum sy_code rc = buf_addf(
        &out,
        "\n[n]o%s%s%s, [d REASON]eny with a reason, [x] no and stop the turn, [l]ater, [q]uit > ",
        f->is_grave ? ", yes in full to allow it once" : ", [y]es once",
        f->may_remember ? ", [s]ession" : "", f->may_rule ? ", [r]ule" : "");

    return rc == SY_E_OK ? write_out(&out) : rc;
}

/* What was typed before the question stood there answers nothing. */
static void
forget_typed(struct follow *f)
{
    f->line_len = 0;
    (void)tcflush(STDIN_FILENO, TCIFLUSH);
}

static enum sy_code
show(struct follow *f, const struct store_request *r, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)LIMIT_STORE_TEXT * 16};
    SY_AUTO(strv_fini) struct strv prefix = {.max = LIMIT_ARGV};
    bool leaves = false;
    bool has_comment = false;
    enum sy_code rc = buf_add_char(&out, '\n');

    if (rc == SY_E_OK) {
        rc = cli_approvals_show(&out, r, err);
    }
    if (rc == SY_E_OK) {
        rc = risk_is_added(&has_comment, r->text, err);
    }
    if (rc == SY_E_OK) {
        rc = question_prefix(&prefix, &f->may_remember, &leaves, r->text, err);
    }
    if (rc == SY_E_OK) {
        rc = write_out(&out);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    f->may_rule = prefix.n > 0;
    f->is_grave = !f->may_remember;
    f->is_commented = has_comment;
    memcpy(f->shown, r->id, sizeof(f->shown));
    forget_typed(f);
    return prompt(f);
}

/* One may come while the request stands there. What was typed so far stays. */
static enum sy_code
show_comment(struct follow *f, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LINE_BYTES};
    struct store_request q = {0};
    enum sy_code rc = SY_E_OK;

    if (f->is_commented) {
        return rc;
    }
    rc = store_request_get(&q, f->st, f->shown, err);
    if (rc == SY_E_OK) {
        rc = buf_add_char(&out, '\n');
    }
    if (rc == SY_E_OK) {
        rc = question_comment(&out, q.text, err);
    }
    store_request_fini(&q);
    if (rc != SY_E_OK || out.len == 1) {
        return rc;
    }
    f->is_commented = true;
    rc = write_out(&out);
    return rc == SY_E_OK ? prompt(f) : rc;
}

/* The oldest that waits and was not put off; nothing while one is asked. */
static enum sy_code
show_next(struct follow *f, struct sy_error *err)
{
    struct store_requests list = {0};
    struct store_request q = {0};
    size_t at = 0;
    bool is_there = false;
    enum sy_code rc = store_requests_pending(&list, f->st, err);

    for (size_t i = 0; i < list.n; i++) {
        is_there = is_there || str_eq(list.v[i].id, f->shown);
        at = str_eq(list.v[i].id, f->skipped) ? i + 1 : at;
    }
    if (rc == SY_E_OK && f->shown[0] != '\0' && !is_there) {
        f->shown[0] = '\0';
        rc = say("\n(it was answered elsewhere, or is over)\n");
    }
    if (rc == SY_E_OK && f->shown[0] != '\0') {
        rc = show_comment(f, err);
    }
    if (rc == SY_E_OK && f->shown[0] == '\0' && at < list.n) {
        rc = store_request_get(&q, f->st, list.v[at].id, err);
        if (rc == SY_E_OK) {
            rc = show(f, &q, err);
        }
    }
    store_request_fini(&q);
    store_requests_fini(&list);
    return rc;
}

/* false: it is none. */
static bool
read_answer(const struct follow *f, struct review_reply *ret, const char *line)
{
    if (str_eq(line, "n")) {
        ret->status = STORE_DENIED;
    } else if (str_eq(line, f->is_grave ? "yes" : "y") || str_eq(line, "yes")) {
        ret->status = STORE_APPROVED;
    } else if (str_eq(line, "s") && f->may_remember) {
        ret->status = STORE_APPROVED_FOR_SESSION;
    } else if (str_eq(line, "r") && f->may_rule) {
        ret->status = STORE_APPROVED_WITH_RULE;
    } else if (str_eq(line, "x")) {
        ret->status = STORE_ABORTED;
    } else if (strncmp(line, "d ", 2) == 0) {
        ret->status = STORE_DENIED;
        ret->reason = line + 2;
    } else {
        return false;
    }
    return true;
}

static enum sy_code
on_line(struct follow *f, const char *line, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LINE_BYTES};
    struct review_reply reply = {0};
    struct sy_error why = {0};
    char by[64];

    if (str_eq(line, "q")) {
        f->is_over = true;
        return SY_E_OK;
    }
    if (f->shown[0] == '\0') {
        return SY_E_OK;
    }
    if (str_eq(line, "l")) {
        memcpy(f->skipped, f->shown, sizeof(f->skipped));
        f->shown[0] = '\0';
        return show_next(f, err);
    }
    reply.decided_by = cli_approvals_decider(by);
    if (!read_answer(f, &reply, line)) {
        return prompt(f);
    }

    enum sy_code rc = cli_approvals_answer(&out, f->st, f->shown, &reply, &why);

    f->shown[0] = '\0';
    rc = rc == SY_E_OK ? write_out(&out) : SY_E_OK;
    if (why.code != SY_E_OK) {
        cli_note("%s", why.msg);
    }
    return rc == SY_E_OK ? show_next(f, err) : rc;
}

static enum sy_code
read_input(struct follow *f, struct sy_error *err)
{
    ssize_t n = read(STDIN_FILENO, f->line + f->line_len, sizeof(f->line) - 1 - f->line_len);
    enum sy_code rc = SY_E_OK;
    char *end = NULL;

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return rc;
    }
    if (n < 0) {
        return sy_err_sys(err, errno, "reading the terminal");
    }
    if (n == 0 || f->line_len + (size_t)n == sizeof(f->line) - 1) {
        f->is_over = n == 0;
        f->line_len = 0;
        return rc;
    }
    f->line_len += (size_t)n;
    f->line[f->line_len] = '\0';
    end = strchr(f->line, '\n');
    if (end != NULL) {
        /* One answer for one question: what follows in the same breath is dropped. */
        *end = '\0';
        f->line_len = 0;
        rc = on_line(f, f->line, err);
    }
    return rc;
}

static enum sy_code
follow(struct follow *f, struct sy_error *err)
{
    enum sy_code rc = say("Requests are shown as they come; q ends.\n");

    if (rc == SY_E_OK) {
        rc = show_next(f, err);
    }
    while (rc == SY_E_OK && !f->is_over) {
        struct pollfd fds[] = {
            {.fd = STDIN_FILENO,             .events = POLLIN},
            {.fd = store_watch_fd(f->watch), .events = POLLIN}
        };
        /* A request's time runs out without anybody writing. */
        int n = poll(fds, 2, f->shown[0] != '\0' ? 1000 : -1);

        if (n < 0 && errno != EINTR) {
            return sy_err_sys(err, errno, "waiting for requests");
        }
        if (n > 0 && (fds[1].revents & POLLIN) != 0) {
            rc = store_watch_drain(f->watch, err);
        }
        if (rc == SY_E_OK && n > 0 && fds[0].revents != 0) {
            rc = read_input(f, err);
        }
        if (rc == SY_E_OK && !f->is_over) {
            rc = show_next(f, err);
        }
    }
    return rc;
}

static int
follow_main(const struct cli_args *args)
{
    struct follow f = {0};
    struct sy_error err = {0};
    enum sy_code rc = cli_approvals_check(&err);

    (void)args;
    if (rc == SY_E_OK && isatty(STDIN_FILENO) == 0) {
        rc = sy_err_set(&err, SY_E_ARG,
                        "follow: standard input is no terminal; use approvals list --json, "
                        "approve and deny");
    }
    if (rc == SY_E_OK) {
        rc = cli_approvals_open(&f.st, &err);
    }
    if (rc == SY_E_OK) {
        rc = store_watch_open(&f.watch, f.st, &err);
    }
    if (rc == SY_E_OK) {
        rc = follow(&f, &err);
    }
    store_watch_close(f.watch);
    store_close(f.st);
    if (rc != SY_E_OK && err.code == SY_E_OK) {
        (void)sy_err_set(&err, rc, "follow: %s", sy_code_text(rc));
    }
    return rc == SY_E_OK ? 0 : cli_fail(&err);
}

static const struct cli_option follow_options[] = {CLI_OPTION_END};

const struct cli_verb verb_approvals_follow = {
    .name = "follow",
    .summary = "Show each request as it comes, and take the answers",
    .operands = "",
    .page = "shellyard-approvals.1",
    .options = follow_options,
    .run = follow_main,
};
