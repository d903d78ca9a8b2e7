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

/* What is known of the names of one line. */
enum decided { UNDECIDED, DECIDED_WRITTEN, DECIDED };

struct inference {
    const struct evidence_case *c;
    struct denial_list *list;
    enum sy_code rc;
    unsigned line;
    enum decided decided;
};

enum denial_layer
evidence_layer(const struct sandbox_plan *plan)
{
    return sandbox_plan_tier(plan) == TIER_FULL ? DENIAL_MOUNT : DENIAL_LANDLOCK;
}

/* The directory of a path that has one: cuts it. */
static void
cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    slash[slash == path ? 1 : 0] = '\0';
}

/* A new name in a directory, or one less. */
static int
in_directory(const char *path, evidence_access_fn *access, void *arg)
{
    char dir[sizeof(((struct sandbox_explanation *)0)->resolved)];
    struct stat st;

    (void)snprintf(dir, sizeof(dir), "%s", path);
    cut_last(dir);
    if (stat(dir, &st) != 0) {
        return errno;
    }
    return S_ISDIR(st.st_mode) ? access(arg, dir, W_OK | X_OK) : ENOTDIR;
}

/* Where directories had to be made first, the first of them is what was refused. */
static void
cut_to_missing(char *path)
{
    for (;;) {
        char *slash = strrchr(path, '/');
        struct stat st;

        if (slash == path) {
            return;
        }
        *slash = '\0';
        if (lstat(path, &st) == 0 || errno != ENOENT) {
            *slash = '/';
            return;
        }
    }
}

/* A mode is changed by who owns the file, where the disk can be written. */
static int
refused_change(const struct evidence_case *c, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        return errno;
    }
    if (c->access(c->arg, path, W_OK) == EROFS) {
        return EROFS;
    }
    return c->uid == 0 || c->uid == st.st_uid ? 0 : EPERM;
}

/* Would it be refused without us, too? */
static int
refused_anyway(const struct evidence_case *c, enum sandbox_operation op, const char *path)
{
    evidence_access_fn *access = c->access;
    void *arg = c->arg;
    struct stat st;
    bool exists = lstat(path, &st) == 0;

    switch (op) {
    case OPERATION_READ:
        return access(arg, path, R_OK);
    case OPERATION_WRITE:
        if (!exists) {
            return in_directory(path, access, arg);
        }
        return access(arg, path, S_ISDIR(st.st_mode) ? W_OK | X_OK : W_OK);
    case OPERATION_TRUNCATE:
        return access(arg, path, W_OK);
    case OPERATION_CREATE:
        return exists ? EEXIST : in_directory(path, access, arg);
    case OPERATION_DELETE:
    case OPERATION_RENAME:
        return exists ? in_directory(path, access, arg) : ENOENT;
    case OPERATION_CHMOD:
        return refused_change(c, path);
    case OPERATION_CONNECT:
    case OPERATION_COUNT:
        break;
    }
    return 0;
}

enum sy_code
evidence_judge(struct sandbox_explanation *ret, int *ret_anyway, const struct evidence_case *c,
               enum sandbox_operation op, const char *path)
{
    enum sy_code rc = sandbox_explain(ret, c->plan, op, path, NULL);

    *ret_anyway = 0;
    if (rc == SY_E_OK && !ret->is_allowed) {
        *ret_anyway = refused_anyway(c, op, ret->resolved);
    }
    return rc;
}

bool
evidence_judge_held(struct sandbox_explanation *ret, const struct evidence_case *c,
                    enum sandbox_operation op, const char *path)
{
    int anyway = 0;

    if (c->held == NULL || sandbox_explain(ret, c->plan, op, path, NULL) != SY_E_OK ||
        !ret->is_allowed || !c->held(c->arg, ret, op, ret->resolved)) {
        return false;
    }
    anyway = refused_anyway(c, op, ret->resolved);
    /* A name that is there to be kept is in the way because of us. */
    return anyway == 0 || (op == OPERATION_CREATE && anyway == EEXIST);
}

