#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "proxy/allow.h"

static const char *const entries[] = {
    "example.com",        "*.Example.org",      "api.test:8080",  "any.test:*",
    "192.0.2.1",          "[2001:db8::1]:8443", "127.0.0.1:5432", "169.254.169.254:80",
    "db.corp:5432 local", "*.internal local",   "plain.internal",
};

#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

static struct allow_list *
make(const char *const *list, size_t n)
{
    struct sy_error err = {.code = SY_E_OK};
    struct allow_list *ret = NULL;

    if (allow_new(&ret, list, n, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return ret;
}

static struct host
host(const char *text)
{
    struct host h;

    assert_int_equal(host_parse(&h, text, strlen(text), NULL), SY_E_OK);
    return h;
}

static void
a_list_allows_what_it_names_and_nothing_else(void **state)
{
    static const struct {
        const char *host;
        uint16_t port;
        bool is_allowed;
        const char *hint;
    } rows[] = {
        {"example.com",           80,    true,  ""                     },
        {"example.com",           443,   true,  ""                     },
        {"EXAMPLE.COM.",          443,   true,  ""                     },
        {"example.com",           22,    false, "example.com:22"       },
        {"example.com",           0,     false, "example.com"          },
        {"www.example.com",       443,   false, "www.example.com"      },
        {"example.com.evil.test", 443,   false, "example.com.evil.test"},
        {"notexample.com",        443,   false, "notexample.com"       },
        {"com",                   443,   false, "com"                  },
        {"a.example.org",         443,   true,  ""                     },
        {"a.b.c.example.org",     80,    true,  ""                     },
        {"example.org",           443,   false, "example.org"          },
        {"aexample.org",          443,   false, "aexample.org"         },
        {"api.test",              8080,  true,  ""                     },
        {"api.test",              443,   false, "api.test"             },
        {"any.test",              1,     true,  ""                     },
        {"any.test",              65535, true,  ""                     },
        {"192.0.2.1",             443,   true,  ""                     },
        {"192.0.2.2",             443,   false, "192.0.2.2"            },
        {"[2001:db8::1]",         8443,  true,  ""                     },
        {"[2001:db8:0::1]",       8443,  true,  ""                     },
        {"[2001:db8::1]",         443,   false, "[2001:db8::1]"        },
        {"[2001:db8::2]",         8443,  false, "[2001:db8::2]:8443"   },
        {"db.corp",               5432,  true,  ""                     },
        {"db.corp",               22,    false, "db.corp:22 local"     },
        {"x.internal",            443,   true,  ""                     },
        {"evil.test",             8443,  false, "evil.test:8443"       },
    };
    struct allow_list *list = make(entries, ENTRIES);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct host h = host(rows[i].host);
        struct judgement j;

        allow_judge_host(list, &h, rows[i].port, &j);
        if (j.is_allowed != rows[i].is_allowed || strcmp(j.hint, rows[i].hint) != 0) {
            fail_msg("%s:%u: %d, hint '%s'", rows[i].host, rows[i].port, j.is_allowed, j.hint);
        }
        assert_int_equal(j.rule != NULL, j.is_allowed);
        assert_int_equal(j.why[0] != '\0', !j.is_allowed);
    }
    allow_free(list);
}

static void
the_hint_is_an_entry_that_allows_it(void **state)
{
    static const char *const hosts[] = {"evil.test", "[2001:db8::7]", "198.51.100.7", "db.corp"};
    struct allow_list *list = make(entries, ENTRIES);

    (void)state;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        for (uint16_t port = 79; port < 82; port++) {
            struct host h = host(hosts[i]);
            struct judgement j;

            allow_judge_host(list, &h, port, &j);
            assert_false(j.is_allowed);

            const char *const hinted[] = {j.hint};
            struct allow_list *wider = make(hinted, 1);
            struct judgement after;

            allow_judge_host(wider, &h, port, &after);
            assert_true(after.is_allowed);
            allow_free(wider);
        }
    }
    allow_free(list);
}

