#include "sbpl_internal.h"

#include <regex.h>
#include <string.h>

#include "base/buf.h"

static bool
is_in(const char *word, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcmp(word, *list) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const operations[] = {"default",
                                         "file*",
                                         "file-ioctl",
                                         "file-link",
                                         "file-map-executable",
                                         "file-read*",
                                         "file-write*",
                                         "file-write-create",
                                         "file-write-data",
                                         "file-write-unlink",
                                         "ipc-posix-sem",
                                         "ipc-posix-shm*",
                                         "ipc-posix-shm-read*",
                                         "mach-lookup",
                                         "network-bind",
                                         "network-inbound",
                                         "network-outbound",
                                         "nvram*",
                                         "process-exec",
                                         "process-fork",
                                         "process-info*",
                                         "pseudo-tty",
                                         "signal",
                                         "sysctl-read",
                                         "system-socket",
                                         "user-preference-read",
                                         NULL};

/* What each filter takes: 's' a string or expression, 'r' the same as a regular
 * expression, 'w' one of the words, 'f' one or more filters, 'a' an end of a
 * connection. `only` is what the operation begins with. */
static const struct {
    const char *name;
    char takes;
    const char *only;
    const char *const *words;
} filters[] = {
    {"literal",               's', "file",             NULL                                               },
    {"subpath",               's', "file",             NULL                                               },
    {"regex",                 'r', "file",             NULL                                               },
    {"extension",             's', "file",             NULL                                               },
    {"vnode-type",            'w', "file",             (const char *const[]){"DIRECTORY", "SYMLINK", NULL}},
    {"require-all",           'f', "",                 NULL                                               },
    {"require-any",           'f', "",                 NULL                                               },
    {"target",                'w', "",                 (const char *const[]){"self", "same-sandbox", NULL}},
    {"sysctl-name",           's', "sysctl-read",      NULL                                               },
    {"sysctl-name-prefix",    's', "sysctl-read",      NULL                                               },
    {"global-name",           's', "mach-lookup",      NULL                                               },
    {"ipc-posix-name",        's', "ipc-posix",        NULL                                               },
    {"ipc-posix-name-prefix", 's', "ipc-posix",        NULL                                               },
    {"ipc-posix-name-regex",  'r', "ipc-posix",        NULL                                               },
    {"socket-domain",         'w', "system-socket",
     (const char *const[]){"AF_UNIX", "AF_ROUTE", "AF_SYSTEM", NULL}                                      },
    {"socket-protocol",       'w', "system-socket",    (const char *const[]){"2", NULL}                   },
    {"local",                 'a', "network-",         NULL                                               },
    {"remote",                'a', "network-outbound", NULL                                               },
};

#define FILTERS (sizeof(filters) / sizeof(filters[0]))

static const char *
param_value(const struct strv *params, const char *name)
{
    for (size_t i = 0; i < params->n; i++) {
        size_t n = strlen(name);

        if (strncmp(params->v[i], name, n) == 0 && params->v[i][n] == '=') {
            return params->v[i] + n + 1;
        }
    }
    return NULL;
}

/* Appends what a string expression stands for; false if it is none. */
bool
// NOLINTNEXTLINE(misc-no-recursion): as deep as a list
sbpl_string(struct buf *out, const struct strv *params, const struct node *n)
{
    if (n->kind == NODE_STRING) {
        return buf_add_str(out, n->text) == SY_E_OK;
    }
    if (n->kind != NODE_LIST || n->head == NULL || n->head->kind != NODE_SYMBOL ||
        n->head->text == NULL) {
        return false;
    }
    if (strcmp(n->head->text, "param") == 0) {
        const struct node *name = n->head->next;
        const char *value = name != NULL && name->kind == NODE_STRING && name->next == NULL
                                ? param_value(params, name->text)
                                : NULL;

        return value != NULL && buf_add_str(out, value) == SY_E_OK;
    }
    if (strcmp(n->head->text, "string-append") != 0 || n->head->next == NULL) {
        return false;
    }
    for (const struct node *part = n->head->next; part != NULL; part = part->next) {
        /* One level of nesting is all that is written. */
        if (part->kind == NODE_LIST && part->head != NULL && part->head->text != NULL &&
            strcmp(part->head->text, "param") != 0) {
            return false;
        }
        if (!sbpl_string(out, params, part)) {
            return false;
        }
    }
    return true;
}

bool
sbpl_regex_fits(const char *pattern, const char *text, bool *ret_is_valid)
{
    regex_t re;
    bool fits = false;

    *ret_is_valid = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) == 0;
    if (*ret_is_valid) {
        fits = regexec(&re, text, 0, NULL, 0) == 0;
        regfree(&re);
    }
    return fits;
}

static void check_filter(struct reader *r, const char *operation, const struct node *n);

/* (remote ip), (remote ip "localhost:8080"), (local unix-socket (subpath ...)) */
static void
check_end(struct reader *r, const struct node *n)
{
    const struct node *arg = n != NULL ? n->next : NULL;

    if (n == NULL || n->kind != NODE_SYMBOL || (arg != NULL && arg->next != NULL)) {
        sbpl_fail(r, "no end of a connection", "");
    } else if (strcmp(n->text, "ip") == 0) {
        bool is_valid = true;

        if (arg != NULL &&
            (arg->kind != NODE_STRING ||
             !sbpl_regex_fits("^(localhost|[*]):([0-9]{1,5}|[*])$", arg->text, &is_valid))) {
            sbpl_fail(r, "no address", arg->text);
        }
    } else if (strcmp(n->text, "unix-socket") == 0) {
        SY_AUTO(buf_fini) struct buf value = {.max = 1U << 16};

        if (arg == NULL || arg->kind != NODE_LIST || arg->head == NULL || arg->head->text == NULL ||
            (strcmp(arg->head->text, "subpath") != 0 &&
             strcmp(arg->head->text, "path-literal") != 0) ||
            arg->head->next == NULL || !sbpl_string(&value, r->params, arg->head->next)) {
            sbpl_fail(r, "no path of a socket", "");
        }
    } else {
        sbpl_fail(r, "unknown end of a connection", n->text);
    }
}

