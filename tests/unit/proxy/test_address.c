#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "proxy/address.h"

static struct address
parse(const char *text)
{
    struct address a = {.is_v6 = strchr(text, ':') != NULL};

    assert_int_equal(inet_pton(a.is_v6 ? AF_INET6 : AF_INET, text, a.ip), 1);
    return a;
}

static const struct {
    const char *text;
    enum address_class class;
} rows[] = {
    {"1.1.1.1",                        ADDRESS_PUBLIC       },
    {"8.8.8.8",                        ADDRESS_PUBLIC       },
    {"9.255.255.255",                  ADDRESS_PUBLIC       },
    {"11.0.0.0",                       ADDRESS_PUBLIC       },
    {"100.63.255.255",                 ADDRESS_PUBLIC       },
    {"100.128.0.0",                    ADDRESS_PUBLIC       },
    {"126.255.255.255",                ADDRESS_PUBLIC       },
    {"128.0.0.0",                      ADDRESS_PUBLIC       },
    {"169.253.255.255",                ADDRESS_PUBLIC       },
    {"169.255.0.0",                    ADDRESS_PUBLIC       },
    {"172.15.255.255",                 ADDRESS_PUBLIC       },
    {"172.32.0.0",                     ADDRESS_PUBLIC       },
    {"192.167.255.255",                ADDRESS_PUBLIC       },
    {"192.169.0.0",                    ADDRESS_PUBLIC       },
    {"198.17.255.255",                 ADDRESS_PUBLIC       },
    {"198.20.0.0",                     ADDRESS_PUBLIC       },
    {"223.255.255.255",                ADDRESS_PUBLIC       },
    {"10.0.0.0",                       ADDRESS_PRIVATE      },
    {"10.255.255.255",                 ADDRESS_PRIVATE      },
    {"100.64.0.0",                     ADDRESS_PRIVATE      },
    {"100.127.255.255",                ADDRESS_PRIVATE      },
    {"172.16.0.0",                     ADDRESS_PRIVATE      },
    {"172.31.255.255",                 ADDRESS_PRIVATE      },
    {"192.168.0.0",                    ADDRESS_PRIVATE      },
    {"192.168.255.255",                ADDRESS_PRIVATE      },
    {"127.0.0.0",                      ADDRESS_LOOPBACK     },
    {"127.0.0.1",                      ADDRESS_LOOPBACK     },
    {"127.255.255.255",                ADDRESS_LOOPBACK     },
    {"169.254.0.1",                    ADDRESS_LINK_LOCAL   },
    {"169.254.169.253",                ADDRESS_LINK_LOCAL   },
    {"169.254.169.254",                ADDRESS_METADATA     },
    {"169.254.170.2",                  ADDRESS_METADATA     },
    {"169.254.170.23",                 ADDRESS_METADATA     },
    {"100.100.100.200",                ADDRESS_METADATA     },
    {"192.0.0.192",                    ADDRESS_METADATA     },
    {"168.63.129.16",                  ADDRESS_METADATA     },
    {"0.0.0.0",                        ADDRESS_UNSPECIFIED  },
    {"0.1.2.3",                        ADDRESS_UNSPECIFIED  },
    {"192.0.0.8",                      ADDRESS_RESERVED     },
    {"192.0.2.1",                      ADDRESS_DOCUMENTATION},
    {"198.51.100.1",                   ADDRESS_DOCUMENTATION},
    {"203.0.113.255",                  ADDRESS_DOCUMENTATION},
    {"192.88.99.1",                    ADDRESS_RESERVED     },
    {"198.18.0.0",                     ADDRESS_BENCHMARK    },
    {"198.19.255.255",                 ADDRESS_BENCHMARK    },
    {"224.0.0.1",                      ADDRESS_MULTICAST    },
    {"239.255.255.255",                ADDRESS_MULTICAST    },
    {"240.0.0.1",                      ADDRESS_RESERVED     },
    {"255.255.255.255",                ADDRESS_RESERVED     },
    {"2606:4700:4700::1111",           ADDRESS_PUBLIC       },
    {"2001:4860:4860::8888",           ADDRESS_PUBLIC       },
    {"3ffe::1",                        ADDRESS_PUBLIC       },
    {"::",                             ADDRESS_UNSPECIFIED  },
    {"::1",                            ADDRESS_LOOPBACK     },
    {"fe80::1",                        ADDRESS_LINK_LOCAL   },
    {"febf::1",                        ADDRESS_LINK_LOCAL   },
    {"fec0::1",                        ADDRESS_PRIVATE      },
    {"fc00::1",                        ADDRESS_PRIVATE      },
    {"fdff::1",                        ADDRESS_PRIVATE      },
    {"fd00:ec2::254",                  ADDRESS_METADATA     },
    {"fd20:ce::254",                   ADDRESS_METADATA     },
    {"ff02::1",                        ADDRESS_MULTICAST    },
    {"2001:db8::1",                    ADDRESS_DOCUMENTATION},
    {"3fff::1",                        ADDRESS_DOCUMENTATION},
    {"2001:2::1",                      ADDRESS_BENCHMARK    },
    {"2001:10::1",                     ADDRESS_RESERVED     },
    {"100::1",                         ADDRESS_RESERVED     },
    {"4000::1",                        ADDRESS_RESERVED     },
    {"5f00::1",                        ADDRESS_RESERVED     },
    {"e000::1",                        ADDRESS_RESERVED     },
 /* IPv4 inside. */
    {"::ffff:127.0.0.1",               ADDRESS_LOOPBACK     },
    {"::ffff:169.254.169.254",         ADDRESS_METADATA     },
    {"::ffff:8.8.8.8",                 ADDRESS_PUBLIC       },
    {"::ffff:0:10.0.0.1",              ADDRESS_PRIVATE      },
    {"::127.0.0.1",                    ADDRESS_LOOPBACK     },
    {"::2",                            ADDRESS_UNSPECIFIED  },
    {"64:ff9b::8.8.8.8",               ADDRESS_PUBLIC       },
    {"64:ff9b::10.0.0.1",              ADDRESS_PRIVATE      },
    {"64:ff9b::169.254.169.254",       ADDRESS_METADATA     },
    {"64:ff9b:1::8.8.8.8",             ADDRESS_PRIVATE      },
    {"2002:0808:0808::1",              ADDRESS_PUBLIC       },
    {"2002:7f00:0001::1",              ADDRESS_LOOPBACK     },
    {"2002:c0a8:0101::1",              ADDRESS_PRIVATE      },
    {"2001:0:0808:0808:0:0:f7f7:f7f7", ADDRESS_PUBLIC       },
    {"2001:0:0808:0808:0:0:80ff:fffe", ADDRESS_LOOPBACK     }, /* client 127.0.0.1 */
    {"2001:0:a00:1:0:0:f7f7:f7f7",     ADDRESS_PRIVATE      }, /* server 10.0.0.1 */
    {"2606::5efe:10.0.0.1",            ADDRESS_PRIVATE      }, /* ISATAP */
    {"2606::200:5efe:127.0.0.1",       ADDRESS_LOOPBACK     },
    {"2606::5efe:8.8.8.8",             ADDRESS_PUBLIC       },
};

