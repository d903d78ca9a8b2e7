/* What the engine itself sees refused to a command's tree. */
#include "base/fd.h"
#include "base/mem.h"
#include "process/broker.h"
#include "process/process_internal.h"

void
process_witness(struct process *p, enum denial_layer layer, enum sandbox_operation operation,
                const char *object)
{
    struct sandbox_explanation why = {0};
    struct denial d = {
        .layer = layer,
        .confidence = DENIAL_EXACT,
        .operation = sandbox_operation_name(operation),
        .object = mem_unconst(object),
    };

    if (p->plan != NULL && sandbox_explain(&why, p->plan, operation, object, NULL) == SY_E_OK &&
        !why.is_allowed) {
        d.rule = why.rule;
        d.fix = why.fix[0] != '\0' ? why.fix : NULL;
    } else if (p->gate != NULL && why.is_allowed && operation == OPERATION_CONNECT) {
        /* Of the list, but past the proxy: HTTP_PROXY and the others name it. */
        d.rule = why.rule;
    }
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

static void
on_refused(void *arg, pid_t keeper, const char *object)
{
    struct process *p = arg;
    struct process *owner = p->is_of_template ? process_pool_find(p->pool, keeper) : p;

    if (owner != NULL) {
        process_witness(owner, DENIAL_BROKER, OPERATION_CONNECT, object);
    }
}

static const struct process_gate *
gate_of(void *arg, pid_t keeper)
{
    struct process *p = arg;
    const struct process *owner = p->is_of_template ? process_pool_find(p->pool, keeper) : p;

    return owner != NULL ? owner->gate : NULL;
}

static void
on_listen_refused(void *arg, pid_t keeper)
{
    struct process *p = arg;
    struct process *owner = p->is_of_template ? process_pool_find(p->pool, keeper) : p;
    char object[] = "an internet socket";
    char rule[] = "network.allow: a server would be reached from outside; Unix sockets may listen";
    char fix[] = "sandbox.network_access: true";
    const struct denial d = {
        .layer = DENIAL_BROKER,
        .confidence = DENIAL_EXACT,
        .operation = "listen",
        .object = object,
        .rule = rule,
        .fix = fix,
    };

    if (owner != NULL && denial_add(&owner->denials, &d) != SY_E_OK) {
        owner->denials.more++;
    }
}

void
process_answer_calls(struct process *p)
{
    const struct broker_place place = {.diag_fd = p->diag_fd, .has_own_tree = p->is_remote};
    const struct broker_host host = {
        .keeper_of = keeper_of,
        .on_refused = on_refused,
        .gate_of = gate_of,
        .on_listen_refused = on_listen_refused,
        .arg = p,
    };

    if (p->listener_fd >= 0 && (p->has_ended || !broker_step(p->listener_fd, &place, &host))) {
        fd_close(&p->listener_fd);
    }
}
