#include "sbpl_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void
// NOLINTNEXTLINE(misc-no-recursion): as deep as a list
node_free(struct node *n)
{
    while (n != NULL) {
        struct node *next = n->next;

        node_free(n->head);
        mem_free(n->text);
        mem_free(n);
        n = next;
    }
}

struct node *
sbpl_fail(struct reader *r, const char *what, const char *detail)
{
    if (!r->has_failed) {
        (void)snprintf(r->why, 256, "%s '%.80s' before '%.60s'", what, detail, r->at);
    }
    r->has_failed = true;
    return NULL;
}

static struct node *
node_new(enum node_kind kind, const char *text, size_t n)
{
    struct node *node = mem_alloc_zero(1, sizeof(*node));

    node->kind = kind;
    node->text = mem_strndup(text, n);
    return node;
}

static void
skip_blanks(struct reader *r)
{
    for (;;) {
        r->at += strspn(r->at, " \n");
        if (*r->at != ';') {
            return;
        }
        r->at += strcspn(r->at, "\n");
    }
}

/* After the opening quote. A raw one (#"...") takes backslashes as they are. */
static struct node *
read_string(struct reader *r, bool is_raw)
{
    struct buf text = {.max = 1U << 16};

    for (; *r->at != '"'; r->at++) {
        if (*r->at == '\0') {
            buf_fini(&text);
            return sbpl_fail(r, "a string is not closed", "");
        }
        if (*r->at == '\\' && !is_raw) {
            r->at++;
            if (*r->at != '"' && *r->at != '\\') {
                buf_fini(&text);
                return sbpl_fail(r, "an unknown escape", "");
            }
        }
        if (buf_add_char(&text, *r->at) != SY_E_OK) {
            buf_fini(&text);
            return sbpl_fail(r, "a string is too long", "");
        }
    }
    r->at++;

    struct node *node = node_new(NODE_STRING, buf_view(&text), text.len);

    buf_fini(&text);
    return node;
}

static struct node *
read_word(struct reader *r)
{
    size_t n = strcspn(r->at, " \n();\"'");
    struct node *node = NULL;

    if (n == 0) {
        return sbpl_fail(r, "no word", "");
    }
    node = node_new(NODE_SYMBOL, r->at, n);
    r->at += n;
    return node;
}

/* One that is not a list. */
static struct node *
read_atom(struct reader *r)
{
    if (r->at[0] == '#' && r->at[1] == '"') {
        r->at += 2;
        return read_string(r, true);
    }
    if (*r->at == '"') {
        r->at++;
        return read_string(r, false);
    }
    if (*r->at == '\'') {
        r->at++;

        struct node *node = read_word(r);

        if (node != NULL) {
            node->kind = NODE_QUOTED;
        }
        return node;
    }
    return read_word(r);
}

/* Lists nest eight deep in what we write. */
#define DEPTH_MAX 16

/* Until the end of the text (depth 0) or the closing parenthesis. */
static struct node *
read_items(struct reader *r)
{
    struct node root = {.kind = NODE_LIST};
    struct node *stack[DEPTH_MAX] = {&root};
    struct node **tails[DEPTH_MAX] = {&root.head};
    size_t depth = 0;

    for (skip_blanks(r); !r->has_failed && *r->at != '\0'; skip_blanks(r)) {
        struct node *node = NULL;

        if (*r->at == ')') {
            if (depth == 0) {
                sbpl_fail(r, "a parenthesis too many", "");
                break;
            }
            depth--;
            r->at++;
            continue;
        }
        if (*r->at != '(') {
            node = read_atom(r);
            if (node == NULL) {
                break;
            }
            *tails[depth] = node;
            tails[depth] = &node->next;
            continue;
        }
        if (depth + 1 == DEPTH_MAX) {
            sbpl_fail(r, "lists too deep", "");
            break;
        }
        r->at++;
        node = node_new(NODE_LIST, "", 0);
        *tails[depth] = node;
        tails[depth] = &node->next;
        depth++;
        stack[depth] = node;
        tails[depth] = &stack[depth]->head;
    }
    if (depth > 0) {
        sbpl_fail(r, "a list is not closed", "");
    }
    return root.head;
}

