#include "sandbox/linux/deny_names.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "sandbox/linux/raw_syscall.h"

/* struct linux_dirent64: inode (8), offset (8), length (2), type (1), name. */
enum { AT_LENGTH = 16, AT_TYPE = 18, AT_NAME = 19 };

/* Enough for a home directory at once. */
#define READ_BYTES 4096

enum sy_code
deny_names_read(struct buf *names, int dir_fd, int *ret_failed)
{
    _Alignas(uint64_t) char bytes[READ_BYTES];
    long got = 0;

    do {
        got = sy_raw3(SYS_getdents64, dir_fd, sy_raw_ptr(bytes), READ_BYTES);
        if (got > 0) {
            enum sy_code rc = buf_add(names, bytes, (size_t)got);

            if (rc != SY_E_OK) {
                return rc;
            }
        }
    } while (got > 0);
    *ret_failed = got < 0 ? (int)-got : 0;
    return SY_E_OK;
}

static size_t
length_at(const struct buf *names, size_t at)
{
    uint16_t length = 0;

    memcpy(&length, names->data + at + AT_LENGTH, sizeof(length));
    return length;
}

static bool
is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* The first byte at or behind `at` where a name is that counts. */
static size_t
skip_dots(const struct buf *names, size_t at)
{
    while (at < names->len && is_dot(names->data + at + AT_NAME)) {
        at += length_at(names, at);
    }
    return at;
}

bool
deny_name_next(const struct buf *names, size_t *at, const char **ret_name, unsigned char *ret_type)
{
    size_t here = skip_dots(names, *at);

    if (here >= names->len) {
        return false;
    }
    *ret_name = names->data + here + AT_NAME;
    *ret_type = (unsigned char)names->data[here + AT_TYPE];
    *at = here + length_at(names, here);
    return true;
}

void
deny_name_set_type(struct buf *names, size_t at, unsigned char type)
{
    size_t here = skip_dots(names, at);

    if (here < names->len) {
        names->data[here + AT_TYPE] = (char)type;
    }
}
