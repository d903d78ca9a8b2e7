/* From the tree of a PowerShell script to its commands. */
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/script_internal.h"

enum part {
    PART_OTHER,   /* not plain */
    PART_AROUND,  /* plain by itself; what it is made of is looked at */
    PART_COMMAND, /* begins a command */
    PART_WORD,    /* a word that means itself */
    PART_VERBATIM,
    PART_STRING,
    PART_BLANK
};

static const struct {
    const char *name;
    enum part part;
} parts[] = {
    {"program",                    PART_AROUND  },
    {"statement_list",             PART_AROUND  },
    {"pipeline",                   PART_AROUND  },
    {"pipeline_chain",             PART_AROUND  },
    {"pipeline_chain_tail",        PART_AROUND  },
    {"empty_statement",            PART_AROUND  },
    {"command",                    PART_COMMAND },
    {"command_elements",           PART_AROUND  },
    {"array_literal_expression",   PART_AROUND  },
    {"unary_expression",           PART_AROUND  },
    {"logical_expression",         PART_AROUND  },
    {"bitwise_expression",         PART_AROUND  },
    {"comparison_expression",      PART_AROUND  },
    {"additive_expression",        PART_AROUND  },
    {"multiplicative_expression",  PART_AROUND  },
    {"format_expression",          PART_AROUND  },
    {"range_expression",           PART_AROUND  },
    {"parenthesized_expression",   PART_AROUND  },
    {"string_literal",             PART_AROUND  },
    {"command_name",               PART_WORD    },
    {"command_parameter",          PART_WORD    },
    {"generic_token",              PART_WORD    },
    {"integer_literal",            PART_WORD    },
    {"verbatim_string_characters", PART_VERBATIM},
    {"expandable_string_literal",  PART_STRING  },
    {"command_argument_sep",       PART_BLANK   },
    {"comment",                    PART_BLANK   },
    {"&&",                         PART_BLANK   },
    {"||",                         PART_BLANK   },
    {"|",                          PART_BLANK   },
    {";",                          PART_BLANK   },
    {"(",                          PART_BLANK   },
    {")",                          PART_BLANK   },
    {",",                          PART_BLANK   },
};

static enum part
part_of(TSNode n)
{
    const char *name = ts_node_type(n);

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (str_eq(parts[i].name, name)) {
            return parts[i].part;
        }
    }
    return PART_OTHER;
}

/* Words that stand for more than themselves: an escape, a variable, a letter that
 * PowerShell takes for a quote or a dash. */
static void
check_text(struct script_walk *w, TSNode n, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '`' || s[i] == '$' || (unsigned char)s[i] >= 0x80) {
            script_not_plain(w, n, "a word with a special character");
            return;
        }
    }
}

static void
add_word(struct script_walk *w, TSNode n, enum part part)
{
    const char *s = w->text + ts_node_start_byte(n);
    size_t len = ts_node_end_byte(n) - ts_node_start_byte(n);
    struct word_draft d = script_word_begin(w);

    while (len > 0 && (*s == ' ' || *s == '\t')) { /* the grammar's numbers have some */
        s++;
        len--;
    }
    check_text(w, n, s, len);
    if (part != PART_WORD) {
        d.flags |= WORD_QUOTED;
        if (len < 2 || memchr(s + 1, s[0], len - 2) != NULL) {
            script_not_plain(w, n, "a quote inside quotes");
        } else {
            s++;
            len -= 2;
        }
    }
    script_word_add(w, s, len);
    script_word_end(w, &d, LIST_WORDS);
}

static size_t
word_count(const struct script_walk *w)
{
    return w->store->words[LIST_WORDS].len / sizeof(struct script_word);
}

/* The command that has begun ends here. */
static void
end_command(struct script_walk *w, size_t *first)
{
    size_t now = word_count(w);
    const struct script_command command = {.n = now - *first};

    if (command.n > 0) {
        script_keep(w, &w->store->commands, &command, sizeof(command));
        script_keep(w, &w->store->firsts, first, sizeof(*first));
    }
    *first = now;
}

static bool
visit(struct script_walk *w, size_t *first)
{
    TSNode n = ts_tree_cursor_current_node(w->cursor);
    enum part part = part_of(n);

    switch (part) {
    case PART_OTHER:
        script_not_plain(w, n, "more than simple commands");
        return true;
    case PART_AROUND:
        if (str_eq(ts_node_type(n), "array_literal_expression") && ts_node_child_count(n) > 1) {
            script_not_plain(w, n, "a list");
        }
        if (str_eq(ts_node_type(n), "parenthesized_expression") && *first < word_count(w)) {
            script_not_plain(w, n, "an argument that is computed");
        }
        return true;
    case PART_COMMAND:
        end_command(w, first);
        return true;
    case PART_WORD:
    case PART_VERBATIM:
        add_word(w, n, part);
        return false;
    case PART_STRING:
        if (ts_node_child_count(n) > 0) {
            script_not_plain(w, n, "a string that is computed");
            return true;
        }
        add_word(w, n, part);
        return false;
    case PART_BLANK:
        return false;
    }
    return false;
}

enum sy_code
script_walk_powershell(struct script_walk *w, struct sy_error *err)
{
    TSNode root = ts_tree_cursor_current_node(w->cursor);
    size_t first = 0;
    size_t depth = 0;
    bool is_done = false;

    while (!is_done) {
        bool descends = visit(w, &first);

        if (descends && ts_tree_cursor_goto_first_child(w->cursor)) {
            depth++;
            if (depth > LIMIT_SCRIPT_DEPTH) {
                return sy_err_set(err, SY_E_LIMIT,
                                  "script is nested more than %u levels deep: more is not read",
                                  LIMIT_SCRIPT_DEPTH);
            }
            continue;
        }
        while (!is_done && !ts_tree_cursor_goto_next_sibling(w->cursor)) {
            is_done = !ts_tree_cursor_goto_parent(w->cursor);
            depth--;
        }
    }
    end_command(w, &first);
    if (w->store->commands.len == 0) {
        script_not_plain(w, root, "no command");
    }
    w->out->form = w->is_plain ? SCRIPT_PLAIN : SCRIPT_COMPLEX;
    return w->rc;
}
