#ifndef SY_APPROVAL_QUESTION_H
#define SY_APPROVAL_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "approval/approval.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/*
 * What a person is asked, as JSON that the store keeps (docs/protocol/proto.md) and as
 * lines of text. What comes from a model or a command is made visible in the text: nothing
 * of it can move a cursor, reverse a line or hide.
 */

/* Who asks, if it is no main agent; borrowed. */
struct subagent {
    const char *id;
    const char *name;      /* what it is for; NULL: nothing is said */
    const char *const *of; /* the ids of those above it, the nearest first; NULL-terminated */
};
/* The member "subagent"; nothing for NULL. */
void subagent_write(struct jw *w, const struct subagent *a);

/* Borrowed. */
struct question {
    const char *tool;
    const char *client;              /* who asks: the agent's program; "" unknown */
    const struct subagent *subagent; /* NULL: the main agent */
    char *const *argv;               /* what would run */
    const char *script;              /* of a shell, whose argument list `argv` is then; or NULL */
    const char *patch;       /* that would be applied, whose words stand in `argv`; or NULL */
    const struct strv *keys; /* what the session may remember: one for each file of a patch; NULL
                                or empty: the command */
    const char *access;      /* what commands may do from now on, as JSON (question_access.h), with
                                its words in `argv`; NULL: something would run */
    const char *cwd;
    char *const *env;          /* "NAME=value" that the caller asks for; or NULL */
    const char *why;           /* a sentence: why a person is asked */
    const char *finding;       /* what is known against the command; "" nothing */
    const char *justification; /* the model's own words; or NULL */
    const char *failed;        /* what its first attempt printed and was refused; or NULL */
    enum approval_class class;
    const struct sandbox_policy *sandbox; /* of the turn */
    const char *input; /* what it reads while it runs: "pipe" or "terminal"; NULL: nothing */
    bool leaves_sandbox;
    bool is_root;              /* what leaves the sandbox runs as root */
    bool asks_for_rights;      /* it starts a program that gives more (sudo) */
    const struct strv *prefix; /* of the rule that may be made; empty: none may */
    bool may_remember;         /* the session may */
};

enum sy_code question_write(struct buf *ret, const struct question *q) SY_NODISCARD;

/* Appends what a person reads, lines that each end with a newline. SY_E_PARSE for what is none. */
enum sy_code question_text(struct buf *ret, const char *json, struct sy_error *err) SY_NODISCARD;
/* Of those the line with a model's comment (risk.h); nothing where there is none. */
enum sy_code question_comment(struct buf *ret, const char *json, struct sy_error *err) SY_NODISCARD;
/* One line of at most `max` bytes: what would run. */
enum sy_code question_title(struct buf *ret, const char *json, size_t max,
                            struct sy_error *err) SY_NODISCARD;
/* The rule's prefix; empty if none may be made. The session may remember it? */
enum sy_code question_prefix(struct strv *ret, bool *ret_may_remember, bool *ret_leaves_sandbox,
                             const char *json, struct sy_error *err) SY_NODISCARD;

#endif
