#ifndef SY_CLI_DAEMON_START_H
#define SY_CLI_DAEMON_START_H

#include "base/err.h"

/*
 * Starts a daemon in the background, which ends with its last client, unless one is up. Several
 * programs that do so at once start one. Returns once it serves.
 */
enum sy_code daemon_start(struct sy_error *err) SY_NODISCARD;

#endif
