#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "sandbox/linux/ready.h"

static void
deny_in(struct place *p, const char *name)
{
    p->policy.deny_read.max = 64;
    assert_int_equal(strv_add(&p->policy.deny_read, place_path(p, name)), SY_E_OK);
}

static void
build(struct place *p, bool has_mounts)
{
    place_mkdir(p, "O/home");
    place_mkdir(p, "O/home/.config");
    place_mkdir(p, "O/home/.config/gh");
    place_file(p, "O/home/.netrc", "secret");
    deny_in(p, "O/home/.netrc");
    deny_in(p, "O/home/.config/gh");
    deny_in(p, "O/home/.codex/auth.json");
    p->policy.max_tier = has_mounts ? TIER_FULL : TIER_NO_NAMESPACE;
    p->caps.has_full_tier = has_mounts;
}

/* Makes it until nothing has changed in the same moment as it was looked at. True: it can tell
 * births, so that anything can be known to be the same. */
static bool
settle(struct place *p)
{
    const struct deny_view *v = NULL;
    bool is_settled = false;

    while (!is_settled) {
        place_ready(p);
        v = ready_denied(p->ready);
        is_settled = sandbox_ready_is_fresh(p->ready);
        for (size_t i = 0; i < v->n_objects; i++) {
            is_settled = is_settled && (v->objects[i].is_dir || v->objects[i].changed_ns != 0);
        }
    }
    return v->objects[0].born_ns != BORN_UNTOLD;
}

static bool
renew(struct place *p)
{
    return sandbox_ready_renew(p->ready, p->plan);
}

static void
what_is_new_beside_a_secret_makes_nothing_anew_where_mounts_hide_it(void **state)
{
    struct place *p = *state;

    build(p, true);
    if (!settle(p)) {
        skip();
    }
    place_file(p, "O/home/notes", "open");
    assert_false(sandbox_ready_is_fresh(p->ready));
    assert_true(renew(p));
    /* A directory in which there may be something to hide, and is not. */
    place_mkdir(p, "O/home/.codex");
    assert_true(renew(p));
    assert_int_equal(rmdir(place_path(p, "O/home/.codex")), 0);
    assert_true(renew(p));
    assert_int_equal(ready_denied(p->ready)->n_objects, 2);
}

static void
landlock_grants_name_by_name(void **state)
{
    struct place *p = *state;

    build(p, false);
    (void)settle(p);
    place_file(p, "O/home/notes", "open");
    assert_false(renew(p));
}

static void
a_secret_that_appears_goes_or_is_another_is_hidden_anew(void **state)
{
    struct place *p = *state;

    build(p, true);
    (void)settle(p);
    place_mkdir(p, "O/home/.codex");
    place_file(p, "O/home/.codex/auth.json", "secret");
    assert_false(renew(p));
    (void)settle(p);
    assert_int_equal(unlink(place_path(p, "O/home/.codex/auth.json")), 0);
    assert_false(renew(p));

    /* The next file has the number of the last, mostly. */
    (void)settle(p);
    assert_int_equal(unlink(place_path(p, "O/home/.netrc")), 0);
    place_file(p, "O/home/.netrc", "secret");
    assert_false(renew(p));

    /* The same file by another name that came to be called as that one was. */
    (void)settle(p);
    assert_int_equal(link(place_path(p, "O/home/.netrc"), place_path(p, "O/home/other")), 0);
    assert_int_equal(unlink(place_path(p, "O/home/.netrc")), 0);
    assert_int_equal(rename(place_path(p, "O/home/other"), place_path(p, "O/home/.netrc")), 0);
    assert_false(renew(p));
}

static void
a_directory_above_a_secret_that_was_replaced_is_held_anew(void **state)
{
    struct place *p = *state;

    build(p, true);
    (void)settle(p);
    assert_int_equal(rename(place_path(p, "O/home/.config/gh"), place_path(p, "O/gh")), 0);
    assert_int_equal(rmdir(place_path(p, "O/home/.config")), 0);
    place_mkdir(p, "O/home/.config");
    assert_int_equal(rename(place_path(p, "O/gh"), place_path(p, "O/home/.config/gh")), 0);
    assert_false(renew(p));
}

static void
a_root_that_was_replaced_is_not_renewed(void **state)
{
    struct place *p = *state;

    build(p, true);
    (void)settle(p);
    assert_int_equal(rename(place_path(p, "W"), place_path(p, "was")), 0);
    place_mkdir(p, "W");
    assert_false(renew(p));
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(what_is_new_beside_a_secret_makes_nothing_anew_where_mounts_hide_it),
        IN_A_PLACE(landlock_grants_name_by_name),
        IN_A_PLACE(a_secret_that_appears_goes_or_is_another_is_hidden_anew),
        IN_A_PLACE(a_directory_above_a_secret_that_was_replaced_is_held_anew),
        IN_A_PLACE(a_root_that_was_replaced_is_not_renewed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
