/* What Landlock itself says of a call, in the kernel's audit log. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/audited.h"
#include "orchestrator/call_internal.h"

enum sy_code
session_audit_open(struct audit_reader **ret, const struct sandbox_caps *caps, struct sy_error *why)
{
    return audit_reader_new(ret, caps->landlock_abi, why);
}

void
session_audit_close(struct audit_reader *r)
{
    audit_reader_free(r);
}

void
call_audit_begin(struct orch_call *c)
{
    struct audit_reader *log = session_audit(c->session);

    if (log != NULL && sandbox_plan_is_logged(c->entry->plan)) {
        audit_reader_begin(log, &c->audit);
    }
}

/* A command that succeeded is not waited for: what it was refused may be told with nothing. */
static bool
is_waited_for(const struct orch_call *c)
{
    const struct process_result *r = process_result(c->process);

    return c->audit.is_open &&
           (r->outcome == PROCESS_SIGNALED || (r->outcome == PROCESS_EXITED && r->exit_code != 0));
}

void
call_audit_ask(struct orch_call *c, uint64_t now_ns)
{
    if (is_waited_for(c)) {
        (void)audit_reader_settle(session_audit(c->session), &c->audit, now_ns);
    }
}

bool
call_audit_settle(struct orch_call *c, uint64_t now_ns)
{
    if (!is_waited_for(c) || audit_reader_settle(session_audit(c->session), &c->audit, now_ns)) {
        return true;
    }
    /* Of the call's own, since libuv takes each number once. Without one there is the clock. */
    if (c->audit_fd < 0) {
        c->audit_fd = fcntl(audit_reader_fd(session_audit(c->session)), F_DUPFD_CLOEXEC, 3);
    }
    return false;
}

size_t
call_audit_watch(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES])
{
    if (c->audit_fd < 0) {
        return 0;
    }
    out[0] = (struct process_watch){.fd = c->audit_fd, .events = POLLIN, .id = UINT64_MAX};
    return 1;
}

uint64_t
call_audit_again_ns(const struct orch_call *c)
{
    return c->audit.again_ns;
}

void
call_audit_end(struct orch_call *c)
{
    if (c->audit.is_open) {
        audit_reader_end(session_audit(c->session), &c->audit);
    }
    fd_close(&c->audit_fd);
}

static bool
is_in(const char *object, const char *directory)
{
    const char *slash = strrchr(object, '/');
    size_t n = strlen(directory);

    return slash != NULL && strncmp(object, directory, n) == 0 &&
           ((size_t)(slash - object) == n || (n == 1 && slash == object));
}

/* The record's object, or a name in that directory, to which the same was done, as far as can be
 * told from outside: whoever writes a file that is not there yet makes it. */
static bool
is_same(const struct denial *d, const struct audit_record *r)
{
    return (r->is_in_directory ? is_in(d->object, r->object) : str_eq(d->object, r->object)) &&
           (str_eq(d->operation, sandbox_operation_name(r->operation)) ||
            ((r->operation == OPERATION_CREATE || r->operation == OPERATION_TRUNCATE) &&
             str_eq(d->operation, sandbox_operation_name(OPERATION_WRITE))));
}

/* Told once, and exact now. */
static bool
is_known(struct audited *a, const struct audit_record *r)
{
    for (size_t i = 0; i < a->n; i++) {
        struct denial *d = &a->list->v[i];

        if (d->layer == DENIAL_LANDLOCK && a->used[i] < d->count && is_same(d, r)) {
            d->confidence = DENIAL_EXACT;
            a->used[i]++;
            return true;
        }
    }
    return false;
}

/* By a name in the directory, of which it is known only that it is one. */
static bool
explain(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
        const struct audit_record *r)
{
    SY_AUTO(buf_fini) struct buf object = {.max = LIMIT_PATH};

    return buf_addf(&object, "%s%s", r->object, r->is_in_directory ? "/..." : "") == SY_E_OK &&
           sandbox_explain(ret, plan, r->operation, buf_view(&object), NULL) == SY_E_OK &&
           !ret->is_allowed; /* by a name that leads elsewhere by now */
}

void
audited_begin(struct audited *ret, struct denial_list *list, const struct sandbox_plan *plan)
{
    *ret = (struct audited){.list = list, .plan = plan, .n = list->n, .rc = SY_E_OK};
}

void
audited_add(void *arg, const struct audit_record *r)
{
    struct audited *a = arg;
    struct sandbox_explanation why = {0};

    if (is_known(a, r)) {
        return;
    }

    bool is_explained = explain(&why, a->plan, r);
    SY_AUTO(mem_free_charp) char *object = mem_strdup(r->object);
    const struct denial d = {
        .layer = DENIAL_LANDLOCK,
        .confidence = DENIAL_EXACT,
        .operation = sandbox_operation_name(r->operation),
        .object = object,
        .rule = is_explained && why.rule[0] != '\0' ? why.rule : NULL,
        .fix = is_explained && why.fix[0] != '\0' ? why.fix : NULL,
    };

    if (object == NULL || denial_add(a->list, &d) != SY_E_OK) {
        a->rc = SY_E_NOMEM;
    }
}

enum sy_code
call_audit_take(struct orch_call *c)
{
    struct audit_reader *log = session_audit(c->session);
    struct audited a;

    if (!c->audit.is_open) {
        return SY_E_OK;
    }

    pid_t pid = process_pid(c->process);

    audited_begin(&a, &c->output.denials, c->entry->plan);
    if (pid > 0 && !audit_reader_take(log, &c->audit, pid, audited_add, &a)) {
        call_add_note(c, "records of the kernel's audit log were lost while it ran: more may have "
                         "been refused than is told");
    }
    audit_reader_end(log, &c->audit);
    return a.rc;
}
