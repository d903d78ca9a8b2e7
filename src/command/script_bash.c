/* From the tree of a bash script to its commands. */
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/script_internal.h"

static void
add_command(struct script_walk *w, size_t first, unsigned flags)
{
    size_t n = w->store->words[LIST_WORDS].len / sizeof(struct script_word) - first;
    const struct script_command command = {
        .n = n,
        .flags = flags | (w->after_pipe ? COMMAND_READS_PIPE : 0) |
                 (w->is_nested ? COMMAND_NESTED : 0) |
                 (w->after_and && !w->is_nested ? COMMAND_AFTER_AND : 0),
    };

    w->after_pipe = false;
    w->after_and = false;
    if (n > 0) {
        script_keep(w, &w->store->commands, &command, sizeof(command));
        script_keep(w, &w->store->firsts, &first, sizeof(first));
    }
}

static void
read_assignment(struct script_walk *w)
{
    TSNode n = ts_tree_cursor_current_node(w->cursor);
    struct word_draft d = script_word_begin(w);
    const char *s = w->text + ts_node_start_byte(n);
    size_t len = ts_node_end_byte(n) - ts_node_start_byte(n);

    script_not_plain(w, n, "an assignment to a variable");
    w->is_heredoc = false;
    /* Its value is not computed: literal only when it has nothing special. */
    for (size_t i = 0; i < len; i++) {
        if (strchr("$`\"'\\(){}*?[~<> \t\n", s[i]) != NULL) {
            d.flags |= WORD_DYNAMIC;
        }
    }
    script_word_add(w, s, len);
    script_word_end(w, &d, LIST_ASSIGNED);
    w->has_inner = true;
}

/* A name that means itself in each shell: no quote, expansion, pattern or escape. */
static bool
is_bare_name(const struct script_walk *w, const struct word_draft *d)
{
    const char *name = buf_view(&w->store->text) + d->place;

    if (d->flags != 0 || d->has_open_brace) {
        return false;
    }
    for (const char *c = name; *c != '\0'; c++) {
        bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');

        if (!is_letter && !(*c >= '0' && *c <= '9') && strchr("_-./+", *c) == NULL) {
            return false;
        }
    }
    return name[0] != '\0';
}

static void
read_name(struct script_walk *w, TSNode n)
{
    struct word_draft d = script_word_begin(w);

    script_check_gap(w, n, false);
    if (ts_tree_cursor_goto_first_child(w->cursor)) {
        script_read_word(w, &d);
        if (ts_tree_cursor_goto_next_sibling(w->cursor)) {
            script_not_plain(w, n, "a command's name in pieces");
            w->has_inner = true;
        }
        (void)ts_tree_cursor_goto_parent(w->cursor);
    } else {
        script_word_add(w, w->text + ts_node_start_byte(n),
                        ts_node_end_byte(n) - ts_node_start_byte(n));
    }
    if (w->rc == SY_E_OK && !is_bare_name(w, &d)) {
        script_not_plain(w, n, "a command's name that is quoted or computed");
        w->is_heredoc = false;
    }
    w->end = ts_node_end_byte(n);
    script_word_end(w, &d, LIST_WORDS);
}

/* The command at the cursor. True when some of it must be descended into. */
static bool
read_command(struct script_walk *w)
{
    size_t first = w->store->words[LIST_WORDS].len / sizeof(struct script_word);
    unsigned flags = 0;

    w->has_inner = false;
    if (!ts_tree_cursor_goto_first_child(w->cursor)) {
        return false;
    }
    do {
        TSNode n = ts_tree_cursor_current_node(w->cursor);
        enum node_kind kind = script_kind(w, n);

        if (kind == NODE_COMMAND_NAME) {
            read_name(w, n);
        } else if (kind == NODE_ASSIGNMENT) {
            flags |= COMMAND_ASSIGNS;
            w->has_inner = true; /* the walk reads it */
            script_not_plain(w, n, "an assignment to a variable");
        } else if (kind == NODE_FILE_REDIRECT || kind == NODE_HERESTRING) {
            w->has_inner = true;
            script_not_plain(w, n, "a redirection inside a command");
        } else {
            struct word_draft d = script_word_begin(w);

            script_check_gap(w, n, true);
            script_read_word(w, &d);
            w->is_heredoc = w->is_heredoc && (d.flags & ~(unsigned)WORD_QUOTED) == 0;
            script_word_end(w, &d, LIST_WORDS);
        }
    } while (ts_tree_cursor_goto_next_sibling(w->cursor) && w->rc == SY_E_OK);
    (void)ts_tree_cursor_goto_parent(w->cursor);
    add_command(w, first, flags);
    return w->has_inner;
}

struct redirect_draft {
    bool writes;
    bool truncates;
    bool copies; /* >& and <&, of a descriptor when a number follows */
    bool is_read;
    bool has_target;
    bool is_closing;
};

