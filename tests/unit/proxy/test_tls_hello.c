#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "proxy/tls_hello.h"

/* A ClientHello in the making. */
struct hello {
    uint8_t data[LIMIT_PROXY_HEAD + 64];
    size_t len;
};

static void
add(struct hello *h, const void *bytes, size_t n)
{
    assert_true(h->len + n <= sizeof(h->data));
    memcpy(h->data + h->len, bytes, n);
    h->len += n;
}

static void
add_number(struct hello *h, size_t value, unsigned n)
{
    for (unsigned i = n; i > 0; i--) {
        uint8_t byte = (uint8_t)(value >> (8 * (i - 1)));

        add(h, &byte, 1);
    }
}

/* The extension server_name with one host name of n bytes. */
static void
add_name(struct hello *h, const char *name, size_t n)
{
    add_number(h, 0, 2);
    add_number(h, n + 5, 2);
    add_number(h, n + 3, 2);
    add_number(h, 0, 1);
    add_number(h, n, 2);
    add(h, name, n);
}

/* The handshake message around the extensions. */
static struct hello
message(const struct hello *extensions)
{
    static const uint8_t start[] = {3, 3};
    static const uint8_t middle[] = {0, 0, 4, 0x13, 1, 0x13, 2, 1, 0};
    struct hello h = {.len = 0};
    uint8_t random[32] = {1};

    add_number(&h, 1, 1);
    add_number(&h, 2 + 32 + sizeof(middle) + 2 + extensions->len, 3);
    add(&h, start, sizeof(start));
    add(&h, random, sizeof(random));
    add(&h, middle, sizeof(middle));
    add_number(&h, extensions->len, 2);
    add(&h, extensions->data, extensions->len);
    return h;
}

static struct hello
records(const struct hello *m, size_t piece)
{
    struct hello h = {.len = 0};

    for (size_t at = 0; at < m->len; at += piece) {
        size_t n = m->len - at < piece ? m->len - at : piece;

        add_number(&h, 22, 1);
        add_number(&h, 0x0301, 2);
        add_number(&h, n, 2);
        add(&h, m->data + at, n);
    }
    return h;
}

static struct hello
hello_for(const char *name)
{
    static const uint8_t grease[] = {0x1a, 0x1a, 0, 0};
    struct hello e = {.len = 0};

    add(&e, grease, sizeof(grease));
    if (name != NULL) {
        add_name(&e, name, strlen(name));
    }

    struct hello m = message(&e);

    return records(&m, 16384);
}

static void
assert_bad(const struct hello *h, const char *why)
{
    struct sy_error err = {.code = SY_E_OK};
    struct tls_hello got;

    if (tls_hello_parse(&got, h->data, h->len, &err) != PARSE_BAD || strstr(err.msg, why) == NULL) {
        fail_msg("'%s' does not say '%s'", err.msg, why);
    }
}

static void
the_server_name_is_read_however_bytes_and_records_come(void **state)
{
    struct hello e = {.len = 0};

    (void)state;
    add_name(&e, "WWW.Example.com", 15);

    struct hello m = message(&e);

    for (size_t piece = 1; piece < 40; piece++) {
        struct hello h = records(&m, piece);
        struct tls_hello got;

        for (size_t n = 0; n < h.len; n++) {
            assert_int_equal(tls_hello_parse(&got, h.data, n, NULL), PARSE_MORE);
        }
        assert_int_equal(tls_hello_parse(&got, h.data, h.len, NULL), PARSE_DONE);
        assert_true(got.has_name);
        assert_false(got.has_ech);
        assert_string_equal(got.name.text, "www.example.com");
    }
}

static void
a_hello_without_name_or_extensions_is_whole(void **state)
{
    struct hello h = hello_for(NULL);
    struct hello none = {.len = 0};
    struct tls_hello got;

    (void)state;
    assert_int_equal(tls_hello_parse(&got, h.data, h.len, NULL), PARSE_DONE);
    assert_false(got.has_name);

    struct hello m = message(&none);

    /* SSL 3 and TLS 1.0 may leave out the extensions with their length. */
    m.len -= 2;
    m.data[3] = (uint8_t)(m.data[3] - 2);
    h = records(&m, 16384);
    assert_int_equal(tls_hello_parse(&got, h.data, h.len, NULL), PARSE_DONE);
    assert_false(got.has_name);
}

static void
an_encrypted_inner_hello_is_seen_and_the_outer_name_counts(void **state)
{
    static const uint8_t ech[] = {0xfe, 0x0d, 0, 3, 0, 1, 2};
    struct hello e = {.len = 0};
    struct tls_hello got;

    (void)state;
    add(&e, ech, sizeof(ech));
    add_name(&e, "outer.example", 13);

    struct hello m = message(&e);
    struct hello h = records(&m, 16384);

    assert_int_equal(tls_hello_parse(&got, h.data, h.len, NULL), PARSE_DONE);
    assert_true(got.has_ech);
    assert_string_equal(got.name.text, "outer.example");
}

