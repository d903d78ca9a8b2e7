#ifndef SY_TESTS_UNIT_PROTOCOL_FAKE_TOOLS_H
#define SY_TESTS_UNIT_PROTOCOL_FAKE_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/tools.h"

/*
 * A stand-in for the tools room: calls are recorded and stay open until the
 * test finishes them. Tools: "shell" (aliases "local_shell", "container.exec";
 * mutating), "reader" (not mutating; not listed by default), "patch" (custom).
 */
#define FAKE_CALLS_MAX 1024

struct fake_call {
    struct tool_call *handle; /* NULL once over */
    uint64_t elapsed_ms;
    size_t n_roots;
    enum payload_kind payload;
    enum sandbox_mode mode;
    enum approval_policy approval;
    bool has_network;
    bool is_cancelled;
    size_t n_replies;
    enum store_status reply; /* the last one */
    size_t n_given_up;
    char name[64];
    char call_id[300];
    char turn_id[300];
    char session[80]; /* "main" for none */
    char cwd[256];
    char arguments[1024]; /* as JSON */
    char input[256];
    char last_line[512];
    uint64_t bytes; /* of output */
};

/* There is one. NULL when memory is out. */
struct tool_context *fake_tools_new(void);
void fake_tools_free(void);
struct config *fake_config(void);
/* The turn that configuration gives. */
struct turn_context *fake_turn(void);

/* Does something go on ending, until that is taken back? */
void fake_unsettle(bool to);

/* Calls ever started, in order. */
size_t fake_calls(void);
struct fake_call *fake_call(size_t i);
/* How many are open. */
size_t fake_open(void);
/* Sessions open below the main one. */
size_t fake_sessions(void);

/* Ends call i as the tools room would. */
void fake_finish(size_t i, const char *content);
void fake_finish_output(size_t i, struct tool_output *output);
/* Ends all that are open; cancelled ones say so. */
void fake_finish_all(void);
/* The next tool_start fails with this code. */
void fake_fail_next(enum sy_code code);
/* tool_cancel ends the call at once, from inside. */
void fake_cancel_is_synchronous(bool yes);

/* There are none (fake_sessions.c). */
void fake_sessions_forget(void);
/* Another session, which is told as begun; its log is "log of ID". Beyond
 * FAKE_SESSIONS_MAX nothing happens. */
#define FAKE_SESSIONS_MAX 300
void fake_session(const char *id, bool has_terminal);
/* What happens to one; one that is gone is known no more. */
void fake_session_change(const char *id, enum tool_session_change change);

void fake_emit(const struct event *e);

#endif
