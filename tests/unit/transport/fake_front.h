#ifndef SY_TESTS_UNIT_TRANSPORT_FAKE_FRONT_H
#define SY_TESTS_UNIT_TRANSPORT_FAKE_FRONT_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/protocol.h"

/*
 * A front that does what its lines say: "echo TEXT" sends TEXT, "flood N"
 * sends N messages of 64 KiB, "end" ends. EOF and a lost peer end it too.
 */
struct fake_front {
    size_t n_lines;
    char last[256];
    size_t n_dropped;
    bool has_eof;
    bool is_gone;
    enum sy_code sent; /* of the last send */
};

#define FLOOD_BYTES ((size_t)64 * 1024)

protocol_new_fn fake_front_new;
/* Of the front made last. */
const struct fake_front *fake_front(void);

#endif
