/* What the kernel answers when it is asked whose a socket is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>

#include <linux/netlink.h>

#include "process/broker_parse.h"

static struct diag_search
take(uint16_t type, int number, size_t cut)
{
    struct {
        struct nlmsghdr header;
        int number;
    } answer = {
        .header = {.nlmsg_len = (uint32_t)(sizeof(answer) - cut),
                   .nlmsg_type = type,
                   .nlmsg_seq = 7},
        .number = number,
    };
    struct diag_search s = {.sequence = 7};

    diag_search_take(&s, &answer, sizeof(answer) - cut);
    return s;
}

static void
a_refusal_is_told_with_its_errno(void **state)
{
    (void)state;

    struct diag_search s = take(NLMSG_ERROR, -ENOENT, 0);

    assert_true(s.is_broken);
    assert_false(s.is_complete);
    assert_int_equal(s.sys, ENOENT);
    /* Without a number, or with one that is none. */
    assert_int_equal(take(NLMSG_ERROR, -ENOENT, sizeof(int)).sys, 0);
    assert_true(take(NLMSG_ERROR, -ENOENT, sizeof(int)).is_broken);
    assert_int_equal(take(NLMSG_ERROR, INT_MIN, 0).sys, 0);
    assert_int_equal(take(NLMSG_ERROR, ENOENT, 0).sys, 0);
    assert_true(take(NLMSG_ERROR, 0, 0).is_broken);
}

static void
an_end_is_whole_unless_it_says_why_not(void **state)
{
    (void)state;
    assert_true(take(NLMSG_DONE, 0, 0).is_complete);
    assert_true(take(NLMSG_DONE, 0, sizeof(int)).is_complete);

    struct diag_search s = take(NLMSG_DONE, -ENOMEM, 0);

    assert_true(s.is_broken);
    assert_false(s.is_complete);
    assert_int_equal(s.sys, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_told_with_its_errno),
        cmocka_unit_test(an_end_is_whole_unless_it_says_why_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