static void
what_is_not_tls_is_known_from_its_first_bytes(void **state)
{
    static const char *const others[] = {"GET / HTTP/1.1", "SSH-2.0-x", "\x80\x2e\x01\x03",
                                         "\x15\x03\x01",   "\x16\x02",  "\x16\x03\x07",
                                         "PRI *"};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct hello h = {.len = 0};

        add(&h, others[i], strlen(others[i]));
        assert_bad(&h, "not TLS");
    }
}

static void
names_that_are_no_single_host_name_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t len;
    } rows[] = {
        {"a.com\0.evil", 11},
        {"a.com ",       6 },
        {"192.0.2.1",    9 },
        {"[::1]",        5 },
        {"",             0 },
        {"a..b",         4 },
        {"u@a",          3 },
    };
    struct hello e = {.len = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        e.len = 0;
        add_name(&e, rows[i].name, rows[i].len);

        struct hello m = message(&e);
        struct hello h = records(&m, 16384);

        assert_bad(&h, "no host name");
    }
    e.len = 0;
    add_name(&e, "a.com", 5);
    add_name(&e, "evil.com", 8);

    struct hello m = message(&e);
    struct hello h = records(&m, 16384);

    assert_bad(&h, "exactly one");
}

static void
a_list_of_two_names_is_refused(void **state)
{
    static const uint8_t two[] = {0, 0, 0, 10, 0, 8, 0, 0, 1, 'a', 0, 0, 1, 'b'};
    struct hello e = {.len = 0};

    (void)state;
    add(&e, two, sizeof(two));

    struct hello m = message(&e);
    struct hello h = records(&m, 16384);

    assert_bad(&h, "exactly one");
}

static void
lengths_that_do_not_fit_together_are_refused(void **state)
{
    struct hello whole = hello_for("a.example");
    size_t changed = 0;

    (void)state;
    /* Each length of the message made larger and smaller by one. */
    static const size_t at[] = {8, 43, 45, 50, 53, 57, 61, 63, 66};

    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        for (int by = -1; by <= 1; by += 2) {
            struct hello h = whole;
            struct tls_hello got;

            h.data[at[i]] = (uint8_t)(h.data[at[i]] + by);
            changed += tls_hello_parse(&got, h.data, h.len, NULL) != PARSE_DONE ||
                               strcmp(got.name.text, "a.example") != 0
                           ? 1
                           : 0;
        }
    }
    assert_in_range(changed, 14, 18);
}

static void
a_hello_may_not_be_endless(void **state)
{
    struct hello e = {.len = 0};

    (void)state;
    e.len = 17000;

    struct hello m = message(&e);
    struct hello h = records(&m, 16384);

    assert_bad(&h, "16 KiB");

    /* One byte a record: the limit on all bytes ends it. */
    static const uint8_t grease[] = {0x1a, 0x1a, 0x1f, 0x3c};

    memcpy(e.data, grease, sizeof(grease));
    e.len = 8000;
    m = message(&e);
    m.len = 5470;
    h = records(&m, 1);
    assert_true(h.len >= LIMIT_PROXY_HEAD);
    assert_bad(&h, "too many records");
}

static void
the_name_must_be_the_tunnels_host(void **state)
{
    static const struct {
        const char *name; /* NULL: none */
        const char *host;
        bool is_good;
    } rows[] = {
        {"a.example",   "a.example", true },
        {"A.Example",   "a.example", true },
        {"b.example",   "a.example", false},
        {"a.example.b", "a.example", false},
        {NULL,          "a.example", false},
        {NULL,          "192.0.2.1", true },
        {"a.example",   "192.0.2.1", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct hello h = hello_for(rows[i].name);
        struct tls_hello got;
        struct host host;

        assert_int_equal(host_parse(&host, rows[i].host, strlen(rows[i].host), NULL), SY_E_OK);
        assert_int_equal(tls_hello_parse(&got, h.data, h.len, NULL), PARSE_DONE);

        enum sy_code rc = tls_hello_check(&got, &host, &err);

        assert_int_equal(rc, rows[i].is_good ? SY_E_OK : SY_E_DENIED);
        if (rc != SY_E_OK) {
            assert_non_null(strstr(err.msg, rows[i].host));
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_name_is_read_however_bytes_and_records_come),
        cmocka_unit_test(a_hello_without_name_or_extensions_is_whole),
        cmocka_unit_test(an_encrypted_inner_hello_is_seen_and_the_outer_name_counts),
        cmocka_unit_test(what_is_not_tls_is_known_from_its_first_bytes),
        cmocka_unit_test(names_that_are_no_single_host_name_are_refused),
        cmocka_unit_test(a_list_of_two_names_is_refused),
        cmocka_unit_test(lengths_that_do_not_fit_together_are_refused),
        cmocka_unit_test(a_hello_may_not_be_endless),
        cmocka_unit_test(the_name_must_be_the_tunnels_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
