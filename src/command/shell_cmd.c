#include "command/command_internal.h"

static const char *const aliases[] = {"cmd", NULL};
static const char *const paths[] = {"C:\\Windows\\System32\\cmd.exe", NULL};
static const char *const profiles[] = {NULL};

static enum sy_code
derive(struct strv *argv, const char *path, const char *script, bool login)
{
    enum sy_code rc = strv_add(argv, path);

    (void)login; /* cmd has no login shell */
    if (rc == SY_E_OK) {
        rc = strv_add(argv, "/c");
    }
    return rc != SY_E_OK ? rc : strv_add(argv, script);
}

const struct shell_kind shell_kind_cmd = {
    .name = "cmd",
    .display = "Cmd",
    .aliases = aliases,
    .paths = paths,
    .has_login_env = false,
    .profiles = profiles,
    .derive_exec_args = derive,
};
