#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"

static bool
is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Cuts the last component off; false if there is none. */
static bool
cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path) {
        return false;
    }
    *slash = '\0';
    return true;
}

/*
 * If `self` is LIBEXEC/shellyard/shellyard, the program in front of it: in the
 * build directory beside LIBEXEC, installed in `bin` beside it or where the
 * build was told to put programs.
 */
static bool
find_front(char ret[LIMIT_PATH], const char *self)
{
    static const char *const beside[] = {"shellyard", "bin/shellyard"};
    char top[LIMIT_PATH];

    (void)snprintf(top, sizeof(top), "%s", self);
    if (!str_ends(top, "/shellyard/shellyard") || !cut_last(top) || !cut_last(top)) {
        return false;
    }

    bool is_configured = str_eq(top, SY_LIBEXECDIR);

    if (str_ends(top, "/libexec") && cut_last(top)) {
        for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
            if (snprintf(ret, LIMIT_PATH, "%s/%s", top, beside[i]) < (int)LIMIT_PATH &&
                is_program(ret)) {
                return true;
            }
        }
    }
    (void)snprintf(ret, LIMIT_PATH, "%s", SY_BINDIR "/shellyard");
    return is_configured && is_program(ret);
}

enum sy_code
cli_self_path(char ret[LIMIT_PATH], struct sy_error *err)
{
    char self[LIMIT_PATH];
    bool by_proc = true;
    int failed = cli_executable(self, &by_proc);

    if (failed != 0) {
        return sy_err_sys(err, failed, "finding the path of this program%s",
                          by_proc ? "" : " without /proc");
    }
    if (!find_front(ret, self)) {
        memcpy(ret, self, strlen(self) + 1);
    }
    return SY_E_OK;
}
