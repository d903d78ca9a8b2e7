#include "command/command_internal.h"

static const char *const aliases[] = {"pwsh", "powershell", NULL};
static const char *const paths[] = {
    "/usr/local/bin/pwsh",
    "/usr/bin/pwsh",
    "/opt/microsoft/powershell/7/pwsh",
    "/snap/bin/pwsh",
    "C:\\Program Files\\PowerShell\\7\\pwsh.exe",
    "C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe",
    NULL,
};
static const char *const profiles[] = {NULL};

static enum sy_code
derive(struct strv *argv, const char *path, const char *script, bool login)
{
    enum sy_code rc = strv_add(argv, path);

    if (rc == SY_E_OK && !login) {
        rc = strv_add(argv, "-NoProfile");
    }
    if (rc == SY_E_OK) {
        rc = strv_add(argv, "-Command");
    }
    return rc != SY_E_OK ? rc : strv_add(argv, script);
}

const struct shell_kind shell_kind_powershell = {
    .name = "powershell",
    .display = "PowerShell",
    .aliases = aliases,
    .paths = paths,
    .has_login_env = false,
    .profiles = profiles,
    .derive_exec_args = derive,
};
