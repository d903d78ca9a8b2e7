#ifndef SY_PROCESS_AUDIT_H
#define SY_PROCESS_AUDIT_H

#include "base/err.h"
#include "sandbox/audit_record.h"

/*
 * Reads from the kernel's audit log what Landlock refused (ABI 7). It can be had where
 * auditing is on already and we may read the log (CAP_AUDIT_READ and CAP_AUDIT_CONTROL, in the
 * first user, pid and network namespaces): nothing is switched on for it, since that would change
 * the whole machine. Nothing but Landlock's records comes to us.
 *
 * What the kernel guarantees: a record is put into its queue before the refused call returns, so
 * all records of a run are there before the last of its processes has ended. From the queue a
 * thread of the kernel's hands them to all readers, in their order, soon after. Nothing tells
 * that it came to the end of a run (that a domain is freed is written much later, and only for
 * domains that refused something), but the length of the queue can be asked for:
 * audit_reader_settle.
 *
 * Whose a record is: it has the number of a domain, and one record tells by which process that
 * was made. A number of a process comes again. So of the records of "our" process only those count
 * that are stamped after the command's start, when the number was taken already. Records can be
 * lost (a full queue or socket); then nobody knows whose, and it is said.
 */
struct audit_reader;

/* SY_E_NOTFOUND, with a sentence, where it can't be had: this kernel's Landlock (`abi`) writes
 * nothing, auditing is off, we may not read it, or the machine halts when its log overflows. */
enum sy_code audit_reader_new(struct audit_reader **ret, int abi,
                              struct sy_error *why) SY_NODISCARD;
/* Accepts NULL. */
void audit_reader_free(struct audit_reader *r);
/* To be polled for reading: then there may be something to take. */
int audit_reader_fd(const struct audit_reader *r);

/* A run whose records are wanted; the caller's. */
struct audit_run {
    bool is_open;
    uint64_t since_ms;
    uint32_t lost; /* how often records had been before */
    /* Of audit_reader_settle. */
    uint32_t asked; /* the question that is on its way, 0: none */
    unsigned empty; /* answers in succession that the queue was empty */
    uint64_t again_ns;
    uint64_t until_ns;
};

/* Before its process is given its command. What is in the log when no other run is open concerns
 * nobody, and goes. */
void audit_reader_begin(struct audit_reader *r, struct audit_run *run);
/* Any number of times, also for one that never began (zeroed). */
void audit_reader_end(struct audit_reader *r, struct audit_run *run);

/*
 * After the end of all processes of a run: did all its records come? If not, call again when
 * audit_reader_fd is readable or `run->again_ns` has come. It asks the kernel how many records
 * wait: one question where nothing was refused to anybody, else one more, since from an empty queue
 * the last record may still be on its way to us. (What is left is a thread of the kernel's that is
 * kept from running between the two for longer than another one takes to answer us.) Gives up,
 * with true, AUDIT_SETTLE_MS after the first call: the kernel may have no memory to answer.
 */
#define AUDIT_SETTLE_MS 100
bool audit_reader_settle(struct audit_reader *r, struct audit_run *run, uint64_t now_ns);

/* How many refusals are kept until somebody asks for them; the oldest go. */
#define AUDIT_KEPT 256

typedef void audit_fn(void *arg, const struct audit_record *r);
/*
 * Reads what has come, and tells `fn` what was refused to the domain that process `pid` made
 * for itself during the run, in its order, once. False: since the run began records were
 * lost, be it anybody's.
 */
bool audit_reader_take(struct audit_reader *r, const struct audit_run *run, pid_t pid, audit_fn *fn,
                       void *arg);

#endif
