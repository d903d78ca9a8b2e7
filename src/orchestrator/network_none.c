#include "base/fd.h"
#include "base/mem.h"
#include "orchestrator/network.h"

/*
 * In the place of network.c where there is no libuv. A list is never more than nothing: without a
 * gate the broker refuses every internet address.
 */
bool
network_is_built(void)
{
    return false;
}

bool
network_is_waiting(void)
{
    return false;
}

enum sy_code
network_new(struct network **ret, const struct strv *allow, const struct assess_by *judge,
            struct sy_error *err)
{
    (void)ret;
    (void)allow;
    (void)judge;
    return sy_err_set(err, SY_E_NOTFOUND, "this program has no network proxy");
}

void
network_free(struct network *n)
{
    SY_ASSERT(n == NULL);
}

enum sy_code
network_hand_in(struct network *n, int *http_fd, int *socks_fd, struct sy_error *err)
{
    (void)n;
    fd_close(http_fd);
    fd_close(socks_fd);
    return sy_err_set(err, SY_E_NOTFOUND, "this program has no network proxy");
}

enum sy_code
network_join(struct network *n, struct network_seat **ret, struct sy_error *err)
{
    (void)n;
    (void)ret;
    return sy_err_set(err, SY_E_NOTFOUND, "this program has no network proxy");
}

void
network_leave(struct network_seat *seat)
{
    SY_ASSERT(seat == NULL);
}

const struct process_gate *
network_gate(const struct network_seat *seat)
{
    (void)seat;
    return NULL;
}

enum sy_code
network_environment(const struct network_seat *seat, struct strv *env, struct sy_error *err)
{
    (void)seat;
    (void)env;
    return sy_err_set(err, SY_E_NOTFOUND, "this program has no network proxy");
}

int
network_seat_fd(const struct network_seat *seat)
{
    (void)seat;
    return -1;
}

uint64_t
network_deadline_ns(const struct network_seat *seat)
{
    (void)seat;
    return UINT64_MAX;
}

void
network_step(struct network_seat *seat)
{
    (void)seat;
}

static const struct denial_list no_denials;
static const struct strv no_hosts;

const struct denial_list *
network_denials(const struct network_seat *seat)
{
    (void)seat;
    return &no_denials;
}

const struct strv *
network_hosts(const struct network_seat *seat)
{
    (void)seat;
    return &no_hosts;
}
