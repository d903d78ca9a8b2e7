#ifndef SY_APPROVAL_ASSESS_H
#define SY_APPROVAL_ASSESS_H

#include <stdbool.h>
#include <stdint.h>

#include "approval/approval.h"
#include "base/buf.h"
#include "base/err.h"

/*
 * What a call needs before it may run, out of all that is known: the commands that its
 * argument list holds, safety and danger (command/safe.h, danger.h), the user's rules
 * (rules.h) and the policy (requirement_decide).
 */

/* Borrowed. */
struct assess_input {
    char *const *argv; /* what will run; for a script the shell, its -c and the script */
    /* Where that script is a line typed to a shell that has been running: its name, "" where it is
     * not known which; else NULL. */
    const char *typed_to;
    bool lacks_comments;   /* of such a shell: it was told to have none */
    const char *cwd;       /* absolute */
    const char *path_list; /* PATH that it will have; NULL: none */
    char *const *env;      /* "NAME=value" that the caller asks for; or NULL */
    char *const *roots;    /* top directories of the workspace, itself first; NULL-terminated */
    enum approval_policy policy;
    struct approval_granular granular;
    bool asks_for_all; /* struct requirement_input */
    enum sandbox_mode mode;
    bool escalates;
    const struct strv *wanted_prefix; /* of a rule that the caller proposes; or NULL */
};

struct assessment {
    struct requirement need;
    enum approval_class class;
    /* Known to change nothing: with these variables, if any, laid over its environment.
     * Static, NULL-terminated. */
    bool is_safe;
    const char *const *env;
    bool is_unreadable; /* a script that is none, as far as it goes: what follows may complete it */
    bool asks_for_rights; /* it names a program that gives more: sudo, su, pkexec, ... */
    /* What was found against it: "" when nothing was. */
    char finding[SY_ERR_MSG_MAX];
    /* What the caller should know, or "". */
    char note[SY_ERR_MSG_MAX];
    /* Where a rule forbids it and says to run a better command instead: that command, which has to
     * be judged as if it had been sent; else empty. */
    struct strv better;
    /* The prefix that a rule may be made of, exactly as it will be; empty: none may. */
    struct strv prefix;
};

void assessment_fini(struct assessment *a);

/* Who judges, for those that must not depend on how (orchestrator.h). An error is told
 * to the caller and the call does not run. */
typedef enum sy_code assess_fn(void *arg, struct assessment *ret, const struct assess_input *in,
                               struct sy_error *err);
/* What is said of a connection while a command runs: nobody can be asked then. */
enum assess_host { ASSESS_HOST_OPEN, ASSESS_HOST_ALLOWED, ASSESS_HOST_REFUSED };
/* `protocol` as in struct proxy_verdict. *ret_reason is a sentence but for ASSESS_HOST_OPEN. */
typedef enum assess_host assess_host_fn(void *arg, const char *protocol, const char *host,
                                        char ret_reason[SY_ERR_MSG_MAX]);
struct assess_by {
    assess_fn *fn;        /* NULL: nobody; only the call's parameters count (requirement_compute) */
    assess_host_fn *host; /* NULL: nobody; the allow list alone counts */
    void *arg;
};

/* Rules from elsewhere than files, which are read again when their version has changed. They
 * only allow: without them more is asked, so a failure becomes a note. */
struct rules;
struct assess_rules {
    enum sy_code (*version)(void *arg, uint64_t *ret,
                            struct sy_error *err); /* NULL: there are none */
    enum sy_code (*read)(void *arg, struct rules *into, struct sy_error *err);
    void *arg;
};

/* The judge that there is: a parser, what it remembers of programs, and the rules, which
 * are read again when their files have changed. One thread at a time. */
struct assessor;

struct assessor_options {
    const char *home;        /* absolute; NULL: unknown */
    const char *user_path;   /* of the user's rules; NULL: none */
    const char *system_path; /* NULL: RULES_SYSTEM_PATH */
    struct assess_rules more;
};

/* Reads nothing yet. */
enum sy_code assessor_new(struct assessor **ret, const struct assessor_options *options,
                          struct sy_error *err) SY_NODISCARD;
/* Accepts NULL. */
void assessor_free(struct assessor *a);
/* An assess_fn; `arg` is a struct assessor. SY_E_CONFIG for rules that can't be used. */
assess_fn assessor_assess SY_NODISCARD;

/* By the network rules of the last assessment. What a rule refuses or asks about for one protocol
 * is refused by all of them: a command chooses which it speaks. */
assess_host_fn assessor_judge_host;

#endif
