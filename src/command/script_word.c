/* The values of words of bash: what is left when quotes are taken away. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "command/script_internal.h"

void
script_not_plain(struct script_walk *w, TSNode n, const char *what)
{
    if (w->is_plain) {
        snprintf(w->out->reason, sizeof(w->out->reason), "%s, at byte %u", what,
                 ts_node_start_byte(n));
    }
    w->is_plain = false;
}

enum node_kind
script_kind(const struct script_walk *w, TSNode n)
{
    TSSymbol symbol = ts_node_symbol(n);

    return symbol == (TSSymbol)-1 ? NODE_OTHER : (enum node_kind)w->kinds[symbol];
}

void
script_keep(struct script_walk *w, struct buf *b, const void *item, size_t size)
{
    if (w->rc == SY_E_OK) {
        w->rc = buf_add(b, item, size);
    }
}

void
script_word_add(struct script_walk *w, const char *bytes, size_t n)
{
    script_keep(w, &w->store->text, bytes, n);
}

struct word_draft
script_word_begin(struct script_walk *w)
{
    return (struct word_draft){.place = w->store->text.len};
}

void
script_word_end(struct script_walk *w, const struct word_draft *d, enum word_list list)
{
    size_t len = w->store->text.len - d->place;
    const struct script_word word = {
        .len = (uint32_t)len,
        .flags = d->flags | (d->has_open_brace && d->has_brace_list ? WORD_BRACE : 0),
    };

    script_keep(w, &w->store->text, "", 1);
    script_keep(w, &w->store->places[list], &d->place, sizeof(d->place));
    script_keep(w, &w->store->words[list], &word, sizeof(word));
}

static bool
is_at_start(const struct script_walk *w, const struct word_draft *d)
{
    return w->store->text.len == d->place && (d->flags & WORD_QUOTED) == 0;
}

static size_t
start_of(const struct script_walk *w, TSNode n)
{
    size_t start = ts_node_start_byte(n);

    /* Inside quotes, the grammar counts blanks before the $ to the expansion. */
    while (start < ts_node_end_byte(n) && strchr(" \t\n", w->text[start]) != NULL) {
        start++;
    }
    return start;
}

bool
script_is_parameter(const struct script_walk *w, TSNode n)
{
    const char *s = w->text + start_of(w, n);
    const char *end = w->text + ts_node_end_byte(n);

    if (end - s > 1 && *s == '$') {
        s++;
    }
    if (end - s > 2 && *s == '{' && end[-1] == '}') {
        s++;
        end--;
    }
    if (end - s == 1 && strchr("@*#?-$!", *s) != NULL) {
        return true;
    }
    for (; s < end; s++) {
        bool is_letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');

        if (!is_letter && *s != '_' && !(*s >= '0' && *s <= '9')) {
            return false;
        }
    }
    return true;
}

static void
add_computed(struct script_walk *w, struct word_draft *d, TSNode n, unsigned flags)
{
    size_t start = start_of(w, n);

    d->flags |= WORD_DYNAMIC | flags;
    if (w->store->text.len == d->place) {
        d->flags |= WORD_DYNAMIC_START;
    }
    script_word_add(w, w->text + start, ts_node_end_byte(n) - start);
}

/* Marks of an unquoted byte. */
static void
note_unquoted(struct script_walk *w, struct word_draft *d, TSNode n, char c, size_t at)
{
    switch (c) {
    case '*':
    case '?':
    case '[':
        d->flags |= WORD_GLOB;
        break;
    case '~':
        d->flags |= at == 0 && is_at_start(w, d) ? WORD_TILDE : 0;
        break;
    case '{':
        d->has_open_brace = true;
        break;
    case ',':
    case '.':
        d->has_brace_list = d->has_brace_list || d->has_open_brace;
        break;
    case '|':
    case '&':
    case ';':
    case '<':
    case '>':
    case '(':
    case ')':
    case '$':
    case '`':
    case '"':
    case '\'':
    case ' ':
    case '\t':
    case '\n':
        /* A shell would have ended the word here, or begun something else. */
        script_not_plain(w, n, "a word with a special character");
        break;
    default:
        break;
    }
}