static void
check_string(struct reader *r, const struct node *arg, bool is_regex)
{
    SY_AUTO(buf_fini) struct buf value = {.max = 1U << 20};
    bool is_valid = true;

    if (arg == NULL || arg->next != NULL || !sbpl_string(&value, r->params, arg)) {
        sbpl_fail(r, "no string, or a parameter that nobody gave", arg != NULL ? arg->text : "");
        return;
    }
    if (is_regex) {
        (void)sbpl_regex_fits(buf_view(&value), "", &is_valid);
    }
    if (!is_valid) {
        sbpl_fail(r, "no regular expression", buf_view(&value));
    }
}

static size_t
filter_index(const struct node *n)
{
    size_t i = 0;

    while (i < FILTERS && strcmp(filters[i].name, n->head->text) != 0) {
        i++;
    }
    return i;
}

char
sbpl_filter_takes(const struct node *filter)
{
    return filters[filter_index(filter)].takes;
}

static void
// NOLINTNEXTLINE(misc-no-recursion): as deep as a list
check_arguments(struct reader *r, const char *operation, const struct node *n, size_t i)
{
    const struct node *arg = n->head->next;

    if (filters[i].takes == 'a') {
        check_end(r, arg);
    } else if (filters[i].takes == 'w') {
        if (arg == NULL || arg->kind != NODE_SYMBOL || arg->next != NULL ||
            !is_in(arg->text, filters[i].words)) {
            sbpl_fail(r, "unknown argument of a filter", n->head->text);
        }
    } else if (filters[i].takes == 'f') {
        if (arg == NULL) {
            sbpl_fail(r, "nothing to combine", n->head->text);
        }
        for (; arg != NULL && !r->has_failed; arg = arg->next) {
            check_filter(r, operation, arg);
        }
    } else {
        check_string(r, arg, filters[i].takes == 'r');
    }
}

static void
// NOLINTNEXTLINE(misc-no-recursion): as deep as a list
check_filter(struct reader *r, const char *operation, const struct node *n)
{
    if (n->kind != NODE_LIST || n->head == NULL || n->head->kind != NODE_SYMBOL) {
        sbpl_fail(r, "no filter", n->text);
        return;
    }

    size_t i = filter_index(n);

    if (i == FILTERS || strncmp(operation, filters[i].only, strlen(filters[i].only)) != 0) {
        sbpl_fail(r, "unknown filter", n->head->text);
        return;
    }
    check_arguments(r, operation, n, i);
}

static void
check_rule(struct reader *r, const struct node *n)
{
    const struct node *at = n->kind == NODE_LIST ? n->head : NULL;
    const char *operation = NULL;

    if (at == NULL || at->kind != NODE_SYMBOL ||
        (strcmp(at->text, "allow") != 0 && strcmp(at->text, "deny") != 0)) {
        sbpl_fail(r, "no rule", at != NULL ? at->text : "");
        return;
    }
    for (at = at->next; at != NULL && at->kind == NODE_SYMBOL; at = at->next) {
        operation = at->text;
        if (!is_in(operation, operations)) {
            sbpl_fail(r, "unknown operation", operation);
        }
    }
    if (operation == NULL) {
        sbpl_fail(r, "a rule without operation", "");
        return;
    }
    for (; at != NULL && !r->has_failed; at = at->next) {
        check_filter(r, operation, at);
    }
}

/* (if (defined? 'OPERATION) RULE) */
const struct node *
sbpl_guarded(const struct node *n)
{
    const struct node *test = n->head != NULL ? n->head->next : NULL;

    if (n->head == NULL || n->head->kind != NODE_SYMBOL || strcmp(n->head->text, "if") != 0 ||
        test == NULL || test->kind != NODE_LIST || test->head == NULL ||
        test->head->kind != NODE_SYMBOL || strcmp(test->head->text, "defined?") != 0 ||
        test->head->next == NULL || test->head->next->kind != NODE_QUOTED ||
        !is_in(test->head->next->text, operations) || test->head->next->next != NULL ||
        test->next == NULL || test->next->next != NULL) {
        return NULL;
    }
    return test->next;
}

static bool
is_form(const struct node *n, const char *first, const char *second)
{
    return n != NULL && n->kind == NODE_LIST && n->head != NULL && n->head->kind == NODE_SYMBOL &&
           strcmp(n->head->text, first) == 0 && n->head->next != NULL &&
           n->head->next->kind == NODE_SYMBOL && strcmp(n->head->next->text, second) == 0 &&
           n->head->next->next == NULL;
}

void
sbpl_check(struct reader *r, const struct node *forms)
{
    if (!is_form(forms, "version", "1") || !is_form(forms->next, "deny", "default")) {
        sbpl_fail(r, "does not begin with (version 1) (deny default)", "");
        return;
    }
    for (const struct node *n = forms->next->next; n != NULL && !r->has_failed; n = n->next) {
        const struct node *guarded = sbpl_guarded(n);

        check_rule(r, guarded != NULL ? guarded : n);
    }
}
