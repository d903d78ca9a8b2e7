/*
 * Commands that want too much, under `shellyard exec`, each beside one that wants
 * less and gets it. As root everything is done a second time as an ordinary
 * user, who has other means.
 *
 *     test_adversary_limits PROBE SHELLYARD
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

#define SECOND_NS 1000000000ULL
#define NOBODY    65534

static char directory[64];
static char probe[128];
static char program[128];

struct run {
    int status; /* of exec */
    struct json_doc answer;
    struct buf text;
};

static void
run_fini(struct run *r)
{
    json_doc_fini(&r->answer);
    buf_fini(&r->text);
}

static void
become(uid_t user)
{
    if (user != getuid() && (setgid(NOBODY) != 0 || setuid(user) != 0)) {
        _exit(99);
    }
    if (chdir(directory) != 0) {
        _exit(98);
    }
    (void)setenv("HOME", "/nonexistent", 1);
    (void)unsetenv("XDG_CONFIG_HOME");
}

static pid_t
start(uid_t user, const char *setting, const char *act, const char *amount, int *ret_fd)
{
    int pipe_fds[2];

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);

    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        become(user);
        if (dup2(pipe_fds[1], 1) != 1) {
            _exit(97);
        }
        (void)execl(program, "shellyard", "exec", "--json", "-t", "60s", "-c", setting, "--", probe,
                    act, amount, (char *)NULL);
        _exit(96);
    }
    (void)close(pipe_fds[1]);
    *ret_fd = pipe_fds[0];
    return pid;
}

static void
finish(struct run *r, pid_t pid, int fd)
{
    struct sy_error err = {0};
    int status = 0;

    *r = (struct run){.text = {.max = (size_t)1 << 26}};
    assert_int_equal(fd_read_all(fd, &r->text, &err), SY_E_OK);
    (void)close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    r->status = WEXITSTATUS(status);
    if (json_parse(&r->answer, buf_view(&r->text), r->text.len, &err) != SY_E_OK) {
        fail_msg("exec ended with %d and said '%s'", r->status, buf_view(&r->text));
    }
}

static void
run(struct run *r, uid_t user, const char *setting, const char *act, const char *amount)
{
    int fd = -1;
    pid_t pid = start(user, setting, act, amount, &fd);

    finish(r, pid, fd);
}

/* Is done, and no limit is told. */
static void
must_pass(uid_t user, const char *setting, const char *act, const char *amount)
{
    SY_AUTO(run_fini) struct run r;

    run(&r, user, setting, act, amount);
    if (r.status != 0 || js_get(r.answer.root, "limit") != NULL ||
        strstr(js_str(js_get(r.answer.root, "stdout")), "done\n") == NULL) {
        fail_msg("%s %s under %s: %s", act, amount, setting, buf_view(&r.text));
    }
}

struct met {
    const char *name;
    bool is_ended;
    const char *confidence; /* NULL: either */
};

static const char *
text_of(const struct run *r, const char *key)
{
    const char *text = js_str(js_get(js_get(r->answer.root, "limit"), key));

    return text != NULL ? text : "";
}

static void
must_meet(struct run *r, const struct met *met)
{
    const struct js *limit = js_get(r->answer.root, "limit");
    bool is_ended = false;

    if (!js_bool(&is_ended, js_get(limit, "ended")) || !str_eq(text_of(r, "name"), met->name) ||
        is_ended != met->is_ended ||
        (met->confidence != NULL && !str_eq(text_of(r, "confidence"), met->confidence)) ||
        strstr(js_str(js_get(r->answer.root, "stdout")), "done\n") != NULL) {
        fail_msg("not '%s', %s: %s", met->name, met->is_ended ? "ended" : "reached",
                 buf_view(&r->text));
    }
}

/* Runs `body` as who we are, and as root also as somebody else. */
static void
as_each(void (*body)(uid_t user))
{
    body(getuid());
    if (getuid() == 0) {
        body(NOBODY);
    }
}

static void
memory(uid_t user)
{
    SY_AUTO(run_fini) struct run r;

    must_pass(user, "limits.memory_bytes=256M", "memory", "64");
    run(&r, user, "limits.memory_bytes=64M", "memory", "3000");
    must_meet(&r, &(struct met){"memory", true, "exact"});
    assert_int_equal(r.status, 137);
}

static void
a_hog_of_memory_is_ended_with_the_reason_told(void **state)
{
    (void)state;
    as_each(memory);
}

static void
shared(uid_t user)
{
    must_pass(user, "limits.memory_bytes=128M", "shared", "32");
}

static void
memory_that_sixteen_processes_share_counts_once(void **state)
{
    (void)state;
    as_each(shared);
}

static void
processes(uid_t user)
{
    SY_AUTO(run_fini) struct run r;

    must_pass(user, "limits.processes=40", "processes", "20");
    run(&r, user, "limits.processes=20", "processes", "200");
    /* A group refuses the next one, a look at the tree ends it. */
    must_meet(&r, &(struct met){"processes", str_eq(text_of(&r, "by"), "sampling"), "exact"});
}

