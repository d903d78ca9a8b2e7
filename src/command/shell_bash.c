#include "command/command_internal.h"

static const char *const aliases[] = {"bash", NULL};
/* After the usual places: the BSDs, Homebrew, NixOS. */
static const char *const paths[] = {
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/opt/homebrew/bin/bash",
    "/run/current-system/sw/bin/bash",
    NULL,
};
static const char *const profiles[] = {
    "/etc/profile",     "/etc/profile.d/",  "~/.bash_profile",
    "~/.bash_login",    "~/.profile",       "~/.bashrc",
    "/etc/bash.bashrc", "/etc/environment", NULL,
};

const struct shell_kind shell_kind_bash = {
    .name = "bash",
    .display = "Bash",
    .aliases = aliases,
    .paths = paths,
    .has_login_env = true,
    .profiles = profiles,
    .derive_exec_args = shell_derive_posix,
};
