#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "command/danger.h"
#include "fault.h"
#include "world.h"

/* The places of an argument list, with blanks between them. */
static void
expect_places(char *const *argv, const char *places)
{
    const struct judge_world world = test_world(test_reader);
    SY_AUTO(strv_fini) struct strv found = {.max = LIMIT_ARGV};
    SY_AUTO(buf_fini) struct buf told = {.max = 1 << 16};

    assert_int_equal(danger_places(&found, &world, argv, NULL), SY_E_OK);
    for (size_t i = 0; i < found.n; i++) {
        assert_int_equal(buf_addf(&told, "%s%s", i > 0 ? " " : "", found.v[i]), SY_E_OK);
    }
    assert_string_equal(buf_view(&told), places);
}

static void
a_script_is_where_it_goes(void **state)
{
    static const struct {
        const char *script;
        const char *places;
    } rows[] = {
        {"ls",                                      ""                    },
        {"cd sub && git remote add o u",            "/W/sub"              },
        {"cd sub; cd deeper; touch f",              "/W/sub/deeper /W/sub"},
        {"cd /opt/x && make",                       "/opt/x"              },
        {"cd .. && make",                           "/"                   },
        {"cd ~/p && make",                          "/home/u/p /home/u"   },
        {"cd . && make",                            ""                    },
        {"cd \"$D\" && make",                       ""                    },
        {"(cd a && x); y",                          "/W/a"                },
        {"for i in 1 2; do pushd b; x; done",       "/W/b"                },
        {"git -C sub remote add o u",               "/W/sub"              },
        {"cd a && make -C b",                       "/W/a/b /W/a"         },
        {"make -C b && cd a && make --directory=c", "/W/a/c /W/b /W/a"    },
        {"timeout 5 env --chdir=q make",            "/W/q"                },
        {"npm --prefix web install",                "/W/web"              },
        {"git -C \"$X\" status; tar -C",            ""                    },
        {"cd a b; cd -; x",                         ""                    },
        {"if",                                      ""                    },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *argv[] = {mem_unconst("bash"), mem_unconst("-lc"), mem_unconst(rows[i].script), NULL};

        expect_places(argv, rows[i].places);
    }
}

static void
an_argument_list_too(void **state)
{
    char *git[] = {mem_unconst("git"), mem_unconst("-C"), mem_unconst("sub dir"),
                   mem_unconst("init"), NULL};
    char *env[] = {mem_unconst("env"), mem_unconst("make"), mem_unconst("-C"), mem_unconst("/x"),
                   NULL};

    (void)state;
    expect_places(git, "/W/sub dir");
    expect_places(env, "/x");
}

static void
more_than_can_be_kept_are_no_error(void **state)
{
    SY_AUTO(buf_fini) struct buf script = {.max = 1 << 16};
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"), NULL, NULL};
    const struct judge_world world = test_world(test_reader);
    SY_AUTO(strv_fini) struct strv found = {.max = LIMIT_ARGV};

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(buf_add_str(&script, "cd d; "), SY_E_OK);
    }
    argv[2] = mem_unconst(buf_view(&script));
    assert_int_equal(danger_places(&found, &world, argv, NULL), SY_E_OK);
    assert_true(found.n > 4 && found.n < 100);
}

static enum sy_code
find_places(void *arg)
{
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"), mem_unconst("cd a && make -C b"), NULL};
    struct script_reader *reader = script_reader_new();
    const struct judge_world world = test_world(reader);
    SY_AUTO(strv_fini) struct strv found = {.max = LIMIT_ARGV};
    enum sy_code rc = reader != NULL ? danger_places(&found, &world, argv, NULL) : SY_E_NOMEM;

    (void)arg;
    script_reader_free(reader);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    (void)state;
    /* What a judgement would say of it may be cut short. */
    fault_run_lenient(find_places, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_is_where_it_goes),
        cmocka_unit_test(an_argument_list_too),
        cmocka_unit_test(more_than_can_be_kept_are_no_error),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, test_reader_make, test_reader_free);
}
