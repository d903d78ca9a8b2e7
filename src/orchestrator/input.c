/* What a running command is given: input, signals, a size. */
#include "orchestrator/call_internal.h"
#include "process/limited.h"

/* A page that never comes holds nobody up. */
#define PEEK_MS 20

static bool
runs(const struct orch_call *c)
{
    return c->state == ORCH_RUN && c->process != NULL;
}

bool
orch_signal(struct orch_call *c, int signal_number)
{
    return runs(c) && process_signal(c->process, signal_number);
}

void
orch_let_others(struct orch_call *c)
{
    lock_leave(session_lock(c->session), c);
}

enum sy_code
orch_write(struct orch_call *c, const void *bytes, size_t n, struct sy_error *err)
{
    return runs(c) ? process_write(c->process, bytes, n, err)
                   : sy_err_set(err, SY_E_ARG, "the command does not run");
}

size_t
orch_interrupt(struct orch_call *c, const void *bytes, size_t n)
{
    return runs(c) ? process_interrupt(c->process, bytes, n) : 0;
}

size_t
orch_unwritten(const struct orch_call *c)
{
    return runs(c) ? process_unwritten(c->process) : 0;
}

void
orch_close_input(struct orch_call *c)
{
    if (runs(c)) {
        process_close_input(c->process);
    }
}

bool
orch_resize(struct orch_call *c, unsigned rows, unsigned columns)
{
    return runs(c) && process_resize(c->process, rows, columns);
}

int
orch_terminal_fd(const struct orch_call *c)
{
    return runs(c) ? process_terminal_fd(c->process) : -1;
}

int
orch_root_pid(const struct orch_call *c)
{
    return runs(c) ? process_keeper_pid(c->process) : 0;
}

int
orch_peek(int pid, uintptr_t there, void *ret, size_t n)
{
    return limited_read(pid, there, ret, n, PEEK_MS);
}
