#include "yard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

const char *
yard_path(const struct yard *y, const char *name)
{
    static char paths[32][4096];
    static size_t next;
    char *path = paths[next++ % 32];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", y->base, name);
    return path;
}

void
yard_mkdir(const struct yard *y, const char *name)
{
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s", yard_path(y, name));
    for (char *at = strchr(path + strlen(y->base) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *at = '/';
    }
    assert_int_equal(mkdir(path, 0755), 0);
}

void
yard_file(const struct yard *y, const char *name, const char *text)
{
    SY_FD fd = open(yard_path(y, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

void
yard_chmod(const struct yard *y, const char *name, unsigned mode)
{
    assert_int_equal(chmod(yard_path(y, name), (mode_t)mode), 0);
}

void
yard_link(const struct yard *y, const char *target, const char *name)
{
    assert_int_equal(symlink(target, yard_path(y, name)), 0);
}

const char *
yard_text(const struct yard *y, const char *name)
{
    static char text[65536];
    SY_FD fd = open(yard_path(y, name), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

    text[n > 0 ? n : 0] = '\0';
    return text;
}

bool
yard_exists(const struct yard *y, const char *name)
{
    struct stat st;

    return lstat(yard_path(y, name), &st) == 0;
}

int
yard_try(const struct yard *y, const char *line)
{
    char script[8192];
    char *const argv[] = {mem_unconst("sh"), mem_unconst("-c"), script, NULL};
    pid_t pid = -1;
    int status = 0;

    (void)snprintf(script, sizeof(script),
                   "cd '%s/W' && unset GIT_DIR GIT_WORK_TREE && export HOME='%s' "
                   "GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b "
                   "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_EDITOR=true "
                   "GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=protocol.file.allow "
                   "GIT_CONFIG_VALUE_0=always GIT_CONFIG_KEY_1=gc.auto GIT_CONFIG_VALUE_1=0\n"
                   "exec >/dev/null 2>&1\n%s",
                   y->base, y->base, line);

    assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

void
yard_run(const struct yard *y, const char *line)
{
    if (yard_try(y, line) != 0) {
        fail_msg("failed: %s", line);
    }
}

static unsigned long sum;

static int
add_to_sum(const char *path, const struct stat *st, int type, struct FTW *at)
{
    unsigned long one = 5381;

    for (const char *c = path; *c != '\0'; c++) {
        one = one * 33 + (unsigned char)*c;
    }
    one = one * 33 + st->st_mode;
    if (S_ISREG(st->st_mode)) {
        unsigned char bytes[4096];
        SY_FD fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0) {
            for (ssize_t i = 0; i < n; i++) {
                one = one * 33 + bytes[i];
            }
        }
    }
    (void)type;
    (void)at;
    sum += one; /* in any order */
    return 0;
}

unsigned long
yard_hash(const struct yard *y)
{
    sum = 0;
    assert_int_equal(nftw(yard_path(y, "W"), add_to_sum, 16, FTW_PHYS), 0);
    return sum;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int
yard_setup(void **state)
{
    struct yard *y = mem_alloc_zero(1, sizeof(*y));
    const char *tmp = getenv("TMPDIR");
    char template[200];
    char real[4096];

    assert_non_null(y);
    (void)snprintf(template, sizeof(template), "%.150s/guard-test-XXXXXX",
                   tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    assert_non_null(mkdtemp(template));
    assert_non_null(realpath(template, real));
    (void)snprintf(y->base, sizeof(y->base), "%.255s", real);
    yard_mkdir(y, "W");
    *state = y;
    return 0;
}

int
yard_teardown(void **state)
{
    struct yard *y = *state;

    guard_free(y->g);
    (void)nftw(y->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(y);
    return 0;
}

void
yard_guard_options(struct yard *y, const struct guard_options *o)
{
    struct sy_error err = {0};

    if (guard_new(&y->g, o, &err) != SY_E_OK) {
        fail_msg("guard_new: %s", err.msg);
    }
}

void
yard_guard(struct yard *y, bool mounts)
{
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {
        .roots = roots,
        .state_dir = yard_path(y, "S"),
        .has_mounts = mounts,
    };

    yard_guard_options(y, &o);
}

void
yard_await_tick(void)
{
    struct timespec made;
    struct timespec now;

    /* A stamp may be finer than a tick (Linux 6.13, multigrain timestamps): the
     * coarse clock has to pass what the fine one says now. */
    (void)clock_gettime(CLOCK_REALTIME, &made);
    do {
        (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_sec < made.tv_sec ||
             (now.tv_sec == made.tv_sec && now.tv_nsec <= made.tv_nsec));
}

void
yard_begin(struct yard *y)
{
    struct sy_error err = {0};

    yard_await_tick();
    if (guard_begin(y->g, NULL, &err) != SY_E_OK) {
        fail_msg("guard_begin: %s", err.msg);
    }
}

const char *
yard_marks(const struct yard *y, const struct guard_marks *m)
{
    static char text[65536];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < m->n; i++) {
        const struct guard_mark *k = &m->v[i];
        const char *path = k->path + strlen(y->base) + 1;

        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s%s%s%s\n", path,
                                 k->action == GUARD_PIN ? "pin" : "ro", k->is_dir ? "/" : "",
                                 k->is_symlink ? "@" : "", k->is_placeholder ? "?" : "");
        assert_true(used < sizeof(text));
    }
    return text;
}

const char *
yard_marks_now(struct yard *y)
{
    struct guard_marks m = {0};

    assert_int_equal(guard_marks_now(y->g, &m), SY_E_OK);

    const char *text = yard_marks(y, &m);

    guard_marks_fini(&m);
    return text;
}

const char *
yard_refresh(struct yard *y)
{
    struct guard_marks m = {0};

    assert_int_equal(guard_refresh(y->g, &m, NULL), SY_E_OK);

    const char *text = yard_marks(y, &m);

    guard_marks_fini(&m);
    return text;
}

const char *
yard_after(struct yard *y)
{
    static const char *const verdicts[] = {"harmless", "quarantined", "restored", "left"};
    static char text[65536];
    struct guard_findings f;
    struct sy_error err = {0};
    size_t used = 0;

    text[0] = '\0';
    if (guard_after(y->g, &f, &err) != SY_E_OK) {
        fail_msg("guard_after: %s", err.msg);
    }
    for (size_t i = 0; i < f.n; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s (%s)\n",
                                 verdicts[f.v[i].verdict], f.v[i].operation,
                                 f.v[i].path + strlen(y->base) + 1,
                                 f.v[i].why != NULL ? f.v[i].why : "");
        if (f.v[i].verdict == GUARD_QUARANTINED) {
            struct stat st;

            assert_non_null(f.v[i].quarantine);
            assert_int_equal(lstat(f.v[i].quarantine, &st), 0);
        }
    }
    guard_findings_fini(&f);
    return text;
}
