/*
 * What a stranger says to a session, and what it says to who has joined: a frame lies within the
 * bytes, is written again as it came, and one that is not whole is not judged by less than its
 * head.
 */
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "sessions/attach_frame.h"

static void
check_frames(const char *bytes, size_t n, bool from_person)
{
    struct attach_frame f;
    struct sy_error err = {0};

    while (attach_frame_read(&f, bytes, n, from_person, &err) == ATTACH_FRAME_WHOLE) {
        SY_AUTO(buf_fini) struct buf again = {.max = LIMIT_ATTACH_FRAME + 64};
        size_t len = ATTACH_FRAME_HEAD + f.n;

        CHECK(f.bytes == bytes + ATTACH_FRAME_HEAD && len <= n && f.n <= LIMIT_ATTACH_FRAME);
        CHECK(attach_frame_write(&again, f.kind, f.bytes, f.n) == SY_E_OK);
        CHECK(again.len == len && memcmp(again.data, bytes, len) == 0);
        CHECK(attach_frame_read(&f, bytes, len - 1, from_person, NULL) == ATTACH_FRAME_MORE);
        bytes += len;
        n -= len;
    }
    CHECK(err.code == SY_E_OK || (err.code == SY_E_PARSE && err.msg[0] != '\0'));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = mem_live();

    check_frames((const char *)data, size, true);
    check_frames((const char *)data, size, false);
    CHECK(mem_live() == live);
    return 0;
}
