#ifndef SY_BASE_FD_H
#define SY_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Descriptors: -1 when empty, close-on-exec from birth, closed only here.
 *
 *     SY_FD fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
 */
#define SY_FD SY_AUTO(fd_close) int

/* Closes *fd if it is open and sets it to -1. Keeps errno. */
void fd_close(int *fd);
/* Moves the descriptor out of *fd, leaving -1. */
int fd_take(int *fd);
/*
 * Takes it out of an epoll that may watch it, before it is closed: what others hold too stays in
 * there else, and is told of for ever (epoll(7), Q6). libuv 1.45 to 1.48 takes it out only behind
 * the callbacks, when it is closed. Without effect where it is not watched.
 */
void fd_leave_epoll(int epoll_fd, int fd);
/* The descriptors that came along with a message, in their order to those of fds[n] that are -1.
 * One for which there is no room is closed. */
struct msghdr;
void fd_take_passed(struct msghdr *message, int *fds, size_t n);
/*
 * recvmsg(2) on a Unix socket of messages that are never empty (SOCK_SEQPACKET), begun again after
 * a signal. 0 is the end, and nothing is behind it. The kernel's is not (net/unix/af_unix.c): it
 * looks for a message, then whether the peer is gone, and the peer's last words may have come in
 * between; and a peer that left something unread is ECONNRESET once, before its last words.
 */
ssize_t fd_receive(int fd, struct msghdr *message, int flags);
/* Are n (at most 8) more descriptors to be had? 0 or an errno value. For libraries that abort where
 * there are none: libuv does, for a pipe of its first loop. */
int fd_check_room(unsigned n);
#define FD_ROOM_LOOP 6U /* what a loop opens */
/* A close-on-exec pipe; both ends blocking. */
enum sy_code fd_pipe(int *ret_read, int *ret_write, struct sy_error *err) SY_NODISCARD;
enum sy_code fd_set_nonblock(int fd, struct sy_error *err) SY_NODISCARD;
/* Writes all bytes, going on after EINTR; waits with poll(2) where the
 * descriptor does not block. */
enum sy_code fd_write_all(int fd, const void *bytes, size_t n, struct sy_error *err) SY_NODISCARD;
/* Appends all that can be read up to the end of the file; b->max bounds it
 * (SY_E_LIMIT beyond). */
enum sy_code fd_read_all(int fd, struct buf *b, struct sy_error *err) SY_NODISCARD;
/* Opens, reads whole, closes. A missing file is SY_E_NOTFOUND. */
enum sy_code fd_read_file(const char *path, struct buf *b, struct sy_error *err) SY_NODISCARD;

/* A file in memory without a name that holds these bytes (memfd_create(2)), close-on-exec, at
 * its end. `name` is for /proc alone. */
enum sy_code fd_memory_file(int *ret, const char *name, const void *bytes, size_t n,
                            struct sy_error *err) SY_NODISCARD;

#endif
