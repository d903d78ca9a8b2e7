/* Calls with an end: what is opened without a helper is opened by no more rights than by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/fd.h"
#include "process/limited.h"

#define WAIT_MS 10000

struct rights {
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static struct rights
rights_of_us(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct rights ret = {{{0}}};

    assert_int_equal(syscall(SYS_capget, &header, ret.data), 0);
    return ret;
}

/* 0, or the errno. The kernel has the name at hand afterwards, whether it is there or not. */
static int
try_open(const char *dir, const char *name, bool is_inside)
{
    struct stat st;
    char path[128];
    SY_FD top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    SY_FD root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;

    assert_true(top >= 0 && root >= 0);
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    (void)stat(path, &st);

    int sys = is_inside ? limited_open_inside(root, path, NULL, &fd, WAIT_MS)
                        : limited_open(top, name, NULL, &fd, WAIT_MS);

    assert_true((sys == 0) == (fd >= 0));
    fd_close(&fd);
    return sys;
}

static void
names_are_looked_up_without_any_right_of_ours(void **state)
{
    char dir[] = "/tmp/shellyard-limited-XXXXXX";
    char file[64];
    const struct rights before = rights_of_us();

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof(file), "%s/there", dir);

    SY_FD fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    for (int i = 0; i < 2; i++) {
        const bool is_inside = i == 1;

        assert_int_equal(try_open(dir, "there", is_inside), 0);
        assert_int_equal(try_open(dir, "missing", is_inside), ENOENT);
        assert_int_equal(try_open(dir, "missing/more", is_inside), ENOENT);
        assert_int_equal(try_open(dir, "there/more", is_inside), ENOTDIR);
        /* Closed to a command of ours, whatever we may do ourselves: nor does it learn what is not
         * there. */
        assert_int_equal(chmod(dir, 0), 0);
        assert_int_equal(try_open(dir, "there", is_inside), EACCES);
        assert_int_equal(try_open(dir, "missing", is_inside), EACCES);
        assert_int_equal(chmod(dir, 0700), 0);
    }

    const struct rights after = rights_of_us();

    assert_memory_equal(&after, &before, sizeof(before));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_looked_up_without_any_right_of_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
