#include "fixture.h"

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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

const char *
place_path(const struct place *p, const char *name)
{
    static char paths[32][512];
    static size_t next;
    char *path = paths[next++ % 32];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", p->base, name);
    return path;
}

void
place_mkdir(const struct place *p, const char *name)
{
    assert_int_equal(mkdir(place_path(p, name), 0755), 0);
}

void
place_file(const struct place *p, const char *name, const char *text)
{
    SY_FD fd = open(place_path(p, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

void
place_link(const struct place *p, const char *target, const char *name)
{
    assert_int_equal(symlink(target, place_path(p, name)), 0);
}

void
place_add_root(struct place *p, const char *path)
{
    p->policy.writable_roots.max = 64;
    assert_int_equal(strv_add(&p->policy.writable_roots, path), SY_E_OK);
}

int
place_setup(void **state)
{
    struct place *p = mem_alloc_zero(1, sizeof(*p));
    const char *tmp = getenv("TMPDIR");
    char template[200];
    char real[4096];

    assert_non_null(p);
    (void)snprintf(template, sizeof(template), "%.150s/sandbox-test-XXXXXX",
                   tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    assert_non_null(mkdtemp(template));
    assert_non_null(realpath(template, real));
    (void)snprintf(p->base, sizeof(p->base), "%.255s", real);
    place_mkdir(p, "W");
    place_mkdir(p, "O");
    p->policy = (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE,
        .cwd = mem_strdup(place_path(p, "W")),
        .excludes_tmpdir = true,
        .excludes_slash_tmp = true,
    };
    sandbox_probe(&p->caps);
    *state = p;
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
place_teardown(void **state)
{
    struct place *p = *state;

    sandbox_ready_free(p->ready);
    sandbox_plan_free(p->plan);
    sandbox_policy_fini(&p->policy);
    (void)nftw(p->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(p);
    return 0;
}

enum sy_code
place_try(struct place *p, struct sy_error *err)
{
    sandbox_ready_free(p->ready);
    sandbox_plan_free(p->plan);
    p->ready = NULL;
    p->plan = NULL;

    enum sy_code rc = sandbox_plan_new(&p->plan, &p->policy, &p->caps, err);

    return rc == SY_E_OK ? sandbox_ready_new(&p->ready, p->plan, err) : rc;
}

void
place_ready(struct place *p)
{
    struct sy_error err = {0};

    if (place_try(p, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
}

int
place_run(const struct place *p, bool is_inside, place_act *act, const void *arg)
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        enum sandbox_stage stage = STAGE_NONE;

        if (is_inside && sandbox_apply(p->ready, &stage) != 0) {
            _exit(255);
        }
        _exit(act(arg));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        return 1000 + WTERMSIG(status);
    }
    assert_int_not_equal(WEXITSTATUS(status), 255);
    return WEXITSTATUS(status);
}

struct sandbox_explanation
place_ask(const struct place *p, enum sandbox_operation op, const char *object)
{
    struct sandbox_explanation said = {0};
    struct sy_error err = {0};

    if (sandbox_explain(&said, p->plan, op, object, &err) != SY_E_OK) {
        fail_msg("%s: %s", object, err.msg);
    }
    assert_true(said.rule[0] != '\0');
    return said;
}
