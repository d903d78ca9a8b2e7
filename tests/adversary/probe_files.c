/* Acts on files: PROBE_INSIDE is the workspace, PROBE_OUTSIDE is not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

static char path_a[4096];
static char path_b[4096];

static const char *
make_path(char *to, const char *place, const char *name)
{
    (void)snprintf(to, sizeof(path_a), "%s/%s", probe_env(place), name);
    return to;
}

static const char *
inside(const char *name)
{
    return make_path(path_a, "PROBE_INSIDE", name);
}

static const char *
outside(const char *name)
{
    return make_path(path_b, "PROBE_OUTSIDE", name);
}

static int
create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    return fd < 0 ? errno : probe_result(write(fd, "x", 1));
}

static int
act_write_inside(void)
{
    return create(inside("made"));
}

static int
act_create_outside(void)
{
    return create(outside("made"));
}

static int
act_overwrite_outside(void)
{
    return probe_result(open(outside("victim"), O_WRONLY | O_CLOEXEC));
}

static int
act_open_truncate_outside(void)
{
    return probe_result(open(outside("victim"), O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static int
act_truncate_outside(void)
{
    return probe_result(truncate(outside("victim"), 1));
}

static int
act_unlink_outside(void)
{
    return probe_result(unlink(outside("removable")));
}

static int
act_mkdir_outside(void)
{
    return probe_result(mkdir(outside("dir"), 0755));
}

static int
act_rmdir_outside(void)
{
    return probe_result(rmdir(outside("empty")));
}

static int
act_symlink_outside(void)
{
    return probe_result(symlink("x", outside("link")));
}

static int
act_fifo_outside(void)
{
    return probe_result(mkfifo(outside("fifo"), 0600));
}

static int
act_device_inside(void)
{
    return probe_result(mknod(inside("device"), S_IFCHR | 0600, 0x103 /* null */));
}

static int
act_rename_outwards(void)
{
    return probe_result(rename(inside("movable"), outside("moved")));
}

static int
act_rename_inwards(void)
{
    return probe_result(rename(outside("movable"), inside("taken")));
}

static int
act_link_inwards(void)
{
    return probe_result(link(outside("victim"), inside("linked")));
}

static int
act_through_link(void)
{
    return create(inside("to-outside/made-by-link"));
}

static int
act_through_proc(void)
{
    char path[8192];

    (void)snprintf(path, sizeof(path), "/proc/self/root%s", outside("made-by-proc"));
    return create(path);
}

static int
act_rename_inside(void)
{
    (void)mkdir(inside("a"), 0755);
    (void)mkdir(inside("b"), 0755);
    if (create(inside("a/f")) != 0) {
        return 2000;
    }
    return probe_result(rename(inside("a/f"), make_path(path_b, "PROBE_INSIDE", "b/f")));
}

static int
act_link_inside(void)
{
    if (create(inside("a/g")) != 0) {
        return 2000;
    }
    return probe_result(link(inside("a/g"), make_path(path_b, "PROBE_INSIDE", "b/g")));
}

static int
act_read_outside(void)
{
    return probe_result(open(outside("victim"), O_RDONLY | O_CLOEXEC));
}

static int
act_memory_of_victim(void)
{
    (void)snprintf(path_a, sizeof(path_a), "/proc/%s/mem", probe_env("PROBE_VICTIM"));
    return probe_result(open(path_a, O_RDONLY | O_CLOEXEC));
}

static int
act_environment_of_victim(void)
{
    char byte;
    int fd;

    (void)snprintf(path_a, sizeof(path_a), "/proc/%s/environ", probe_env("PROBE_VICTIM"));
    fd = open(path_a, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? errno : probe_result(read(fd, &byte, 1));
}

static int
act_root_of_victim(void)
{
    (void)snprintf(path_a, sizeof(path_a), "/proc/%s/root/etc", probe_env("PROBE_VICTIM"));
    return probe_result(open(path_a, O_RDONLY | O_CLOEXEC));
}

static int
act_write_null(void)
{
    return create("/dev/null");
}

static int
act_shared_memory(void)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "/dev/shm/shellyard-probe-%d", (int)getpid());
    return create(name) == 0 ? probe_result(unlink(name)) : errno;
}

const struct probe_act probe_file_acts[] = {
    {"write-inside",          act_write_inside         },
    {"create-outside",        act_create_outside       },
    {"overwrite-outside",     act_overwrite_outside    },
    {"open-truncate-outside", act_open_truncate_outside},
    {"truncate-outside",      act_truncate_outside     },
    {"unlink-outside",        act_unlink_outside       },
    {"mkdir-outside",         act_mkdir_outside        },
    {"rmdir-outside",         act_rmdir_outside        },
    {"symlink-outside",       act_symlink_outside      },
    {"fifo-outside",          act_fifo_outside         },
    {"device-inside",         act_device_inside        },
    {"rename-outwards",       act_rename_outwards      },
    {"rename-inwards",        act_rename_inwards       },
    {"link-inwards",          act_link_inwards         },
    {"through-link",          act_through_link         },
    {"through-proc",          act_through_proc         },
    {"rename-inside",         act_rename_inside        },
    {"link-inside",           act_link_inside          },
    {"read-outside",          act_read_outside         },
    {"memory-of-victim",      act_memory_of_victim     },
    {"environment-of-victim", act_environment_of_victim},
    {"root-of-victim",        act_root_of_victim       },
    {"write-null",            act_write_null           },
    {"shared-memory",         act_shared_memory        },
};

const size_t probe_n_file_acts = sizeof(probe_file_acts) / sizeof(probe_file_acts[0]);
