#ifndef SY_CLI_EDIT_JSON_H
#define SY_CLI_EDIT_JSON_H

#include <stdbool.h>

#include "base/json.h"
#include "cli/edit.h"

/* Our entry in JSON, beside what stands there (edit_json_entry.c). */

/* What a field of ours is to say (compact) where it says `now`, which may be NULL. */
enum sy_code edit_json_value(struct buf *ret, const struct js *now,
                             const struct edit_field *field) SY_NODISCARD;
/* The entry as it should be: what is there (NULL: nothing), our fields over it. */
enum sy_code edit_json_merge(struct buf *out, const struct js *now,
                             const struct edit_field *fields) SY_NODISCARD;
/* Does the entry already say what we want of one field? */
enum sy_code edit_json_field_is_set(bool *ret, const struct js *now,
                                    const struct edit_field *field) SY_NODISCARD;
/* Of all of them? */
enum sy_code edit_json_is_set(bool *ret, const struct js *now,
                              const struct edit_field *fields) SY_NODISCARD;

#endif
