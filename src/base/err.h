#ifndef SY_BASE_ERR_H
#define SY_BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>

/*
 * Every error of the program: name, text, JSON-RPC code, exit status of the
 * command line. docs/errors.md explains each; lint checks that it does.
 * 125 is the status of `exec` when Shellyard itself failed, as env(1),
 * timeout(1) and nohup(1) have it; 126 and 127 are those of POSIX shells.
 */
#define SY_CODES(X)                                                                                \
    X(SY_E_OK, "ok", 0, 0)                                                                         \
    X(SY_E_NOMEM, "out of memory", -32603, 125)                                                    \
    X(SY_E_SYS, "system call failed", -32603, 125)                                                 \
    X(SY_E_ARG, "invalid argument", -32602, 2)                                                     \
    X(SY_E_CONFIG, "invalid configuration", -32603, 2)                                             \
    X(SY_E_LIMIT, "limit exceeded", -32602, 125)                                                   \
    X(SY_E_PARSE, "malformed message", -32700, 2)                                                  \
    X(SY_E_SANDBOX, "sandbox unavailable", -32603, 125)                                            \
    X(SY_E_DENIED, "refused by policy", -32603, 125)                                               \
    X(SY_E_CWD, "bad working directory", -32602, 125)                                              \
    X(SY_E_NOEXEC, "not executable", -32602, 126)                                                  \
    X(SY_E_NOTFOUND, "not found", -32602, 127)                                                     \
    X(SY_E_CANCELLED, "cancelled", -32603, 130)                                                    \
    X(SY_E_INTERNAL, "internal error", -32603, 125)

enum sy_code {
#define SY_CODE_ENUM(name, text, rpc, status) name,
    SY_CODES(SY_CODE_ENUM)
#undef SY_CODE_ENUM
};

#define SY_ERR_MSG_MAX 240

/*
 * Caller-owned error. No heap: it works when memory is out, and there is
 * nothing to free. `sys` is the errno value of the failing call, or 0.
 */
struct sy_error {
    enum sy_code code;
    int sys;
    char msg[SY_ERR_MSG_MAX];
};

#define SY_NODISCARD                    __attribute__((warn_unused_result))
#define SY_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))
/* Rarely called: the compiler moves what leads to it out of the way of the rest. */
#define SY_COLD     __attribute__((cold))
#define SY_AUTO(fn) __attribute__((cleanup(fn)))

/* Fills *err (may be NULL) with code and sentence; returns code. Cuts what
 * does not fit, on a UTF-8 border. */
enum sy_code sy_err_set(struct sy_error *err, enum sy_code code, const char *fmt, ...)
    SY_PRINTF(3, 4) SY_COLD;

/* Like sy_err_set for a failed system call: code SY_E_SYS (SY_E_NOMEM for
 * ENOMEM), the errno value kept, its text appended after the sentence. */
enum sy_code sy_err_sys(struct sy_error *err, int errnum, const char *fmt, ...)
    SY_PRINTF(3, 4) SY_COLD;

/* Puts context in front of the sentence ("context: sentence"). Returns nothing:
 * without an err (NULL) it knows no code, so that the caller returns its own. */
void sy_err_wrap(struct sy_error *err, const char *fmt, ...) SY_PRINTF(2, 3) SY_COLD;

/* Out of memory, as an error. */
enum sy_code sy_err_nomem(struct sy_error *err) SY_COLD;

void sy_err_clear(struct sy_error *err);

/* Static texts and numbers of a code. */
const char *sy_code_name(enum sy_code code);
const char *sy_code_text(enum sy_code code);
int sy_code_rpc(enum sy_code code);
int sy_code_status(enum sy_code code);

/* The text of an errno value, from a constant table (thread safe; "errno N"
 * never: unknown values give "unknown error"). */
const char *sy_errno_text(int errnum) SY_COLD;
/* Its name, e.g. "ENOENT"; "?" if unknown. */
const char *sy_errno_name(int errnum);

/*
 * A broken invariant: writes one line to standard error and aborts, also in
 * release builds. A guard with corrupt state must stop.
 */
#define SY_ASSERT(cond)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            sy_assert_failed(#cond, __FILE__, __LINE__);                                           \
        }                                                                                          \
    } while (0)

__attribute__((noreturn, cold)) void sy_assert_failed(const char *cond, const char *file, int line);

#endif