static void
note_operator(struct script_walk *w, struct redirect_draft *r, TSNode n)
{
    const char *op = ts_node_type(n);

    if (script_kind(w, n) == NODE_DESCRIPTOR) {
        return;
    }
    r->is_read = str_eq(op, "<");
    r->copies = str_eq(op, ">&") || str_eq(op, "<&");
    r->is_closing = str_eq(op, ">&-") || str_eq(op, "<&-");
    r->writes = op[0] == '>' || op[0] == '&';
    r->truncates = r->writes && strstr(op, ">>") == NULL && !r->is_closing;
}

static bool
is_number(const char *s)
{
    return s[0] != '\0' && s[strspn(s, "0123456789")] == '\0';
}

/* A target that changes nothing, wherever the redirection belongs. Of devices only this
 * one: bash makes connections of /dev/tcp. */
static bool
is_harmless(const struct redirect_draft *r, const char *target, unsigned flags)
{
    if (r->is_closing) {
        return true;
    }
    if (!r->has_target || (flags & ~(unsigned)WORD_QUOTED) != 0) {
        return false;
    }
    if (str_eq(target, "/dev/null")) {
        return r->is_read || (r->writes && !r->copies);
    }
    if (r->copies) {
        return is_number(target);
    }
    return r->is_read && !str_starts(target, "/dev/") && target[0] != '\0';
}

static bool
read_redirect(struct script_walk *w)
{
    TSNode whole = ts_tree_cursor_current_node(w->cursor);
    struct redirect_draft r = {0};
    struct word_draft d = script_word_begin(w);

    w->has_inner = false;
    w->is_heredoc = false;
    script_check_gap(w, whole, false);
    if (ts_tree_cursor_goto_first_child(w->cursor)) {
        do {
            TSNode n = ts_tree_cursor_current_node(w->cursor);

            if (!ts_node_is_named(n) || script_kind(w, n) == NODE_DESCRIPTOR) {
                note_operator(w, &r, n);
                w->end = ts_node_end_byte(n);
            } else if (r.has_target) {
                script_not_plain(w, n, "a redirection with several targets");
                w->has_inner = true;
            } else {
                script_check_gap(w, n, false);
                script_read_word(w, &d);
                r.has_target = true;
            }
        } while (ts_tree_cursor_goto_next_sibling(w->cursor));
        (void)ts_tree_cursor_goto_parent(w->cursor);
    }
    script_keep(w, &w->store->text, "", 1);
    if (w->rc == SY_E_OK && !is_harmless(&r, buf_view(&w->store->text) + d.place, d.flags)) {
        const struct script_redirect redirect = {.writes = r.writes, .truncates = r.truncates};

        script_not_plain(w, whole, "a redirection to or from a file");
        w->store->text.len--;
        script_word_end(w, &d, LIST_TARGETS);
        script_keep(w, &w->store->redirects, &redirect, sizeof(redirect));
    }
    w->end = ts_node_end_byte(whole);
    return w->has_inner;
}

/* Is nothing of the document computed, since its mark is quoted? */
static bool
is_quoted_document(const struct script_walk *w, TSNode body)
{
    TSNode whole = ts_node_parent(body);
    const uint32_t n = ts_node_is_null(whole) ? 0 : ts_node_child_count(whole);

    for (uint32_t i = 0; i < n; i++) {
        TSNode part = ts_node_child(whole, i);

        if (str_eq(ts_node_type(part), "heredoc_start")) {
            return strchr("'\"\\", w->text[ts_node_start_byte(part)]) != NULL;
        }
    }
    return false;
}

/* A here-document's text or a here-string's word, as input that a shell may be given. The grammar
 * takes backticks in it for text. */
static void
read_input(struct script_walk *w, TSNode n)
{
    struct word_draft d = script_word_begin(w);
    const char *text = w->text + ts_node_start_byte(n);
    const size_t len = ts_node_end_byte(n) - ts_node_start_byte(n);

    if (len > 0 && memchr(text, '`', len) != NULL && !is_quoted_document(w, n)) {
        d.flags |= WORD_BACKTICKS;
        script_not_plain(w, n, "something that the shell computes");
        w->is_heredoc = false;
    }
    script_word_add(w, text, len);
    script_word_end(w, &d, LIST_INPUTS);
}

static void
read_herestring(struct script_walk *w)
{
    TSNode whole = ts_tree_cursor_current_node(w->cursor);

    script_not_plain(w, whole, "a here-string");
    w->is_heredoc = false;
    if (ts_tree_cursor_goto_first_child(w->cursor)) {
        while (ts_tree_cursor_goto_next_sibling(w->cursor)) {
            struct word_draft d = script_word_begin(w);

            script_read_word(w, &d);
            script_word_end(w, &d, LIST_INPUTS);
        }
        (void)ts_tree_cursor_goto_parent(w->cursor);
    }
}

