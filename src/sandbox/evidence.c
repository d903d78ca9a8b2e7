#include "sandbox/evidence.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "sandbox/sandbox_internal.h"

/* What shells give for a file that could not be executed. */
#define EXIT_NOT_EXECUTABLE 126

struct inference {
    const struct evidence_case *c;
    struct denial_list *list;
    char *note;
    enum sy_code rc;
};

/* The directory of a path that has one: cuts it. */
static void
cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    slash[slash == path ? 1 : 0] = '\0';
}

/*
 * Would it be refused without us, too? 0: no; else an errno value. ENOENT: there
 * is no directory for it, and what is missing is no refusal.
 */
static int
plain_refusal(const struct inference *i, const char *path, bool is_removal)
{
    char dir[sizeof(((struct sandbox_explanation *)0)->resolved)];
    struct stat st;
    bool exists = lstat(path, &st) == 0;

    (void)snprintf(dir, sizeof(dir), "%s", path);
    if (exists && !is_removal && !S_ISDIR(st.st_mode)) {
        return i->c->access(i->c->arg, path, W_OK);
    }
    if (is_removal && !exists) {
        return ENOENT;
    }
    if (!exists || is_removal) {
        cut_last(dir);
    }
    if (stat(dir, &st) != 0) {
        return errno;
    }
    if (!S_ISDIR(st.st_mode)) {
        return ENOTDIR;
    }
    return i->c->access(i->c->arg, dir, W_OK | X_OK);
}

static void
add(struct inference *i, enum denial_layer layer, const char *operation, char *object,
    struct sandbox_explanation *why)
{
    struct denial d = {
        .layer = layer,
        .confidence = DENIAL_INFERRED,
        .operation = operation,
        .object = object,
        .rule = why->rule,
        .fix = why->fix[0] != '\0' ? why->fix : NULL,
    };

    i->rc = denial_add(i->list, &d);
}

static void
say_not_ours(struct inference *i, const char *path, int sys)
{
    if (i->note[0] == '\0') {
        (void)snprintf(i->note, SY_ERR_MSG_MAX,
                       "not the sandbox: %.120s is refused to this user anyway (%s)", path,
                       sy_errno_text(sys));
    }
}

/* Did a shell fail to execute it, since it is not executable? */
static bool
is_no_program(const struct inference *i, const char *path)
{
    struct stat st;

    return i->c->exit_code == EXIT_NOT_EXECUTABLE && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode) && i->c->access(i->c->arg, path, X_OK) != 0;
}

static void
judge_path(struct inference *i, const struct named *n)
{
    SY_AUTO(buf_fini) struct buf path = {.max = 2 * (size_t)LIMIT_PATH};
    struct sandbox_explanation why = {0};

    if (path_join(&path, i->c->cwd, n->text) != SY_E_OK) {
        return; /* too long for any kernel */
    }
    if (sandbox_explain(&why, i->c->plan, OPERATION_READ, buf_view(&path), NULL) != SY_E_OK) {
        return;
    }
    if (!why.is_allowed) {
        int sys = i->c->access(i->c->arg, why.resolved, R_OK);

        if (sys == 0) {
            add(i, DENIAL_LANDLOCK, sandbox_operation_name(OPERATION_READ), why.resolved, &why);
        } else if (sys != ENOENT && sys != ENOTDIR) {
            say_not_ours(i, why.resolved, sys);
        }
        return;
    }
    if (sandbox_explain(&why, i->c->plan, OPERATION_WRITE, buf_view(&path), NULL) != SY_E_OK ||
        why.is_allowed || is_no_program(i, why.resolved)) {
        return;
    }

    int sys = plain_refusal(i, why.resolved, n->is_removal);

    if (sys == 0) {
        add(i, DENIAL_LANDLOCK, n->is_removal ? "delete" : "write", why.resolved, &why);
    } else if (sys != ENOENT && sys != ENOTDIR) {
        say_not_ours(i, why.resolved, sys);
    }
}

static void
judge_host(struct inference *i, const struct named *n)
{
    SY_AUTO(buf_fini) struct buf object = {.max = 512};
    struct sandbox_explanation why = {0};
    bool is_v6 = strchr(n->text, ':') != NULL && n->text[0] != '[';

    if (buf_addf(&object, is_v6 ? "[%s]:%u" : "%s:%u", n->text, n->port != 0 ? n->port : 443) !=
            SY_E_OK ||
        sandbox_explain(&why, i->c->plan, OPERATION_CONNECT, buf_view(&object), NULL) != SY_E_OK ||
        why.is_allowed) {
        return;
    }
    if (n->port == 0) {
        (void)snprintf(why.resolved, sizeof(why.resolved), "%s", n->text);
    }
    add(i, DENIAL_SECCOMP, sandbox_operation_name(OPERATION_CONNECT), why.resolved, &why);
}

static bool
judge(void *arg, const struct named *n)
{
    struct inference *i = arg;

    if (n->is_host) {
        judge_host(i, n);
    } else {
        judge_path(i, n);
    }
    return i->rc == SY_E_OK;
}

enum sy_code
evidence_infer(struct denial_list *list, char *note, const struct evidence_case *c,
               const char *text, size_t n)
{
    struct inference i = {.c = c, .list = list, .note = note};

    if (c->plan->is_enforced) {
        size_t skip = n > EVIDENCE_TEXT ? n - EVIDENCE_TEXT : 0;

        evidence_scan(text + skip, n - skip, judge, &i);
    }
    return i.rc;
}
