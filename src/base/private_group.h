#ifndef SY_BASE_PRIVATE_GROUP_H
#define SY_BASE_PRIVATE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * A group that is one user's alone, as adduser(8) and useradd(8) make one for each: with it goes a
 * umask of 002 (pam_umask(8), usergroups), so what its user creates is writable by the group.
 */

/*
 * Can nobody but its owner write it, though its group may? The group is the owner's primary one,
 * has the owner's name and no other member, and is nobody else's primary one, by the machine's own
 * passwd(5) and group(5): a group that another service knows is never private. False for root, and
 * for what has an access control list (acl(5)), whose mask the group's bits are.
 */
bool private_group_fd(int fd, const struct stat *st);
/* The same by a path; links are followed. */
bool private_group_path(const char *path, const struct stat *st);

/* What decides, pure. */
bool private_group_in(const char *passwd, size_t passwd_len, const char *group, size_t group_len,
                      uid_t uid, gid_t gid);

#endif
