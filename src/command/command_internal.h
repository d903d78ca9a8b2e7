#ifndef SY_COMMAND_COMMAND_INTERNAL_H
#define SY_COMMAND_COMMAND_INTERNAL_H

#include <stddef.h>

#include "command/command.h"

#define SHELL(name) extern const struct shell_kind shell_kind_##name;
#include "command/shells.def"
#undef SHELL

/* derive_exec_args of the Bourne family: [path, "-lc" or "-c", script]. */
enum sy_code shell_derive_posix(struct strv *argv, const char *path, const char *script,
                                bool login) SY_NODISCARD;

/* passwd_lookup on text in the form of passwd(5). */
enum sy_code passwd_scan(const char *text, size_t len, unsigned uid, char **ret_shell,
                         char **ret_home) SY_NODISCARD;
/* passwd_name on such text. */
enum sy_code passwd_scan_name(const char *text, size_t len, unsigned uid,
                              char **ret_name) SY_NODISCARD;

#endif
