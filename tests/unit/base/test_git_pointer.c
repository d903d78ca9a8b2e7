#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/git_pointer.h"

static void
takes_all_but_the_line_ends(void **state)
{
    static const struct {
        const char *text;
        const char *path; /* NULL: none */
    } rows[] = {
        {"gitdir: /a/b\n",     "/a/b"    },
        {"gitdir: ../a",       "../a"    },
        {"gitdir: a\r\n\n",    "a"       },
        {"gitdir: a \n",       "a "      },
        {"gitdir:  a\t",       " a\t"    },
        {"gitdir: a\nb\n",     "a\nb"    },
        {"gitdir: \xc3\xa4\n", "\xc3\xa4"},
        {"gitdir: \n",         NULL      },
        {"gitdir:a\n",         NULL      },
        {"Gitdir: a\n",        NULL      },
        {" gitdir: a\n",       NULL      },
        {"\n",                 NULL      },
        {"",                   NULL      },
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = strlen(rows[i].text);
        const char *path = NULL;

        memcpy(text, rows[i].text, n + 1);
        path = git_pointer_path(text, n);
        if (rows[i].path == NULL) {
            assert_null(path);
        } else {
            assert_string_equal(path, rows[i].path);
        }
    }
    memcpy(text, "gitdir: a\0b\n", 13);
    assert_null(git_pointer_path(text, 12));
    assert_null(git_pointer_path(NULL, 0));
    memcpy(text, "../.. \r\n", 9);
    assert_int_equal(git_pointer_cut(text, 8), 6);
    assert_string_equal(text, "../.. ");
}

static void
knows_the_repository_of_a_linked_work_tree(void **state)
{
    (void)state;
    assert_int_equal(git_pointer_repository("/r/.git/worktrees/w"), 7);
    assert_int_equal(git_pointer_repository("/worktrees/r/.git/worktrees/w"), 17);
    assert_int_equal(git_pointer_repository("/r/.git/worktrees/w/x"), 0);
    assert_int_equal(git_pointer_repository("/worktrees/w"), 0);
    assert_int_equal(git_pointer_repository("/r/myworktrees/w"), 0);
    assert_int_equal(git_pointer_repository("worktrees"), 0);
    assert_int_equal(git_pointer_repository(""), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_all_but_the_line_ends),
        cmocka_unit_test(knows_the_repository_of_a_linked_work_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
