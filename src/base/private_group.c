#include "base/private_group.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/colon_record.h"
#include "base/fd.h"

/* A machine with 50,000 local users has less than this. */
#define FILE_BYTES ((size_t)16 * 1024 * 1024)

#define ACL "system.posix_acl_access"

/* Of both files: name:password:number:... */
#define FIELDS 4U
enum field { FIELD_NAME = 0, FIELD_NUMBER = 2, FIELD_LAST = 3 };

static bool
is_same(struct colon_text a, struct colon_text b)
{
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* The user's name, if the group is its primary one, and nobody else's. */
static bool
find_user(struct colon_text *ret_name, struct colon_text passwd, uid_t uid, gid_t gid)
{
    struct colon_text fields[FIELDS];
    bool is_found = false;

    while (colon_record_next(&passwd, fields, FIELDS) > 0) {
        bool is_user = colon_text_is(fields[FIELD_NUMBER], uid);
        bool is_group = colon_text_is(fields[FIELD_LAST], gid);

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
    struct colon_text rest = {group, group_len};
    struct colon_text fields[FIELDS];
    struct colon_text user = {NULL, 0};
    bool is_found = false;

    if (!find_user(&user, (struct colon_text){passwd, passwd_len}, uid, gid)) {
        return false;
    }
    while (colon_record_next(&rest, fields, FIELDS) > 0) {
        if (!colon_text_is(fields[FIELD_NUMBER], gid)) {
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
