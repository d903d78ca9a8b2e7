#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "transport/local.h"
#include "transport/peer.h"

/* A state directory of its own, of a short or of a long path. */
struct yard {
    char top[64];
    char dir[2048];
};

static void
yard_make(struct yard *y, unsigned depth)
{
    int n = 0;

    (void)snprintf(y->top, sizeof(y->top), "/tmp/sy-local-XXXXXX");
    assert_non_null(mkdtemp(y->top));
    n = snprintf(y->dir, sizeof(y->dir), "%s", y->top);
    for (unsigned i = 0; i < depth; i++) {
        n += snprintf(y->dir + n, sizeof(y->dir) - (size_t)n, "/a-directory-of-some-length");
        assert_int_equal(mkdir(y->dir, 0700), 0);
    }
}

static void
yard_remove(struct yard *y)
{
    char path[2100];

    (void)snprintf(path, sizeof(path), "%s/" LOCAL_LOCK, y->dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/" LOCAL_SOCKET, y->dir);
    (void)unlink(path);
    while (rmdir(y->dir) == 0 && strlen(y->dir) > strlen(y->top)) {
        *strrchr(y->dir, '/') = '\0';
    }
}

static int
open_dir(const struct yard *y)
{
    return open(y->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void
connect_and_end(const struct yard *y)
{
    struct local_listener l = LOCAL_LISTENER_NONE;
    struct sy_error err = {0};
    struct stat st;
    char path[2100];
    int fd = -1;

    assert_int_equal(local_connect(&fd, y->dir, &err), SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "no daemon is up"));
    assert_int_equal(local_listen(&l, open_dir(y), y->dir, &err), SY_E_OK);
    (void)snprintf(path, sizeof(path), "%s/" LOCAL_SOCKET, y->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777U, 0600);
    assert_int_equal(local_connect(&fd, y->dir, &err), SY_E_OK);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    fd_close(&fd);
    local_listener_fini(&l);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(local_connect(&fd, y->dir, &err), SY_E_NOTFOUND);
}

static void
a_daemon_is_found_however_long_its_path_is(void **state)
{
    (void)state;
    for (unsigned depth = 0; depth < 12; depth += 4) {
        struct yard y;

        yard_make(&y, depth);
        connect_and_end(&y);
        yard_remove(&y);
    }
}

static void
whether_one_may_be_up_is_told_by_the_name_alone(void **state)
{
    struct yard y;
    char home[80];
    char xdg[80];
    char path[300];
    char long_home[LIMIT_PATH + 16] = "HOME=/";
    char *by_home[] = {home, NULL};
    char *by_state[] = {home, xdg, NULL};
    char *by_long[] = {long_home, NULL};
    char *none[] = {mem_unconst("HOME=relative"), mem_unconst("XDG_STATE_HOME=here"), NULL};

    (void)state;
    yard_make(&y, 0);
    (void)snprintf(home, sizeof(home), "HOME=%s", y.top);
    (void)snprintf(xdg, sizeof(xdg), "XDG_STATE_HOME=%s", y.top);
    memset(long_home + 6, 'x', sizeof(long_home) - 7);
    assert_false(local_is_there(none));
    assert_false(local_is_there(by_long));
    assert_false(local_is_there(by_home));
    assert_false(local_is_there(by_state));
    (void)snprintf(path, sizeof(path), "%s/shellyard", y.top);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/shellyard/" LOCAL_SOCKET, y.top);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(local_is_there(by_state));
    assert_false(local_is_there(by_home));
    assert_int_equal(rmdir(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    yard_remove(&y);
}

/* A record lock is of a process, so the second daemon is one. */
static void
a_second_daemon_is_told_who_is_up(void **state)
{
    struct local_listener l = LOCAL_LISTENER_NONE;
    struct sy_error err = {0};
    struct yard y;
    int status = 0;

    (void)state;
    yard_make(&y, 1);
    assert_int_equal(local_listen(&l, open_dir(&y), y.dir, &err), SY_E_OK);

    pid_t child = fork();

    if (child == 0) {
        struct local_listener second = LOCAL_LISTENER_NONE;
        char want[64];

        (void)snprintf(want, sizeof(want), "a daemon is up already, process %d", (int)getppid());

        bool is_right = local_listen(&second, open_dir(&y), y.dir, &err) == SY_E_SYS &&
                        err.sys == EBUSY && strcmp(err.msg, want) == 0 && second.fd == -1;

        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    local_listener_fini(&l);
    yard_remove(&y);
}

static void
what_a_killed_daemon_left_is_replaced(void **state)
{
    struct local_listener l = LOCAL_LISTENER_NONE;
    struct sy_error err = {0};
    struct yard y;
    int status = 0;
    int fd = -1;

    (void)state;
    yard_make(&y, 1);

    pid_t child = fork();

    if (child == 0) {
        _exit(local_listen(&l, open_dir(&y), y.dir, &err) == SY_E_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(local_connect(&fd, y.dir, &err), SY_E_NOTFOUND);
    assert_int_equal(local_listen(&l, open_dir(&y), y.dir, &err), SY_E_OK);
    assert_int_equal(local_connect(&fd, y.dir, &err), SY_E_OK);
    fd_close(&fd);
    local_listener_fini(&l);
    yard_remove(&y);
}

static void
a_directory_that_others_may_write_is_not_believed(void **state)
{
    struct local_listener l = LOCAL_LISTENER_NONE;
    struct sy_error err = {0};
    struct yard y;
    int fd = -1;

    (void)state;
    yard_make(&y, 1);
    assert_int_equal(local_listen(&l, open_dir(&y), y.dir, &err), SY_E_OK);
    assert_int_equal(chmod(y.dir, 0770), 0);
    assert_int_equal(local_connect(&fd, y.dir, &err), SY_E_DENIED);
    assert_non_null(strstr(err.msg, "another user's"));
    assert_int_equal(fd, -1);
    local_listener_fini(&l);
    yard_remove(&y);
}

/* Judges a socket that `child` has connected, in a process that did `change` first. */
static enum peer_verdict
judge_child(struct sy_error *err, struct peer *peer, void (*change)(void), bool ends)
{
    struct peer_facts self;
    struct local_listener l = LOCAL_LISTENER_NONE;
    struct yard y;
    int go[2];
    char byte = 0;

    yard_make(&y, 1);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    assert_int_equal(peer_facts_read(&self, 0, err), SY_E_OK);
    assert_int_equal(local_listen(&l, open_dir(&y), y.dir, err), SY_E_OK);

    /* The socket is ours as well, as of a process that is given one. */
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    SY_FD ours = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(snprintf(at.sun_path, sizeof(at.sun_path), "%s/" LOCAL_SOCKET, y.dir) <
                (int)sizeof(at.sun_path));

    pid_t child = fork();

    if (child == 0) {
        (void)close(go[1]);
        change();

        int rc = connect(ours, (const struct sockaddr *)&at, sizeof(at));

        while (!ends && read(go[0], &byte, 1) < 0) {
        }
        _exit(rc == 0 ? 0 : 1);
    }
    if (ends) {
        assert_int_equal(waitpid(child, NULL, 0), child);
    }

    struct pollfd p = {.fd = l.fd, .events = POLLIN};

    assert_int_equal(poll(&p, 1, 10000), 1);

    SY_FD fd = accept4(l.fd, NULL, NULL, SOCK_CLOEXEC);

    assert_true(fd >= 0);

    enum peer_verdict verdict = peer_judge(peer, fd, &self, err);

    assert_int_equal(peer->pid, child);
    (void)close(go[0]);
    (void)close(go[1]);
    if (!ends) {
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    local_listener_fini(&l);
    yard_remove(&y);
    return verdict;
}

static void
change_nothing(void)
{
}

static void
change_umask(void)
{
    (void)umask(0123);
}

static void
change_privileges(void)
{
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void
a_process_of_the_same_kind_is_served(void **state)
{
    struct sy_error err = {0};
    struct peer peer;

    (void)state;
    assert_int_equal(judge_child(&err, &peer, change_nothing, false), PEER_SAME);
    assert_false(peer.other_umask);
    assert_int_equal(judge_child(&err, &peer, change_umask, false), PEER_SAME);
    assert_true(peer.other_umask);
}

static void
a_confined_process_is_not(void **state)
{
    struct sy_error err = {0};
    struct peer peer;

    (void)state;
    assert_int_equal(judge_child(&err, &peer, change_privileges, false), PEER_UNLIKE);
    assert_non_null(strstr(err.msg, "no_new_privs"));
}

static void
nor_is_one_that_is_no_more(void **state)
{
    struct sy_error err = {0};
    struct peer peer;

    (void)state;
    assert_int_equal(judge_child(&err, &peer, change_nothing, true), PEER_UNLIKE);
    assert_int_not_equal(err.code, SY_E_OK);
}

static void
facts_differ_by_what_they_say(void **state)
{
    struct peer_facts a = {
        .status = "Name:\tx\nUmask:\t0022\nUid:\t1\t1\nSeccomp:\t0\n",
        .spaces = {1,  2, 3, 4},
        .root = {1, 2 }
    };
    struct peer_facts b = a;

    (void)state;
    assert_null(peer_difference(&a, &b));
    (void)snprintf(b.status, sizeof(b.status), "Umask:\t0077\nUid:\t1\t1\nSeccomp:\t0\n");
    assert_null(peer_difference(&a, &b));
    assert_false(peer_same_umask(&a, &b));
    (void)snprintf(b.status, sizeof(b.status), "Umask:\t0022\nUid:\t1\t1\nSeccomp:\t2\n");
    assert_string_equal(peer_difference(&a, &b), "confinement (seccomp)");
    (void)snprintf(b.status, sizeof(b.status), "Umask:\t0022\nUid:\t1\t1\n");
    assert_string_equal(peer_difference(&a, &b), "confinement (seccomp)");
    (void)snprintf(b.status, sizeof(b.status), "Umask:\t0022\nUid:\t1\t11\nSeccomp:\t0\n");
    assert_string_equal(peer_difference(&a, &b), "user ids");
    b = a;
    b.spaces[3] = 5;
    assert_string_equal(peer_difference(&a, &b), "namespaces");
    b = a;
    b.root[0] = 7;
    assert_string_equal(peer_difference(&a, &b), "root directory");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_is_found_however_long_its_path_is),
        cmocka_unit_test(whether_one_may_be_up_is_told_by_the_name_alone),
        cmocka_unit_test(a_second_daemon_is_told_who_is_up),
        cmocka_unit_test(what_a_killed_daemon_left_is_replaced),
        cmocka_unit_test(a_directory_that_others_may_write_is_not_believed),
        cmocka_unit_test(a_process_of_the_same_kind_is_served),
        cmocka_unit_test(a_confined_process_is_not),
        cmocka_unit_test(nor_is_one_that_is_no_more),
        cmocka_unit_test(facts_differ_by_what_they_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
