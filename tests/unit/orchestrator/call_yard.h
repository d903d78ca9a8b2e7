#ifndef SY_TESTS_UNIT_ORCHESTRATOR_CALL_YARD_H
#define SY_TESTS_UNIT_ORCHESTRATOR_CALL_YARD_H

#include "base/buf.h"
#include "orchestrator/orchestrator.h"

/* A workspace and a home of the test's own, both removed at its end. */
struct spot {
    char root[64];
    char home[96];
    char work[96];
    struct strv environ_list;
};

/* For cmocka's group: *state is a struct spot. */
int spot_make(void **state);
int spot_remove(void **state);

void write_file(const char *dir, const char *name, const char *text);

/* A session, a turn, and a script that is to run in them. */
enum sy_code session_of(struct session **ret, const struct spot *p);
enum sy_code turn_of(struct turn_context *ret, const struct spot *p, enum sandbox_mode mode);
enum sy_code request_of(struct exec_request *ret, const struct spot *p, const char *script,
                        bool login, uint64_t timeout_ms);

struct answer {
    struct exec_output output;
    struct buf text;
};

void answer_fini(struct answer *a);
/* Runs it to its end, in that session or in one of its own; asserts that it could be asked for. */
void run_in_session(struct answer *ret, // NOLINT(readability-function-size)
                    struct session *session, const struct spot *p, enum sandbox_mode mode,
                    const char *script, bool login, uint64_t timeout_ms);
void run_script(struct answer *ret, const struct spot *p, enum sandbox_mode mode,
                const char *script, bool login, uint64_t timeout_ms);

#endif
