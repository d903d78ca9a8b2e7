#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

struct script_reader *test_reader;

int
test_reader_make(void **state)
{
    (void)state;
    test_reader = script_reader_new();
    assert_non_null(test_reader);
    return 0;
}

int
test_reader_free(void **state)
{
    (void)state;
    script_reader_free(test_reader);
    return 0;
}

static enum sy_code
find_program(void *arg, struct buf *ret_path, bool *ret_trusted, const char *name,
             const struct judge_world *world)
{
    bool is_bare = strpbrk(name, "/\\") == NULL;

    (void)arg;
    (void)world;
    if (str_eq(name, "missing")) {
        return SY_E_NOTFOUND;
    }
    *ret_trusted = is_bare || str_starts(name, "/bin/") || str_starts(name, "/usr/bin/") ||
                   str_starts(name, "C:\\Program Files\\");
    buf_reset(ret_path);
    return buf_add_str(ret_path, name);
}

static bool
has_file(void *arg, const char *path)
{
    (void)arg;
    return str_starts(path_base(path), "old");
}

static bool
git_is_tame(void *arg, const char *cwd)
{
    (void)arg;
    return !str_starts(cwd, "/W/evil");
}

struct judge_world
test_world(struct script_reader *reader)
{
    static char root[] = "/W";
    static char *roots[] = {root, NULL};

    return (struct judge_world){
        .reader = reader,
        .cwd = "/W",
        .home = "/home/u",
        .roots = roots,
        .find_program = find_program,
        .has_file = has_file,
        .git_is_tame = git_is_tame,
    };
}
