#include "guard/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

bool
journal_exists(const char *state_dir)
{
    char path[LIMIT_PATH];
    int n = snprintf(path, sizeof(path), "%s/guard/journal", state_dir);

    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

struct journal {
    char id[JOURNAL_ID];
    char *path;
    int state_fd;
    int dir_fd;
    int owners_fd;
    int own_fd;  /* our owner file, locked */
    int lock_fd; /* between begin and end */
};

/* Makes it if it is missing; it must be ours alone. */
static enum sy_code
open_private(int at, const char *path, int *ret, struct sy_error *err)
{
    struct stat st;

    if (mkdirat(at, path, 0700) != 0 && errno != EEXIST) {
        return sy_err_sys(err, errno, "making the directory '%.150s'", path);
    }

    SY_FD fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || fstat(fd, &st) != 0) {
        return sy_err_sys(err, errno, "opening the directory '%.150s'", path);
    }
    if (st.st_uid != geteuid() || (st.st_mode & 022) != 0) {
        return sy_err_set(err, SY_E_SYS,
                          "the directory '%.150s' can be written by others; it must be yours with "
                          "mode 0700",
                          path);
    }
    *ret = fd_take(&fd);
    return SY_E_OK;
}

/* The directories above the state directory, as mkdir -p. */
static enum sy_code
make_parents(const char *path, struct sy_error *err)
{
    SY_AUTO(mem_free_charp) char *copy = mem_strdup(path);

    if (copy == NULL) {
        return sy_err_nomem(err);
    }
    for (char *at = strchr(copy + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST && access(copy, F_OK) != 0) {
            return sy_err_sys(err, errno, "making the directory '%.150s'", copy);
        }
        *at = '/';
    }
    return SY_E_OK;
}

static bool
is_alive(const struct journal *j, const char *id)
{
    if (str_eq(id, j->id)) {
        return true;
    }

    SY_FD fd = openat(j->owners_fd, id, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return errno != ENOENT;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return true;
    }
    (void)unlinkat(j->owners_fd, id, 0);
    return false;
}

static enum sy_code
lock(struct journal *j, struct sy_error *err)
{
    j->lock_fd = openat(j->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (j->lock_fd < 0) {
        return sy_err_sys(err, errno, "opening the journal's lock");
    }
    while (flock(j->lock_fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            return sy_err_sys(err, errno, "locking the journal");
        }
    }
    return SY_E_OK;
}

/* Files of dead engines. Under the lock, or one that is being made would be taken
 * for dead. */
static void
sweep_owners(struct journal *j)
{
    SY_FD fd = openat(j->owners_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (d == NULL) {
        return;
    }
    (void)fd_take(&fd);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            (void)is_alive(j, e->d_name);
        }
    }
    (void)closedir(d);
}

static enum sy_code
take_id(struct journal *j, struct sy_error *err)
{
    unsigned char random[8];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return sy_err_sys(err, errno, "random bytes");
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        (void)snprintf(j->id + i * 2, 3, "%02x", (unsigned)random[i]);
    }
    j->own_fd = openat(j->owners_fd, j->id, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (j->own_fd < 0 || flock(j->own_fd, LOCK_EX | LOCK_NB) != 0) {
        return sy_err_sys(err, errno, "making the owner file");
    }
    return SY_E_OK;
}

static enum sy_code
fill(struct journal *j, const char *state_dir, struct sy_error *err)
{
    enum sy_code rc = make_parents(state_dir, err);

    j->path = mem_strdup(state_dir);
    if (j->path == NULL) {
        return sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = open_private(AT_FDCWD, state_dir, &j->state_fd, err);
    }
    if (rc == SY_E_OK) {
        rc = open_private(j->state_fd, "guard", &j->dir_fd, err);
    }
    if (rc == SY_E_OK) {
        rc = open_private(j->dir_fd, "owners", &j->owners_fd, err);
    }
    if (rc == SY_E_OK) {
        rc = lock(j, err);
    }
    if (rc == SY_E_OK) {
        sweep_owners(j);
        rc = take_id(j, err);
    }
    journal_end(j);
    return rc;
}

enum sy_code
journal_open(struct journal **ret, const char *state_dir, struct sy_error *err)
{
    struct journal *j = mem_alloc_zero(1, sizeof(*j));

    if (j == NULL) {
        return sy_err_nomem(err);
    }
    j->state_fd = j->dir_fd = j->owners_fd = j->own_fd = j->lock_fd = -1;

    enum sy_code rc = fill(j, state_dir, err);

    if (rc != SY_E_OK) {
        journal_close(j);
        sy_err_wrap(err, "state directory");
        return rc;
    }
    *ret = j;
    return SY_E_OK;
}

void
journal_close(struct journal *j)
{
    if (j == NULL) {
        return;
    }
    journal_end(j);
    if (j->own_fd >= 0) {
        (void)unlinkat(j->owners_fd, j->id, 0);
    }
    fd_close(&j->own_fd);
    fd_close(&j->owners_fd);
    fd_close(&j->dir_fd);
    fd_close(&j->state_fd);
    mem_free(j->path);
    mem_free(j);
}

const char *
journal_id(const struct journal *j)
{
    return j->id;
}

int
journal_state_fd(const struct journal *j)
{
    return j->state_fd;
}

const char *
journal_state_path(const struct journal *j)
{
    return j->path;
}

enum sy_code
journal_begin(struct journal *j, struct journal_entries *ret, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GUARD_JOURNAL};

    *ret = (struct journal_entries){0};

    enum sy_code rc = lock(j, err);

    if (rc != SY_E_OK) {
        journal_end(j);
        return rc;
    }

    SY_FD fd = openat(j->dir_fd, "journal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0) {
        rc = fd_read_all(fd, &text, err);
    }
    if (rc == SY_E_OK) {
        rc = journal_parse(ret, buf_view(&text), text.len, err);
    }
    if (rc == SY_E_PARSE) {
        /* Nothing in it is believed; set aside, it holds up nobody. */
        rc = renameat(j->dir_fd, "journal", j->dir_fd, "journal.damaged") == 0
                 ? SY_E_OK
                 : sy_err_sys(err, errno, "setting a damaged journal aside");
    }
    if (rc != SY_E_OK) {
        journal_end(j);
        return rc;
    }
    for (size_t i = 0; i < ret->n; i++) {
        struct strv *owners = &ret->v[i].owners;

        for (size_t k = owners->n; k > 0; k--) {
            if (!is_alive(j, owners->v[k - 1])) {
                strv_remove(owners, k - 1);
            }
        }
    }
    return SY_E_OK;
}

enum sy_code
journal_write(struct journal *j, const struct journal_entries *e, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GUARD_JOURNAL};
    enum sy_code rc = journal_format(&text, e);

    if (e->n == 0) {
        /* None of anybody: who starts next need not look. */
        return unlinkat(j->dir_fd, "journal", 0) == 0 || errno == ENOENT
                   ? SY_E_OK
                   : sy_err_sys(err, errno, "removing the journal");
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_set(err, rc, "the journal has no room left");
    }

    SY_FD fd = openat(j->dir_fd, "journal.new",
                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return sy_err_sys(err, errno, "writing the journal");
    }
    rc = fd_write_all(fd, buf_view(&text), text.len, err);
    if (rc == SY_E_OK && renameat(j->dir_fd, "journal.new", j->dir_fd, "journal") != 0) {
        rc = sy_err_sys(err, errno, "writing the journal");
    }
    return rc;
}

void
journal_end(struct journal *j)
{
    fd_close(&j->lock_fd);
}
