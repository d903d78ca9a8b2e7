#ifndef SY_PROCESS_LISTENER_H
#define SY_PROCESS_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whose is a listening Unix socket? For the broker. */

/* What it is looked for by: its abstract name, or the file it is bound to. */
struct listener_key {
    const char *name; /* with its first NUL; NULL: by the file */
    size_t name_length;
    uint32_t ino; /* the lower half: the kernel tells no more */
    uint32_t dev; /* as the kernel counts: major << 20 | minor */
};

/*
 * The inode of the socket that listens there (sock_diag(7)); 0 if there is
 * none, or two that look alike, or if it can't be found out.
 */
uint64_t listener_find(const struct listener_key *key);

/*
 * Does `first` hold this socket, or another descendant of `keeper`? Looks at a
 * bounded number of processes and descriptors: in a tree of more the answer
 * may be a false no, never a false yes.
 */
bool listener_is_held(uint64_t inode, pid_t first, pid_t keeper);

#endif
