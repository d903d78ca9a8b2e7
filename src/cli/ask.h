#ifndef SY_CLI_ASK_H
#define SY_CLI_ASK_H

#include "base/json.h"
#include "cli/cli.h"

/* A verb's request to the daemon, whose answer is one JSON object. `words` is NULL-terminated.
 * SY_E_NOTFOUND: no daemon is up. */
enum sy_code cli_ask(struct json_doc *ret, const char *const *words,
                     struct sy_error *err) SY_NODISCARD;
/* "3 s", "5 min", "2 h", "4 d" */
void cli_add_age(char ret[24], int64_t age_ms);

#endif
