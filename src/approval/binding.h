#ifndef SY_APPROVAL_BINDING_H
#define SY_APPROVAL_BINDING_H

#include <stdbool.h>
#include <stddef.h>

#include "approval/question.h"

/*
 * What an answer is bound to: SHA-256 over exactly what will run, so that nothing else runs
 * by it. Each part is preceded by its length, so no two different ones read alike.
 */
#define BINDING_SIZE 32U

/* Of this one run: the command, its directory, variables and sandbox, what it reads. */
void binding_digest(unsigned char ret[BINDING_SIZE], const struct question *q);
/* Of what counts as the same for the rest of a session: the command, its directory, the
 * permissions and what it reads (specification, approval cache); or a file that a patch changes. */
size_t binding_keys(const struct question *q);
/* The one of number i < binding_keys(q). */
void binding_key(unsigned char ret[BINDING_SIZE], const struct question *q, size_t i);

/* A policy alone, in hex: for the words of a key that is bound to it. */
#define BINDING_HEX (2U * BINDING_SIZE + 1U)
void binding_policy(char ret[BINDING_HEX], const struct sandbox_policy *p);

#endif