static void
add(struct inference *i, enum denial_layer layer, const char *operation, char *object,
    struct sandbox_explanation *why)
{
    /* What was seen is not told again, under whatever name the act has here. */
    for (size_t k = 0; k < i->list->n; k++) {
        if (i->list->v[k].confidence == DENIAL_EXACT && str_eq(i->list->v[k].object, object)) {
            return;
        }
    }

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
    if (i->c->note[0] == '\0') {
        (void)snprintf(i->c->note, SY_ERR_MSG_MAX,
                       "not the sandbox: %.120s is refused to this user anyway (%s)", path,
                       sy_errno_text(sys));
    }
}

/* Did a shell fail to execute it, since it is not executable, or a directory? */
static bool
is_no_program(const struct inference *i, const char *path)
{
    struct stat st;

    return i->c->exit_code == EXIT_NOT_EXECUTABLE && stat(path, &st) == 0 &&
           (S_ISDIR(st.st_mode) ||
            (S_ISREG(st.st_mode) && i->c->access(i->c->arg, path, X_OK) != 0));
}

static bool
is_refusal(int sys)
{
    return sys != 0 && sys != ENOENT && sys != ENOTDIR && sys != EEXIST;
}

/* What the plan allows may be a protected name all the same. */
static bool
judge_held(struct inference *i, const struct named *n, enum sandbox_operation op,
           struct sandbox_explanation *why)
{
    /* A link to what is bound on itself leads to another mount. */
    enum sandbox_operation asked = n->sys == EEXIST  ? OPERATION_CREATE
                                   : n->sys == EXDEV ? OPERATION_RENAME
                                                     : op;

    if (i->c->held == NULL || asked == OPERATION_READ ||
        !i->c->held(i->c->arg, why, asked, why->resolved)) {
        return false;
    }
    if (n->sys != EEXIST) {
        int anyway = refused_anyway(i->c, op, why->resolved);

        if (is_refusal(anyway)) {
            say_not_ours(i, why->resolved, anyway);
            return true;
        }
    }
    /* Who links it means to write by the other name. */
    add(i, DENIAL_GUARD, sandbox_operation_name(n->sys == EXDEV ? OPERATION_WRITE : asked),
        why->resolved, why);
    return true;
}

/* One operation that may have been meant. True if that is what was refused. */
static bool
judge_operation(struct inference *i, const struct named *n, enum sandbox_operation op,
                const char *path)
{
    struct sandbox_explanation why = {0};
    int anyway = 0;

    if (evidence_judge(&why, &anyway, i->c, op, path) != SY_E_OK) {
        return false;
    }
    /* Other words name what is elsewhere: on another machine, in a container. */
    if (!why.is_allowed && anyway == ENOENT && op == OPERATION_WRITE &&
        n->intent == NAMED_WRITTEN) {
        char first[sizeof(why.resolved)];

        memcpy(first, why.resolved, sizeof(first));
        cut_to_missing(first);
        if (evidence_judge(&why, &anyway, i->c, op, first) != SY_E_OK) {
            return false;
        }
    }
    if (why.is_allowed || n->sys == EBUSY || n->sys == EEXIST) {
        return why.is_allowed && judge_held(i, n, op, &why);
    }
    if (op == OPERATION_WRITE && is_no_program(i, why.resolved)) {
        return false;
    }
    if (anyway == 0) {
        add(i, evidence_layer(i->c->plan), sandbox_operation_name(op), why.resolved, &why);
    } else if (is_refusal(anyway)) {
        say_not_ours(i, why.resolved, anyway);
    }
    return anyway == 0 || is_refusal(anyway);
}

/* The operations that a name may have been meant for, likeliest first; returns how many. */
static size_t
operations_of(enum sandbox_operation ret[2], const struct named *n, const char *path)
{
    struct stat st;

    switch (n->intent) {
    case NAMED_READ:
        ret[0] = OPERATION_READ;
        return 1;
    case NAMED_WRITTEN:
        ret[0] = OPERATION_WRITE;
        return 1;
    case NAMED_REMOVED:
        /* What is to be removed and is not there is the new name of a rename. */
        ret[0] = lstat(path, &st) == 0 ? OPERATION_DELETE : OPERATION_WRITE;
        return 1;
    case NAMED_CHANGED:
        ret[0] = OPERATION_CHMOD;
        return 1;
    case NAMED_ANY:
        break;
    }
    ret[0] = OPERATION_READ;
    ret[1] = OPERATION_WRITE;
    return 2;
}

