#ifndef SY_SANDBOX_DOCUMENT_H
#define SY_SANDBOX_DOCUMENT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/sandbox.h"

/*
 * A policy as a JSON object, by which it travels between processes: to
 * shellyard-launch, and from whoever uses that by itself (sandbox_transform).
 *
 *   {"version": 1, "mode": "workspace-write", "cwd": "/W", "writable_roots": [],
 *    "tmpdir": "/T", "network_access": false, "network_allow": [], "exclude_tmpdir_env_var": false,
 *    "exclude_slash_tmp": false, "run_as": "owner"|"self", "temp_bytes": 0,
 *    "deny_read": [], "protected_names": []}
 *
 * version, mode and cwd are needed, the others have the values shown (tmpdir: none). A path,
 * pattern or name that is not UTF-8 is an object (jw_exact): another file must not be named.
 */

/* The members into an open object, but for the last two: an engine hides and protects by marks
 * of its own. */
void sandbox_policy_write(struct jw *w, const struct sandbox_policy *p);

/*
 * SY_E_CONFIG with a sentence for anything that is not such an object, an unknown
 * member included: a policy that is not understood whole is not enforced in part.
 */
enum sy_code sandbox_policy_read(struct sandbox_policy *ret, const char *text, size_t n,
                                 struct sy_error *err) SY_NODISCARD;

#endif