static void
too_many_processes_are_refused_or_ended(void **state)
{
    (void)state;
    as_each(processes);
}

static void
bomb(uid_t user)
{
    SY_AUTO(run_fini) struct run r;
    uint64_t longest_ns = 0;
    int fd = -1;
    char met[128];

    (void)snprintf(met, sizeof(met), "%s/limits-met", directory);
    (void)unlink(met);

    pid_t pid = start(user, "limits.processes=50", "bomb", "0", &fd);
    siginfo_t info = {0};
    uint64_t begin_ns = clock_mono_ns();

    /* The machine goes on meanwhile: others get their processes. With a group the bomb
     * stays as it is, so it is ended here, two seconds after it began at the earliest and not
     * before it has met the limit. */
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
        uint64_t before_ns = clock_mono_ns();
        pid_t other = fork();

        assert_true(other >= 0);
        if (other == 0) {
            _exit(0);
        }
        assert_int_equal(waitpid(other, NULL, 0), other);

        uint64_t after_ns = clock_mono_ns();

        longest_ns = after_ns - before_ns > longest_ns ? after_ns - before_ns : longest_ns;
        if (after_ns - begin_ns > 2 * SECOND_NS && access(met, F_OK) == 0) {
            (void)kill(pid, SIGTERM);
            begin_ns = after_ns;
        }
    }
    assert_true(longest_ns < 10 * SECOND_NS);
    (void)unlink(met);
    finish(&r, pid, fd);
    assert_string_equal(text_of(&r, "name"), "processes");
    assert_string_equal(text_of(&r, "confidence"), "exact");
}

static void
a_fork_bomb_leaves_the_machine_to_others(void **state)
{
    (void)state;
    as_each(bomb);
}

static char marker[128];
static unsigned groups;
static unsigned inhabited;

static int
count_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};
    char procs[4096];

    (void)st;
    if (type == FTW_D && strncmp(path + at->base, marker, strlen(marker)) == 0) {
        groups++;
        (void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
        if (fd_read_file(procs, &text, NULL) == SY_E_OK && text.len > 0) {
            inhabited++;
        }
    }
    return 0;
}

/* Control groups of that engine, in whatever hierarchy. */
static unsigned
groups_of(pid_t engine)
{
    groups = 0;
    inhabited = 0;
    (void)snprintf(marker, sizeof(marker), "shellyard-%d-", (int)engine);
    (void)nftw("/sys/fs/cgroup", count_group, 16, FTW_PHYS);
    return groups;
}

static void
nothing_is_left_of_an_engine_that_was_killed(void **state)
{
    SY_AUTO(run_fini) struct run r;
    uint64_t give_up_ns = clock_mono_ns() + 60 * SECOND_NS;
    char byte = 0;
    int fd = -1;
    pid_t pid = 0;

    (void)state;
    run(&r, getuid(), "limits.processes=20", "processes", "200");

    bool has_groups = str_starts(text_of(&r, "by"), "cgroup");

    pid = start(getuid(), "limits.processes=20", "bomb", "0", &fd);
    /* Those of the try before are gone once the command is in its own. */
    do {
        (void)groups_of(pid);
    } while (has_groups && inhabited == 0 && clock_mono_ns() < give_up_ns);
    assert_true((inhabited > 0) == has_groups);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    /* The pipe ends with the engine; the keeper ends the tree, and the groups. */
    assert_int_equal(read(fd, &byte, 1), 0);
    (void)close(fd);
    /* Of that bomb, which may have told so too. */
    (void)snprintf(marker, sizeof(marker), "%s/limits-met", directory);
    (void)unlink(marker);
    while (groups_of(pid) > 0 && clock_mono_ns() < give_up_ns) {
        (void)sched_yield();
    }
    assert_int_equal(groups_of(pid), 0);
}

static void
files(uid_t user)
{
    SY_AUTO(run_fini) struct run dense;
    SY_AUTO(run_fini) struct run sparse;

    must_pass(user, "limits.file_bytes=8M", "file", "4");
    run(&dense, user, "limits.file_bytes=1M", "file", "2");
    must_meet(&dense, &(struct met){"file_size", true, "exact"});
    assert_int_equal(dense.status, 128 + SIGXFSZ);
    must_pass(user, "limits.file_bytes=8M", "sparse", "4");
    run(&sparse, user, "limits.file_bytes=1M", "sparse", "100000");
    must_meet(&sparse, &(struct met){"file_size", true, "exact"});
}

static void
a_file_that_grows_too_large_is_told(void **state)
{
    (void)state;
    as_each(files);
}

static void
descriptors(uid_t user)
{
    SY_AUTO(run_fini) struct run r;

    must_pass(user, "limits.open_files=64", "files", "40");
    run(&r, user, "limits.open_files=64", "files", "100");
    must_meet(&r, &(struct met){"open_files", false, "inferred"});
    assert_int_equal(r.status, 1);
}

