#include "yard.h"

#include <dirent.h>
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

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#define PATHS 8

static struct yard one;

int
yard_setup(void **state)
{
    struct yard *y = &one;

    *y = (struct yard){.fault = {.max = 1U << 14}};
    (void)snprintf(y->base, sizeof(y->base), "/var/tmp/sy-patch-XXXXXX");
    if (mkdtemp(y->base) == NULL) {
        return -1;
    }
    yard_mkdir(y, "W");
    yard_mkdir(y, "O");
    y->roots[0] = mem_strdup(yard_path(y, "W"));
    y->world = (struct patch_world){
        .cwd = y->roots[0], .roots = y->roots, .outside = "it lies outside", .wants_diff = true};
    *state = y;
    return y->roots[0] != NULL ? 0 : -1;
}

static void
// NOLINTNEXTLINE(misc-no-recursion): as deep as a test's directories
remove_all(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e = NULL;
    char below[PATH_MAX];

    while (d != NULL && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        (void)snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
        if (e->d_type == DT_DIR) {
            (void)chmod(below, 0700);
            remove_all(below);
        } else {
            (void)unlink(below);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    (void)rmdir(path);
}

int
yard_teardown(void **state)
{
    struct yard *y = *state;

    remove_all(y->base);
    buf_fini(&y->fault);
    mem_free(y->roots[0]);
    return 0;
}

const char *
yard_path(const struct yard *y, const char *name)
{
    static char paths[PATHS][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % PATHS];

    (void)snprintf(path, PATH_MAX, "%s/%s", y->base, name);
    return path;
}

void
yard_mkdir(const struct yard *y, const char *name)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s/", y->base, name);
    for (char *s = path + strlen(y->base) + 1; (s = strchr(s, '/')) != NULL; s++) {
        *s = '\0';
        (void)mkdir(path, 0755);
        *s = '/';
    }
}

void
yard_file(const struct yard *y, const char *name, const char *text)
{
    char dir[PATH_MAX];
    FILE *f = NULL;

    (void)snprintf(dir, sizeof(dir), "%s", name);
    *strrchr(dir, '/') = '\0';
    yard_mkdir(y, dir);
    f = fopen(yard_path(y, name), "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

void
yard_link(const struct yard *y, const char *target, const char *name)
{
    assert_int_equal(symlink(target, yard_path(y, name)), 0);
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void
// NOLINTNEXTLINE(misc-no-recursion): as deep as a test's directories
list(struct buf *b, const char *path, const char *shown)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, by_name);

    assert_true(n >= 0);
    for (int i = 0; i < n; i++) {
        char below[PATH_MAX];
        char below_shown[PATH_MAX];
        char target[PATH_MAX] = "";
        struct stat st;

        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
            (void)snprintf(below, sizeof(below), "%s/%s", path, names[i]->d_name);
            (void)snprintf(below_shown, sizeof(below_shown), "%s/%s", shown, names[i]->d_name);
            assert_int_equal(lstat(below, &st), 0);
            assert_int_equal(buf_addf(b, "%o %s\n", (unsigned)st.st_mode, below_shown), SY_E_OK);
            if (S_ISDIR(st.st_mode)) {
                list(b, below, below_shown);
            } else if (S_ISLNK(st.st_mode)) {
                assert_true(readlink(below, target, sizeof(target) - 1) > 0);
                assert_int_equal(buf_addf(b, "-> %s\n", target), SY_E_OK);
            } else {
                assert_int_equal(fd_read_file(below, b, NULL), SY_E_OK);
            }
        }
        free(names[i]); /* of scandir(3) */
    }
    free(names);
}

const char *
yard_tree(const struct yard *y)
{
    static char texts[2][1U << 16];
    static unsigned next;
    char *text = texts[next++ % 2];
    struct buf b = {.max = sizeof(texts[0]) - 1};

    list(&b, yard_path(y, "W"), "W");
    list(&b, yard_path(y, "O"), "O");
    (void)snprintf(text, sizeof(texts[0]), "%s", buf_view(&b));
    buf_fini(&b);
    return text;
}

const char *
yard_text(const struct yard *y, const char *name)
{
    static char text[1U << 16];
    struct buf b = {.max = sizeof(text) - 1};
    bool is_there = fd_read_file(yard_path(y, name), &b, NULL) == SY_E_OK;

    (void)snprintf(text, sizeof(text), "%s", is_there ? buf_view(&b) : "(none)");
    buf_fini(&b);
    return text;
}

bool
yard_exists(const struct yard *y, const char *name)
{
    struct stat st;

    return lstat(yard_path(y, name), &st) == 0;
}

void
yard_run(const struct yard *y, const char *line)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (chdir(y->base) == 0) {
            (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        }
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static enum sy_code
carry_out(struct yard *y, const struct patch *p, struct buf *summary, struct buf *diff)
{
    struct patch_plan *plan = NULL;
    enum sy_code rc = patch_plan_new(&plan, p, &y->world, &y->fault, &y->err);

    if (rc == SY_E_OK && diff != NULL) {
        rc = patch_plan_diff(diff, plan);
    }
    if (rc == SY_E_OK && summary != NULL) {
        rc = patch_plan_summary(summary, plan);
    }
    if (rc == SY_E_OK) {
        rc = patch_apply(plan, y->before, y->before_arg, &y->err);
    }
    patch_plan_free(plan);
    return rc;
}

enum sy_code
yard_patch(struct yard *y, const char *body, struct buf *summary, struct buf *diff)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_PATCH};
    struct patch p;
    enum sy_code rc = buf_addf(&text, "*** Begin Patch\n%s*** End Patch\n", body);

    y->err = (struct sy_error){0};
    buf_reset(&y->fault);
    if (rc == SY_E_OK) {
        rc = patch_read(&p, text.data, text.len, &y->err);
    }
    if (rc == SY_E_OK) {
        rc = carry_out(y, &p, summary, diff);
        patch_fini(&p);
    }
    return rc;
}

