#ifndef SY_APPROVAL_RISK_H
#define SY_APPROVAL_RISK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What a language model says about a request for approval: a level and a sentence, shown to the
 * person beside the request and deciding nothing. The model reads words of whoever asks, who may
 * have written them for it. Pure: who sends it is above (tools/comment.h).
 */
enum risk_style { RISK_ANTHROPIC, RISK_OPENAI };
enum risk_level { RISK_LOW, RISK_MEDIUM, RISK_HIGH };

#define RISK_SENTENCE_MAX 320U

struct risk {
    enum risk_level level;
    char sentence[RISK_SENTENCE_MAX]; /* one line, nothing in it deceives; perhaps cut, or "" */
};

/* "low", "medium", "high". */
const char *risk_level_name(enum risk_level level);

/*
 * The body of the model's request: instructions, and of `question` (question_write) the command,
 * the directory, the sandbox, the reason and the justification, each cut to 16 KiB. Of variables
 * the names alone, and nothing that a command printed.
 */
enum sy_code risk_write_request(struct buf *ret, enum risk_style style, const char *model,
                                const char *question, struct sy_error *err) SY_NODISCARD;
/* SY_E_PARSE for an answer that does not hold what was asked for. */
enum sy_code risk_read_answer(struct risk *ret, enum risk_style style, const char *body, size_t len,
                              struct sy_error *err) SY_NODISCARD;

/* Appends `question` with the comment in it, as the member `assessment`. SY_E_ARG when it has one
 * already. `model` says whose it is. */
enum sy_code risk_add(struct buf *ret, const char *question, const struct risk *risk,
                      const char *model, struct sy_error *err) SY_NODISCARD;
/* Has it one? */
enum sy_code risk_is_added(bool *ret, const char *question, struct sy_error *err) SY_NODISCARD;

#endif
