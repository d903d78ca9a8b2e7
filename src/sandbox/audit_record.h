#ifndef SY_SANDBOX_AUDIT_RECORD_H
#define SY_SANDBOX_AUDIT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/limits.h"
#include "sandbox/sandbox.h"

/*
 * What the kernel writes into its audit log about Landlock (ABI 7, Linux 6.15;
 * Documentation/admin-guide/LSM/landlock.rst). Nobody but the kernel can write records of these
 * types. Pure.
 */
enum {
    AUDIT_RECORD_ACCESS = 1423, /* AUDIT_LANDLOCK_ACCESS: something was refused */
    AUDIT_RECORD_DOMAIN = 1424  /* AUDIT_LANDLOCK_DOMAIN: a domain was seen first, or is freed */
};

enum audit_record_kind {
    AUDIT_OTHER,       /* nothing for us: another type, or a record that is not understood */
    AUDIT_REFUSED,     /* domain, operation and object are set */
    AUDIT_DOMAIN_OF,   /* domain and pid: who put itself under it */
    AUDIT_DOMAIN_FREED /* domain: its number means nothing any more */
};

struct audit_record {
    enum audit_record_kind kind;
    pid_t pid;         /* in the first pid namespace */
    uint64_t stamp_ms; /* when, since 1970, by the clock that stamps files (clock_file_ns) */
    uint64_t domain;
    enum sandbox_operation operation;
    /* The object is the directory in which a name was to be made, removed or moved: the
     * kernel does not say which name. */
    bool is_in_directory;
    char object[LIMIT_PATH]; /* a path, or "host:port" */
};

/* `text` is a record without its header, as netlink(7) gives it: it may end with a NUL. */
void audit_record_parse(struct audit_record *ret, int type, const char *text, size_t n);

#endif