static void
add_unquoted(struct script_walk *w, struct word_draft *d, TSNode n)
{
    const char *s = w->text + ts_node_start_byte(n);
    const char *end = w->text + ts_node_end_byte(n);

    while (s < end) {
        size_t run = 0;

        while (s + run < end && s[run] != '\\') {
            note_unquoted(w, d, n, s[run], run);
            run++;
        }
        script_word_add(w, s, run);
        s += run;
        if (s < end) { /* a backslash */
            if (s + 1 < end && s[1] != '\n') {
                d->flags |= WORD_QUOTED;
                script_word_add(w, s + 1, 1);
            }
            s += s + 1 < end ? 2 : 1;
        }
    }
}

/* Literal text between double quotes. */
static void
add_double_quoted(struct script_walk *w, const char *s, const char *end)
{
    while (s < end) {
        size_t run = 0;

        while (s + run < end && s[run] != '\\') {
            run++;
        }
        script_word_add(w, s, run);
        s += run;
        if (s == end) {
            return;
        }
        if (s + 1 < end && strchr("$`\"\\", s[1]) != NULL) {
            script_word_add(w, s + 1, 1);
            s += 2;
        } else if (s + 1 < end && s[1] == '\n') {
            s += 2;
        } else {
            script_word_add(w, s, 1);
            s++;
        }
    }
}

/* $NAME or ${NAME}; whatever computes more is not plain. */
static void
add_expansion(struct script_walk *w, struct word_draft *d, TSNode n, bool is_quoted)
{
    const char *s = w->text + ts_node_start_byte(n);
    uint32_t len = ts_node_end_byte(n) - ts_node_start_byte(n);
    bool is_list = len > 1 && memchr(s, '@', len) != NULL;

    if (!script_is_parameter(w, n)) {
        script_not_plain(w, n, "a parameter expansion that computes something");
        w->has_inner = true;
    }
    add_computed(w, d, n, is_quoted && !is_list ? 0 : WORD_SPLITS);
}

static void
add_other(struct script_walk *w, struct word_draft *d, TSNode n)
{
    script_not_plain(w, n, "something that the shell computes");
    w->has_inner = true;
    add_computed(w, d, n, WORD_SPLITS);
}

/* By places rather than by its parts: the grammar leaves blanks beside expansions out. */
static void
add_string(struct script_walk *w, struct word_draft *d, TSNode n)
{
    size_t at = ts_node_start_byte(n) + 1;
    size_t end = ts_node_end_byte(n) - 1;

    d->flags |= WORD_QUOTED;
    if (ts_tree_cursor_goto_first_child(w->cursor)) {
        do {
            TSNode part = ts_tree_cursor_current_node(w->cursor);
            enum node_kind kind = script_kind(w, part);
            bool is_text = kind == NODE_STRING_CONTENT || ts_node_child_count(part) == 0;

            if (is_text) {
                continue;
            }
            add_double_quoted(w, w->text + at, w->text + start_of(w, part));
            if (kind == NODE_SIMPLE_EXPANSION || kind == NODE_EXPANSION) {
                add_expansion(w, d, part, true);
            } else {
                add_other(w, d, part);
            }
            at = ts_node_end_byte(part);
        } while (ts_tree_cursor_goto_next_sibling(w->cursor));
        (void)ts_tree_cursor_goto_parent(w->cursor);
    }
    if (at <= end) {
        add_double_quoted(w, w->text + at, w->text + end);
    }
}

/* The byte of an escape \xHH or \NNN at s, and its length; 0: it is none. */
static size_t
numeric_escape(const char *s, const char *end, char *ret)
{
    bool is_hex = end - s > 2 && s[1] == 'x';
    const char *digit = s + (is_hex ? 2 : 1);
    size_t max = is_hex ? 2 : 3;
    unsigned value = 0;
    size_t n = 0;

    for (; n < max && digit + n < end; n++) {
        static const char all[] = "0123456789abcdefABCDEF";
        const char *at = digit[n] != '\0' ? strchr(all, digit[n]) : NULL;
        unsigned one = at != NULL ? (unsigned)(at - all) : 99;

        one = one >= 16 && one < 22 ? one - 6 : one;
        if (one >= (is_hex ? 16 : 8)) {
            break;
        }
        value = value * (is_hex ? 16 : 8) + one;
    }
    if (n == 0 || value % 256 == 0) {
        return 0;
    }

    const unsigned char byte = (unsigned char)(value % 256);

    memcpy(ret, &byte, 1);
    return (size_t)(digit - s) + n;
}

