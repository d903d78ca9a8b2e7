#include "command/command_internal.h"

static const char *const aliases[] = {"sh", NULL};
static const char *const paths[] = {"/bin/sh", "/usr/bin/sh", NULL};
static const char *const profiles[] = {"/etc/profile", "/etc/profile.d/", "~/.profile", NULL};

const struct shell_kind shell_kind_sh = {
    .name = "sh",
    .display = "Sh",
    .aliases = aliases,
    .paths = paths,
    .has_login_env = true,
    .profiles = profiles,
    .derive_exec_args = shell_derive_posix,
};
