/*
 * That the kernel agrees with explain: random paths are asked about and then really used
 * inside the sandbox.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "fixture.h"

/* ---- random paths, asked and then done ---- */

static const char *const dirs[] = {
    "W",      "W/d1",     "W/d1/d2", "W/to_out", "W/to_out/d1", "W/abs", "W/d1/up",   "W/d1/d2/up",
    "O",      "O/d1",     "O/d1/d2", "O/to_in",  "O/to_in/d2",  "O/abs", "O/abs/abs", "W/d1/..",
    "W/../O", "O/./../W", ".",       "d1",       "to_out",      "../O",  "missing",   "f",
};

static const char *const names[] = {
    "f",       "g",       "new",    "d1",     "d1/g",    "d2",           "..",        ".",
    "dang",    "hard",    "alone",  "twin",   "to_file", "abs",          "up/f",      "sealed",
    ".key",    ".keys/k", ".keys",  ".key-2", "to_key",  "to_keys",      "keys_up/f", ".key",
    ".keys/k", ".keys",   ".key-2", "to_key", "to_keys", "keys_up/.key",
};

#define DIRS   (sizeof(dirs) / sizeof(dirs[0]))
#define NAMES  (sizeof(names) / sizeof(names[0]))
#define ROUNDS 4000

/* Beside all the rest, so that the directories of the tree hold denied and allowed
 * files. In the workspace Landlock can't hold them. */
static void
build_secrets(struct place *p)
{
    static const char *const secrets[] = {"O/.key", "O/.keys", "O/d1/.key", "O/d1/d2/.key"};
    static const char *const holders[] = {"O", "O/d1", "W/d1"};

    for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "%s/.keys", holders[i]);
        place_mkdir(p, name);
        (void)snprintf(name, sizeof(name), "%s/.keys/k", holders[i]);
        place_file(p, name, "1");
        (void)snprintf(name, sizeof(name), "%s/.key", holders[i]);
        place_file(p, name, "1");
        (void)snprintf(name, sizeof(name), "%s/to_key", holders[i]);
        place_link(p, ".key", name);
        (void)snprintf(name, sizeof(name), "%s/to_keys", holders[i]);
        place_link(p, ".keys", name);
        (void)snprintf(name, sizeof(name), "%s/keys_up", holders[i]);
        place_link(p, ".keys/..", name);
    }
    place_file(p, "O/d1/d2/f", "1");
    place_file(p, "O/d1/d2/.key", "1");
    place_file(p, "W/.key", "1");
    place_link(p, "../O/.key", "W/to_key");
    place_link(p, "../O/.keys", "W/to_keys");
    /* A second name beside it, and one in a directory that is granted. */
    assert_int_equal(link(place_path(p, "O/.key"), place_path(p, "O/.key-2")), 0);
    assert_int_equal(link(place_path(p, "O/.key"), place_path(p, "O/d1/.key-2")), 0);
    place_mkdir(p, "O/d2");
    place_file(p, "O/d2/f", "1");
    assert_int_equal(link(place_path(p, "O/.key"), place_path(p, "O/d2/.key-2")), 0);
    p->policy.deny_read.max = 16;
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        assert_int_equal(strv_add(&p->policy.deny_read, place_path(p, secrets[i])), SY_E_OK);
    }
}

static void
build_tree(struct place *p)
{
    place_mkdir(p, "W/d1");
    place_mkdir(p, "W/d1/d2");
    place_mkdir(p, "O/d1");
    place_mkdir(p, "O/d1/d2");
    place_file(p, "W/f", "1");
    place_file(p, "W/d1/g", "1");
    place_file(p, "W/d1/d2/f", "1");
    place_file(p, "O/f", "1");
    place_file(p, "O/d1/g", "1");
    place_file(p, "O/alone", "1"); /* a root of its own */
    place_link(p, "../O", "W/to_out");
    place_link(p, "../W/d1", "O/to_in");
    place_link(p, "../../O/d1", "W/d1/up");
    place_link(p, "../..", "W/d1/d2/up");
    place_link(p, "../O/f", "W/to_file");
    place_link(p, place_path(p, "W"), "O/abs");
    place_link(p, place_path(p, "O/d1"), "W/abs");
    place_link(p, "../O/new", "W/dang");
    place_link(p, "../W/new", "O/dang");
    /* A second name inside of a file outside, and of the file root outside. */
    assert_int_equal(link(place_path(p, "O/f"), place_path(p, "W/hard")), 0);
    assert_int_equal(link(place_path(p, "O/alone"), place_path(p, "O/twin")), 0);
    place_file(p, "W/sealed", "1");
    assert_int_equal(chmod(place_path(p, "W/sealed"), 0), 0);
    place_add_root(p, place_path(p, "O/alone"));
    build_secrets(p);
}

