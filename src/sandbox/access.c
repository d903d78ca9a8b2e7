#include "sandbox/access.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proxy/allow.h"

static const char *const kind_names[] = {
    [ACCESS_READ] = "read",
    [ACCESS_WRITE] = "write",
    [ACCESS_CONNECT] = "connect",
    [ACCESS_RUN] = "run",
};

#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

const char *
access_kind_name(enum access_kind kind)
{
    SY_ASSERT((size_t)kind < KINDS);
    return kind_names[kind];
}

bool
access_kind_parse(enum access_kind *ret, const char *name)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (str_eq(name, kind_names[i])) {
            *ret = (enum access_kind)i;
            return true;
        }
    }
    return false;
}

void
access_fini(struct access *a)
{
    mem_free(a->object);
    strv_fini(&a->lifts);
    *a = (struct access){0};
}

enum sy_code
access_copy(struct access *ret, const struct access *from)
{
    struct access copy = {.kind = from->kind, .lifts = {.max = from->lifts.max}};

    copy.object = mem_strdup(from->object);

    enum sy_code rc =
        copy.object == NULL ? SY_E_NOMEM : strv_add_all(&copy.lifts, strv_view(&from->lifts));

    if (rc != SY_E_OK) {
        access_fini(&copy);
        return rc;
    }
    *ret = copy;
    return SY_E_OK;
}

/* A default that a variable names is a pattern of its own, the others are rows of a table. */
static enum sy_code
lift(struct sandbox_policy *p, const char *rule)
{
    for (size_t i = 0; i < p->n_default_deny_read; i++) {
        if (str_eq(p->deny_read.v[i], rule)) {
            strv_remove(&p->deny_read, i);
            p->n_default_deny_read--;
            return SY_E_OK;
        }
    }
    return strv_add_once(&p->allow_read, rule);
}

/* What configuration has as a root stays one of configuration's. */
static enum sy_code
grant_root(struct sandbox_policy *p, const char *path)
{
    size_t before = p->writable_roots.n;
    enum sy_code rc = strv_add_once(&p->writable_roots, path);

    p->n_granted_roots += p->writable_roots.n - before;
    return rc;
}

enum sy_code
access_widen(struct sandbox_policy *p, const struct access *a)
{
    enum sy_code rc = SY_E_OK;

    switch (a->kind) {
    case ACCESS_WRITE:
        return grant_root(p, a->object);
    case ACCESS_CONNECT:
        return strv_add_once(&p->network_allow, a->object);
    case ACCESS_READ:
    case ACCESS_RUN:
        for (size_t i = 0; i < a->lifts.n && rc == SY_E_OK; i++) {
            rc = lift(p, a->lifts.v[i]);
        }
        break;
    }
    return rc;
}

const char *
access_kept_by(const struct sandbox_policy *p, enum access_kind kind)
{
    switch (kind) {
    case ACCESS_WRITE:
        return p->keeps_roots ? "sandbox.writable_roots" : NULL;
    case ACCESS_CONNECT:
        return p->keeps_network ? "network.allow" : NULL;
    case ACCESS_READ:
    case ACCESS_RUN:
        break;
    }
    return p->keeps_reads ? "sandbox.allow_read" : NULL;
}

/* What is told of a grave or refused one; `%s` is not in it. */
struct place {
    const char *path;
    enum access_weight whole; /* it itself */
    enum access_weight below;
};

/* Of the machine's directories; the first that is at or above the object counts. */
static const struct place places[] = {
    {"/proc",      ACCESS_REFUSED, ACCESS_REFUSED},
    {"/sys",       ACCESS_REFUSED, ACCESS_REFUSED},
    {"/dev",       ACCESS_REFUSED, ACCESS_REFUSED},
    {"/run",       ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/etc",       ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/boot",      ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/bin",       ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/sbin",      ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/lib",       ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/lib32",     ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/lib64",     ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/libx32",    ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/usr/local", ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/usr",       ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/var/lib",   ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/var/spool", ACCESS_REFUSED, ACCESS_GRAVE  },
    {"/var/tmp",   ACCESS_GRAVE,   ACCESS_PLAIN  },
    {"/var",       ACCESS_REFUSED, ACCESS_PLAIN  },
    {"/home",      ACCESS_REFUSED, ACCESS_PLAIN  },
    {"/root",      ACCESS_REFUSED, ACCESS_PLAIN  },
    {"/opt",       ACCESS_REFUSED, ACCESS_PLAIN  },
    {"/srv",       ACCESS_GRAVE,   ACCESS_PLAIN  },
    {"/mnt",       ACCESS_GRAVE,   ACCESS_PLAIN  },
    {"/media",     ACCESS_GRAVE,   ACCESS_PLAIN  },
};

