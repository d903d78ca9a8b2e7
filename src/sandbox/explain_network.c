/* What an allow list would do: asked of the very code that the proxy asks. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "proxy/allow.h"
#include "sandbox/explain_internal.h"
#include "sandbox/sandbox_internal.h"

void
explain_fix_network(struct sandbox_explanation *ret, const struct sandbox_plan *plan)
{
    (void)snprintf(ret->fix, sizeof(ret->fix), "%s: true",
                   plan->drops_network ? "network_access of the turn" : "sandbox.network_access");
}

static void
set_fix(struct sandbox_explanation *ret, const char *entry)
{
    /* Plain YAML holds no '[', '*' in front, nor ": ". */
    bool is_plain = strpbrk(entry, "[]* ") == NULL;
    int n = snprintf(ret->fix, sizeof(ret->fix), "network.allow: [%s%s%s]", is_plain ? "" : "\"",
                     entry, is_plain ? "" : "\"");

    if (n < 0 || (size_t)n >= sizeof(ret->fix)) {
        ret->fix[0] = '\0';
    }
}

static void
judge(struct sandbox_explanation *ret, const struct allow_list *list, const struct host *h,
      uint16_t port)
{
    struct judgement j;

    allow_judge_host(list, h, port, &j);
    if (j.is_allowed && h->kind == HOST_ADDRESS) {
        (void)allow_judge_address(list, h, port, &h->address, &j);
    }
    ret->is_allowed = j.is_allowed;
    if (j.is_allowed) {
        (void)snprintf(ret->rule, sizeof(ret->rule),
                       "network.allow: %.60s (through the proxy alone)",
                       j.rule != NULL ? j.rule : h->text);
        return;
    }
    (void)snprintf(ret->rule, sizeof(ret->rule), "%.150s", j.why);
    if (j.hint[0] != '\0') {
        set_fix(ret, j.hint);
    }
}

enum sy_code
sandbox_explain_host(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                     const char *object, struct sy_error *err)
{
    struct allow_list *list = NULL;
    struct host h;
    uint16_t port = 0;
    struct sy_error why = {0};
    enum sy_code rc = host_parse_authority(&h, &port, NULL, object, strlen(object), &why);

    if (rc != SY_E_OK) {
        /* No name that the proxy would take. */
        ret->is_allowed = false;
        (void)snprintf(ret->rule, sizeof(ret->rule), "%.150s", why.msg);
        return SY_E_OK;
    }
    rc = allow_new(&list, (const char *const *)strv_view(&plan->network_allow),
                   plan->network_allow.n, err);
    if (rc == SY_E_OK) {
        judge(ret, list, &h, port);
    }
    allow_free(list);
    return rc;
}

static bool
is_loopback(const char *object)
{
    static const char local[] = ".localhost";
    struct host h;
    uint16_t port = 0;
    size_t n = 0;

    if (host_parse_authority(&h, &port, NULL, object, strlen(object), NULL) != SY_E_OK) {
        return false;
    }
    if (h.kind == HOST_ADDRESS) {
        enum address_class class = address_classify(&h.address);

        return class == ADDRESS_LOOPBACK || class == ADDRESS_UNSPECIFIED;
    }
    n = strlen(h.text);
    return str_eq(h.text, local + 1) ||
           (n >= sizeof(local) && str_eq(h.text + n - (sizeof(local) - 1), local));
}

enum sy_code
sandbox_explain_own(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                    const char *object, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (plan->network_allow.n > 0) {
        rc = sandbox_explain_host(ret, plan, object, err);
        if (rc != SY_E_OK || ret->is_allowed || !is_loopback(object)) {
            return rc;
        }
    }
    ret->fix[0] = '\0';
    ret->is_allowed = is_loopback(object);
    if (ret->is_allowed) {
        (void)snprintf(ret->rule, sizeof(ret->rule),
                       "the command's own loopback: servers that it starts itself, and none of "
                       "this machine's");
        return rc;
    }
    (void)snprintf(ret->rule, sizeof(ret->rule),
                   "network access is off: the command's network is its own loopback");
    explain_fix_network(ret, plan);
    return rc;
}
