/* What limit a call met, and the sentence about it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/fd.h"
#include "base/limits.h"
#include "orchestrator/call_internal.h"
#include "process/template.h"

/* Of the yard's tmpfs in every sandbox of the full tier, whatever the policy puts elsewhere. */
#define TEMP_PLACE "dev"

/*
 * What programs print for the errno by which a limit refuses something. The
 * kernel keeps no record of it, so this is a guess, made only for a command that
 * failed under such a limit.
 */
static const struct {
    enum resource resource;
    const char *words;
} refusals[] = {
    {RESOURCE_FILE_SIZE,  "File too large"     },
    {RESOURCE_OPEN_FILES, "Too many open files"},
};

static void
guess(struct orch_call *c, const char *text)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        enum resource r = refusals[i].resource;

        if (c->turn.limits.most[r] != 0 && strstr(text, refusals[i].words) != NULL) {
            c->output.hit = (struct resource_hit){
                .resource = r,
                .means = MEANS_RLIMIT,
                .most = c->turn.limits.most[r],
            };
            return;
        }
    }
}

static bool
has_limits(const struct orch_call *c)
{
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        if (c->turn.limits.most[r] != 0) {
            return true;
        }
    }
    return false;
}

/* Is there no room left where that is? */
static bool
is_full(int dir_fd, const char *path)
{
    SY_FD fd = openat(dir_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct statfs st;

    return fd >= 0 && fstatfs(fd, &st) == 0 &&
           (st.f_bavail == 0 || (st.f_files > 0 && st.f_ffree == 0));
}

/*
 * The kernel keeps no record of a write that it refused for want of room, so this is inferred:
 * the tmpfs is full now, or the command, which may have removed what it wrote, failed and
 * said so where no other disk of its is full.
 */
static void
judge_temp(struct orch_call *c, const char *text, bool has_failed)
{
    const struct sandbox_policy *policy = &c->entry->policy;
    int top_fd = template_top_fd(c->entry->template);
    bool is_met = is_full(top_fd, TEMP_PLACE);
    bool is_said = has_failed && strstr(text, "No space left on device") != NULL;

    for (size_t i = 0; !is_met && is_said && i < policy->writable_roots.n; i++) {
        is_said = !is_full(AT_FDCWD, policy->writable_roots.v[i]);
    }
    if (is_met || (is_said && !is_full(AT_FDCWD, policy->cwd))) {
        c->output.hit = (struct resource_hit){
            .resource = RESOURCE_TEMP,
            .means = MEANS_TMPFS,
            .most = policy->temp_bytes,
        };
    }
}

static void
judge_by_traces(struct orch_call *c, bool has_failed)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_STREAM_KEEP * 4};

    if (has_failed && output_text_all(c->chain, &text) != SY_E_OK) {
        return;
    }
    if (has_failed) {
        guess(c, buf_view(&text));
    }
    if (c->output.hit.resource == RESOURCE_NONE && c->entry->template != NULL &&
        c->entry->policy.temp_bytes > 0) {
        judge_temp(c, buf_view(&text), has_failed);
    }
}

void
call_judge_limits(struct orch_call *c, enum exec_status status)
{
    if (status == EXEC_TIMED_OUT) {
        c->output.hit = (struct resource_hit){
            .resource = RESOURCE_WALL_CLOCK,
            .means = MEANS_ENGINE,
            .is_exact = true,
            .has_ended = true,
            .most = c->request.params.expiration.kind == EXPIRE_TIMEOUT
                        ? c->request.params.expiration.timeout_ms
                        : LIMIT_TIMEOUT_DEFAULT_MS,
        };
        return;
    }
    if (c->process != NULL) {
        c->output.hit = process_result(c->process)->hit;
    }
    if (c->output.hit.resource == RESOURCE_NONE && c->chain != NULL && has_limits(c)) {
        judge_by_traces(c, status == EXEC_SIGNALED ||
                               (status == EXEC_EXITED && c->output.exit_code != 0));
    }
}

void
exec_limit_text(char ret[EXEC_LIMIT_TEXT], const struct resource_hit *hit)
{
    (void)snprintf(ret, EXEC_LIMIT_TEXT, "%s%s %s (at most %" PRIu64 " %s: %s; by %s)",
                   hit->is_exact ? "" : "probably ", resource_name(hit->resource),
                   hit->has_ended ? "ended the command" : "was reached", hit->most,
                   resource_unit(hit->resource), resource_key(hit->resource),
                   resource_means_name(hit->means));
}

void
exec_limit_write(struct jw *w, const struct resource_hit *hit)
{
    jw_object(w);
    jw_key_str(w, "name", resource_name(hit->resource));
    jw_key_bool(w, "ended", hit->has_ended);
    jw_key_int(w, "most", (int64_t)hit->most);
    jw_key_str(w, "unit", resource_unit(hit->resource));
    jw_key_str(w, "key", resource_key(hit->resource));
    jw_key_str(w, "by", resource_means_name(hit->means));
    jw_key_str(w, "confidence", hit->is_exact ? "exact" : "inferred");
    jw_end_object(w);
}