void
yard_applies(struct yard *y, const char *body, const char *summary)
{
    struct buf said = {.max = 1U << 16};

    if (yard_patch(y, body, &said, NULL) != SY_E_OK) {
        fail_msg("%s\n%s", y->err.msg, buf_view(&y->fault));
    }
    assert_string_equal(buf_view(&said), summary);
    buf_fini(&said);
}

void
yard_refuses(struct yard *y, const char *body, const char *words)
{
    const char *before = yard_tree(y);

    assert_int_not_equal(yard_patch(y, body, NULL, NULL), SY_E_OK);
    if (strstr(y->err.msg, words) == NULL && strstr(buf_view(&y->fault), words) == NULL) {
        fail_msg("'%s' is not in: %s\n%s", words, y->err.msg, buf_view(&y->fault));
    }
    assert_string_equal(yard_tree(y), before);
}

const char yard_all_kinds[] =
    "*** Add File: new/dir/one\n+1\n*** Add File: new/two\n+2\n*** Update File: a\n@@\n-a\n+A\n"
    "*** Update File: b\n*** Move to: moved/b\n@@\n-b\n+B\n*** Delete File: c\n*** Add File: d\n+D\n"
    "*** Update File: e\n*** Move to: f\n@@\n-e\n+E\n*** Delete File: link\n";

void
yard_make_all_kinds(const struct yard *y)
{
    yard_file(y, "W/a", "a\n");
    yard_file(y, "W/b", "b\n");
    yard_file(y, "W/c", "c\n");
    yard_file(y, "W/d", "d\n");
    yard_file(y, "W/e", "e\n");
    yard_file(y, "W/f", "f\n");
    yard_link(y, "a", "W/link");
    assert_int_equal(chmod(yard_path(y, "W/a"), 0640), 0);
}