static uint32_t
next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* A directory, which may be a link or not there, and up to two names. */
static void
random_path(const struct place *p, uint32_t *seed, char *path, size_t size)
{
    const char *dir = dirs[next_random(seed) % DIRS];
    bool is_workspace = dir[0] != 'W' && dir[0] != 'O';
    size_t len = 0;

    if (!is_workspace) {
        len = (size_t)snprintf(path, size, "%s%s/",
                               next_random(seed) % 8 == 0 ? "/proc/self/root" : "", p->base);
    }
    len += (size_t)snprintf(path + len, size - len, "%s", dir);
    for (uint32_t n = next_random(seed) % 5; n > 1; n -= 2) {
        len += (size_t)snprintf(path + len, size - len, "/%s", names[next_random(seed) % NAMES]);
    }
}

struct trial {
    char path[2048];
    enum sandbox_operation op;
};

/* All trials of one policy, done by one child. */
struct batch {
    const char *cwd;
    int out; /* takes one int per trial: 0 or an errno value */
    struct trial trials[ROUNDS / 2];
};

/* A directory is read when some file in it is; one without files can be listed. */
static int
try_read_dir(const char *path)
{
    DIR *d = opendir(path);
    int outcome = d != NULL ? 0 : errno;

    for (const struct dirent *e = NULL; d != NULL && (e = readdir(d)) != NULL;) {
        SY_FD fd = -1;

        if (e->d_type != DT_REG) {
            continue;
        }
        fd = openat(dirfd(d), e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            outcome = 0;
            break;
        }
        outcome = errno;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return outcome;
}

/* A path that ends with "." or ".." has no name that could go. */
static bool
ends_with_dots(const char *path)
{
    const char *base = path_base(path);

    return str_eq(base, ".") || str_eq(base, "..");
}

/* The directory of a path, held: what is moved may be part of the way there. */
static int
open_holder(const char *path, const char **ret_name)
{
    char dir[4096];

    *ret_name = path_base(path);
    (void)snprintf(dir, sizeof(dir), "%.*s.", (int)(*ret_name - path), path);
    return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Takes a file's name away and puts it back. It keeps a second one meanwhile, since rules are on
 * files. */
static int
try_unlink(int dir, const char *name)
{
    char aside[300];
    int sys = 0;

    (void)snprintf(aside, sizeof(aside), "%.200s-aside", name);
    if (linkat(dir, name, dir, aside, 0) != 0) {
        return errno;
    }
    sys = unlinkat(dir, name, 0) == 0 ? 0 : errno;
    if (sys == 0) {
        return renameat(dir, aside, dir, name) == 0 ? 0 : errno;
    }
    return unlinkat(dir, aside, 0) == 0 ? sys : errno;
}

/* Takes a name away and puts it back, by rename(2) within its directory or by removing it. */
static int
try_name(const struct trial *t)
{
    struct stat st;
    char aside[300];
    const char *name = NULL;
    SY_FD dir = open_holder(t->path, &name);

    if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno;
    }
    if (ends_with_dots(t->path)) {
        return EINVAL;
    }
    if (t->op == OPERATION_RENAME) {
        (void)snprintf(aside, sizeof(aside), "%.200s-aside", name);
        return renameat(dir, name, dir, aside) == 0 && renameat(dir, aside, dir, name) == 0 ? 0
                                                                                            : errno;
    }
    if (S_ISDIR(st.st_mode)) {
        return unlinkat(dir, name, AT_REMOVEDIR) == 0 && mkdirat(dir, name, st.st_mode & 07777) == 0
                   ? 0
                   : errno;
    }
    return try_unlink(dir, name);
}

static int
try_create(const struct trial *t, unsigned kind)
{
    struct stat st;

    if (lstat(t->path, &st) == 0) {
        return EEXIST;
    }
    switch (kind % 4) {
    case 0:
        return mkdir(t->path, 0700) == 0 && rmdir(t->path) == 0 ? 0 : errno;
    case 1:
        return symlink("nowhere", t->path) == 0 && unlink(t->path) == 0 ? 0 : errno;
    case 2:
        return mkfifo(t->path, 0600) == 0 && unlink(t->path) == 0 ? 0 : errno;
    default:
        break;
    }

    SY_FD fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd >= 0 && unlink(t->path) == 0 ? 0 : errno;
}

static int
try_other(const struct trial *t)
{
    struct stat st;

    if (t->op == OPERATION_TRUNCATE) {
        return truncate(t->path, 1) == 0 ? 0 : errno; /* as long as it is */
    }
    if (stat(t->path, &st) != 0) {
        return errno;
    }
    return chmod(t->path, st.st_mode & 07777) == 0 ? 0 : errno;
}

/* Opens as a shell's `>>` or `<` does; what it creates, it removes. */
static int
try_write(const struct trial *t)
{
    struct stat st;
    char inner[4096];
    bool is_new = stat(t->path, &st) != 0;

    if (t->op == OPERATION_READ) {
        SY_FD fd = open(t->path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && !is_new && S_ISDIR(st.st_mode)) {
            return try_read_dir(t->path);
        }
        return fd >= 0 ? 0 : errno;
    }
    if (!is_new && S_ISDIR(st.st_mode)) {
        (void)snprintf(inner, sizeof(inner), "%s/made-here", t->path);

        SY_FD fd = open(inner, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        return fd >= 0 && unlink(inner) == 0 ? 0 : errno;
    }

    SY_FD fd = open(t->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return errno;
    }
    if (is_new && (realpath(t->path, inner) == NULL || unlink(inner) != 0)) {
        return errno;
    }
    return 0;
}

static int
try_one(const struct trial *t, unsigned number)
{
    switch (t->op) {
    case OPERATION_READ:
    case OPERATION_WRITE:
        return try_write(t);
    case OPERATION_CREATE:
        return try_create(t, number);
    case OPERATION_DELETE:
    case OPERATION_RENAME:
        return try_name(t);
    case OPERATION_TRUNCATE:
    case OPERATION_CHMOD:
        return try_other(t);
    case OPERATION_CONNECT:
    case OPERATION_COUNT:
        break;
    }
    return 202;
}

static int
act_batch(const void *arg)
{
    const struct batch *b = arg;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    /* Plain permissions are not what is compared: root has to keep them too. */
    if (syscall(SYS_capset, &header, none) != 0 || chdir(b->cwd) != 0) {
        return 200;
    }
    for (size_t i = 0; i < ROUNDS / 2; i++) {
        int outcome = try_one(&b->trials[i], (unsigned)i);

        if (write(b->out, &outcome, sizeof(outcome)) != sizeof(outcome)) {
            return 201;
        }
    }
    return 0;
}

static void
run_batch(const struct place *p, struct batch *b, bool is_inside, int *outcomes)
{
    SY_AUTO(buf_fini) struct buf all = {.max = ROUNDS * sizeof(int)};
    char name[] = "/tmp/sandbox-outcomes-XXXXXX";
    SY_FD fd = mkostemp(name, O_CLOEXEC);

    assert_true(fd >= 0 && unlink(name) == 0);
    b->out = fd;
    assert_int_equal(place_run(p, is_inside, act_batch, b), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(fd_read_all(fd, &all, NULL), SY_E_OK);
    assert_int_equal(all.len, ROUNDS / 2 * sizeof(int));
    memcpy(outcomes, all.data, all.len);
}

static void
compare(const struct place *p, const struct trial *t, const int outcome[2], unsigned counts[2][2])
{
    struct sandbox_explanation said = {0};
    struct sy_error err = {0};

    if (sandbox_explain(&said, p->plan, t->op, t->path, &err) != SY_E_OK) {
        fail_msg("'%s': %s", t->path, err.msg);
    }
    if (outcome[0] != 0) {
        /* Fails anyway (missing, no directory, plain permissions): then it
         * must fail inside too. */
        if (outcome[1] == 0) {
            fail_msg("'%s' works inside and not outside (errno %d)", t->path, outcome[0]);
        }
        return;
    }
    counts[t->op == OPERATION_READ ? 1 : 0][said.is_allowed ? 0 : 1]++;
    if (said.is_allowed != (outcome[1] == 0)) {
        fail_msg("'%s' (%s): explain says %s by '%s', the kernel gives errno %d", t->path,
                 sandbox_operation_name(t->op), said.is_allowed ? "yes" : "no", said.rule,
                 outcome[1]);
    }
    if (outcome[1] != 0) {
        /* rename(2) and link(2) to where less is allowed: as across file systems. */
        assert_true(outcome[1] == EACCES || (t->op != OPERATION_WRITE && outcome[1] == EXDEV));
    }
}

static enum sandbox_operation
random_operation(uint32_t *seed)
{
    uint32_t n = next_random(seed);

    /* Reading has more rules than the others together. */
    return n % 3 == 0 ? OPERATION_READ : (enum sandbox_operation)(n / 3 % OPERATION_CONNECT);
}

static void
the_kernel_does_what_explain_says(void **state)
{
    static struct batch batch;
    static int outside[ROUNDS / 2];
    static int inside[ROUNDS / 2];
    struct place *p = *state;
    uint32_t seed = 0x5eed1e55;
    unsigned counts[2][2] = {{0}};

    build_tree(p);
    batch.cwd = p->policy.cwd;
    for (int mode = 0; mode < 2; mode++) {
        p->policy.mode = mode == 0 ? SANDBOX_WORKSPACE_WRITE : SANDBOX_READ_ONLY;
        place_ready(p);
        for (size_t i = 0; i < ROUNDS / 2; i++) {
            random_path(p, &seed, batch.trials[i].path, sizeof(batch.trials[i].path));
            batch.trials[i].op = random_operation(&seed);
        }
        run_batch(p, &batch, false, outside);
        run_batch(p, &batch, true, inside);
        for (size_t i = 0; i < ROUNDS / 2; i++) {
            compare(p, &batch.trials[i], (const int[]){outside[i], inside[i]}, counts);
        }
    }
    /* The walk would prove nothing if it met one answer alone. */
    for (int i = 0; i < 2; i++) {
        print_message("%s: %u allowed and %u denied, each as the kernel has it\n",
                      i == 0 ? "write" : "read", counts[i][0], counts[i][1]);
        assert_true(counts[i][0] > 100);
        assert_true(counts[i][1] > 50);
    }
}

static int
act_connect_unix(const void *arg)
{
    SY_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_un *to = arg;
    socklen_t len =
        to->sun_path[0] == '\0'
            ? (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(to->sun_path + 1))
            : (socklen_t)sizeof(*to);

    return connect(fd, (const struct sockaddr *)(const void *)to, len) == 0 ? 0 : errno;
}

static int
act_connect_tcp(const void *arg)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, arg, sizeof(struct sockaddr_in)) == 0 ? 0 : errno;
}

/* A listener on a Unix socket; "@name" is abstract. */
static int
listen_unix(struct sockaddr_un *at, const char *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*at);

    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(at->sun_path, sizeof(at->sun_path), "%.100s", name);
    if (name[0] == '@') {
        at->sun_path[0] = '\0';
        len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    }
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)at, len), 0);
    assert_int_equal(listen(fd, 50), 0);
    return fd;
}

