#include "proxy/allow.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

struct entry {
    char *text;
    struct host host; /* of a wildcard: what follows "*." */
    bool is_below;    /* names below host, not host itself */
    bool is_local;
    bool is_any_port;
    uint16_t port; /* 0: 80 and 443 */
};

struct allow_list {
    size_t n;
    struct entry entries[];
};

bool
allow_entry_is_local(const char *entry, size_t *ret_len)
{
    bool is_local = str_ends(entry, ALLOW_LOCAL_MARK);

    *ret_len = strlen(entry) - (is_local ? strlen(ALLOW_LOCAL_MARK) : 0);
    return is_local;
}

static enum sy_code
wrong(struct sy_error *err, const char *text, const char *reason)
{
    char shown[HOST_SHOWN_MAX];

    host_show(text, strlen(text), shown);
    return sy_err_set(err, SY_E_CONFIG, "network.allow: entry '%s' %s", shown, reason);
}

/* Mistakes that a person makes, each told what to write instead. */
static const char *
mistake(const char *text)
{
    if (text[0] == '\0') {
        return "is empty";
    }
    if (str_eq(text, "*") || str_starts(text, "*:")) {
        return "would allow every host: set sandbox.network_access: true for that";
    }
    if (strstr(text, "://") != NULL) {
        return "is a URL: write the host alone, as in example.com or example.com:8080";
    }
    if (str_starts(text, "**") || str_starts(text, "*.*")) {
        return "has more than one '*': *.example.com already means every name below it";
    }
    if (text[0] == '*' && text[1] != '.') {
        return "has '*' in a label: only a whole '*.' in front is taken, as in *.example.com";
    }
    if (text[0] == '.') {
        return "begins with a dot: write *.example.com for the names below, example.com for itself";
    }
    if (strchr(text + 1, '*') != NULL && !str_ends(text, ":*")) {
        return "has a '*' that is not in front: write *.example.com";
    }
    return NULL;
}

static enum sy_code
parse_host(struct entry *e, const char *s, size_t len, struct sy_error *err)
{
    struct sy_error inner = {.code = SY_E_OK};
    bool has_port = false;

    if (len > 2 && memcmp(s + len - 2, ":*", 2) == 0) {
        e->is_any_port = true;
        len -= 2;
    }
    if (host_parse_authority(&e->host, &e->port, &has_port, s, len, &inner) != SY_E_OK) {
        return sy_err_set(err, SY_E_CONFIG, "network.allow: entry '%s': %s", e->text, inner.msg);
    }
    if (has_port && e->is_any_port) {
        return wrong(err, e->text, "has two ports");
    }
    return SY_E_OK;
}

static enum sy_code
parse_entry(struct entry *e, const char *text, struct sy_error *err)
{
    size_t len = strlen(text);
    const char *reason = mistake(text);

    if (reason != NULL) {
        return wrong(err, text, reason);
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f) {
            return wrong(err, text,
                         (unsigned char)text[i] >= 0x80
                             ? "is not ASCII: write its punycode form (xn--...)"
                             : "has a control character");
        }
    }
    e->text = mem_strdup(text);
    if (e->text == NULL) {
        return sy_err_nomem(err);
    }
    e->is_local = allow_entry_is_local(text, &len);
    e->is_below = text[0] == '*';

    size_t skip = e->is_below ? 2 : 0;
    enum sy_code rc = len > skip
                          ? parse_host(e, text + skip, len - skip, err)
                          : wrong(err, text, "names no host: write example.com or *.example.com");

    if (rc != SY_E_OK) {
        return rc;
    }
    if (e->host.kind == HOST_ADDRESS && (e->is_below || e->is_local)) {
        return wrong(err, text, "is an address: it takes neither '*.' nor 'local'");
    }
    if (e->is_below && !e->is_local && strchr(e->host.text, '.') == NULL) {
        return wrong(err, text, "is a whole top-level domain: name the domains below it");
    }
    return SY_E_OK;
}

