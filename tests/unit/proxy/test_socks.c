#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/socks.h"

#define B(literal) (const uint8_t *)(literal), sizeof(literal) - 1

static const struct {
    const uint8_t *data;
    size_t len;
    enum parse_result rc;
    size_t used;
    const char *reply;
    size_t reply_len;
} greetings[] = {
    {B("\x05\x01\x00"),             PARSE_DONE, 3, "\x05\x00",                         2},
    {B("\x05\x03\x02\x01\x00rest"), PARSE_DONE, 5, "\x05\x00",                         2},
    {B("\x05"),                     PARSE_MORE, 0, "",                                 0},
    {B("\x05\x02\x00"),             PARSE_MORE, 0, "",                                 0},
    {B("\x05\x01\x02"),             PARSE_BAD,  0, "\x05\xff",                         2},
    {B("\x05\x00"),                 PARSE_BAD,  0, "\x05\xff",                         2},
    {B("\x04\x01\x00\x50"),         PARSE_BAD,  0, "\x00\x5b\x00\x00\x00\x00\x00\x00", 8},
    {B("\x06\x01\x00"),             PARSE_BAD,  0, "",                                 0},
    {B("GET "),                     PARSE_BAD,  0, "",                                 0},
};

static void
a_greeting_without_authentication_is_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(greetings) / sizeof(greetings[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct socks s;

        if (socks_parse_greeting(&s, greetings[i].data, greetings[i].len, &err) !=
            greetings[i].rc) {
            fail_msg("row %zu", i);
        }
        if (greetings[i].rc == PARSE_MORE) {
            continue;
        }
        assert_int_equal(s.reply_len, greetings[i].reply_len);
        assert_memory_equal(s.reply, greetings[i].reply, s.reply_len);
        assert_int_equal(err.msg[0] != '\0', greetings[i].rc == PARSE_BAD);
        if (greetings[i].rc == PARSE_DONE) {
            assert_int_equal(s.used, greetings[i].used);
        }
    }
}

static const struct {
    const uint8_t *data;
    size_t len;
    const char *host;
    uint16_t port;
} good[] = {
    {B("\x05\x01\x00\x03\x0b"
       "example.com\x01\xbb"),
     "example.com",                                                                          443 },
    {B("\x05\x01\x00\x03\x0c"
       "EXAMPLE.com.\x00\x50"),
     "example.com",                                                                          80  },
    {B("\x05\x01\x00\x03\x09"
       "127.0.0.1\x00\x50"),
     "127.0.0.1",                                                                            80  },
    {B("\x05\x01\x00\x01\xc0\x00\x02\x01\x1f\x90"),                           "192.0.2.1",   8080},
    {B("\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb"), "2001:db8::1", 443 },
};

static const struct {
    const uint8_t *data;
    size_t len;
    uint8_t reply;
    const char *why;
} refused[] = {
    {B("\x04\x01"),                                                    1, "SOCKS5"  },
    {B("\x05\x02"),                                                    7, "BIND"    },
    {B("\x05\x03"),                                                    7, "BIND"    },
    {B("\x05\x01\x01"),                                                1, "reserved"},
    {B("\x05\x01\x00\x02"),                                            8, "type"    },
    {B("\x05\x01\x00\x03\x00\x00\x50"),                                2, "empty"   },
    {B("\x05\x01\x00\x03\x0b"
       "a.com\0.evil\x00\x50"),
     2,                                                                   "NUL"     },
    {B("\x05\x01\x00\x03\x06"
       "a.com \x00\x50"),
     2,                                                                   "white"   },
    {B("\x05\x01\x00\x03\x08"
       "u@a.com1\x00\x50"),
     2,                                                                   "'@'"     },
    {B("\x05\x01\x00\x03\x05"
       "127.1\x00\x50"),
     2,                                                                   "IPv4"    },
    {B("\x05\x01\x00\x03\x03"
       "::1\x00\x50"),
     2,                                                                   "brackets"},
    {B("\x05\x01\x00\x03\x05"
       "a\r\nb:\x00\x50"),
     2,                                                                   "control" },
    {B("\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01\0P"), 2, "IPv4"    },
    {B("\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x00"),                    1, "port 0"  },
};

static void
names_and_addresses_are_read_however_the_bytes_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct socks s;

        for (size_t n = 0; n < good[i].len; n++) {
            assert_int_equal(socks_parse_request(&s, good[i].data, n, &err), PARSE_MORE);
        }
        assert_int_equal(socks_parse_request(&s, good[i].data, good[i].len, &err), PARSE_DONE);
        assert_string_equal(s.host.text, good[i].host);
        assert_int_equal(s.port, good[i].port);
        assert_int_equal(s.used, good[i].len);
        assert_int_equal(s.reply_len, 0);
    }
}

static void
anything_else_is_refused_with_its_code_and_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct socks s;

        if (socks_parse_request(&s, refused[i].data, refused[i].len, &err) != PARSE_BAD ||
            strstr(err.msg, refused[i].why) == NULL || s.reply[1] != refused[i].reply) {
            fail_msg("row %zu: reply %u, '%s'", i, s.reply[1], err.msg);
        }
        assert_int_equal(s.reply_len, SOCKS_REPLY_LEN);
        assert_int_equal(s.reply[0], 5);
    }
}

static void
the_longest_name_fits(void **state)
{
    uint8_t data[4 + 1 + 255 + 2] = {5, 1, 0, 3, 255};
    struct socks s;

    (void)state;
    memset(data + 5, 'a', 255);
    for (size_t i = 50; i < 255; i += 50) {
        data[5 + i] = '.';
    }
    assert_int_equal(socks_parse_request(&s, data, sizeof(data), NULL), PARSE_BAD);
    data[4] = 253;
    data[5 + 253] = 1;
    assert_int_equal(socks_parse_request(&s, data, sizeof(data), NULL), PARSE_DONE);
    assert_int_equal(strlen(s.host.text), 253);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_greeting_without_authentication_is_taken),
        cmocka_unit_test(names_and_addresses_are_read_however_the_bytes_come),
        cmocka_unit_test(anything_else_is_refused_with_its_code_and_a_reason),
        cmocka_unit_test(the_longest_name_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
