#ifndef SY_APPROVAL_QUESTION_ACCESS_H
#define SY_APPROVAL_QUESTION_ACCESS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/delta.h"

/*
 * The part of a question that asks for a wider sandbox, not for a command: the member "access"
 * (docs/protocol/proto.md). What becomes possible is shown whole, or nobody is asked.
 */
struct access_question {
    const struct access *access;
    const char *asked;     /* as the agent wrote it */
    const char *scope;     /* "once", "session", "rule": what the agent wishes for */
    const char *workspace; /* of the policy */
    const char *mode;      /* its sandbox mode */
    const char *warning;   /* ""; why it is grave */
    const struct sandbox_delta *delta;
};

/* Appends one JSON object. */
enum sy_code question_access_write(struct buf *ret, const struct access_question *q) SY_NODISCARD;
/* Lines for a person; `access` is that object. */
enum sy_code question_access_text(struct buf *ret, const struct js *access) SY_NODISCARD;

/* What an answer for good is about; kind NULL: the question is not of this sort. Owns its texts. */
struct question_access {
    char *kind;
    char *object;
    char *workspace;
    char *mode;
};
void question_access_fini(struct question_access *a);
/* `json`: the whole question. */
enum sy_code question_access_read(struct question_access *ret, const char *json,
                                  struct sy_error *err) SY_NODISCARD;

#endif
