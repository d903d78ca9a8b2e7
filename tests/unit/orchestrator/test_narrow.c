#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "orchestrator/orchestrator.h"

/* What a turn may want of what it is allowed: each pair of each member. */

static void
allow(struct turn_context *t, const char *cwd)
{
    *t = (struct turn_context){
        .sandbox = {.mode = SANDBOX_WORKSPACE_WRITE, .writable_roots = {.max = LIMIT_ROOTS}},
        .approval = APPROVAL_ON_REQUEST
    };
    t->cwd = mem_strdup(cwd);
    t->sandbox.cwd = mem_strdup(cwd);
    assert_true(t->cwd != NULL && t->sandbox.cwd != NULL);
}

/* Wants it inside of what is allowed. The turn that came of it, which is to be given back, or none
 * and a sentence. */
static enum sy_code
want(struct turn_context *ret, const struct turn_context *allowed, const struct turn_wish *w,
     struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    assert_int_equal(turn_context_copy(ret, allowed), SY_E_OK);
    rc = turn_narrow_inside(ret, allowed, w, "the parent", err);
    if (rc != SY_E_OK) {
        turn_context_fini(ret);
    }
    return rc;
}

static void
refused(const struct turn_context *allowed, const struct turn_wish *w, const char *why)
{
    struct turn_context t;
    struct sy_error err = {0};

    assert_int_equal(want(&t, allowed, w, &err), SY_E_ARG);
    if (strstr(err.msg, why) == NULL) {
        fail_msg("'%s' is not in: %s", why, err.msg);
    }
}

static void
nothing_wanted_is_what_is_allowed(void **state)
{
    const struct turn_wish nothing = {0};
    struct turn_context allowed;
    struct turn_context t;

    (void)state;
    allow(&allowed, "/var");
    assert_int_equal(strv_add(&allowed.sandbox.writable_roots, "/srv"), SY_E_OK);
    allowed.sandbox.has_network = true;
    assert_int_equal(want(&t, &allowed, &nothing, NULL), SY_E_OK);
    assert_string_equal(t.cwd, "/var");
    assert_string_equal(t.sandbox.cwd, "/var");
    assert_false(t.sandbox.cwd_is_inner);
    assert_int_equal(t.sandbox.mode, SANDBOX_WORKSPACE_WRITE);
    assert_int_equal(t.approval, APPROVAL_ON_REQUEST);
    assert_true(t.sandbox.has_network && strv_has(&t.sandbox.writable_roots, "/srv"));
    turn_context_fini(&t);
    turn_context_fini(&allowed);
}

static void
each_mode_under_each_mode(void **state)
{
    /* From narrow to wide. */
    static const enum sandbox_mode order[] = {SANDBOX_READ_ONLY, SANDBOX_WORKSPACE_WRITE,
                                              SANDBOX_EXTERNAL, SANDBOX_DANGER_FULL_ACCESS};
    struct turn_context allowed;

    (void)state;
    allow(&allowed, "/var");
    for (size_t a = 0; a < 4; a++) {
        for (size_t w = 0; w < 4; w++) {
            const struct turn_wish wish = {.has_mode = true, .mode = order[w]};
            struct turn_context t;

            allowed.sandbox.mode = order[a];
            if (w > a) {
                refused(&allowed, &wish, sandbox_mode_name(order[a]));
                refused(&allowed, &wish, "which the parent allows");
                continue;
            }
            assert_int_equal(want(&t, &allowed, &wish, NULL), SY_E_OK);
            assert_int_equal(t.sandbox.mode, order[w]);
            assert_int_equal(t.sandbox.narrows_mode, w < a);
            turn_context_fini(&t);
        }
    }
    turn_context_fini(&allowed);
}

