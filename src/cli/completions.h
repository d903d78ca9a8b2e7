#ifndef SY_CLI_COMPLETIONS_H
#define SY_CLI_COMPLETIONS_H

#include "cli/cli.h"

/*
 * What completion scripts offer beyond the tables of options: configuration keys
 * with their values for -c, and the verbs behind `help`.
 */

/* Does the option take KEY=VALUE? */
bool completions_is_key(const struct cli_option *o);

/* bash: the line that sets `keys`, and the code that offers the values of a key (bash makes
 * three words of KEY=VALUE). */
enum sy_code completions_bash_keys(struct buf *out) SY_NODISCARD;
/* bash: the cases of the second word behind `help`, where it has subcommands. */
enum sy_code completions_bash_help(struct buf *out) SY_NODISCARD;
/* zsh: the function _shellyard_keys. */
enum sy_code completions_zsh_keys(struct buf *out) SY_NODISCARD;
/* zsh: what _arguments takes for the words behind `help`. */
enum sy_code completions_zsh_help(struct buf *out) SY_NODISCARD;
/* fish: KEY= or each KEY=VALUE, with spaces between. */
enum sy_code completions_fish_keys(struct buf *out) SY_NODISCARD;
/* fish: the line for the word behind `help`. */
enum sy_code completions_fish_help(struct buf *out) SY_NODISCARD;

/* "--sandbox|-s|...": the options that take the next word. */
enum sy_code completions_bash_with_values(struct buf *out,
                                          const struct cli_option *options) SY_NODISCARD;

#endif
