#include "process/broker_parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <linux/netlink.h>
#include <linux/unix_diag.h>

#include "base/str.h"

static struct broker_address
refused(int sys)
{
    return (struct broker_address){.kind = ADDRESS_REFUSED, .sys = sys};
}

static struct broker_address
parse_unix(const char *bytes, size_t n)
{
    size_t before = offsetof(struct sockaddr_un, sun_path);

    if (n <= before || n > sizeof(struct sockaddr_un)) {
        return refused(EINVAL); /* as the kernel; the name has room for no more */
    }
    return (struct broker_address){
        .kind = bytes[before] == '\0' ? ADDRESS_ABSTRACT : ADDRESS_NAMED,
        .name = bytes + before,
        .name_length = n - before,
    };
}

static struct broker_address
parse_inet(sa_family_t family, const void *bytes, size_t n)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct broker_address a = {.kind = ADDRESS_INET};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6 = {0};
    uint32_t ip = 0;

    if (family == AF_INET && n >= sizeof(v4)) {
        memcpy(&v4, bytes, sizeof(v4));
        a.port = ntohs(v4.sin_port);
        ip = ntohl(v4.sin_addr.s_addr);
    } else if (family == AF_INET6 && n >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
        memcpy(&v6, bytes, offsetof(struct sockaddr_in6, sin6_scope_id));
        a.port = ntohs(v6.sin6_port);
        if (memcmp(&v6.sin6_addr, mapped, sizeof(mapped)) == 0) {
            memcpy(&ip, (const uint8_t *)&v6.sin6_addr + sizeof(mapped), sizeof(ip));
            ip = ntohl(ip);
        } else {
            a.is_v6 = true;
        }
    } else {
        return refused(EINVAL);
    }
    a.ip = ip;
    a.is_loopback = ip == INADDR_LOOPBACK;
    a.is_any = a.is_v6 ? IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) : ip == INADDR_ANY;
    a.is_local =
        a.is_any || (a.is_v6 ? IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) : ip >> 24 == IN_LOOPBACKNET);
    return a;
}

struct broker_address
broker_address_parse(const void *bytes, size_t n)
{
    sa_family_t family;
    struct sockaddr_nl to;

    if (n < sizeof(family)) {
        return refused(EINVAL);
    }
    memcpy(&family, bytes, sizeof(family));
    switch (family) {
    case AF_UNIX:
        return parse_unix(bytes, n);
    case AF_NETLINK:
        if (n < sizeof(to)) {
            return refused(EINVAL);
        }
        memcpy(&to, bytes, sizeof(to));
        /* We may have the right to address other programs, which the caller has
         * not: the kernel alone (socket(2) gives NETLINK_ROUTE only). */
        return to.nl_pid == 0 && to.nl_groups == 0
                   ? (struct broker_address){.kind = ADDRESS_NETLINK}
                   : refused(EPERM);
    case AF_INET:
    case AF_INET6:
        return parse_inet(family, bytes, n);
    case AF_UNSPEC:
        return (struct broker_address){.kind = ADDRESS_NONE};
    default:
        return refused(EACCES);
    }
}

static enum sy_code
unix_text(struct buf *out, const char *bytes, size_t n)
{
    size_t before = offsetof(struct sockaddr_un, sun_path);
    bool is_abstract = n > before && bytes[before] == '\0';
    size_t skip = before + (is_abstract ? 1 : 0);
    size_t left = n > skip ? n - skip : 0;
    const char *name = bytes + (left > 0 ? skip : 0);
    enum sy_code rc = buf_add_str(out, is_abstract ? "unix:@" : "unix:");

    if (!is_abstract) {
        left = strnlen(name, left);
    }
    return rc == SY_E_OK ? str_add_visible(out, name, left, 1000) : rc;
}

enum sy_code
broker_address_text(struct buf *out, const void *bytes, size_t n)
{
    sa_family_t family = AF_UNSPEC;
    char text[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (n >= sizeof(family)) {
        memcpy(&family, bytes, sizeof(family));
    }
    if (family == AF_UNIX) {
        return unix_text(out, bytes, n);
    }
    if (family == AF_INET && n >= sizeof(v4)) {
        memcpy(&v4, bytes, sizeof(v4));
        (void)inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
        return buf_addf(out, "%s:%u", text, (unsigned)ntohs(v4.sin_port));
    }
    if (family == AF_INET6 && n >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
        memcpy(&v6, bytes, offsetof(struct sockaddr_in6, sin6_scope_id));
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) { /* it is IPv4 that goes out */
            (void)inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
            return buf_addf(out, "%s:%u", text, (unsigned)ntohs(v6.sin6_port));
        }
        (void)inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
        return buf_addf(out, "[%s]:%u", text, (unsigned)ntohs(v6.sin6_port));
    }
    return buf_addf(out, "family %u", (unsigned)family);
}

