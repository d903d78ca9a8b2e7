#ifndef SY_HOOK_HOOK_H
#define SY_HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "approval/assess.h"
#include "approval/question.h"
#include "base/buf.h"
#include "base/err.h"
#include "process/process.h"
#include "sandbox/sandbox.h"

/*
 * Programs of the user's that have a say in what runs (docs/hooks.md). One gets the call as
 * JSON on its standard input and answers on its standard output. What goes wrong with it,
 * whatever it is, is HOOK_ASK with a reason: never HOOK_ALLOW.
 */
enum hook_event {
    HOOK_PRE_EXEC,           /* before each call that would run */
    HOOK_PERMISSION_REQUEST, /* before a person is asked */
};
#define HOOK_EVENTS 2

const char *hook_event_name(enum hook_event e);

/* Which there are; borrowed. Zeroed: none. */
struct hooks {
    const struct strv *programs[HOOK_EVENTS]; /* absolute paths; NULL: none */
    uint64_t timeout_ms;                      /* of each */
};

enum hook_decision { HOOK_NONE, HOOK_ALLOW, HOOK_REWRITE, HOOK_ASK, HOOK_DENY };

struct hook_answer {
    enum hook_decision decision;
    bool has_failed;             /* then HOOK_ASK, and the reason says what went wrong */
    struct strv command;         /* HOOK_REWRITE: what is to run instead, not empty */
    char reason[SY_ERR_MSG_MAX]; /* visible text; "" none given */
};

void hook_answer_fini(struct hook_answer *a);
/*
 * Reads what a hook printed. Nothing but blanks is HOOK_NONE. SY_E_PARSE with a sentence for
 * all that is no answer: other keys, another type, a command where none belongs.
 */
enum sy_code hook_answer_read(struct hook_answer *ret, const char *text, size_t len,
                              struct sy_error *err) SY_NODISCARD;

/* What a hook is told; borrowed. No values of variables are among it. */
struct hook_call {
    enum hook_event event;
    const char *session;
    const struct subagent *subagent; /* whose session that is; NULL: the main one's */
    const char *call_id;
    const char *tool;
    char *const *argv;
    const char *script; /* of a shell, whose argument list `argv` is then; or NULL */
    const char *patch;  /* or NULL */
    const char *access; /* what is asked for beyond the sandbox, as JSON; or NULL */
    const char *cwd;
    const struct sandbox_policy *sandbox;
    enum approval_policy policy;
    bool escalates;            /* asks to leave the sandbox */
    const char *justification; /* or NULL */
    const struct assessment *assessment;
};

enum sy_code hook_call_write(struct buf *ret, const struct hook_call *call) SY_NODISCARD;

/*
 * May that file speak for the user? An executable file of theirs or root's, which nobody else can
 * write, nor any directory that it is in, and which commands under `policy` can't write.
 * `plan` may be NULL. SY_E_CONFIG with a sentence: no.
 */
enum sy_code hook_check_program(const char *path, const struct sandbox_policy *policy,
                                const struct sandbox_plan *plan, struct sy_error *err) SY_NODISCARD;

/* One run of one hook, without a loop: as struct process. */
struct hook_run;

struct hook_run_options {
    const char *program;       /* outlives the run */
    const char *input;         /* NUL-terminated JSON; copied */
    char *const *environ_list; /* the engine's; a hook gets what commands inherit at the least */
    uint64_t timeout_ms;
};

enum sy_code hook_run_new(struct hook_run **ret, const struct hook_run_options *options,
                          struct sy_error *err) SY_NODISCARD;
size_t hook_run_watches(const struct hook_run *r, struct process_watch out[PROCESS_WATCHES]);
uint64_t hook_run_deadline_ns(const struct hook_run *r);
/* True once it and all that it started have ended, and the answer is there. */
bool hook_run_step(struct hook_run *r, uint64_t now_ns);
/* Lives as long as the run. */
const struct hook_answer *hook_run_answer(const struct hook_run *r);
/* Ends what still runs. Accepts NULL. */
void hook_run_free(struct hook_run *r);

#endif