/* $'...': of its escapes those that hide letters. sh takes the $ for a letter. */
static void
add_ansi_c(struct script_walk *w, struct word_draft *d, TSNode n)
{
    const char *s = w->text + ts_node_start_byte(n) + 2;
    const char *end = w->text + ts_node_end_byte(n) - 1;

    d->flags |= WORD_QUOTED | WORD_ANSI_C;
    while (s < end) {
        char byte = *s;
        size_t used = *s == '\\' ? numeric_escape(s, end, &byte) : 1;

        if (used == 0) { /* another escape: its letter, or a backslash at the end */
            used = end - s > 1 ? 2 : 1;
            byte = s[used - 1];
        }
        script_word_add(w, &byte, 1);
        s += used;
    }
}

static void
add_part(struct script_walk *w, struct word_draft *d)
{
    TSNode n = ts_tree_cursor_current_node(w->cursor);
    uint32_t start = ts_node_start_byte(n);
    uint32_t len = ts_node_end_byte(n) - start;
    enum node_kind kind = script_kind(w, n);

    if (kind == NODE_WORD) {
        add_unquoted(w, d, n);
    } else if (kind == NODE_NUMBER) {
        script_word_add(w, w->text + start, len);
        w->has_inner = w->has_inner || ts_node_child_count(n) > 0; /* 16#$(...) */
        if (ts_node_child_count(n) > 0) {
            script_not_plain(w, n, "something that the shell computes");
        }
    } else if (kind == NODE_RAW_STRING && len >= 2) {
        d->flags |= WORD_QUOTED;
        script_word_add(w, w->text + start + 1, len - 2);
    } else if (kind == NODE_STRING && len >= 2) {
        add_string(w, d, n);
    } else if (kind == NODE_ANSI_C && len >= 3) {
        add_ansi_c(w, d, n);
    } else if (kind == NODE_SIMPLE_EXPANSION || kind == NODE_EXPANSION) {
        add_expansion(w, d, n, false);
    } else if (kind == NODE_BRACE) {
        d->flags |= WORD_BRACE;
        script_word_add(w, w->text + start, len);
    } else {
        add_other(w, d, n);
    }
}

void
script_read_word(struct script_walk *w, struct word_draft *d)
{
    TSNode n = ts_tree_cursor_current_node(w->cursor);
    size_t end = ts_node_start_byte(n);

    if (script_kind(w, n) != NODE_CONCATENATION) {
        add_part(w, d);
    } else if (ts_tree_cursor_goto_first_child(w->cursor)) {
        do {
            TSNode part = ts_tree_cursor_current_node(w->cursor);

            if (ts_node_start_byte(part) != end) {
                script_not_plain(w, part, "a word in pieces");
            }
            add_part(w, d);
            end = ts_node_end_byte(part);
        } while (ts_tree_cursor_goto_next_sibling(w->cursor));
        (void)ts_tree_cursor_goto_parent(w->cursor);
    }
    w->end = ts_node_end_byte(n);
}

void
script_check_gap(struct script_walk *w, TSNode n, bool needs_blank)
{
    size_t start = ts_node_start_byte(n);

    if (needs_blank && start <= w->end) {
        script_not_plain(w, n, "words that are not apart");
    }
    for (size_t i = w->end; i < start; i++) {
        char c = w->text[i];
        bool is_continued = c == '\\' && i + 1 < start && w->text[i + 1] == '\n';

        if (c != ' ' && c != '\t' && c != '\n' && !is_continued) {
            script_not_plain(w, n, "text that is part of nothing");
            return;
        }
    }
}
