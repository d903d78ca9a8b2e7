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
#include "orchestrator/call_internal.h"
#include "sandbox/access.h"

/* The tree of sessions: who lies below whom, how many may, and what goes down. */

static char *no_environ[] = {NULL};

static enum sy_code
first_of(struct session **ret)
{
    const struct session_options options = {.session_id = "first", .environ_list = no_environ};

    return session_new(ret, &options, NULL);
}

static struct session *
make_first(void)
{
    struct session *s = NULL;

    assert_int_equal(first_of(&s), SY_E_OK);
    return s;
}

static struct session *
below(struct session *parent, const char *name)
{
    struct session *s = NULL;
    struct sy_error err = {0};

    if (session_open(&s, parent, name, NULL, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return s;
}

static void
a_child_has_an_id_of_its_own_and_shares_the_rest(void **state)
{
    struct session *first = make_first();
    struct session *a = below(first, "a");
    struct session *b = below(a, "b");
    struct session *c = below(first, "c");
    const char *chain[LIMIT_SESSION_DEPTH + 2];

    (void)state;
    assert_string_equal(session_name(first), "");
    assert_null(session_title(first));
    assert_string_equal(session_name(a), "a");
    assert_string_not_equal(session_id(a), session_id(first));
    assert_string_not_equal(session_id(a), session_id(b));
    assert_ptr_equal(session_bus(b), session_bus(first));
    assert_ptr_equal(session_pool(b), session_pool(first));
    assert_ptr_not_equal(session_lock(a), session_lock(first));
    assert_ptr_not_equal(session_grants(a), session_grants(first));
    assert_ptr_equal(session_parent(b), a);
    assert_null(session_parent(first));
    assert_true(session_is_within(b, first) && session_is_within(b, a) && session_is_within(b, b));
    assert_false(session_is_within(b, c) || session_is_within(a, b) || session_is_within(first, a));
    session_chain(chain, b);
    assert_string_equal(chain[0], session_id(b));
    assert_string_equal(chain[1], session_id(a));
    assert_string_equal(chain[2], "first");
    assert_null(chain[3]);
    session_close(b);
    session_close(a);
    session_close(c);
    session_free(first);
}

static void
a_person_is_told_which_subagent_it_is(void **state)
{
    struct session *first = make_first();
    struct session *a = below(first, "a");
    struct session *b = NULL;
    struct session *c = NULL;
    const char *of[LIMIT_SESSION_DEPTH + 2];
    struct subagent who;

    (void)state;
    assert_int_equal(session_open(&b, a, "b", "tests", NULL), SY_E_OK);
    c = below(b, "c");
    assert_false(session_subagent(&who, of, first));
    assert_true(session_subagent(&who, of, c));
    assert_string_equal(who.id, "c");
    assert_null(who.name);
    assert_string_equal(of[0], "b");
    assert_string_equal(of[1], "a");
    assert_null(of[2]);
    assert_true(session_subagent(&who, of, b));
    assert_string_equal(who.name, "tests");
    session_close(c);
    session_close(b);
    session_close(a);
    session_free(first);
}

static void
names_that_would_deceive_or_are_too_long_are_refused(void **state)
{
    static const char *const bad[] = {"", "a b", "a\n", "\xc3\xa4", "a'", "a,b", "(a)"};
    struct session *first = make_first();
    struct session *s = NULL;
    struct sy_error err = {0};
    char longest[LIMIT_SESSION_NAME + 2];
    char title[LIMIT_SESSION_TITLE + 2];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(session_open(&s, first, bad[i], NULL, &err), SY_E_ARG);
        assert_non_null(strstr(err.msg, "1 to 64 letters"));
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(session_open(&s, first, longest, NULL, &err), SY_E_ARG);
    longest[LIMIT_SESSION_NAME] = '\0';
    memset(title, 'x', sizeof(title) - 1);
    title[sizeof(title) - 1] = '\0';
    assert_int_equal(session_open(&s, first, longest, title, &err), SY_E_ARG);
    title[LIMIT_SESSION_TITLE] = '\0';
    assert_int_equal(session_open(&s, first, longest, title, &err), SY_E_OK);
    assert_string_equal(session_title(s), title);
    session_close(s);
    session_free(first);
}

static void
there_may_be_so_many_and_so_deep(void **state)
{
    struct session *first = make_first();
    struct session *all[LIMIT_SESSIONS];
    struct session *more = NULL;
    struct sy_error err = {0};
    size_t n = 0;

    (void)state;
    for (; n < LIMIT_SESSION_DEPTH; n++) {
        all[n] = below(n > 0 ? all[n - 1] : first, "deep");
    }
    assert_int_equal(session_open(&more, all[n - 1], "x", NULL, &err), SY_E_LIMIT);
    assert_non_null(strstr(err.msg, "8 deep"));
    for (; n < LIMIT_SESSIONS; n++) {
        all[n] = below(first, "wide");
    }
    assert_int_equal(session_open(&more, all[0], "x", NULL, &err), SY_E_LIMIT);
    assert_non_null(strstr(err.msg, "close one first"));
    session_close(all[--n]);
    all[n++] = below(all[0], "again"); /* room again */
    while (n > 0) {
        session_close(all[--n]);
    }
    session_free(first);
}

static void
its_memory_stays_for_the_calls_that_it_has(void **state)
{
    struct session *first = make_first();
    struct session *a = below(first, "a");
    struct session *b = below(a, "b");

    (void)state;
    session_ref(b); /* a call */
    session_close(b);
    session_close(a);
    assert_string_equal(session_name(b), "b");
    assert_true(session_is_within(b, a));
    session_unref(b);
    session_free(first);
}

/* A policy of a yard, and something that a person may let commands write. */
struct yard {
    char dir[64];
    char object[96];
    struct sandbox_policy policy;
    struct access access;
    struct session *first;
    struct session *child;
    struct session *brother;
};

static int
setup(void **state)
{
    struct yard *y = calloc(1, sizeof(*y));

    assert_non_null(y);
    (void)snprintf(y->dir, sizeof(y->dir), "/var/tmp/shellyard-family-XXXXXX");
    assert_non_null(mkdtemp(y->dir));
    (void)snprintf(y->object, sizeof(y->object), "%s/x", y->dir);
    assert_int_equal(mkdir(y->object, 0700), 0);
    y->policy = (struct sandbox_policy){.mode = SANDBOX_WORKSPACE_WRITE,
                                        .writable_roots = {.max = LIMIT_ROOTS},
                                        .network_allow = {.max = LIMIT_PROXY_ALLOW}};
    y->policy.cwd = mem_strdup(y->dir);
    y->access = (struct access){.kind = ACCESS_WRITE, .lifts = {.max = 1}};
    y->access.object = mem_strdup(y->object);
    assert_true(y->policy.cwd != NULL && y->access.object != NULL);
    y->first = make_first();
    y->child = below(y->first, "child");
    y->brother = below(y->first, "brother");
    *state = y;
    return 0;
}

static int
teardown(void **state)
{
    struct yard *y = *state;

    session_close(y->child);
    session_close(y->brother);
    session_free(y->first);
    access_fini(&y->access);
    sandbox_policy_fini(&y->policy);
    (void)rmdir(y->object);
    (void)rmdir(y->dir);
    free(y);
    return 0;
}

static bool
holds(const struct yard *y, struct session *s)
{
    struct sandbox_policy p = {0};
    bool ret = false;

    assert_int_equal(sandbox_policy_copy(&p, &y->policy), SY_E_OK);
    assert_int_equal(session_widen(s, &p, NULL), SY_E_OK);
    ret = strv_has(&p.writable_roots, y->object);
    sandbox_policy_fini(&p);
    return ret;
}

static void
grant(const struct yard *y, struct session *s, enum grant_scope scope)
{
    assert_int_equal(grants_add(session_grants(s), &y->access, scope, &y->policy), SY_E_OK);
}

static void
a_grant_for_the_session_goes_down(void **state)
{
    struct yard *y = *state;
    struct session *grand = below(y->child, "grand");

    assert_false(holds(y, grand));
    grant(y, y->first, GRANT_SESSION);
    assert_true(holds(y, y->first) && holds(y, y->child) && holds(y, grand));
    y->policy.has_network = true; /* another policy than it was asked under */
    assert_false(holds(y, y->first) || holds(y, grand));
    session_close(grand);
}

static void
a_grant_of_a_child_does_not_rise_nor_go_aside(void **state)
{
    struct yard *y = *state;
    struct session *grand = below(y->child, "grand");

    grant(y, y->child, GRANT_SESSION);
    assert_true(holds(y, y->child) && holds(y, grand));
    assert_false(holds(y, y->first) || holds(y, y->brother));
    session_close(grand);
}

static void
a_grant_for_once_is_for_who_asked(void **state)
{
    struct yard *y = *state;

    grant(y, y->first, GRANT_ONCE);
    assert_true(holds(y, y->first));
    assert_false(holds(y, y->child));
}

static void
a_rule_holds_below_but_not_in_a_part_of_the_workspace(void **state)
{
    struct yard *y = *state;
    const struct access_rule rule = {
        .access = &y->access, .workspace = y->dir, .mode = SANDBOX_WORKSPACE_WRITE};

    assert_int_equal(session_set_access_rules(y->first, &rule, 1), SY_E_OK);
    assert_true(holds(y, y->first) && holds(y, y->child));
    y->policy.mode = SANDBOX_READ_ONLY;
    assert_false(holds(y, y->child));
    y->policy.mode = SANDBOX_WORKSPACE_WRITE;
    y->policy.cwd_is_inner = true; /* its parent has not the rules of that directory */
    assert_false(holds(y, y->child));
}

static enum sy_code
open_two(void *arg)
{
    struct yard *y = arg;
    struct session *first = NULL;
    struct session *a = NULL;
    struct session *b = NULL;
    struct sandbox_policy p = {0};
    enum sy_code rc = first_of(&first);

    if (rc == SY_E_OK) {
        rc = session_open(&a, first, "a", "title", NULL);
    }
    if (rc == SY_E_OK) {
        rc = session_open(&b, a, "b", NULL, NULL);
    }
    if (rc == SY_E_OK) {
        rc = grants_add(session_grants(first), &y->access, GRANT_SESSION, &y->policy);
    }
    if (rc == SY_E_OK) {
        rc = sandbox_policy_copy(&p, &y->policy);
    }
    if (rc == SY_E_OK) {
        rc = session_widen(b, &p, NULL);
    }
    sandbox_policy_fini(&p);
    if (b != NULL) {
        session_close(b);
    }
    if (a != NULL) {
        session_close(a);
    }
    session_free(first);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    /* What can't be looked at for want of memory is left out, which is narrower. */
    fault_run_lenient(open_two, *state);
}

#define IN_YARD(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_an_id_of_its_own_and_shares_the_rest),
        cmocka_unit_test(a_person_is_told_which_subagent_it_is),
        cmocka_unit_test(names_that_would_deceive_or_are_too_long_are_refused),
        cmocka_unit_test(there_may_be_so_many_and_so_deep),
        cmocka_unit_test(its_memory_stays_for_the_calls_that_it_has),
        IN_YARD(a_grant_for_the_session_goes_down),
        IN_YARD(a_grant_of_a_child_does_not_rise_nor_go_aside),
        IN_YARD(a_grant_for_once_is_for_who_asked),
        IN_YARD(a_rule_holds_below_but_not_in_a_part_of_the_workspace),
        IN_YARD(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
