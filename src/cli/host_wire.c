#include "cli/host_wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(HOST_FDS * sizeof(int))];
};

bool
host_send(int fd, const struct host_message *m, const int *fds, size_t n)
{
    struct host_message copy = *m;
    struct iovec part = {.iov_base = &copy, .iov_len = sizeof(copy)};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent = -1;

    copy.version = HOST_VERSION;
    if (n > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
    }
    do {
        sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof(copy);
}

int
host_receive(int fd, struct host_message *ret, int ret_fds[HOST_FDS])
{
    struct iovec part = {.iov_base = ret, .iov_len = sizeof(*ret)};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};
    ssize_t n = fd_receive(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    for (size_t i = 0; i < HOST_FDS; i++) {
        ret_fds[i] = -1;
    }
    if (n < 0 && errno == EAGAIN) {
        return 0;
    }
    if (n > 0) {
        fd_take_passed(&message, ret_fds, HOST_FDS);
    }
    if (n == (ssize_t)sizeof(*ret) && ret->version == HOST_VERSION) {
        ret->build[sizeof(ret->build) - 1] = '\0';
        ret->id[sizeof(ret->id) - 1] = '\0';
        return 1;
    }
    for (size_t i = 0; i < HOST_FDS; i++) {
        fd_close(&ret_fds[i]);
    }
    return -1;
}

enum sy_code
host_read_file(int fd, struct buf *ret, struct sy_error *err)
{
    if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0) {
        return sy_err_set(err, SY_E_PARSE, "a message came without its file");
    }
    return fd_read_all(fd, ret, err);
}

bool
host_say(int fd, enum hello_kind kind, unsigned number, const char *sentence)
{
    struct hello_answer answer = {.kind = kind, .number = number};
    char line[HELLO_ANSWER_MAX];

    (void)snprintf(answer.sentence, sizeof(answer.sentence), "%s", sentence);

    size_t n = hello_answer_write(line, &answer);

    return send(fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

void
host_refuse(int fd, pid_t pid, enum hello_kind kind, const struct sy_error *err)
{
    LOG(LOG_INFO, "daemon", "a client was refused", kv_int("pid", pid), kv_str("error", err->msg));
    (void)host_say(fd, kind, kind == HELLO_OWN ? 0 : (unsigned)sy_code_status(err->code), err->msg);
}

/* FNV-1a, of each text and its NUL. */
static uint64_t
add(uint64_t hash, const char *text)
{
    size_t n = strlen(text) + 1;

    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3U;
    }
    return hash;
}

uint64_t
host_key(const struct hello *h)
{
    uint64_t hash = add(add(0xcbf29ce484222325U, h->protocol), h->cwd);

    for (char *const *arg = h->args; *arg != NULL; arg++) {
        hash = add(hash, *arg);
    }
    return hash | 1U; /* 0 is none */
}