/* True: descend. */
static bool
visit_branch(struct script_walk *w, TSNode n, enum node_kind kind)
{
    if ((kind == NODE_SIMPLE_EXPANSION || kind == NODE_EXPANSION) && script_is_parameter(w, n)) {
        script_not_plain(w, n, "a variable in a here-document");
        return false;
    }
    if (kind == NODE_HEREDOC) {
        w->heredocs++;
        script_not_plain(w, n, "a here-document");
    } else if (kind == NODE_HEREDOC_BODY) {
        read_input(w, n);
    } else if (kind == NODE_STRUCTURE) {
        w->is_heredoc = w->is_heredoc && !str_eq(ts_node_type(n), "list") &&
                        !str_eq(ts_node_type(n), "pipeline");
    } else if (kind == NODE_ASSIGNMENT) {
        read_assignment(w);
    } else if (kind == NODE_HERESTRING) {
        read_herestring(w);
    } else {
        script_not_plain(w, n, "more than simple commands");
        w->is_heredoc = false;
        w->is_nested = true;
    }
    return true;
}

static void
visit_leaf(struct script_walk *w, TSNode n, enum node_kind kind)
{
    script_check_gap(w, n, false);
    if (kind == NODE_PIPE || kind == NODE_PIPE_BOTH) {
        w->after_pipe = true;
        w->is_heredoc = false;
    }
    if (kind == NODE_JOINT) {
        w->after_and = str_eq(ts_node_type(n), "&&");
    }
    if (kind == NODE_HEREDOC_BODY) {
        read_input(w, n);
    } else if (kind == NODE_HEREDOC_PART || kind == NODE_STRUCTURE) {
        /* Told of by what they are part of; an empty script is a leaf. */
    } else if (kind != NODE_JOINT && kind != NODE_PIPE && kind != NODE_COMMENT) {
        script_not_plain(w, n, kind == NODE_PIPE_BOTH ? "|&" : "more than simple commands");
        w->is_heredoc = false;
    } else if (kind == NODE_JOINT && !str_eq(ts_node_type(n), "\n")) {
        w->is_heredoc = false;
    }
    w->end = ts_node_end_byte(n);
}

/* True: descend into what the cursor is at. */
static bool
visit(struct script_walk *w)
{
    TSNode n = ts_tree_cursor_current_node(w->cursor);
    enum node_kind kind = script_kind(w, n);

    if (kind == NODE_COMMAND) {
        return read_command(w);
    }
    if (kind == NODE_FILE_REDIRECT) {
        return read_redirect(w);
    }
    if (ts_node_child_count(n) > 0) {
        return visit_branch(w, n, kind);
    }
    visit_leaf(w, n, kind);
    return false;
}

/* In order, without recursion: a tree may be as deep as its script is long. */
static enum sy_code
walk_tree(struct script_walk *w, struct sy_error *err)
{
    size_t depth = 0;
    size_t nested_at = 0; /* depth of what made is_nested */

    for (;;) {
        bool was_nested = w->is_nested;
        bool descends = visit(w);

        if (w->rc != SY_E_OK) {
            return w->rc;
        }
        if (w->is_nested && !was_nested) {
            nested_at = depth;
        }
        if (descends && ts_tree_cursor_goto_first_child(w->cursor)) {
            depth++;
            if (depth > LIMIT_SCRIPT_DEPTH) {
                return sy_err_set(err, SY_E_LIMIT,
                                  "script is nested more than %u levels deep: more is not read",
                                  LIMIT_SCRIPT_DEPTH);
            }
            continue;
        }
        while (!ts_tree_cursor_goto_next_sibling(w->cursor)) {
            if (!ts_tree_cursor_goto_parent(w->cursor)) {
                return SY_E_OK;
            }
            depth--;
        }
        if (w->is_nested && depth <= nested_at) {
            w->is_nested = false;
        }
    }
}

enum sy_code
script_walk_bash(struct script_walk *w, struct sy_error *err)
{
    enum sy_code rc = walk_tree(w, err);
    TSNode root = ts_tree_cursor_current_node(w->cursor);
    size_t n = w->store->commands.len / sizeof(struct script_command);

    if (rc != SY_E_OK) {
        return rc;
    }
    for (size_t i = w->end; i < w->len; i++) {
        if (strchr(" \t\n", w->text[i]) == NULL) {
            script_not_plain(w, root, "text at its end that is part of nothing");
        }
    }
    if (n == 0) {
        script_not_plain(w, root, "no command");
    }
    if (w->is_plain) {
        w->out->form = SCRIPT_PLAIN;
    } else {
        w->out->form = w->is_heredoc && w->heredocs > 0 && n == 1 ? SCRIPT_HEREDOC : SCRIPT_COMPLEX;
    }
    return SY_E_OK;
}