static void
each_approval_policy_under_each(void **state)
{
    /* From seldom to often. */
    static const enum approval_policy order[] = {APPROVAL_NEVER, APPROVAL_ON_FAILURE,
                                                 APPROVAL_ON_REQUEST, APPROVAL_UNLESS_TRUSTED,
                                                 APPROVAL_GRANULAR};
    struct turn_context allowed;

    (void)state;
    allow(&allowed, "/var");
    for (size_t a = 0; a < 5; a++) {
        for (size_t w = 0; w < 5; w++) {
            const struct turn_wish wish = {.has_approval = true, .approval = order[w]};
            struct turn_context t;

            allowed.approval = order[a];
            if (w == 4 && a != 4) {
                refused(&allowed, &wish, "not granular");
                continue;
            }
            if (w < a) {
                refused(&allowed, &wish, "asks less than");
                refused(&allowed, &wish, approval_policy_name(order[a]));
                continue;
            }
            assert_int_equal(want(&t, &allowed, &wish, NULL), SY_E_OK);
            assert_int_equal(t.approval, order[w]);
            turn_context_fini(&t);
        }
    }
    turn_context_fini(&allowed);
}

static void
the_network_is_switched_off_and_never_on(void **state)
{
    const struct turn_wish on = {.network = WISH_YES};
    const struct turn_wish off = {.network = WISH_NO};
    struct turn_context allowed;
    struct turn_context t;

    (void)state;
    allow(&allowed, "/var");
    refused(&allowed, &on, "network_access is off in the parent");
    assert_int_equal(want(&t, &allowed, &off, NULL), SY_E_OK);
    turn_context_fini(&t);
    allowed.sandbox.has_network = true;
    assert_int_equal(want(&t, &allowed, &off, NULL), SY_E_OK);
    assert_false(t.sandbox.has_network);
    turn_context_fini(&t);
    assert_int_equal(want(&t, &allowed, &on, NULL), SY_E_OK);
    assert_true(t.sandbox.has_network);
    turn_context_fini(&t);
    allowed.sandbox.mode = SANDBOX_DANGER_FULL_ACCESS;
    refused(&allowed, &off, "can't be held");
    turn_context_fini(&allowed);
}

static void
switches_go_on_and_not_off(void **state)
{
    struct turn_context allowed;

    (void)state;
    allow(&allowed, "/var");
    for (unsigned i = 0; i < 8; i++) {
        bool was = (i & 1U) != 0;
        bool wanted = (i & 2U) != 0;
        enum wish wish = wanted ? WISH_YES : WISH_NO;
        const struct turn_wish w = {.excludes_tmpdir = (i & 4U) != 0 ? wish : WISH_NONE,
                                    .excludes_slash_tmp = (i & 4U) != 0 ? WISH_NONE : wish};
        struct turn_context t;

        allowed.sandbox.excludes_tmpdir = was;
        allowed.sandbox.excludes_slash_tmp = was;
        if (was && !wanted) {
            refused(&allowed, &w, "is on in the parent: a turn can't switch it off");
            continue;
        }
        assert_int_equal(want(&t, &allowed, &w, NULL), SY_E_OK);
        assert_int_equal((i & 4U) != 0 ? t.sandbox.excludes_tmpdir : t.sandbox.excludes_slash_tmp,
                         wanted);
        turn_context_fini(&t);
    }
    turn_context_fini(&allowed);
}

