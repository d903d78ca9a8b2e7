#ifndef SY_PROCESS_AUDIT_H
#define SY_PROCESS_AUDIT_H

#include "base/err.h"
#include "sandbox/audit_record.h"

/*
 * Reads from the kernel's audit log what Landlock refused (ABI 7). It can be had where
 * auditing is on already and we may read the log (CAP_AUDIT_READ in the first user namespace):
 * nothing is switched on for it, since that would change the whole machine. Processes are told
 * from each other by their numbers, which are ours in the first pid namespace alone.
 */
struct audit_reader;

/* SY_E_NOTFOUND, with a sentence, where it can't be had. */
enum sy_code audit_reader_new(struct audit_reader **ret, struct sy_error *why) SY_NODISCARD;
/* Accepts NULL. */
void audit_reader_free(struct audit_reader *r);
/* To be polled for reading: then there may be something to take. */
int audit_reader_fd(const struct audit_reader *r);

/* How many refusals are kept until somebody asks for them; the oldest go. */
#define AUDIT_KEPT 256

typedef void audit_fn(void *arg, const struct audit_record *r);
/*
 * Reads what has come, and tells `fn` what was refused to the domain that process `pid` made
 * for itself, in its order, once. Returns how many refusals were lost since the last time, be
 * it anybody's.
 */
uint32_t audit_reader_take(struct audit_reader *r, pid_t pid, audit_fn *fn, void *arg);
/* The process has ended and its number may come again: what it made is forgotten. */
void audit_reader_forget(struct audit_reader *r, pid_t pid);

#endif
