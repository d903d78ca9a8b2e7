#include "review_yard.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"

static const char *const argv[] = {"rm", "-rf", "x", NULL};
static char workspace[] = "/ws";
static struct sandbox_policy policy = {.mode = SANDBOX_WORKSPACE_WRITE, .cwd = workspace};
unsigned yard_woken;

struct review *
yard_review(const struct yard *y, uint64_t ttl_ms)
{
    const struct review_options options = {
        .state_dir = y->dir, .session = "s", .principal = "p", .ttl_ms = ttl_ms};
    struct review *r = NULL;
    struct sy_error err = {0};

    if (review_new(&r, &options, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return r;
}

void
yard_wake(void *arg)
{
    (void)arg;
    yard_woken++;
}

struct question
yard_question(bool may_remember)
{
    return (struct question){
        .tool = "shell",
        .argv = mem_unconst(argv),
        .cwd = "/ws",
        .why = "why",
        .finding = "",
        .class = APPROVAL_CLASS_DANGEROUS,
        .sandbox = &policy,
        .may_remember = may_remember,
    };
}

enum sy_code
yard_ask_as(struct review_ticket **ret, struct review *r, uint64_t hold_ms, bool may_remember,
            struct sy_error *err)
{
    const struct question question = yard_question(may_remember);
    const struct review_question q = {.question = &question, .hold_ms = hold_ms, .wake = yard_wake};

    return review_store_ops.ask(r, ret, &q, err);
}

struct review_ticket *
yard_ask(struct review *r, uint64_t hold_ms)
{
    struct review_ticket *t = NULL;
    struct sy_error err = {0};

    if (yard_ask_as(&t, r, hold_ms, true, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return t;
}

void
yard_turn(struct review *r)
{
    struct pollfd fd = {.fd = review_fd(r), .events = POLLIN};
    uint64_t now = clock_mono_ns();
    uint64_t at = review_deadline_ns(r);
    uint64_t ms = at <= now ? 0 : (at - now) / 1000000 + 1;

    (void)poll(&fd, 1, ms < 1000 ? (int)ms : 1000);
    review_step(r, clock_mono_ns());
}

const char *
yard_until_open(struct review *r, const struct review_ticket *t)
{
    uint64_t end = clock_mono_ns() + YARD_SOON_NS;

    while (review_store_ops.id(t)[0] == '\0' && clock_mono_ns() < end) {
        yard_turn(r);
    }
    assert_true(review_store_ops.id(t)[0] != '\0');
    return review_store_ops.id(t);
}

const struct review_answer *
yard_until_answered(struct review *r, const struct review_ticket *t)
{
    uint64_t end = clock_mono_ns() + YARD_SOON_NS;

    while (review_store_ops.answer(t) == NULL && clock_mono_ns() < end) {
        yard_turn(r);
    }
    assert_non_null(review_store_ops.answer(t));
    return review_store_ops.answer(t);
}
