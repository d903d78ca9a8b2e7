/*
 * Rulesets with a terminal in them, one for each command that has one. They differ in that alone,
 * so what they grant is kept open while they are made one after the other.
 */
#include <stdint.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "sandbox/linux/ready.h"

#define REST_NS ((uint64_t)LIMIT_GRANT_STOCK_MS * 1000000ULL)

/* The same root once more, if it still is that file. */
static enum sy_code
allow_again(int ruleset_fd, const struct sandbox_ready *ready, size_t i, uint64_t access,
            struct grant_stock *keep, struct sy_error *err)
{
    const struct ready_root *root = &ready->roots[i];
    struct file_id now;
    bool is_dir = false;

    if (root->is_skipped) {
        return SY_E_OK;
    }

    int opened = walk_open(root->real);
    SY_FD fd = opened;

    if (fd < 0 || file_id_of_fd(&now, fd, &is_dir) != 0 || now.dev != root->id.dev ||
        now.ino != root->id.ino || now.mount != root->id.mount) {
        return sy_err_set(err, SY_E_SANDBOX, "'%.120s' was replaced just now: call once more",
                          root->path);
    }

    const uint64_t possible = is_dir ? access : access & landlock_file_rights();
    enum sy_code rc = ready_allow_root(ruleset_fd, fd, access, is_dir, root->path, err);

    if (rc == SY_E_OK && possible != 0 && keep != NULL && grant_stock_take(keep, fd, possible)) {
        (void)fd_take(&fd);
    }
    return rc;
}

static enum sy_code
allow_all(int ruleset_fd, const struct sandbox_ready *ready, const struct sandbox_plan *plan,
          struct grant_stock *keep, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < ready->n_roots; i++) {
        rc =
            allow_again(ruleset_fd, ready, i, plan->rules[i].access & ready->handled_fs, keep, err);
    }
    if (rc == SY_E_OK && (ready->handled_fs & LL_FS_READS) != 0) {
        rc = deny_view_grant(&ready->denied, ruleset_fd, keep, err);
    }
    if (keep != NULL) {
        keep->is_kept = rc == SY_E_OK && !keep->is_short;
        if (!keep->is_kept) {
            grant_stock_close(keep);
        }
    }
    return rc;
}

/*
 * By what is kept open: the files that the roots were when that was opened, as those of the ruleset
 * that serves commands without a terminal. Whether they still are is for sandbox_ready_is_fresh.
 */
static enum sy_code
allow_kept(int ruleset_fd, const struct grant_stock *stock, struct sy_error *err)
{
    long added = grant_stock_grant(stock, ruleset_fd);

    return added < 0 ? sy_err_sys(err, (int)-added, "Landlock rules for a terminal") : SY_E_OK;
}

enum sy_code
sandbox_ready_for_terminal(int *ret_fd, bool *ret_keeps, const struct sandbox_ready *ready,
                           const struct sandbox_plan *plan, int terminal_fd, struct sy_error *err)
{
    struct landlock_ruleset ruleset = plan->ruleset;
    struct grant_stock *stock = ready->stock;
    const uint64_t now_ns = clock_mono_ns();
    const bool was_kept = stock->is_kept;
    const bool is_one_of_many = stock->used_ns != 0 && now_ns - stock->used_ns < REST_NS;

    ruleset.handled_fs = ready->handled_fs;

    SY_FD made = (int)landlock_create(&ruleset);

    if (made < 0) {
        return sy_err_sys(err, -made, "making a Landlock ruleset (ABI %d)", plan->abi);
    }

    enum sy_code rc = was_kept ? allow_kept(made, stock, err)
                               : allow_all(made, ready, plan,
                                           is_one_of_many && !stock->is_short ? stock : NULL, err);

    stock->used_ns = now_ns;
    if (rc == SY_E_OK) {
        rc = ready_allow_root(made, terminal_fd, PLAN_DEVICE_RIGHTS & ready->handled_fs, false,
                              "the command's terminal", err);
    }
    *ret_keeps = stock->is_kept && !was_kept;
    if (rc == SY_E_OK) {
        *ret_fd = fd_take(&made);
    }
    return rc;
}

uint64_t
sandbox_ready_rest(const struct sandbox_ready *ready, uint64_t now_ns)
{
    struct grant_stock *stock = ready->stock;

    if (stock == NULL || !stock->is_kept) {
        return UINT64_MAX;
    }
    if (now_ns < stock->used_ns + REST_NS) {
        return stock->used_ns + REST_NS;
    }
    grant_stock_close(stock);
    return UINT64_MAX;
}
