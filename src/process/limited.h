#ifndef SY_PROCESS_LIMITED_H
#define SY_PROCESS_LIMITED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * System calls that somebody hostile may make wait for ever (a page that never
 * comes, a file system whose server sleeps, a queue that is kept full), with
 * an end. Each is made by a thread that stays (worker.h), or, where its rights can't come back or
 * its process is seen, by a helper that shares our memory and descriptors, and is killed when its
 * time is over. Only what the kernel has at hand is opened without any. Each returns 0 or an errno:
 * ETIMEDOUT when its time was over, EBUSY when too many never came back. Safe from several threads.
 *
 * limited_open, limited_access and limited_connect run without any capability, so that they can
 * do no more than a sandboxed command of the same user could.
 */
#define LIMITED_READ_MAX 4096U

/* Reads n bytes (at most LIMITED_READ_MAX) of another process's memory. */
int limited_read(pid_t tid, uintptr_t there, void *ret, size_t n, int timeout_ms);
/* Reads a string there into ret, of LIMITED_READ_MAX bytes. ENAMETOOLONG: it is longer. */
int limited_read_string(pid_t tid, uintptr_t there, char *ret, int timeout_ms);
/* Who commands run as, where that is not us. */
struct limited_user {
    uid_t uid;
    gid_t gid; /* and no other group */
};
/* Who that is, of a task; NULL: us. As root, they run as the owner of the workspace. */
const struct limited_user *limited_user_of(pid_t tid, struct limited_user *room);
/* Opens a file as a mere place (O_PATH), from a directory, through no magic link, as that user
 * (NULL: ours) would. */
int limited_open(int dir_fd, const char *path, const struct limited_user *who, int *ret_fd,
                 int timeout_ms);
/* faccessat(2): may a command (of that user; NULL: ours) do that (R_OK, W_OK, X_OK) by plain
 * permissions? */
int limited_access(const char *path, int how, const struct limited_user *who, int timeout_ms);
/* The same with a directory that is the top of all: no path leads out of it. */
int limited_open_inside(int top_fd, const char *path, const struct limited_user *who, int *ret_fd,
                        int timeout_ms);
/* connect(2), as that user. The peer sees the helper's process id. */
int limited_connect(int fd, const struct sockaddr *address, socklen_t length,
                    const struct limited_user *who, int timeout_ms);

#endif
