/* What the engine itself sees refused to a command's tree. */
#include <poll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/broker.h"
#include "process/listener.h"
#include "process/observe.h"
#include "process/process_internal.h"

#define NS_PER_MS 1000000ULL

void
process_witness(struct process *p, enum denial_layer layer, enum sandbox_operation operation,
                const char *object)
{
    struct sandbox_explanation why = {0};

    if (p->plan != NULL &&
        (sandbox_explain(&why, p->plan, operation, object, NULL) != SY_E_OK || why.is_allowed)) {
        /* Of the list, but past the proxy: HTTP_PROXY and the others name it. */
        if (!why.is_allowed || p->gate == NULL || operation != OPERATION_CONNECT) {
            why.rule[0] = '\0';
        }
        why.fix[0] = '\0';
    }
    process_tell_denial(p, layer, sandbox_operation_name(operation), object, &why);
}

void
process_tell_denial(struct process *p, enum denial_layer layer, const char *operation,
                    const char *object, struct sandbox_explanation *why)
{
    const struct denial d = {
        .layer = layer,
        .confidence = DENIAL_EXACT,
        .operation = operation,
        .object = mem_unconst(object),
        .rule = why->rule[0] != '\0' ? why->rule : NULL,
        .fix = why->fix[0] != '\0' ? why->fix : NULL,
    };

    if (denial_add(&p->denials, &d) != SY_E_OK) {
        p->denials.more++;
    }
}

/* The tree of a caller: ours, unless the listener is shared. */
static pid_t
keeper_of(void *arg, pid_t caller)
{
    const struct process *p = arg;

    if (!p->is_of_template) {
        return p->keeper_pid;
    }
    return p->pool != NULL ? process_pool_owner(p->pool, caller) : 0;
}

static struct process *
owner_of(struct process *p, pid_t keeper)
{
    if (!p->is_of_template) {
        return p;
    }
    return p->pool != NULL ? process_pool_find(p->pool, keeper) : NULL;
}

static int
on_call(void *arg, pid_t keeper, int listener_fd, const struct seccomp_notif *n)
{
    return observe_call(owner_of(arg, keeper), listener_fd, n);
}

static void
on_refused(void *arg, pid_t keeper, const char *object)
{
    struct process *owner = owner_of(arg, keeper);

    struct sandbox_explanation blind = {
        .rule = "the kernel can't tell whose a Unix socket is: it has no unix_diag",
        .fix = "modprobe unix_diag (as root, outside of the sandbox)",
    };

    if (owner != NULL && listener_is_blind() && str_starts(object, "unix:")) {
        process_tell_denial(owner, DENIAL_BROKER, sandbox_operation_name(OPERATION_CONNECT), object,
                            &blind);
    } else if (owner != NULL) {
        process_witness(owner, DENIAL_BROKER, OPERATION_CONNECT, object);
    }
}

static void
on_missed(void *arg, pid_t keeper, const char *object, enum own_miss miss)
{
    struct process *owner = owner_of(arg, keeper);

    if (owner != NULL) {
        own_network_tell(owner, object, miss);
    }
}

static const struct process_gate *
gate_of(void *arg, pid_t keeper)
{
    const struct process *owner = owner_of(arg, keeper);

    return owner != NULL ? owner->gate : NULL;
}

static void
on_listen_refused(void *arg, pid_t keeper)
{
    struct process *owner = owner_of(arg, keeper);
    struct sandbox_explanation why = {
        .rule = "network.allow: a server would be reached from outside; Unix sockets may listen",
        .fix = "sandbox.network_access: true",
    };

    if (owner != NULL) {
        process_tell_denial(owner, DENIAL_BROKER, "listen", "an internet socket", &why);
    }
}

/* Never taken for granted: in our own network it would be connected to this machine's servers. */
static bool
has_own_network(const struct process *p)
{
    return p->is_remote && p->plan != NULL && sandbox_plan_has_own_network(p->plan);
}

void
process_answer_calls(struct process *p)
{
    const struct broker_host host = {
        .place = {.diag_fd = p->is_remote ? template_diag_fd(p->template) : -1,
                  .has_own_tree = p->is_remote,
                  .has_own_network = has_own_network(p)},
        .keeper_of = keeper_of,
        .on_refused = on_refused,
        .on_missed = on_missed,
        .gate_of = gate_of,
        .on_listen_refused = on_listen_refused,
        .on_call = p->job.base.is_observed ? on_call : NULL,
        .arg = p,
    };

    struct pollfd called = {.fd = p->listener_fd, .events = POLLIN};
    uint64_t now_ns = clock_mono_ns();

    if (p->listener_fd < 0) {
        return;
    }
    if (poll(&called, 1, 0) > 0 && !p->has_template_listener) {
        p->rest_ns = now_ns + LIMIT_LISTENER_REST_MS * NS_PER_MS;
    }
    if (p->has_ended || (called.revents != 0 && !broker_step(p->listener_fd, &host)) ||
        (now_ns >= p->rest_ns && process_return_listener(p))) {
        process_leave_listener(p);
        p->rest_ns = UINT64_MAX;
    }
}