static void
no_hint_leads_to_a_metadata_service(void **state)
{
    static const char *const never[] = {"169.254.169.254", "[fd00:ec2::254]", "0.0.0.0", "[::]",
                                        "224.0.0.1"};
    static const char *const control[] = {"169.254.1.1", "127.0.0.1", "10.0.0.1", "198.51.100.7"};
    struct allow_list *list = make(NULL, 0);
    struct judgement j;

    (void)state;
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        struct host h = host(never[i]);

        allow_judge_host(list, &h, 80, &j);
        assert_false(j.is_allowed);
        assert_string_equal(j.hint, "");
    }
    for (size_t i = 0; i < sizeof(control) / sizeof(control[0]); i++) {
        struct host h = host(control[i]);

        allow_judge_host(list, &h, 80, &j);
        assert_string_equal(j.hint, control[i]);
    }
    allow_free(list);
}

static void
an_empty_list_allows_nothing(void **state)
{
    struct allow_list *list = make(NULL, 0);
    struct host h = host("example.com");
    struct judgement j;

    (void)state;
    allow_judge_host(list, &h, 443, &j);
    assert_false(j.is_allowed);
    assert_string_equal(j.why, "example.com:443 is not in network.allow");
    allow_free(list);
}

static void
an_address_is_dialled_if_public_named_or_local(void **state)
{
    /* In the order in which one reads it. NOLINTNEXTLINE(*Padding) */
    static const struct {
        const char *host;
        uint16_t port;
        const char *address;
        bool is_allowed;
        const char *hint;
    } rows[] = {
        {"example.com",    443,  "[2606:4700::1]",       true,  ""                   },
        {"example.com",    443,  "8.8.8.8",              true,  ""                   },
        {"example.com",    443,  "10.0.0.1",             false, "example.com local"  },
        {"example.com",    443,  "127.0.0.1",            false, "example.com local"  },
        {"example.com",    443,  "[::1]",                false, "example.com local"  },
        {"example.com",    443,  "[64:ff9b::7f00:1]",    false, "example.com local"  },
        {"example.com",    80,   "169.254.169.254",      true,  ""                   },
        {"example.com",    443,  "169.254.169.254",      false, ""                   },
        {"example.com",    443,  "192.0.2.1",            true,  ""                   },
        {"example.com",    443,  "0.0.0.0",              false, ""                   },
        {"example.com",    443,  "224.0.0.1",            false, ""                   },
        {"db.corp",        5432, "10.1.2.3",             true,  ""                   },
        {"db.corp",        5432, "127.0.0.1",            true,  ""                   },
        {"db.corp",        5432, "[fd00::1]",            true,  ""                   },
        {"db.corp",        5432, "169.254.169.254",      false, ""                   },
        {"db.corp",        5432, "[fd00:ec2::254]",      false, ""                   },
        {"db.corp",        5432, "[64:ff9b::a9fe:a9fe]", false, ""                   },
        {"x.internal",     443,  "192.168.1.1",          true,  ""                   },
        {"plain.internal", 443,  "192.168.1.1",          true,  ""                   },
        {"127.0.0.1",      5432, "127.0.0.1",            true,  ""                   },
        {"any.test",       5432, "127.0.0.1",            true,  ""                   },
        {"any.test",       5433, "127.0.0.1",            false, "any.test:5433 local"},
    };
    struct allow_list *list = make(entries, ENTRIES);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct host h = host(rows[i].host);
        struct host a = host(rows[i].address);
        struct judgement j;

        allow_judge_host(list, &h, rows[i].port, &j);
        assert_true(j.is_allowed);

        bool got = allow_judge_address(list, &h, rows[i].port, &a.address, &j);

        if (got != rows[i].is_allowed || strcmp(j.hint, rows[i].hint) != 0) {
            fail_msg("%s:%u at %s: %d, hint '%s'", rows[i].host, rows[i].port, rows[i].address, got,
                     j.hint);
        }
        assert_int_equal(j.is_allowed, got);
    }
    allow_free(list);
}

