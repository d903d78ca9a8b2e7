#ifndef SY_SANDBOX_EVIDENCE_H
#define SY_SANDBOX_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

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

/* Something that a line of output complains about. */
struct named {
    bool is_host;
    bool is_removal;  /* a path that was to go away or to get another name */
    const char *text; /* a path as written, or a host */
    unsigned port;    /* of a host; 0: not named */
};

/* Text beyond these from the end of each stream is not looked at. */
#define EVIDENCE_TEXT  ((size_t)64 * 1024)
#define EVIDENCE_NAMES 128U

/*
 * Tells `fn` what the text complains about, in its order, until it returns false or
 * EVIDENCE_NAMES were told. Pure. A name is valid during the call only.
 */
typedef bool named_fn(void *arg, const struct named *n);
void evidence_scan(const char *text, size_t n, named_fn *fn, void *arg);

/* May the command do that by plain permissions (faccessat(2) with R_OK, W_OK, X_OK), without
 * our sandbox? 0, or the errno value. */
typedef int evidence_access_fn(void *arg, const char *path, int how);

struct evidence_case {
    const struct sandbox_plan *plan;
    evidence_access_fn *access;
    void *arg;
    /* Of evidence_infer alone. */
    const char *cwd; /* of the command, absolute */
    int exit_code;
    /* SY_ERR_MSG_MAX bytes, as they are if there is nothing to say: a sentence about an object that
     * the policy would refuse but that is refused anyway, so that no grant would help. */
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

/* Adds the denials that a failed command's text gives. */
enum sy_code evidence_infer(struct denial_list *list, const struct evidence_case *c,
                            const char *text, size_t n) SY_NODISCARD;

#endif