static void
say(struct access_verdict *ret, enum access_weight weight, const char *why)
{
    if (weight > ret->weight) {
        ret->weight = weight;
        (void)snprintf(ret->why, sizeof(ret->why), "%s", why);
    }
}

static void
judge_machine(struct access_verdict *ret, const char *path)
{
    if (path[1] == '\0') {
        say(ret, ACCESS_REFUSED, "that is everything: name the directory or file that is needed");
        return;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct place *p = &places[i];

        if (str_eq(path, p->path)) {
            say(ret, p->whole,
                p->whole == ACCESS_REFUSED
                    ? "that is a whole directory of the system: name what in it is needed"
                    : "that is all that is kept there");
            return;
        }
        if (path_is_below(path, p->path)) {
            say(ret, p->below,
                p->below == ACCESS_REFUSED
                    ? "it belongs to the kernel and its devices"
                    : "SYSTEM FILES: programs outside of the sandbox run by what stands there");
            return;
        }
    }
}

static void
judge_homes(struct access_verdict *ret, const char *path, char *const *homes)
{
    for (; homes != NULL && *homes != NULL; homes++) {
        size_t n = strlen(*homes);

        if (path_is_below(*homes, path)) {
            say(ret, ACCESS_REFUSED,
                "that is a whole home directory: name the directory in it that is needed");
        } else if (path_is_below(path, *homes) && path[n] == '/' && path[n + 1] == '.') {
            say(ret, ACCESS_GRAVE,
                "HIDDEN FILES OF A HOME: a person's programs read, and some run, what stands "
                "there");
        }
    }
}

static bool
touches(const char *path, char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        if (path_is_below(path, *list) || path_is_below(*list, path)) {
            return true;
        }
    }
    return false;
}

/* Is a component of the path such a name? A name of several ones (".git/hooks") has its first
 * on the list as well. */
static const char *
protected_component(const char *path, char *const *names)
{
    for (; names != NULL && *names != NULL; names++) {
        size_t n = strlen(*names);

        for (const char *at = path; (at = strchr(at, '/')) != NULL;) {
            at++;
            if (strncmp(at, *names, n) == 0 && (at[n] == '/' || at[n] == '\0')) {
                return *names;
            }
        }
    }
    return NULL;
}

static void
judge_write(struct access_verdict *ret, const struct access *a, const struct access_world *w)
{
    const char *name = protected_component(a->object, w->protected);

    judge_machine(ret, a->object);
    judge_homes(ret, a->object, w->homes);
    if (touches(a->object, w->programs)) {
        say(ret, ACCESS_REFUSED,
            "Shellyard's own programs or hooks are in it, which run outside of the sandbox");
    }
    if (name != NULL && ret->weight < ACCESS_REFUSED) {
        ret->weight = ACCESS_REFUSED;
        (void)snprintf(ret->why, sizeof(ret->why),
                       "'%s' is a protected name; a person lifts that by "
                       "sandbox.unprotected_names",
                       name);
    }
}

static void
judge_host(struct access_verdict *ret, const char *entry)
{
    size_t n = 0;
    bool is_local = allow_entry_is_local(entry, &n);
    struct host h;
    uint16_t port = 0;
    bool has_port = false;

    if (host_parse_authority(&h, &port, &has_port, entry, n, NULL) != SY_E_OK) {
        say(ret, ACCESS_REFUSED, "it names no single host");
        return;
    }
    if (h.kind == HOST_ADDRESS && address_classify(&h.address) != ADDRESS_PUBLIC) {
        ret->weight = ACCESS_GRAVE;
        (void)snprintf(ret->why, sizeof(ret->why), "NOT ON THE INTERNET: a %s address%s",
                       address_class_text(address_classify(&h.address)),
                       address_classify(&h.address) == ADDRESS_METADATA
                           ? ", which gives out credentials of the machine"
                           : "");
    } else if (is_local) {
        say(ret, ACCESS_GRAVE,
            "NOT ON THE INTERNET: the name may lead to this machine or its own network");
    }
}

void
access_judge(struct access_verdict *ret, const struct access *a, const struct access_world *w)
{
    *ret = (struct access_verdict){0};
    switch (a->kind) {
    case ACCESS_WRITE:
        judge_write(ret, a, w);
        break;
    case ACCESS_CONNECT:
        judge_host(ret, a->object);
        return;
    case ACCESS_READ:
    case ACCESS_RUN:
        if (a->lifts.n > 0) {
            say(ret, ACCESS_GRAVE, "SECRETS: it is hidden since such files hold secrets");
        }
        break;
    }
    if (touches(a->object, w->own)) {
        say(ret, ACCESS_REFUSED,
            "Shellyard keeps its rules and answers there: who can write them answers for the "
            "person");
    }
}
