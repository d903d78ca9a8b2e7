#ifndef SY_TRANSPORT_LOCAL_INTERNAL_H
#define SY_TRANSPORT_LOCAL_INTERNAL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "transport/local.h"

/*
 * The socket's address, however long the directory's path is: one that does not fit is named by
 * the descriptor of the directory. False: it does not fit and there is no /proc.
 */
bool local_address(struct sockaddr_un *ret, socklen_t *ret_len, int dir_fd, const char *dir,
                   const char *name);
/* A socket of that name in the directory, 0600, that listens and does not block. */
int local_bind(int dir_fd, const char *dir, const char *name, int type, int backlog);
/* Connects a socket of that type there, without waiting; -1 with errno. */
int local_dial(int dir_fd, const char *dir, const char *name, int type);

#endif