static void
connections_fare_as_explain_says(void **state)
{
    struct place *p = *state;
    char at_names[3][120];
    char object[200];
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(tcp);
    SY_FD listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(listener, (const struct sockaddr *)(const void *)&tcp, len), 0);
    assert_int_equal(listen(listener, 50), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)(void *)&tcp, &len), 0);
    place_ready(p);
    (void)snprintf(at_names[0], sizeof(at_names[0]), "%.100s", place_path(p, "W/s"));
    (void)snprintf(at_names[1], sizeof(at_names[1]), "%.100s", place_path(p, "O/s"));
    (void)snprintf(at_names[2], sizeof(at_names[2]), "@sandbox-test-%d", (int)getpid());
    for (int i = 0; i < 3; i++) {
        struct sockaddr_un at;
        SY_FD fd = listen_unix(&at, at_names[i]);

        assert_true(fd >= 0);
        (void)snprintf(object, sizeof(object), "unix:%s", at_names[i]);
        assert_int_equal(place_run(p, false, act_connect_unix, &at), 0);
        assert_int_equal(place_ask(p, OPERATION_CONNECT, object).is_allowed,
                         place_run(p, true, act_connect_unix, &at) == 0);
    }
    (void)snprintf(object, sizeof(object), "127.0.0.1:%u", (unsigned)ntohs(tcp.sin_port));
    for (int network = 0; network < 2; network++) {
        p->policy.has_network = network == 1;
        place_ready(p);
        assert_int_equal(place_ask(p, OPERATION_CONNECT, object).is_allowed, network == 1);
        assert_int_equal(place_run(p, true, act_connect_tcp, &tcp), network == 1 ? 0 : EPERM);
        assert_int_equal(place_run(p, false, act_connect_tcp, &tcp), 0);
    }
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(the_kernel_does_what_explain_says),
        IN_A_PLACE(connections_fare_as_explain_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
