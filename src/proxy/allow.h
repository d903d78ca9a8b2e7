#ifndef SY_PROXY_ALLOW_H
#define SY_PROXY_ALLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proxy/host.h"

/*
 * The compiled `network.allow`: what may be connected to. Entries:
 *
 *     example.com            that name, ports 80 and 443
 *     *.example.com          every name below it, not itself, ports 80 and 443
 *     example.com:8080       that port only
 *     example.com:*          every port
 *     192.0.2.1  [::1]:8080  that very address, whatever range it is in
 *     db.corp:5432 local     the name may resolve to a private, loopback or
 *                            link-local address
 *
 * An empty list allows nothing. Immutable once made.
 */
struct allow_list;

/* What marks an entry as "local". */
#define ALLOW_LOCAL_MARK " local"
/* Is it marked so? *ret_len: what stands before the mark. */
bool allow_entry_is_local(const char *entry, size_t *ret_len);

/* SY_E_CONFIG: *err names the entry, what is wrong and what would be right. */
enum sy_code allow_new(struct allow_list **ret, const char *const *entries, size_t n,
                       struct sy_error *err) SY_NODISCARD;
void allow_free(struct allow_list *list);

/* What one question gives. Texts are borrowed from the list. */
struct judgement {
    bool is_allowed;
    bool is_local;                     /* by an entry marked local */
    const char *rule;                  /* the entry that allowed it, else NULL */
    char why[SY_ERR_MSG_MAX + 128];    /* one sentence, of a refusal */
    char hint[HOST_AUTHORITY_MAX + 8]; /* the entry that would allow it; "": none does */
};

/* May a request name this host and port? */
void allow_judge_host(const struct allow_list *list, const struct host *h, uint16_t port,
                      struct judgement *ret);

/*
 * May this address be dialled for a host that allow_judge_host allowed? *j is
 * its judgement; it becomes the refusal's if not. Public addresses may; others
 * if an entry names the very address, or the host's entry is local.
 */
bool allow_judge_address(const struct allow_list *list, const struct host *h, uint16_t port,
                         const struct address *a, struct judgement *j);

#endif
