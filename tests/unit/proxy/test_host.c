#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/host.h"

#define LABEL_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Texts with NUL bytes inside: a literal and its length. */
#define T(literal) (literal), sizeof(literal) - 1

static const struct {
    const char *text;
    size_t len;
    const char *normal;
} good[] = {
    {T("example.com"),              "example.com"             },
    {T("EXAMPLE.Com"),              "example.com"             },
    {T("example.com."),             "example.com"             },
    {T("a"),                        "a"                       },
    {T("localhost"),                "localhost"               },
    {T("xn--bcher-kva.example"),    "xn--bcher-kva.example"   },
    {T("my_bucket.s3.example"),     "my_bucket.s3.example"    },
    {T("1.2.3.com"),                "1.2.3.com"               },
    {T("0x7f.example"),             "0x7f.example"            },
    {T("192.0.2.1"),                "192.0.2.1"               },
    {T("0.0.0.0"),                  "0.0.0.0"                 },
    {T("255.255.255.255"),          "255.255.255.255"         },
    {T("[::1]"),                    "::1"                     },
    {T("[2001:DB8:0:0:0:0:0:1]"),   "2001:db8::1"             },
    {T("[64:ff9b::192.0.2.1]"),     "64:ff9b::c000:201"       },
    {T(LABEL_63 ".com"),            LABEL_63 ".com"           },
    {T("allowed.com.evil.example"), "allowed.com.evil.example"},
};

static const struct {
    const char *text;
    size_t len;
    const char *why; /* a part of the sentence */
} refused[] = {
    {T(""),                                                    "empty"          },
    {T("."),                                                   "empty label"    },
    {T(".."),                                                  "empty label"    },
    {T("a..b"),                                                "empty label"    },
    {T(".a"),                                                  "empty label"    },
    {T("a.com.."),                                             "empty label"    },
    {T("allowed.com\0.evil.com"),                              "NUL"            },
    {T("allowed.com\0"),                                       "NUL"            },
    {T("allowed.com%00.evil.com"),                             "'%'"            },
    {T("allowed%2ecom"),                                       "'%'"            },
    {T("allowed.com "),                                        "white space"    },
    {T(" allowed.com"),                                        "white space"    },
    {T("allowed.com\t"),                                       "white space"    },
    {T("allowed.com\r\nX: y"),                                 "control"        },
    {T("allowed.com\n"),                                       "control"        },
    {T("allowed.com\x7f"),                                     "control"        },
    {T("user@allowed.com"),                                    "'@'"            },
    {T("allowed.com@evil.com"),                                "'@'"            },
    {T("allowed.com/"),                                        "scheme and path"},
    {T("allowed.com\\evil.com"),                               "scheme and path"},
    {T("allowed.com?x"),                                       "scheme and path"},
    {T("allowed.com#x"),                                       "scheme and path"},
    {T("allowed.com,evil.com"),                                "character"      },
    {T("*.allowed.com"),                                       "'*'"            },
    {T("b\xc3\xbc"
       "cher.example"),
     "punycode"                                                                 },
    {T("\xe2\x80\x8b"
       "allowed.com"),
     "punycode"                                                                 },
    {T("allowed\xef\xbc\x8e"
       "com"),
     "punycode"                                                                 },
    {T("allowed\xe3\x80\x82"
       "com"),
     "punycode"                                                                 },
    {T(LABEL_63 "a.com"),                                      "63"             },
    {T(LABEL_63 "." LABEL_63 "." LABEL_63 "." LABEL_63),       "253"            },
    {T("-a.com"),                                              "'-'"            },
    {T("a-.com"),                                              "'-'"            },
    {T("a.-b"),                                                "'-'"            },
 /* Not the four plain decimal numbers. */
    {T("127.1"),                                               "IPv4"           },
    {T("2130706433"),                                          "IPv4"           },
    {T("0x7f000001"),                                          "IPv4"           },
    {T("0X7F.1"),                                              "IPv4"           },
    {T("0x"),                                                  "IPv4"           },
    {T("0177.0.0.1"),                                          "IPv4"           },
    {T("127.0.0.01"),                                          "IPv4"           },
    {T("127.0.0.0x1"),                                         "IPv4"           },
    {T("127.0.0.1."),                                          "IPv4"           },
    {T("256.0.0.1"),                                           "IPv4"           },
    {T("1.2.3.4.5"),                                           "IPv4"           },
    {T("1.2.3"),                                               "IPv4"           },
    {T("foo.1"),                                               "IPv4"           },
    {T("1.2.3.1000"),                                          "IPv4"           },
    {T("::1"),                                                 "brackets"       },
    {T("a:80"),                                                "':'"            },
    {T("[::1"),                                                "']'"            },
    {T("["),                                                   "']'"            },
    {T("[]"),                                                  "IPv6"           },
    {T("[::1]x"),                                              "']'"            },
    {T("[fe80::1%eth0]"),                                      "zone"           },
    {T("[fe80::1%25eth0]"),                                    "zone"           },
    {T("[::ffff:127.0.0.1]"),                                  "IPv4 address in"},
    {T("[::ffff:7f00:1]"),                                     "IPv4 address in"},
    {T("[1.2.3.4]"),                                           "IPv6"           },
    {T("[::1\0]"),                                             "IPv6"           },
    {T("[12345::1]"),                                          "IPv6"           },
    {T("[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"), "too long"       },
    {T("[v1.a]"),                                              "IPv6"           },
};

