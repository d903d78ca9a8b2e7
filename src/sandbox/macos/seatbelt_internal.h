#ifndef SY_SANDBOX_MACOS_SEATBELT_INTERNAL_H
#define SY_SANDBOX_MACOS_SEATBELT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* How many parameters of each kind a profile is to name. */
struct seatbelt_root {
    char *path;        /* canonical */
    size_t n_excluded; /* WRITABLE_ROOT_i_EXCLUDED_j */
    bool is_granted;   /* another root's rules let it be written already */
    bool has_sockets;  /* Unix sockets below it may be used: it is work, not everybody's */
};

struct seatbelt_shape {
    struct seatbelt_root *roots;
    size_t n_roots;
    size_t *n_parents; /* of each secret: DENY_READ_i_PARENT_j */
    size_t n_secrets;
    bool has_names; /* PROTECTED_REGEX is there */
    bool has_pins;  /* PINNED_REGEX is there */
    bool has_network;
    bool may_write; /* workspace-write */
    uint16_t proxy_port;
};

/* Appends the whole profile. */
enum sy_code seatbelt_profile_write(struct buf *out, const struct seatbelt_shape *s) SY_NODISCARD;

#endif