static void
a_bad_entry_is_an_error_that_names_it_and_says_what_would_be_right(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {
        {"",                    "empty"               },
        {"*",                   "network_access: true"},
        {"*:443",               "network_access: true"},
        {"* local",             "'*'"                 },
        {"*.",                  "*.example.com"       },
        {"**.example.com",      "more than one"       },
        {"*.*.example.com",     "more than one"       },
        {"*example.com",        "*.example.com"       },
        {"a.*.example.com",     "*.example.com"       },
        {"example.*",           "*.example.com"       },
        {".example.com",        "*.example.com"       },
        {"*.com",               "top-level"           },
        {"https://example.com", "URL"                 },
        {"example.com/path",    "path"                },
        {"user@example.com",    "'@'"                 },
        {"example.com:0",       "1 to 65535"          },
        {"example.com:65536",   "1 to 65535"          },
        {"example.com:80:80",   "':'"                 },
        {"example.com:80:*",    "two ports"           },
        {"example.com:",        "1 to 65535"          },
        {"example.com ",        "white space"         },
        {"example.com  local",  "white space"         },
        {" example.com",        "white space"         },
        {"example.com LOCAL",   "white space"         },
        {" local",              "names no host"       },
        {"exa mple.com",        "white space"         },
        {"example.com\n",       "control"             },
        {"b\xc3\xbc"
         "cher.de",    "punycode"            },
        {"::1",                 "brackets"            },
        {"10.0.0.0/8",          "path"                },
        {"127.1",               "IPv4"                },
        {"[::ffff:10.0.0.1]",   "IPv4 address itself" },
        {"10.0.0.1 local",      "address"             },
        {"*.10.0.0.1",          "address"             },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const list[] = {"good.example", rows[i].text};
        struct sy_error err = {.code = SY_E_OK};
        struct allow_list *ret = NULL;

        assert_int_equal(mem_live(), 0);
        if (allow_new(&ret, list, 2, &err) != SY_E_CONFIG) {
            fail_msg("'%s' was taken", rows[i].text);
        }
        if (strstr(err.msg, rows[i].why) == NULL || strstr(err.msg, "network.allow") == NULL) {
            fail_msg("'%s': '%s' does not say '%s'", rows[i].text, err.msg, rows[i].why);
        }
        assert_null(ret);
        assert_int_equal(mem_live(), 0);
    }
}

static void
too_many_entries_are_an_error(void **state)
{
    const char *list[LIMIT_PROXY_ALLOW + 1];
    struct sy_error err = {.code = SY_E_OK};
    struct allow_list *ret = NULL;

    (void)state;
    for (size_t i = 0; i < LIMIT_PROXY_ALLOW + 1; i++) {
        list[i] = "example.com";
    }
    assert_int_equal(allow_new(&ret, list, LIMIT_PROXY_ALLOW + 1, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "1024"));
    assert_int_equal(allow_new(&ret, list, LIMIT_PROXY_ALLOW, &err), SY_E_OK);
    allow_free(ret);
}

static enum sy_code
make_and_free(void *arg)
{
    struct allow_list *list = NULL;
    enum sy_code rc = allow_new(&list, entries, ENTRIES, NULL);

    (void)arg;
    allow_free(list);
    return rc;
}

static void
running_out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    fault_run(make_and_free, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_allows_what_it_names_and_nothing_else),
        cmocka_unit_test(the_hint_is_an_entry_that_allows_it),
        cmocka_unit_test(no_hint_leads_to_a_metadata_service),
        cmocka_unit_test(an_empty_list_allows_nothing),
        cmocka_unit_test(an_address_is_dialled_if_public_named_or_local),
        cmocka_unit_test(a_bad_entry_is_an_error_that_names_it_and_says_what_would_be_right),
        cmocka_unit_test(too_many_entries_are_an_error),
        cmocka_unit_test(running_out_of_memory_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
