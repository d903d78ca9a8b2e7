/* What the sandbox refused to a call: what was seen, and what can be inferred. */
#include "sandbox/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "guard/guard.h"
#include "orchestrator/call_internal.h"
#include "process/limited.h"

/* A file system that does not answer costs the answer no more than this. */
#define ACCESS_MS 200

/* Are we under somebody else's sandbox, as far as the kernel tells? */
static bool
is_nested(void)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)1 << 20};

    return fd_read_file("/proc/self/status", &text, NULL) == SY_E_OK && text.len > 0 &&
           (strstr(text.data, "\nNoNewPrivs:\t1") != NULL ||
            strstr(text.data, "\nSeccomp:\t2") != NULL);
}

/*
 * What an outer sandbox thinks of a new file in a directory can only be tried: one without
 * a name, which is gone when it is closed.
 */
static int
outer_refusal(const char *path)
{
    char dir[LIMIT_PATH];
    struct stat st;

    (void)snprintf(dir, sizeof(dir), "%s", path);
    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) {
        char *slash = strrchr(dir, '/');

        slash[slash == dir ? 1 : 0] = '\0';
    }

    SY_FD fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    return fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS) ? errno : 0;
}

/* Whose permissions count, and what else holds. */
struct subject {
    bool is_nested;
    const struct guard *guard;      /* NULL: nothing is protected by mounts */
    const struct limited_user *who; /* NULL: us */
    struct orch_call *call;
    struct strv places; /* once has_places */
    bool has_places;
};

static int
may_do(void *arg, const char *path, int how)
{
    const struct subject *s = arg;
    int sys = limited_access(path, how, s->who, ACCESS_MS);

    return sys == 0 && s->is_nested && (how & W_OK) != 0 ? outer_refusal(path) : sys;
}

static bool
is_held(void *arg, struct sandbox_explanation *ret, enum sandbox_operation op, const char *path)
{
    const struct subject *s = arg;

    return s->guard != NULL && guard_holds(s->guard, ret, op, path);
}

/* Out of memory there are none: the denial itself is told all the same. */
static char *const *
find_places(void *arg)
{
    struct subject *s = arg;

    if (!s->has_places) {
        s->has_places = true;
        if (call_find_places(s->call, &s->places) != SY_E_OK) {
            strv_fini(&s->places);
        }
    }
    return strv_view(&s->places);
}

/* As root, commands of the full tier run as the owner of the workspace, with his group as far as
 * the workspace has it. False: as ourselves. */
static bool
find_owner(const struct orch_call *c, struct limited_user *ret)
{
    const struct sandbox_policy *p = &c->turn.sandbox;
    struct stat st;

    if (geteuid() != 0 || p->runs_as_self || c->entry->template == NULL || stat(p->cwd, &st) != 0 ||
        st.st_uid == 0) {
        return false;
    }
    *ret = (struct limited_user){.uid = st.st_uid, .gid = st.st_gid};
    return true;
}

/* The filter kills what calls the kernel as another architecture does. */
static enum sy_code
infer_signal(struct orch_call *c)
{
    char object[] = "a system call of another architecture";
    char rule[] = "only calls of this machine's own architecture";
    const struct denial d = {
        .layer = DENIAL_SECCOMP,
        .confidence = DENIAL_INFERRED,
        .operation = "call",
        .object = object,
        .rule = rule,
    };

    return c->output.status == EXEC_SIGNALED && c->output.signal == SIGSYS &&
                   c->entry->ready != NULL
               ? denial_add(&c->output.denials, &d)
               : SY_E_OK;
}

static enum sy_code
infer(struct orch_call *c, char note[SY_ERR_MSG_MAX])
{
    struct limited_user owner;
    struct subject subject = {
        .is_nested = is_nested(),
        .who = find_owner(c, &owner) ? &owner : NULL,
        .guard = c->was_protected && c->entry->template != NULL ? c->entry->guard : NULL,
        .call = c,
        .places = {.max = LIMIT_ARGV},
    };
    struct evidence_case facts = {
        .plan = c->entry->plan,
        .cwd = c->request.params.cwd,
        .exit_code = c->output.exit_code,
        .has_succeeded = !exec_has_failed(&c->output),
        .access = may_do,
        .held = is_held,
        .dirs = find_places,
        .uid = subject.who != NULL ? subject.who->uid : geteuid(),
        .arg = &subject,
    };
    enum sy_code rc = infer_signal(c);

    facts.note = note;
    for (int s = 0; s < STREAM_COUNT && rc == SY_E_OK; s++) {
        SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_STREAM_KEEP * 4};

        rc = output_text_stream(c->chain, (enum output_stream)s, &text);
        if (rc == SY_E_OK) {
            rc = evidence_infer(&c->output.denials, &facts, buf_view(&text), text.len);
        }
    }
    strv_fini(&subject.places);
    return rc;
}

/* A command may succeed without what it was to do: git says that it has set up tracking, and before
 * that it could not write its configuration. Told only where mounts hold names. */
static bool
complains_all_the_same(struct orch_call *c)
{
    static const char busy[] = "resource busy";
    bool ret = false;

    if (!c->was_protected || c->entry->template == NULL) {
        return false;
    }
    for (int s = 0; s < STREAM_COUNT && !ret; s++) {
        SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_STREAM_KEEP * 4};

        /* Out of memory: whoever looks closely tells it. */
        ret = output_text_stream(c->chain, (enum output_stream)s, &text) != SY_E_OK ||
              (text.len > 0 && memmem(text.data, text.len, busy, sizeof(busy) - 1) != NULL);
    }
    return ret;
}

void
call_take_denials(struct orch_call *c)
{
    if (c->process != NULL) {
        process_take_denials(c->process, &c->output.denials);
    }
}

void
call_gather_denials(struct orch_call *c)
{
    c->output.may_escalate = c->turn.approval == APPROVAL_ON_REQUEST;
    if (c->process == NULL) {
        return;
    }
    call_hidden_end(c, true);
    c->output.is_unobserved = process_result(c->process)->is_unobserved;
    if (c->output.is_unobserved) {
        call_add_note(c,
                      "sandbox.report: full is not possible here, since an outer sandbox has the "
                      "one listener of this process tree: what was refused is only inferred");
    }
    if (c->chain != NULL && c->entry->ready != NULL &&
        (exec_has_failed(&c->output) || complains_all_the_same(c))) {
        c->evidence = infer(c, c->not_ours);
    }
}

void
call_tell_denials(struct orch_call *c)
{
    enum sy_code rc = c->evidence == SY_E_OK ? call_audit_take(c) : c->evidence;

    if (rc != SY_E_OK) {
        call_add_note(c, "memory ran out while looking for what the sandbox refused");
    } else if (c->not_ours[0] != '\0' && c->output.denials.n == 0) {
        call_add_note(c, c->not_ours);
    }
}