/* Nothing of ours refuses it: do its mode, its owner or the disk? */
static bool
judge_allowed(struct inference *i, const struct named *n, enum sandbox_operation op,
              const char *path)
{
    struct sandbox_explanation why = {0};

    if ((n->sys != EACCES && n->sys != EPERM && n->sys != EROFS) ||
        sandbox_explain(&why, i->c->plan, op, path, NULL) != SY_E_OK) {
        return false;
    }

    int sys = refused_anyway(i->c, op, why.resolved);

    if (sys != n->sys || is_no_program(i, why.resolved)) {
        return false;
    }
    say_not_ours(i, why.resolved, sys);
    return true;
}

/* Is it what was refused, if the command was there? */
static bool
judge_path_in(struct inference *i, const struct named *n, const char *dir)
{
    SY_AUTO(buf_fini) struct buf path = {.max = 2 * (size_t)LIMIT_PATH};
    enum sandbox_operation ops[2];
    bool is_it = false;

    if (path_join(&path, dir, n->text) != SY_E_OK) {
        return false; /* too long for any kernel */
    }

    size_t n_ops = operations_of(ops, n, buf_view(&path));

    if (n->sys == ENOENT) {
        /* What lies in a hidden directory looks as if it was not there. */
        struct stat st;

        if (sandbox_plan_tier(i->c->plan) != TIER_FULL || lstat(buf_view(&path), &st) != 0) {
            return false;
        }
        ops[0] = OPERATION_READ;
        n_ops = 1;
    }

    for (size_t k = 0; k < n_ops && !is_it; k++) {
        is_it = judge_operation(i, n, ops[k], buf_view(&path));
    }
    for (size_t k = 0; k < n_ops && !is_it && i->decided == UNDECIDED; k++) {
        is_it = judge_allowed(i, n, ops[k], buf_view(&path));
    }
    return is_it;
}

static void
judge_path(struct inference *i, const struct named *n)
{
    char *const *dir = NULL;
    bool is_it = false;

    /* What was written is named before what had to go away for it: both may be refused. */
    if (i->decided == DECIDED || (i->decided == DECIDED_WRITTEN && n->intent != NAMED_REMOVED)) {
        return;
    }
    if (n->text[0] != '/' && i->c->dirs != NULL) {
        dir = i->c->dirs(i->c->arg);
    }
    for (; dir != NULL && *dir != NULL && !is_it; dir++) {
        is_it = judge_path_in(i, n, *dir);
    }
    if (is_it || judge_path_in(i, n, i->c->cwd)) {
        i->decided = n->intent == NAMED_WRITTEN ? DECIDED_WRITTEN : DECIDED;
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
    add(i, sandbox_plan_has_own_network(i->c->plan) ? DENIAL_NAMESPACE : DENIAL_SECCOMP,
        sandbox_operation_name(OPERATION_CONNECT), why.resolved, &why);
}

static bool
judge(void *arg, const struct named *n)
{
    struct inference *i = arg;

    if (n->line != i->line) {
        i->line = n->line;
        i->decided = UNDECIDED;
    }
    if (i->c->has_succeeded && (n->is_host || n->sys != EBUSY)) {
        return true;
    }
    if (n->is_host) {
        judge_host(i, n);
    } else {
        judge_path(i, n);
    }
    return i->rc == SY_E_OK;
}

enum sy_code
evidence_infer(struct denial_list *list, const struct evidence_case *c, const char *text, size_t n)
{
    struct inference i = {.c = c, .list = list};

    if (c->plan->is_enforced) {
        size_t skip = n > EVIDENCE_TEXT ? n - EVIDENCE_TEXT : 0;

        evidence_scan(text + skip, n - skip, judge, &i);
    }
    return i.rc;
}
