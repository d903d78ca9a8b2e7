#ifndef SY_PROXY_ADDRESS_H
#define SY_PROXY_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;
struct sockaddr_storage;

/* An IP address; an IPv4 address is in the first four bytes. */
struct address {
    bool is_v6;
    uint8_t ip[16];
};

/* What an address is for. Only public ones may be dialled without being named. */
#define ADDRESS_CLASSES(X)                                                                         \
    X(ADDRESS_PUBLIC, "public")                                                                    \
    X(ADDRESS_PRIVATE, "private")                                                                  \
    X(ADDRESS_LOOPBACK, "loopback")                                                                \
    X(ADDRESS_LINK_LOCAL, "link-local")                                                            \
    X(ADDRESS_BENCHMARK, "benchmarking")                                                           \
    X(ADDRESS_DOCUMENTATION, "documentation")                                                      \
    X(ADDRESS_RESERVED, "reserved")                                                                \
    X(ADDRESS_METADATA, "cloud metadata")                                                          \
    X(ADDRESS_MULTICAST, "multicast")                                                              \
    X(ADDRESS_UNSPECIFIED, "unspecified")

enum address_class {
#define ADDRESS_CLASS_ENUM(name, text) name,
    ADDRESS_CLASSES(ADDRESS_CLASS_ENUM)
#undef ADDRESS_CLASS_ENUM
};

/*
 * The class by the IANA registries. IPv6 forms that carry an IPv4 address
 * (mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP) have the class
 * of what they carry; IPv6 outside 2000::/3 that is nothing else is reserved.
 */
enum address_class address_classify(const struct address *a);
const char *address_class_text(enum address_class c);

/* May an entry marked `local` reach this class? Metadata, multicast and
 * unspecified never: those must be named as the very address. */
bool address_class_is_local(enum address_class c);

bool address_equal(const struct address *a, const struct address *b);
/* Is it an IPv4 address in the mapped form, ::ffff:0:0/96? */
bool address_is_mapped(const struct address *a);

#define ADDRESS_TEXT_MAX 46
/* The one canonical text, IPv6 without brackets. */
void address_text(const struct address *a, char out[ADDRESS_TEXT_MAX]);

/* false: neither IPv4 nor IPv6. */
bool address_from_sockaddr(struct address *ret, const struct sockaddr *sa);
void address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret);

#endif