static void
good_hosts_are_normalised_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct host h;

        if (host_parse(&h, good[i].text, good[i].len, &err) != SY_E_OK) {
            fail_msg("%s: %s", good[i].text, err.msg);
        }
        assert_string_equal(h.text, good[i].normal);
    }
}

static void
whatever_two_parsers_could_read_in_two_ways_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct host h;

        if (host_parse(&h, refused[i].text, refused[i].len, &err) != SY_E_PARSE) {
            fail_msg("row %zu '%s' was taken as %s", i, refused[i].text, h.text);
        }
        if (strstr(err.msg, refused[i].why) == NULL) {
            fail_msg("row %zu '%s': '%s' does not say '%s'", i, refused[i].text, err.msg,
                     refused[i].why);
        }
        assert_int_equal(host_parse(&h, refused[i].text, refused[i].len, NULL), SY_E_PARSE);
    }
}

static void
every_byte_but_those_of_names_is_refused(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        char text[] = "aXa";
        struct host h;
        bool is_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';

        text[1] = (char)c;
        assert_int_equal(host_parse(&h, text, 3, NULL) == SY_E_OK, is_name);
    }
}

static void
a_name_of_253_characters_is_taken_and_one_of_254_is_not(void **state)
{
    char text[256];
    struct host h;

    (void)state;
    memset(text, 'a', sizeof(text));
    text[60] = text[120] = text[180] = text[240] = '.';
    assert_int_equal(host_parse(&h, text, 253, NULL), SY_E_OK);
    assert_int_equal(strlen(h.text), 253);
    assert_int_equal(host_parse(&h, text, 254, NULL), SY_E_PARSE);
    text[253] = '.';
    assert_int_equal(host_parse(&h, text, 254, NULL), SY_E_OK);
}

static void
ports_are_plain_numbers_from_1_to_65535(void **state)
{
    static const char *const bad[] = {"",       "0",    "00",  "080",   "65536", "99999",
                                      "100000", "-1",   "+80", " 80",   "80 ",   "0x50",
                                      "8o",     "80.0", "*",   "65535a"};
    struct sy_error err = {.code = SY_E_OK};
    uint16_t port = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(host_parse_port(&port, bad[i], strlen(bad[i]), &err), SY_E_PARSE);
        assert_non_null(strstr(err.msg, "1 to 65535"));
    }
    assert_int_equal(host_parse_port(&port, "1", 1, &err), SY_E_OK);
    assert_int_equal(port, 1);
    assert_int_equal(host_parse_port(&port, "65535", 5, &err), SY_E_OK);
    assert_int_equal(port, 65535);
}

