#ifndef SY_PROCESS_BROKER_PARSE_H
#define SY_PROCESS_BROKER_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The broker's parsers: what the caller wrote, and what the kernel tells. Pure
 * (no system call, no heap), so that a fuzzer can give them anything.
 */

enum broker_address_kind {
    ADDRESS_NAMED,    /* a path in the file system */
    ADDRESS_ABSTRACT, /* its name follows a NUL byte */
    ADDRESS_NETLINK,  /* the kernel itself */
    ADDRESS_INET,     /* IPv4 or IPv6: what follows the name says where */
    ADDRESS_NONE,     /* AF_UNSPEC: no peer any more */
    ADDRESS_REFUSED   /* sys says why */
};

/* What an address of connect(2) asks for; `name` lies within the bytes. */
struct broker_address {
    enum broker_address_kind kind;
    int sys;
    const char *name;
    size_t name_length;
    uint16_t port;    /* of ADDRESS_INET */
    bool is_loopback; /* 127.0.0.1, also where IPv6 carries it; nothing else of 127/8 */
    bool is_local;    /* 127/8, ::1, or none at all (0.0.0.0, ::), which means the same */
    bool is_any;      /* the latter */
    bool is_v6;       /* and carries no IPv4 */
    uint32_t ip;      /* of IPv4 */
};
struct broker_address broker_address_parse(const void *bytes, size_t n);
/* It in words, as `sandbox explain` takes it: "unix:PATH", "unix:@NAME", "HOST:PORT",
 * "[V6]:PORT"; others by their family, "family 16". Visible characters only. */
enum sy_code broker_address_text(struct buf *out, const void *bytes, size_t n) SY_NODISCARD;

/* What a listening socket is looked for by: its abstract name, or its file. */
struct listener_key {
    const char *name; /* with its first NUL; NULL: by the file */
    size_t name_length;
    uint32_t ino; /* the lower half: the kernel tells no more */
    uint32_t dev; /* as the kernel counts: major << 20 | minor */
};

struct listener {
    uint64_t inode;
    uint64_t cookie; /* never given twice, while an inode's number may be */
};

/* A search through the datagrams of one dump of sock_diag(7). Begins as
 * {.key = ..., .sequence = ...}. */
struct diag_search {
    const struct listener_key *key;
    uint32_t sequence; /* of the question */
    struct listener found;
    size_t n_found;   /* different sockets that fit the key */
    bool is_complete; /* the end of the dump was seen */
    bool is_broken;   /* torn or interrupted: sockets may be missing from it */
    int sys;          /* the kernel refused the question with this errno; 0: it did not */
};
void diag_search_take(struct diag_search *s, const void *datagram, size_t n);

/* The number that a line of /proc/PID/status begins with after `field`; 0 if
 * there is none. */
pid_t proc_status_number(const char *text, const char *field);

/* The device (as in listener_key) of the mount with this id, from the text of
 * a mountinfo file. */
bool proc_mount_device(const char *text, uint64_t mount_id, uint32_t *ret);

/* The numbers in a list of children (/proc/PID/task/TID/children). Returns how
 * many of them fit into ret. */
size_t proc_children(const char *text, pid_t *ret, size_t max);

#endif
