#include "proxy/address.h"

#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/err.h"

struct range {
    uint8_t ip[16];
    uint8_t bits;
    enum address_class class;
};

/* IANA IPv4 Special-Purpose Address Registry, and what clouds answer metadata
 * on. The first that matches counts. */
static const struct range v4_ranges[] = {
    {{169, 254, 169, 254}, 32, ADDRESS_METADATA     }, /* most clouds */
    {{169, 254, 170, 2},   32, ADDRESS_METADATA     }, /* AWS ECS */
    {{169, 254, 170, 23},  32, ADDRESS_METADATA     }, /* AWS EKS */
    {{100, 100, 100, 200}, 32, ADDRESS_METADATA     }, /* Alibaba */
    {{192, 0, 0, 192},     32, ADDRESS_METADATA     }, /* Oracle */
    {{168, 63, 129, 16},   32, ADDRESS_METADATA     }, /* Azure */
    {{0},                  8,  ADDRESS_UNSPECIFIED  },
    {{10},                 8,  ADDRESS_PRIVATE      },
    {{100, 64},            10, ADDRESS_PRIVATE      },
    {{127},                8,  ADDRESS_LOOPBACK     },
    {{169, 254},           16, ADDRESS_LINK_LOCAL   },
    {{172, 16},            12, ADDRESS_PRIVATE      },
    {{192, 0, 0},          24, ADDRESS_RESERVED     },
    {{192, 0, 2},          24, ADDRESS_DOCUMENTATION},
    {{192, 88, 99},        24, ADDRESS_RESERVED     },
    {{192, 168},           16, ADDRESS_PRIVATE      },
    {{198, 18},            15, ADDRESS_BENCHMARK    },
    {{198, 51, 100},       24, ADDRESS_DOCUMENTATION},
    {{203, 0, 113},        24, ADDRESS_DOCUMENTATION},
    {{224},                4,  ADDRESS_MULTICAST    },
    {{240},                4,  ADDRESS_RESERVED     },
};

static const struct range v6_ranges[] = {
    {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54}, 128, ADDRESS_METADATA     }, /* AWS */
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54}, 128, ADDRESS_METADATA     }, /* Google */
    {{0},                                         128, ADDRESS_UNSPECIFIED  },
    {{[15] = 1},                                  128, ADDRESS_LOOPBACK     },
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01},        48,  ADDRESS_PRIVATE      }, /* local NAT64 */
    {{0x01, 0x00},                                64,  ADDRESS_RESERVED     }, /* discard */
    {{0x20, 0x01, 0x00, 0x02, 0x00, 0x00},        48,  ADDRESS_BENCHMARK    },
    {{0x20, 0x01, 0x0d, 0xb8},                    32,  ADDRESS_DOCUMENTATION},
    {{0x20, 0x01, 0x00, 0x10},                    28,  ADDRESS_RESERVED     }, /* ORCHID */
    {{0x3f, 0xff},                                20,  ADDRESS_DOCUMENTATION},
    {{0xfc},                                      7,   ADDRESS_PRIVATE      },
    {{0xfe, 0x80},                                10,  ADDRESS_LINK_LOCAL   },
    {{0xfe, 0xc0},                                10,  ADDRESS_PRIVATE      }, /* site-local */
    {{0xff},                                      8,   ADDRESS_MULTICAST    },
};

/* Where IPv6 forms carry an IPv4 address. */
struct carrier {
    uint8_t ip[16];
    uint8_t bits;
    uint8_t at;
    uint8_t flip; /* Teredo stores the client's address inverted. */
};

static const struct carrier carriers[] = {
    {{[10] = 0xff, 0xff},      96, 12, 0   }, /* mapped */
    {{[8] = 0xff, 0xff},       96, 12, 0   }, /* translated, RFC 2765 */
    {{0},                      96, 12, 0   }, /* compatible */
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12, 0   }, /* NAT64 */
    {{0x20, 0x02},             16, 2,  0   }, /* 6to4 */
    {{0x20, 0x01, 0x00, 0x00}, 32, 4,  0   }, /* Teredo: its server */
    {{0x20, 0x01, 0x00, 0x00}, 32, 12, 0xff}, /* Teredo: its client */
};

static bool
has_prefix(const uint8_t *ip, const uint8_t *prefix, unsigned bits)
{
    unsigned whole = bits / 8;

    if (memcmp(ip, prefix, whole) != 0) {
        return false;
    }
    if (bits % 8 == 0) {
        return true;
    }
    return ((ip[whole] ^ prefix[whole]) >> (8 - bits % 8)) == 0;
}

