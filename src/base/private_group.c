#include "base/private_group.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

/* A machine with 50,000 local users has less than this. */
#define FILE_BYTES ((size_t)16 * 1024 * 1024)

#define ACL "system.posix_acl_access"

struct span {
    const char *at;
    size_t n;
};

/* Of both files: name:password:number:... */
#define FIELDS 4U
enum field { FIELD_NAME = 0, FIELD_NUMBER = 2, FIELD_LAST = 3 };

/* Cuts the next line off; its first fields, the last of which is empty where there are fewer.
 * False: there are no more lines. */
static bool
next_line(struct span *text, struct span fields[FIELDS])
{
    const char *newline = memchr(text->at, '\n', text->n);
    struct span line = {text->at, newline != NULL ? (size_t)(newline - text->at) : text->n};
    size_t used = newline != NULL ? line.n + 1 : line.n;

    if (text->n == 0) {
        return false;
    }
    text->at += used;
    text->n -= used;
    for (size_t i = 0; i < FIELDS; i++) {
        const char *colon = memchr(line.at, ':', line.n);

        fields[i] = (struct span){line.at, colon != NULL ? (size_t)(colon - line.at) : line.n};
        used = colon != NULL ? fields[i].n + 1 : line.n;
        line.at += used;
        line.n -= used;
    }
    return true;
}

static bool
is_number(struct span s, uint64_t wanted)
{
    char digits[16];
    uint64_t value = 0;

    if (s.n == 0 || s.n >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, s.at, s.n);
    digits[s.n] = '\0';
    return str_to_u64(&value, digits, 0, UINT32_MAX) && value == wanted;
}

static bool
is_same(struct span a, struct span b)
{
    return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

/* The user's name, if the group is its primary one, and nobody else's. */
static bool
find_user(struct span *ret_name, struct span passwd, uid_t uid, gid_t gid)
{
    struct span fields[FIELDS];
    bool is_found = false;

    while (next_line(&passwd, fields)) {
        bool is_user = is_number(fields[FIELD_NUMBER], uid);
        bool is_group = is_number(fields[FIELD_LAST], gid);

        if (is_user != is_group) {
            return false;
        }
        if (is_user) {
            *ret_name = fields[FIELD_NAME];
            is_found = true;
        }
    }
    return is_found;
}

bool
private_group_in(const char *passwd, size_t passwd_len, const char *group, size_t group_len,
                 uid_t uid, gid_t gid)
{
    struct span rest = {group, group_len};
    struct span fields[FIELDS];
    struct span user = {NULL, 0};
    bool is_found = false;

    if (!find_user(&user, (struct span){passwd, passwd_len}, uid, gid)) {
        return false;
    }
    while (next_line(&rest, fields)) {
        if (!is_number(fields[FIELD_NUMBER], gid)) {
            continue;
        }
        if (!is_same(fields[FIELD_NAME], user) ||
            (fields[FIELD_LAST].n > 0 && !is_same(fields[FIELD_LAST], user))) {
            return false;
        }
        is_found = true;
    }
    return is_found;
}

/* acl: what asking for its list has given. */
static bool
is_private(const struct stat *st, ssize_t acl)
{
    SY_AUTO(buf_fini) struct buf passwd = {.max = FILE_BYTES};
    SY_AUTO(buf_fini) struct buf group = {.max = FILE_BYTES};
    bool has_acl = acl >= 0 || (errno != ENODATA && errno != ENOTSUP && errno != ENOSYS);

    return !has_acl && st->st_uid != 0 && (st->st_mode & S_IWOTH) == 0 &&
           fd_read_file("/etc/passwd", &passwd, NULL) == SY_E_OK &&
           fd_read_file("/etc/group", &group, NULL) == SY_E_OK &&
           private_group_in(buf_view(&passwd), passwd.len, buf_view(&group), group.len, st->st_uid,
                            st->st_gid);
}

bool
private_group_fd(int fd, const struct stat *st)
{
    return is_private(st, fgetxattr(fd, ACL, NULL, 0));
}

bool
private_group_path(const char *path, const struct stat *st)
{
    return is_private(st, getxattr(path, ACL, NULL, 0));
}