static void
roots_are_left_out_and_not_added(void **state)
{
    struct turn_wish w = {.has_roots = true, .roots = {.max = LIMIT_ROOTS}};
    struct turn_context allowed;
    struct turn_context t;

    (void)state;
    allow(&allowed, "/var");
    assert_int_equal(strv_add(&allowed.sandbox.writable_roots, "/srv/a"), SY_E_OK);
    assert_int_equal(strv_add(&allowed.sandbox.writable_roots, "/srv/b"), SY_E_OK);
    assert_int_equal(want(&t, &allowed, &w, NULL), SY_E_OK);
    assert_int_equal(t.sandbox.writable_roots.n, 0);
    assert_true(t.sandbox.drops_roots);
    turn_context_fini(&t);
    assert_int_equal(strv_add(&w.roots, "/srv/b"), SY_E_OK);
    assert_int_equal(want(&t, &allowed, &w, NULL), SY_E_OK);
    assert_int_equal(t.sandbox.writable_roots.n, 1);
    assert_true(t.sandbox.drops_roots);
    turn_context_fini(&t);
    assert_int_equal(strv_add(&w.roots, "/srv/a"), SY_E_OK);
    assert_int_equal(want(&t, &allowed, &w, NULL), SY_E_OK);
    assert_false(t.sandbox.drops_roots); /* all of them, in another order */
    turn_context_fini(&t);
    assert_int_equal(strv_add(&w.roots, "/srv/b/below"), SY_E_OK);
    refused(&allowed, &w, "writable_roots[2] '/srv/b/below' is none of those that the parent has");
    allowed.sandbox.mode = SANDBOX_DANGER_FULL_ACCESS; /* there they limit nothing */
    assert_int_equal(want(&t, &allowed, &w, NULL), SY_E_OK);
    turn_context_fini(&t);
    turn_wish_fini(&w);
    turn_context_fini(&allowed);
}

/* ws/part, ws/out -> ../out, root/, out/, named -> ws */
struct yard {
    char dir[64];
    char ws[96];
    char root[96];
    struct turn_context allowed;
};

static void
path_in(char ret[160], const struct yard *y, const char *name)
{
    (void)snprintf(ret, 160, "%s/%s", y->dir, name);
}

static int
setup(void **state)
{
    static const char *const dirs[] = {"ws", "ws/part", "root", "root/deep", "out", "out/deep"};
    struct yard *y = calloc(1, sizeof(*y));
    char path[160];

    assert_non_null(y);
    (void)snprintf(y->dir, sizeof(y->dir), "/var/tmp/shellyard-narrow-XXXXXX");
    assert_non_null(mkdtemp(y->dir));
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        path_in(path, y, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    path_in(path, y, "ws/out");
    assert_int_equal(symlink("../out", path), 0);
    path_in(path, y, "named");
    assert_int_equal(symlink("ws", path), 0);
    (void)snprintf(y->ws, sizeof(y->ws), "%s/ws", y->dir);
    (void)snprintf(y->root, sizeof(y->root), "%s/root", y->dir);
    allow(&y->allowed, y->ws);
    assert_int_equal(strv_add(&y->allowed.sandbox.writable_roots, y->root), SY_E_OK);
    *state = y;
    return 0;
}

static int
teardown(void **state)
{
    static const char *const links[] = {"ws/out", "named"};
    static const char *const dirs[] = {"ws/part", "ws/was",   "ws", "root/deep",
                                       "root",    "out/deep", "out"};
    struct yard *y = *state;
    char path[160];

    turn_context_fini(&y->allowed);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        path_in(path, y, links[i]);
        (void)unlink(path);
    }
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        path_in(path, y, dirs[i]);
        (void)unlink(path);
        (void)rmdir(path);
    }
    (void)rmdir(y->dir);
    free(y);
    return 0;
}

static void
in_directory(const struct yard *y, const char *name, const char *becomes)
{
    char path[160];
    char want_path[160];
    const struct turn_wish w = {.cwd = path};
    struct turn_context t;
    struct sy_error err = {0};

    path_in(path, y, name);
    if (becomes == NULL) {
        refused(&y->allowed, &w, "is not in");
        return;
    }
    if (want(&t, &y->allowed, &w, &err) != SY_E_OK) {
        fail_msg("%s: %s", name, err.msg);
    }
    path_in(want_path, y, becomes);
    assert_string_equal(t.cwd, want_path);
    assert_string_equal(t.sandbox.cwd, want_path);
    assert_int_equal(t.sandbox.cwd_is_inner, !str_eq(becomes, "ws"));
    turn_context_fini(&t);
}

