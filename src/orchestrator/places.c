#include "command/danger.h"
#include "orchestrator/call_internal.h"

enum sy_code
call_find_places(const struct orch_call *c, struct strv *ret)
{
    const struct judge_world world = {
        .reader = script_reader_new(),
        .cwd = c->request.params.cwd,
        .home = session_home(c->session),
    };
    enum sy_code rc = SY_E_NOMEM;

    if (world.reader != NULL && c->argv.n > 0) {
        rc = danger_places(ret, &world, strv_view(&c->argv), NULL);
    }
    script_reader_free(world.reader);
    return rc;
}