static void
an_authority_is_a_host_and_a_port(void **state)
{
    static const struct {
        const char *text;
        bool is_good;
        bool has_port;
        uint16_t port;
        const char *host;
    } cases[] = {
        {"example.com:80",  true,  true,  80,   "example.com"},
        {"example.com",     true,  false, 7,    "example.com"},
        {"[::1]:8080",      true,  true,  8080, "::1"        },
        {"[::1]",           true,  false, 7,    "::1"        },
        {"::1",             false, false, 0,    ""           },
        {"::1:80",          false, false, 0,    ""           },
        {"a:b:80",          false, false, 0,    ""           },
        {"a:",              false, false, 0,    ""           },
        {":80",             false, false, 0,    ""           },
        {"[::1]80",         false, false, 0,    ""           },
        {"[::1]:80:80",     false, false, 0,    ""           },
        {"u@a:80",          false, false, 0,    ""           },
        {"a:80@evil.com:1", false, false, 0,    ""           },
        {"",                false, false, 0,    ""           },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct host h = {.kind = HOST_NAME};
        uint16_t port = 7;
        bool has_port = false;
        size_t len = strlen(cases[i].text);
        enum sy_code rc = host_parse_authority(&h, &port, &has_port, cases[i].text, len, NULL);

        if ((rc == SY_E_OK) != cases[i].is_good) {
            fail_msg("'%s'", cases[i].text);
        }
        if (rc == SY_E_OK) {
            assert_int_equal(has_port, cases[i].has_port);
            assert_int_equal(port, cases[i].port);
            assert_string_equal(h.text, cases[i].host);
        }
        assert_int_equal(host_parse_authority(&h, &port, NULL, cases[i].text, len, NULL) == SY_E_OK,
                         cases[i].is_good && cases[i].has_port);
    }
}

static void
what_is_shown_of_foreign_bytes_is_printable_and_bounded(void **state)
{
    char out[HOST_SHOWN_MAX];
    char bytes[300];

    (void)state;
    memset(bytes, 0x1b, sizeof(bytes));
    host_show(bytes, sizeof(bytes), out);
    assert_int_equal(strlen(out), 60 * 4 + 3);
    for (const char *s = out; *s != '\0'; s++) {
        assert_in_range(*s, 0x21, 0x7e);
    }
    host_show("a\0'b", 4, out);
    assert_string_equal(out, "a\\x00\\x27b");
}

static void
an_ipv6_authority_has_brackets(void **state)
{
    char out[HOST_AUTHORITY_MAX];
    struct host h;

    (void)state;
    assert_int_equal(host_parse(&h, "[::1]", 5, NULL), SY_E_OK);
    host_authority(&h, 443, out);
    assert_string_equal(out, "[::1]:443");
    host_authority(&h, 0, out);
    assert_string_equal(out, "[::1]");
    assert_int_equal(host_parse(&h, "a.b", 3, NULL), SY_E_OK);
    host_authority(&h, 65535, out);
    assert_string_equal(out, "a.b:65535");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_hosts_are_normalised_once),
        cmocka_unit_test(whatever_two_parsers_could_read_in_two_ways_is_refused),
        cmocka_unit_test(every_byte_but_those_of_names_is_refused),
        cmocka_unit_test(a_name_of_253_characters_is_taken_and_one_of_254_is_not),
        cmocka_unit_test(ports_are_plain_numbers_from_1_to_65535),
        cmocka_unit_test(an_authority_is_a_host_and_a_port),
        cmocka_unit_test(what_is_shown_of_foreign_bytes_is_printable_and_bounded),
        cmocka_unit_test(an_ipv6_authority_has_brackets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