static enum address_class
find(const struct range *ranges, size_t n, const uint8_t *ip, enum address_class otherwise)
{
    for (size_t i = 0; i < n; i++) {
        if (has_prefix(ip, ranges[i].ip, ranges[i].bits)) {
            return ranges[i].class;
        }
    }
    return otherwise;
}

static enum address_class
classify_v4(const uint8_t *ip)
{
    return find(v4_ranges, sizeof(v4_ranges) / sizeof(v4_ranges[0]), ip, ADDRESS_PUBLIC);
}

static enum address_class
classify_carried(const uint8_t *ip, const struct carrier *c)
{
    uint8_t carried[16] = {0};

    for (unsigned i = 0; i < 4; i++) {
        carried[i] = ip[c->at + i] ^ c->flip;
    }
    return classify_v4(carried);
}

/* ISATAP: the interface part is [02]00:5efe:a.b.c.d below any prefix. */
static bool
is_isatap(const uint8_t *ip)
{
    return (ip[8] & 0xfdU) == 0 && ip[9] == 0 && ip[10] == 0x5e && ip[11] == 0xfe;
}

static enum address_class
classify_v6(const uint8_t *ip)
{
    static const struct carrier isatap = {.at = 12};
    enum address_class class =
        find(v6_ranges, sizeof(v6_ranges) / sizeof(v6_ranges[0]), ip, ADDRESS_PUBLIC);
    bool is_carrier = false;

    if (class != ADDRESS_PUBLIC) {
        return class;
    }
    for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++) {
        if (has_prefix(ip, carriers[i].ip, carriers[i].bits)) {
            is_carrier = true;
            class = classify_carried(ip, &carriers[i]);
        }
        if (class != ADDRESS_PUBLIC) {
            return class;
        }
    }
    if (is_isatap(ip)) {
        return classify_carried(ip, &isatap);
    }
    /* Global unicast is 2000::/3; the rest has not been given out. */
    return is_carrier || (ip[0] & 0xe0U) == 0x20 ? ADDRESS_PUBLIC : ADDRESS_RESERVED;
}

enum address_class
address_classify(const struct address *a)
{
    return a->is_v6 ? classify_v6(a->ip) : classify_v4(a->ip);
}

const char *
address_class_text(enum address_class c)
{
    static const char *const texts[] = {
#define ADDRESS_CLASS_TEXT(name, text) [name] = (text),
        ADDRESS_CLASSES(ADDRESS_CLASS_TEXT)
#undef ADDRESS_CLASS_TEXT
    };

    return texts[c];
}

bool
address_class_is_local(enum address_class c)
{
    switch (c) {
    case ADDRESS_PRIVATE:
    case ADDRESS_LOOPBACK:
    case ADDRESS_LINK_LOCAL:
    case ADDRESS_BENCHMARK:
    case ADDRESS_DOCUMENTATION:
    case ADDRESS_RESERVED:
        return true;
    case ADDRESS_PUBLIC:
    case ADDRESS_METADATA:
    case ADDRESS_MULTICAST:
    case ADDRESS_UNSPECIFIED:
        break;
    }
    return false;
}

bool
address_equal(const struct address *a, const struct address *b)
{
    return a->is_v6 == b->is_v6 && memcmp(a->ip, b->ip, a->is_v6 ? 16 : 4) == 0;
}

bool
address_is_mapped(const struct address *a)
{
    return a->is_v6 && has_prefix(a->ip, carriers[0].ip, carriers[0].bits);
}

void
address_text(const struct address *a, char out[ADDRESS_TEXT_MAX])
{
    const char *text = inet_ntop(a->is_v6 ? AF_INET6 : AF_INET, a->ip, out, ADDRESS_TEXT_MAX);

    SY_ASSERT(text != NULL);
}

bool
address_from_sockaddr(struct address *ret, const struct sockaddr *sa)
{
    struct address a = {.is_v6 = sa->sa_family == AF_INET6};

    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, sa, sizeof(in));
        memcpy(a.ip, &in.sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, sa, sizeof(in6));
        memcpy(a.ip, &in6.sin6_addr, 16);
    } else {
        return false;
    }
    *ret = a;
    return true;
}

void
address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (a->is_v6) {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

        memcpy(&in6.sin6_addr, a->ip, 16);
        memcpy(ret, &in6, sizeof(in6));
    } else {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

        memcpy(&in.sin_addr, a->ip, 4);
        memcpy(ret, &in, sizeof(in));
    }
}
