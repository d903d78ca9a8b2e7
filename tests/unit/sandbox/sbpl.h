#ifndef SY_TESTS_UNIT_SANDBOX_SBPL_H
#define SY_TESTS_UNIT_SANDBOX_SBPL_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * A strict reader of Seatbelt profiles, and a judge of what one allows. It
 * knows what our profiles use and nothing else: an unknown operation, filter or
 * argument, an open string or list, a parameter that nobody gave and anything
 * behind the last form are errors.
 */
struct sbpl;

/* NULL, with a sentence in `why`, if the text is no such profile. */
struct sbpl *sbpl_read(const char *text, const struct strv *params, char why[256]);
void sbpl_free(struct sbpl *p);

/* What the kernel would be asked. */
struct sbpl_question {
    const char *operation; /* "file-write-data", "network-outbound", ... */
    const char *path;      /* of a file, or a Unix socket; NULL: none */
    const char *vnode;     /* "REGULAR-FILE", "DIRECTORY", "SYMLINK"; NULL: the first */
    const char *address;   /* "localhost:80", "*:443"; NULL: none */
    const char *name;      /* mach service, sysctl, shared memory */
};

/* By the last rule that fits. */
bool sbpl_allows(const struct sbpl *p, const struct sbpl_question *q);
/* For files, the usual one. */
bool sbpl_allows_file(const struct sbpl *p, const char *operation, const char *path);

#endif