/* Does this socket lie where the key says? `attributes` are those of its message. */
static bool
fits(const struct listener_key *key, const char *attributes, size_t left)
{
    struct nlattr a;

    while (left >= sizeof(a)) {
        memcpy(&a, attributes, sizeof(a));
        if (a.nla_len < sizeof(a) || a.nla_len > left) {
            return false;
        }

        const char *value = attributes + sizeof(a);
        size_t size = a.nla_len - sizeof(a);
        size_t step = NLMSG_ALIGN((size_t)a.nla_len);
        struct unix_diag_vfs vfs;

        if (key->name == NULL && a.nla_type == UNIX_DIAG_VFS && size >= sizeof(vfs)) {
            memcpy(&vfs, value, sizeof(vfs));
            return vfs.udiag_vfs_ino == key->ino && vfs.udiag_vfs_dev == key->dev;
        }
        if (key->name != NULL && a.nla_type == UNIX_DIAG_NAME) {
            return size == key->name_length && memcmp(value, key->name, size) == 0;
        }
        if (step >= left) {
            return false;
        }
        left -= step;
        attributes += step;
    }
    return false;
}

static void
take_socket(struct diag_search *s, const char *payload, size_t n)
{
    struct unix_diag_msg m;

    if (n < sizeof(m)) {
        s->is_broken = true;
        return;
    }
    memcpy(&m, payload, sizeof(m));
    if (!fits(s->key, payload + sizeof(m), n - sizeof(m))) {
        return;
    }

    struct listener l = {
        .inode = m.udiag_ino,
        .cookie = (uint64_t)m.udiag_cookie[1] << 32 | m.udiag_cookie[0],
    };

    /* One that moved within the table during the dump may come twice. */
    if (s->n_found == 0 || l.cookie != s->found.cookie || l.inode != s->found.inode) {
        s->n_found++;
        s->found = l;
    }
}

/* The number that its answer begins with, of an end or a refusal; 0: there is none. */
static int
first_number(const struct nlmsghdr *h, const char *at)
{
    int ret = 0;

    if (h->nlmsg_len >= sizeof(*h) + sizeof(ret)) {
        memcpy(&ret, at + sizeof(*h), sizeof(ret));
    }
    return ret;
}

void
diag_search_take(struct diag_search *s, const void *datagram, size_t n)
{
    const char *at = datagram;

    while (n > 0 && !s->is_complete && !s->is_broken) {
        struct nlmsghdr h;

        if (n < sizeof(h)) {
            s->is_broken = true;
            return;
        }
        memcpy(&h, at, sizeof(h));
        if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > n || h.nlmsg_seq != s->sequence ||
            (h.nlmsg_flags & NLM_F_DUMP_INTR) != 0 || h.nlmsg_type == NLMSG_OVERRUN) {
            s->is_broken = true;
            return;
        }
        if (h.nlmsg_type == NLMSG_ERROR) {
            int refused = first_number(&h, at);

            s->is_broken = true;
            s->sys = refused < 0 && refused > INT_MIN ? -refused : 0;
            return;
        }
        if (h.nlmsg_type == NLMSG_DONE) {
            /* What made the kernel stop, if it says so. */
            s->is_complete = first_number(&h, at) == 0;
            s->is_broken = !s->is_complete;
            return;
        }
        if (h.nlmsg_type != NLMSG_NOOP) {
            take_socket(s, at + NLMSG_HDRLEN, h.nlmsg_len - NLMSG_HDRLEN);
        }

        size_t step = NLMSG_ALIGN((size_t)h.nlmsg_len);

        step = step < n ? step : n;
        at += step;
        n -= step;
    }
}

/* A decimal number up to `max` at *at, which is moved behind it. */
static bool
take_number(const char **at, uint64_t max, uint64_t *ret)
{
    const char *c = *at;
    uint64_t value = 0;

    if (*c < '0' || *c > '9') {
        return false;
    }
    for (; *c >= '0' && *c <= '9'; c++) {
        uint64_t digit = (uint64_t)(*c - '0');

        if (value > (max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *at = c;
    *ret = value;
    return true;
}

pid_t
proc_status_number(const char *text, const char *field)
{
    size_t n = strlen(field);
    uint64_t number = 0;

    for (const char *line = text; line != NULL;) {
        const char *end = strchr(line, '\n');

        if (strncmp(line, field, n) == 0) {
            line += n;
            line += strspn(line, " \t");
            return take_number(&line, INT32_MAX, &number) && (*line == '\n' || *line == '\0')
                       ? (pid_t)number
                       : 0;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return 0;
}

bool
proc_mount_device(const char *text, uint64_t mount_id, uint32_t *ret)
{
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        const char *at = line;
        uint64_t id = 0;
        uint64_t parent = 0;
        uint64_t major = 0;
        uint64_t minor = 0;

        if (take_number(&at, UINT32_MAX, &id) && id == mount_id) {
            bool is_right = *at++ == ' ' && take_number(&at, UINT32_MAX, &parent) && *at++ == ' ' &&
                            take_number(&at, 0xfff, &major) && *at++ == ':' &&
                            take_number(&at, 0xfffff, &minor) && *at == ' ';

            if (is_right) {
                *ret = (uint32_t)(major << 20 | minor);
            }
            return is_right;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return false;
}

size_t
proc_children(const char *text, pid_t *ret, size_t max)
{
    size_t n = 0;
    uint64_t child = 0;

    for (const char *at = text; n < max && take_number(&at, INT32_MAX, &child); at++) {
        if (child > 0) {
            ret[n++] = (pid_t)child;
        }
        if (*at != ' ') {
            break;
        }
    }
    return n;
}
