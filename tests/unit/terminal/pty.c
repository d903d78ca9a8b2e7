#include "pty.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

void
pty_open(struct pty *p)
{
    p->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(p->master >= 0);
    assert_int_equal(grantpt(p->master), 0);
    assert_int_equal(unlockpt(p->master), 0);
    assert_int_equal(ptsname_r(p->master, p->name, sizeof(p->name)), 0);
    p->slave = open(p->name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(p->slave >= 0);
}

void
pty_close(struct pty *p)
{
    fd_close(&p->master);
    fd_close(&p->slave);
}

void
child_reads(int fd)
{
    char c = 0;

    while (read(fd, &c, 1) >= 0) {
    }
    _exit(0);
}
