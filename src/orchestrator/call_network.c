/* A call's part in the network of its policy, where that is an allow list. */
#include <poll.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"
#include "orchestrator/call_internal.h"
#include "process/template.h"

static bool
wants_list(const struct orch_call *c)
{
    return sandbox_policy_network(&c->turn.sandbox) == NETWORK_ALLOW_LIST;
}

/* The one way down from a list is to nothing, and it is said. */
static void
tell_off(struct orch_call *c, const char *why)
{
    char note[SY_ERR_MSG_MAX];

    (void)snprintf(note, sizeof(note),
                   "network.allow has no effect here, the network is off: %.150s", why);
    call_add_note(c, note);
}

/* Where the sandbox has a network of its own the proxy listens there. */
static enum sy_code
make_network(const struct orch_call *c, struct sy_error *err)
{
    SY_FD http = -1;
    SY_FD socks = -1;
    struct network *n = NULL;
    enum sy_code rc =
        network_new(&n, &c->turn.sandbox.network_allow, session_judge(c->session), err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (sandbox_plan_has_own_network(c->entry->plan)) {
        template_take_proxy(c->entry->template, &http, &socks);
        rc = http >= 0 && socks >= 0
                 ? network_hand_in(n, &http, &socks, err)
                 : sy_err_set(err, SY_E_SANDBOX, "its sockets did not come from shellyard-launch");
    }
    if (rc != SY_E_OK) {
        network_free(n);
        return rc;
    }
    c->entry->network = n;
    return SY_E_OK;
}

enum sy_code
call_join_network(struct orch_call *c, struct sy_error *err)
{
    struct sy_error why = {0};

    if (!wants_list(c) || c->entry->ready == NULL) {
        return SY_E_OK;
    }
    if (sandbox_plan_network(c->entry->plan) != NETWORK_ALLOW_LIST) {
        tell_off(c, "this kernel, or an outer sandbox, has no seccomp notification");
        return SY_E_OK;
    }
    if (!network_is_built()) {
        tell_off(c, "this program has no network proxy");
        return SY_E_OK;
    }

    enum sy_code rc = SY_E_OK;

    if (c->entry->network == NULL) {
        rc = make_network(c, &why);
    }
    if (rc == SY_E_OK) {
        rc = network_join(c->entry->network, &c->seat, &why);
    }
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK) {
        /* Inside another sandbox there may be no sockets for us. */
        tell_off(c, why.msg);
    }
    return SY_E_OK;
}

static bool
has_run(const struct orch_call *c)
{
    return c->process != NULL && process_result(c->process)->outcome != PROCESS_FAILED &&
           process_result(c->process)->outcome != PROCESS_RUNNING;
}

void
call_leave_network(struct orch_call *c)
{
    if (c->seat == NULL) {
        return;
    }
    network_step(c->seat);

    const struct denial_list *list = network_denials(c->seat);
    const struct strv *hosts = network_hosts(c->seat);
    bool is_whole = strv_add_all(&c->output.network_hosts, strv_view(hosts)) == SY_E_OK;

    for (size_t i = 0; i < list->n; i++) {
        for (uint32_t k = 0; k < list->v[i].count; k++) {
            is_whole = denial_add(&c->output.denials, &list->v[i]) == SY_E_OK && is_whole;
        }
    }
    c->output.denials.more += list->more;
    if (!is_whole) {
        call_add_note(c, "memory ran out while noting what the network proxy did");
    }
    if (c->process != NULL) {
        process_close_gate(c->process);
    }
    if (has_run(c) && !process_has_broker(c->process)) {
        tell_off(c, "an outer sandbox has the process tree's one seccomp listener");
    }
    network_leave(c->seat);
    c->seat = NULL;
}

size_t
call_network_watch(const struct orch_call *c, struct process_watch *out, size_t n)
{
    if (c->seat == NULL || n == 0) {
        return n;
    }
    SY_ASSERT(n < PROCESS_WATCHES);
    /* As long as the process's own, and told from those of other calls by its id. */
    out[n] =
        (struct process_watch){.fd = network_seat_fd(c->seat), .events = POLLIN, .id = out[0].id};
    return n + 1;
}

uint64_t
call_network_deadline_ns(const struct orch_call *c)
{
    return c->seat != NULL ? network_deadline_ns(c->seat) : UINT64_MAX;
}

void
call_network_step(struct orch_call *c)
{
    if (c->seat != NULL) {
        network_step(c->seat);
    }
}