enum sy_code
allow_new(struct allow_list **ret, const char *const *entries, size_t n, struct sy_error *err)
{
    if (n > LIMIT_PROXY_ALLOW) {
        return sy_err_set(err, SY_E_CONFIG, "network.allow: %zu entries, at most %u are taken", n,
                          LIMIT_PROXY_ALLOW);
    }

    struct allow_list *list = mem_alloc_zero(1, sizeof(*list) + n * sizeof(list->entries[0]));

    if (list == NULL) {
        return sy_err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        list->n = i + 1;

        enum sy_code rc = parse_entry(&list->entries[i], entries[i], err);

        if (rc != SY_E_OK) {
            allow_free(list);
            return rc;
        }
    }
    *ret = list;
    return SY_E_OK;
}

void
allow_free(struct allow_list *list)
{
    for (size_t i = 0; list != NULL && i < list->n; i++) {
        mem_free(list->entries[i].text);
    }
    mem_free(list);
}

static bool
names(const struct entry *e, const struct host *h)
{
    size_t len = strlen(h->text);
    size_t tail = strlen(e->host.text);

    if (!e->is_below) {
        return host_equal(&e->host, h);
    }
    return h->kind == HOST_NAME && len > tail + 1 && h->text[len - tail - 1] == '.' &&
           strcmp(h->text + len - tail, e->host.text) == 0;
}

static bool
has_port(const struct entry *e, uint16_t port)
{
    if (port == 0 || e->is_any_port) {
        return port != 0;
    }
    return e->port != 0 ? e->port == port : port == 80 || port == 443;
}

/* Whoever needs what a metadata service gives away, or names nobody or everybody, must write that
 * address by themselves. */
static bool
may_be_hinted(const struct host *h)
{
    enum address_class class =
        h->kind == HOST_ADDRESS ? address_classify(&h->address) : ADDRESS_PUBLIC;

    return class == ADDRESS_PUBLIC || address_class_is_local(class);
}

static void
hint(struct judgement *j, const struct host *h, uint16_t port, bool is_local)
{
    char authority[HOST_AUTHORITY_MAX];

    host_authority(h, port == 80 || port == 443 ? 0 : port, authority);
    (void)snprintf(j->hint, sizeof(j->hint), "%s%s", authority, is_local ? ALLOW_LOCAL_MARK : "");
}

void
allow_judge_host(const struct allow_list *list, const struct host *h, uint16_t port,
                 struct judgement *ret)
{
    char authority[HOST_AUTHORITY_MAX];
    const struct entry *found = NULL;
    const struct entry *other_port = NULL;

    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < list->n; i++) {
        const struct entry *e = &list->entries[i];

        if (!names(e, h)) {
            continue;
        }
        if (!has_port(e, port)) {
            other_port = e;
        } else if (found == NULL || (e->is_local && !found->is_local)) {
            found = e;
        }
    }
    if (found != NULL) {
        ret->is_allowed = true;
        ret->is_local = found->is_local;
        ret->rule = found->text;
        return;
    }
    host_authority(h, port, authority);
    if (may_be_hinted(h)) {
        hint(ret, h, port, other_port != NULL && other_port->is_local);
    }
    if (other_port != NULL) {
        (void)snprintf(ret->why, sizeof(ret->why), "port %u of %s is not allowed, other ports are",
                       (unsigned)port, h->text);
    } else {
        (void)snprintf(ret->why, sizeof(ret->why), "%s is not in network.allow", authority);
    }
}

/* Does an entry name this very address? */
static const struct entry *
find_address(const struct allow_list *list, const struct address *a, uint16_t port)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct entry *e = &list->entries[i];

        if (e->host.kind == HOST_ADDRESS && address_equal(&e->host.address, a) &&
            has_port(e, port)) {
            return e;
        }
    }
    return NULL;
}

bool
allow_judge_address(const struct allow_list *list, const struct host *h, uint16_t port,
                    const struct address *a, struct judgement *j)
{
    enum address_class class = address_classify(a);
    const struct entry *e = find_address(list, a, port);
    char text[ADDRESS_TEXT_MAX];

    SY_ASSERT(j->is_allowed);
    if (class == ADDRESS_PUBLIC || e != NULL || (j->is_local && address_class_is_local(class))) {
        return true;
    }
    address_text(a, text);
    memset(j, 0, sizeof(*j));
    (void)snprintf(j->why, sizeof(j->why), "%s resolves to %s, a %s address", h->text, text,
                   address_class_text(class));
    /* Whoever needs what a metadata service gives away must write its address
     * by themselves. */
    if (address_class_is_local(class)) {
        hint(j, h, port, true);
    }
    return false;
}