static void
each_address_has_the_class_of_the_registries(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct address a = parse(rows[i].text);
        enum address_class got = address_classify(&a);

        if (got != rows[i].class) {
            fail_msg("%s is %s, expected %s", rows[i].text, address_class_text(got),
                     address_class_text(rows[i].class));
        }
    }
}

static void
local_opens_all_but_public_metadata_multicast_and_unspecified(void **state)
{
    (void)state;
    assert_true(address_class_is_local(ADDRESS_PRIVATE));
    assert_true(address_class_is_local(ADDRESS_LOOPBACK));
    assert_true(address_class_is_local(ADDRESS_LINK_LOCAL));
    assert_true(address_class_is_local(ADDRESS_BENCHMARK));
    assert_true(address_class_is_local(ADDRESS_DOCUMENTATION));
    assert_true(address_class_is_local(ADDRESS_RESERVED));
    assert_false(address_class_is_local(ADDRESS_METADATA));
    assert_false(address_class_is_local(ADDRESS_MULTICAST));
    assert_false(address_class_is_local(ADDRESS_UNSPECIFIED));
    assert_false(address_class_is_local(ADDRESS_PUBLIC));
}

static void
a_socket_address_there_and_back_is_the_same(void **state)
{
    static const char *const texts[] = {"192.0.2.7", "2001:db8::7"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct address a = parse(texts[i]);
        struct address back = {.is_v6 = false};
        struct sockaddr_storage sa;
        char text[ADDRESS_TEXT_MAX];

        address_to_sockaddr(&a, 443, &sa);
        assert_true(address_from_sockaddr(&back, (const struct sockaddr *)&sa));
        assert_true(address_equal(&a, &back));
        address_text(&back, text);
        assert_string_equal(text, texts[i]);
    }

    struct sockaddr other = {.sa_family = AF_UNIX};
    struct address a;

    assert_false(address_from_sockaddr(&a, &other));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_has_the_class_of_the_registries),
        cmocka_unit_test(local_opens_all_but_public_metadata_multicast_and_unspecified),
        cmocka_unit_test(a_socket_address_there_and_back_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
