#include "command/command_internal.h"

static const char *const aliases[] = {"zsh", NULL};
static const char *const paths[] = {
    "/bin/zsh",
    "/usr/bin/zsh",
    "/usr/local/bin/zsh",
    "/opt/homebrew/bin/zsh",
    "/run/current-system/sw/bin/zsh",
    NULL,
};
/* Debian keeps the system's files below /etc/zsh, other systems in /etc. */
static const char *const profiles[] = {
    "/etc/zsh/zshenv",
    "/etc/zsh/zprofile",
    "/etc/zsh/zshrc",
    "/etc/zsh/zlogin",
    "/etc/zshenv",
    "/etc/zprofile",
    "/etc/zshrc",
    "/etc/zlogin",
    "~/.zshenv",
    "~/.zprofile",
    "~/.zshrc",
    "~/.zlogin",
    NULL,
};

const struct shell_kind shell_kind_zsh = {
    .name = "zsh",
    .display = "Zsh",
    .aliases = aliases,
    .paths = paths,
    .has_login_env = true,
    /* Else each zsh reads ~/.zshenv. What /etc/zsh/zshenv has, none can leave out. */
    .bare_option = "-f",
    .profiles = profiles,
    .profile_variable = "ZDOTDIR",
    .derive_exec_args = shell_derive_posix,
};