static void
a_directory_lies_in_that_of_the_parent_or_in_a_root(void **state)
{
    struct yard *y = *state;

    in_directory(y, "ws", "ws");
    in_directory(y, "ws/part", "ws/part");
    in_directory(y, "root", "root");
    in_directory(y, "root/deep", "root/deep");
    in_directory(y, "named/part", "ws/part"); /* where it really is */
    in_directory(y, "named", "ws");
    in_directory(y, "out", NULL);
    in_directory(y, "ws/out", NULL);
    in_directory(y, "ws/out/deep", NULL);
    in_directory(y, "", NULL);
    in_directory(y, "ws/none", NULL);
    strv_fini(&y->allowed.sandbox.writable_roots);
    in_directory(y, "root", NULL);
    y->allowed.sandbox.mode = SANDBOX_READ_ONLY;
    in_directory(y, "out", NULL);
    y->allowed.sandbox.mode = SANDBOX_DANGER_FULL_ACCESS; /* all of it is the parent's */
    {
        char path[160];
        const struct turn_wish w = {.cwd = path};
        struct turn_context t;

        path_in(path, y, "out");
        assert_int_equal(want(&t, &y->allowed, &w, NULL), SY_E_OK);
        assert_false(t.sandbox.cwd_is_inner);
        assert_true(t.sandbox.cwd_has_no_links);
        turn_context_fini(&t);
    }
}

static void
what_was_swapped_for_a_link_leads_nowhere(void **state)
{
    struct yard *y = *state;
    char part[160];
    char was[160];
    char target[160];
    struct turn_wish w = {.cwd = part};
    struct turn_context inner;
    const struct turn_context outer = y->allowed;

    path_in(part, y, "ws/part");
    path_in(was, y, "ws/was");
    path_in(target, y, "out");
    assert_int_equal(want(&inner, &outer, &w, NULL), SY_E_OK);
    assert_int_equal(rename(part, was), 0);
    assert_int_equal(symlink(target, part), 0);
    /* The turn inside: a further one can't follow. */
    y->allowed = inner;
    in_directory(y, "ws/part/deep", NULL);
    in_directory(y, "out/deep", NULL);
    y->allowed = outer;
    turn_context_fini(&inner);
    /* A writable root in the workspace, which commands have swapped. */
    assert_int_equal(strv_add(&y->allowed.sandbox.writable_roots, part), SY_E_OK);
    in_directory(y, "ws/part/deep", NULL);
    in_directory(y, "out/deep", NULL);
    in_directory(y, "root/deep", "root/deep");
}

static enum sy_code
narrow_all(void *arg)
{
    const struct yard *y = arg;
    char path[160];
    struct turn_wish w = {.has_roots = true,
                          .roots = {.max = LIMIT_ROOTS},
                          .has_mode = true,
                          .mode = SANDBOX_READ_ONLY,
                          .excludes_tmpdir = WISH_YES};
    struct turn_context t = {0};
    enum sy_code rc = SY_E_OK;

    path_in(path, y, "named/part");
    w.cwd = mem_strdup(path);
    rc = w.cwd != NULL ? strv_add(&w.roots, y->root) : SY_E_NOMEM;
    if (rc == SY_E_OK) {
        rc = turn_context_copy(&t, &y->allowed);
    }
    if (rc == SY_E_OK) {
        rc = turn_narrow_inside(&t, &y->allowed, &w, "the parent", NULL);
    }
    turn_context_fini(&t);
    turn_wish_fini(&w);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    fault_run(narrow_all, *state);
}

#define IN_YARD(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_wanted_is_what_is_allowed),
        cmocka_unit_test(each_mode_under_each_mode),
        cmocka_unit_test(each_approval_policy_under_each),
        cmocka_unit_test(the_network_is_switched_off_and_never_on),
        cmocka_unit_test(switches_go_on_and_not_off),
        cmocka_unit_test(roots_are_left_out_and_not_added),
        IN_YARD(a_directory_lies_in_that_of_the_parent_or_in_a_root),
        IN_YARD(what_was_swapped_for_a_link_leads_nowhere),
        IN_YARD(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
