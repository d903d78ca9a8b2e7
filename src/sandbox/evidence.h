#ifndef SY_SANDBOX_EVIDENCE_H
#define SY_SANDBOX_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sandbox/denial.h"
#include "sandbox/sandbox.h"

/*
 * Refusals that nobody of ours witnessed, inferred after a command has failed:
 * its output complains about an object, the policy would refuse that object, and
 * nothing else would. Words alone never make one: a complaint without an object, or
 * about one that the policy allows, is none.
 */

/* Who refuses a path under this plan: mounts stand in front of Landlock. */
enum denial_layer evidence_layer(const struct sandbox_plan *plan);

/* What was to be done with a path, as far as the words around it say. */
enum named_intent {
    NAMED_ANY,
    NAMED_READ,    /* the source of a copy, the end of a link */
    NAMED_WRITTEN, /* to be written or made */
    NAMED_REMOVED, /* to go away or to get another name */
    NAMED_CHANGED  /* its mode, owner or times */
};

/* Something that a line of output complains about. */
struct named {
    bool is_host;
    enum named_intent intent; /* of a path */
    int sys;                  /* of a path: the errno value of the complaint */
    unsigned line;            /* names of one line come likeliest first */
    const char *text;         /* a path as written, or a host */
    unsigned port;            /* of a host; 0: not named */
};

/* Text beyond these from the end of each stream is not looked at. */
#define EVIDENCE_TEXT  ((size_t)64 * 1024)
#define EVIDENCE_NAMES 128U

/*
 * Tells `fn` what the text complains about, line by line, until it returns false or
 * EVIDENCE_NAMES were told. Pure. A name is valid during the call only.
 */
typedef bool named_fn(void *arg, const struct named *n);
void evidence_scan(const char *text, size_t n, named_fn *fn, void *arg);

/* May the command do that by plain permissions (faccessat(2) with R_OK, W_OK, X_OK), without
 * our sandbox? 0, or the errno value. */
typedef int evidence_access_fn(void *arg, const char *path, int how);

/*
 * Would a change of this path (absolute, without links), which the plan allows, be refused by
 * what else holds it, a protected name? If so: rule and fix. OPERATION_CREATE: a name that
 * is there for no other reason.
 */
typedef bool evidence_held_fn(void *arg, struct sandbox_explanation *ret, enum sandbox_operation op,
                              const char *path);

/*
 * Where else than in its cwd the command was at work: absolute, the likeliest first,
 * NULL-terminated, or NULL. Asked when there is a name without a directory, which is looked for
 * there first.
 */
typedef char *const *evidence_dirs_fn(void *arg);

struct evidence_case {
    const struct sandbox_plan *plan;
    evidence_access_fn *access;
    evidence_held_fn *held; /* NULL: nothing */
    void *arg;
    uid_t uid; /* who the command runs as */
    /* Of evidence_infer alone. */
    const char *cwd;        /* of the command, absolute */
    evidence_dirs_fn *dirs; /* NULL: nowhere else */
    int exit_code;
    bool has_succeeded; /* then nothing counts but EBUSY for what `held` holds: hardly anything else
                           makes one, and programs that go on after it say that they did it */
    /* SY_ERR_MSG_MAX bytes, as they are if there is nothing to say: a sentence about an object that
     * is refused without us, so that no grant would help. */
    char *note;
};

/*
 * What the plan says to an operation on a path (absolute). *ret_anyway is of use if it says no:
 * the errno that there would be without us, 0 if there is none: then the refusal is ours. ENOENT,
 * ENOTDIR and EEXIST are no refusals at all.
 */
enum sy_code evidence_judge(struct sandbox_explanation *ret, int *ret_anyway,
                            const struct evidence_case *c, enum sandbox_operation op,
                            const char *path) SY_NODISCARD;

/*
 * Does what else holds the path refuse it, although the plan allows it? `c` has no `held`: no.
 * An existing name at which another is put in its place is asked about as OPERATION_DELETE.
 * False where plain permissions would refuse it, too.
 */
bool evidence_judge_held(struct sandbox_explanation *ret, const struct evidence_case *c,
                         enum sandbox_operation op, const char *path);

/* Adds the denials that a failed command's text gives. */
enum sy_code evidence_infer(struct denial_list *list, const struct evidence_case *c,
                            const char *text, size_t n) SY_NODISCARD;

#endif
