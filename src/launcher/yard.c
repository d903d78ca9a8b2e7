#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/launcher_internal.h"

#define PAGE_BYTES   4096U
#define SPARE_INODES 1024U

bool
failed(struct failure *f, enum sandbox_stage stage, int sys, const char *about)
{
    f->stage = stage;
    f->sys = sys;
    (void)snprintf(f->detail, sizeof(f->detail), "%s", about != NULL ? about : "");
    return false;
}

static bool
write_file(const char *path, const char *text, struct failure *f)
{
    SY_FD fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        return failed(f, STAGE_ID_MAPS, errno, path);
    }
    return true;
}

/* Each user and group as what they are outside: files keep their owners. */
static bool
map_self(uid_t uid, gid_t gid, struct failure *f)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%u %u 1", (unsigned)uid, (unsigned)uid);
    if (!write_file("/proc/self/setgroups", "deny", f) ||
        !write_file("/proc/self/uid_map", text, f)) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%u %u 1", (unsigned)gid, (unsigned)gid);
    return write_file("/proc/self/gid_map", text, f);
}

static bool
enter_namespaces(struct yard *y, struct failure *f)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (uid == 0 && unshare(CLONE_NEWNS) == 0) {
        return true;
    }
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return failed(f, STAGE_NAMESPACES, errno,
                      errno == ENOSPC ? "the sysctls user.max_user_namespaces and "
                                        "user.max_mnt_namespaces allow no more"
                                      : "user and mount namespace");
    }
    y->has_user_namespace = true;
    return map_self(uid, gid, f);
}

static bool
make_dir(const char *path, mode_t mode, struct failure *f)
{
    /* Whatever the umask is. */
    if (mkdir(path, mode) != 0 || chmod(path, mode) != 0) {
        return failed(f, STAGE_MOUNTS, errno, path);
    }
    return true;
}

static bool
fill_tmpfs(struct failure *f)
{
    static const struct {
        const char *path;
        mode_t mode;
    } dirs[] = {
        {YARD_TMP, 01777},
        {YARD_SHM, 01777},
        {YARD_RUN, 0755 },
        {YARD_DEV, 0755 },
    };

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        if (!make_dir(dirs[i].path, dirs[i].mode, f)) {
            return false;
        }
    }
    return true;
}

bool
yard_open(struct yard *y, struct failure *f)
{
    if (y->is_open) {
        return true;
    }
    if (!enter_namespaces(y, f)) {
        return false;
    }
    /* Nothing that we mount may appear outside. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return failed(f, STAGE_MOUNTS, errno, "making / private");
    }
    if (mount("shellyard", YARD_PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) {
        return failed(f, STAGE_MOUNTS, errno, "a tmpfs on " YARD_PLACE);
    }
    if (!fill_tmpfs(f)) {
        return false;
    }
    y->is_open = true;
    return true;
}

bool
yard_limit(uint64_t temp_bytes, struct failure *f)
{
    char options[96];

    if (temp_bytes == 0) {
        return true;
    }
    /* Empty files take no bytes, but memory of the kernel: as many as there are pages, and some
     * that are ours. */
    (void)snprintf(options, sizeof(options), "size=%llu,nr_inodes=%llu",
                   (unsigned long long)temp_bytes,
                   (unsigned long long)(temp_bytes / PAGE_BYTES + SPARE_INODES));
    if (mount(NULL, YARD_PLACE, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) != 0) {
        return failed(f, STAGE_MOUNTS, errno, "limiting the tmpfs on " YARD_PLACE);
    }
    return true;
}