static void
descriptors_run_out_and_that_is_inferred(void **state)
{
    (void)state;
    as_each(descriptors);
}

static void
cpu(uid_t user)
{
    SY_AUTO(run_fini) struct run one;
    SY_AUTO(run_fini) struct run many;

    must_pass(user, "limits.cpu_seconds=4", "cpu", "300");
    run(&one, user, "limits.cpu_seconds=1", "cpu", "9000");
    must_meet(&one, &(struct met){"cpu", true, "exact"});
    /* Four of them, each far from the limit of one: the kernel counts that by ticks. */
    run(&many, user, "limits.cpu_seconds=1", "cpus", "500");
    must_meet(&many, &(struct met){"cpu", true, "exact"});
    assert_string_equal(text_of(&many, "by"), "sampling");
}

static void
a_burner_is_ended_after_its_seconds_alone_or_as_many(void **state)
{
    (void)state;
    as_each(cpu);
}

static void
output(uid_t user)
{
    SY_AUTO(run_fini) struct run r;
    int64_t total = 0;

    must_pass(user, "limits.output_bytes=64K", "output", "63");
    run(&r, user, "limits.output_bytes=64K", "output", "1000000");
    must_meet(&r, &(struct met){"output", true, "exact"});
    assert_true(js_int(&total, js_get(r.answer.root, "total_bytes")));
    assert_int_equal(total, 64 * 1024);
}

static void
a_flood_of_output_is_ended_at_the_byte(void **state)
{
    (void)state;
    as_each(output);
}

static void
copy_program(char *to, size_t size, const char *name, const char *from)
{
    SY_AUTO(buf_fini) struct buf bytes = {.max = (size_t)1 << 28};

    (void)snprintf(to, size, "%s/%s", directory, name);
    assert_int_equal(fd_read_file(from, &bytes, NULL), SY_E_OK);

    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes.data, bytes.len, NULL), SY_E_OK);
    assert_int_equal(fchmod(fd, 0755), 0);
    (void)close(fd);
}

static char rest[160];

/* Where the program is a small one in front of a larger one, that one too. */
static void
copy_rest(const char *from)
{
    static const char place[] = "libexec/shellyard/shellyard";
    char dir[128];
    char path[512];
    const char *slash = strrchr(from, '/');

    (void)snprintf(path, sizeof(path), "%.*s/%s", slash != NULL ? (int)(slash - from) : 1,
                   slash != NULL ? from : ".", place);
    if (access(path, R_OK) != 0) {
        return;
    }
    (void)snprintf(dir, sizeof(dir), "%s/libexec", directory);
    assert_int_equal(mkdir(dir, 0755), 0);
    (void)snprintf(dir, sizeof(dir), "%s/libexec/shellyard", directory);
    assert_int_equal(mkdir(dir, 0755), 0);
    copy_program(rest, sizeof(rest), place, path);
}

static void
remove_all(void)
{
    char dir[128];

    (void)unlink(probe);
    (void)unlink(program);
    if (rest[0] != '\0') {
        (void)unlink(rest);
        (void)snprintf(dir, sizeof(dir), "%s/libexec/shellyard", directory);
        (void)rmdir(dir);
        (void)snprintf(dir, sizeof(dir), "%s/libexec", directory);
        (void)rmdir(dir);
    }
    (void)rmdir(directory);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hog_of_memory_is_ended_with_the_reason_told),
        cmocka_unit_test(memory_that_sixteen_processes_share_counts_once),
        cmocka_unit_test(too_many_processes_are_refused_or_ended),
        cmocka_unit_test(a_fork_bomb_leaves_the_machine_to_others),
        cmocka_unit_test(nothing_is_left_of_an_engine_that_was_killed),
        cmocka_unit_test(a_file_that_grows_too_large_is_told),
        cmocka_unit_test(descriptors_run_out_and_that_is_inferred),
        cmocka_unit_test(a_burner_is_ended_after_its_seconds_alone_or_as_many),
        cmocka_unit_test(a_flood_of_output_is_ended_at_the_byte),
    };

    if (argc < 3) {
        (void)fprintf(stderr, "usage: %s PROBE SHELLYARD\n", argv[0]);
        return 2;
    }
    /* Where an ordinary user can run them too, whoever owns the build. */
    (void)snprintf(directory, sizeof(directory), "/tmp/shellyard-limits-XXXXXX");
    if (mkdtemp(directory) == NULL || chmod(directory, 0777) != 0) {
        return 1;
    }
    copy_program(probe, sizeof(probe), "probe", argv[1]);
    copy_program(program, sizeof(program), "shellyard", argv[2]);
    copy_rest(argv[2]);

    int rc = cmocka_run_group_tests_name("limits", tests, NULL, NULL);

    remove_all();
    return rc;
}