struct sbpl *
sbpl_read(const char *text, const struct strv *params,
          char why[256]) // NOLINT(readability-non-const-parameter): written by the reader
{
    struct reader r = {.at = text, .params = params, .why = why};
    struct node *forms = read_items(&r);

    if (!r.has_failed) {
        sbpl_check(&r, forms);
    }
    if (r.has_failed) {
        node_free(forms);
        return NULL;
    }

    struct sbpl *p = mem_alloc_zero(1, sizeof(*p));

    p->forms = forms;
    p->params = params;
    return p;
}

void
sbpl_free(struct sbpl *p)
{
    if (p != NULL) {
        node_free(p->forms);
        mem_free(p);
    }
}

static bool
value_fits(const char *filter, const char *value, const struct sbpl_question *q)
{
    const char *text = q->path != NULL ? q->path : q->name;
    bool is_valid = false;

    if (text == NULL || strcmp(filter, "extension") == 0) {
        return false;
    }
    if (strcmp(filter, "subpath") == 0) {
        return path_is_below(text, value);
    }
    if (str_ends(filter, "regex")) {
        return sbpl_regex_fits(value, text, &is_valid);
    }
    if (str_ends(filter, "prefix")) {
        return str_starts(text, value);
    }
    return strcmp(text, value) == 0;
}

static bool
end_fits(const struct sbpl *p, const struct node *n, const struct sbpl_question *q)
{
    SY_AUTO(buf_fini) struct buf value = {.max = 1U << 16};

    if (strcmp(n->text, "ip") == 0) {
        return q->address != NULL && (n->next == NULL || strcmp(n->next->text, q->address) == 0);
    }
    if (q->path == NULL || !sbpl_string(&value, p->params, n->next->head->next)) {
        return false;
    }
    return value_fits(n->next->head->text, buf_view(&value), q);
}

static bool filter_fits(const struct sbpl *p, const struct node *n, const struct sbpl_question *q);

static bool
// NOLINTNEXTLINE(misc-no-recursion): as deep as a list
any_fits(const struct sbpl *p, const struct node *n, const struct sbpl_question *q, bool wants_all)
{
    for (; n != NULL; n = n->next) {
        if (filter_fits(p, n, q) != wants_all) {
            return !wants_all;
        }
    }
    return wants_all;
}

static bool
// NOLINTNEXTLINE(misc-no-recursion): as deep as a list
filter_fits(const struct sbpl *p, const struct node *n, const struct sbpl_question *q)
{
    const char *name = n->head->text;
    const struct node *arg = n->head->next;
    SY_AUTO(buf_fini) struct buf value = {.max = 1U << 20};

    switch (sbpl_filter_takes(n)) {
    case 'f':
        return any_fits(p, arg, q, strcmp(name, "require-all") == 0);
    case 'a':
        return end_fits(p, arg, q);
    case 'w':
        return strcmp(name, "vnode-type") != 0 ||
               strcmp(arg->text, q->vnode != NULL ? q->vnode : "REGULAR-FILE") == 0;
    default:
        return sbpl_string(&value, p->params, arg) && value_fits(name, buf_view(&value), q);
    }
}

static bool
operation_fits(const char *rule, const char *asked)
{
    size_t n = strlen(rule);

    return rule[n - 1] == '*' ? strncmp(rule, asked, n - 1) == 0 : strcmp(rule, asked) == 0;
}

static bool
rule_fits(const struct sbpl *p, const struct node *rule, const struct sbpl_question *q)
{
    const struct node *at = rule->head->next;
    bool fits = false;

    for (; at != NULL && at->kind == NODE_SYMBOL; at = at->next) {
        fits = fits || strcmp(at->text, "default") == 0 || operation_fits(at->text, q->operation);
    }
    return fits && (at == NULL || any_fits(p, at, q, false));
}

bool
sbpl_allows(const struct sbpl *p, const struct sbpl_question *q)
{
    bool is_allowed = false;

    for (const struct node *n = p->forms->next; n != NULL; n = n->next) {
        const struct node *guarded = sbpl_guarded(n);
        const struct node *rule = guarded != NULL ? guarded : n;

        if (rule_fits(p, rule, q)) {
            is_allowed = strcmp(rule->head->text, "allow") == 0;
        }
    }
    return is_allowed;
}

bool
sbpl_allows_file(const struct sbpl *p, const char *operation, const char *path)
{
    return sbpl_allows(p, &(struct sbpl_question){.operation = operation, .path = path});
}
