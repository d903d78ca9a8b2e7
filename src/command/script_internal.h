#ifndef SY_COMMAND_SCRIPT_INTERNAL_H
#define SY_COMMAND_SCRIPT_INTERNAL_H

#include <tree_sitter/api.h>

#include "base/buf.h"
#include "command/script.h"

const TSLanguage *tree_sitter_bash(void);
const TSLanguage *tree_sitter_powershell(void);

/* What a node is to us; script_nodes.def gives names of bash's. */
enum node_kind {
    NODE_OTHER,
    NODE_STRUCTURE,
    NODE_JOINT,
    NODE_PIPE,
    NODE_PIPE_BOTH,
    NODE_COMMENT,
    NODE_COMMAND,
    NODE_COMMAND_NAME,
    NODE_ASSIGNMENT,
    NODE_FILE_REDIRECT,
    NODE_HEREDOC,
    NODE_HEREDOC_PART,
    NODE_HEREDOC_BODY,
    NODE_HERESTRING,
    NODE_WORD,
    NODE_NUMBER,
    NODE_STRING,
    NODE_RAW_STRING,
    NODE_ANSI_C,
    NODE_CONCATENATION,
    NODE_SIMPLE_EXPANSION,
    NODE_EXPANSION,
    NODE_BRACE,
    NODE_NAME,
    NODE_SPECIAL_NAME,
    NODE_STRING_CONTENT,
    NODE_DESCRIPTOR
};

/* Lists of words that grow while a script is read. */
enum word_list { LIST_WORDS, LIST_TARGETS, LIST_INPUTS, LIST_ASSIGNED, LIST_COUNT };

/* Arrays in buffers. Texts move while they grow, so words are told their place at the end. */
struct script_store {
    struct buf text;
    struct buf words[LIST_COUNT];  /* struct script_word */
    struct buf places[LIST_COUNT]; /* size_t in text */
    struct buf commands;           /* struct script_command */
    struct buf firsts;             /* size_t: the first word of each */
    struct buf redirects;          /* struct script_redirect */
};

/* One script being read. */
struct script_walk {
    const char *text;
    size_t len;
    struct script *out;
    struct script_store *store;
    const uint8_t *kinds; /* enum node_kind of each symbol */
    TSTreeCursor *cursor;
    size_t end;      /* of the last part seen */
    size_t heredocs; /* how many */
    bool is_plain;
    bool is_heredoc; /* nothing seen that a heredoc's single command may not have */
    bool after_pipe;
    bool after_and;
    bool is_nested;
    bool has_inner;  /* the word just read holds more than a value: descend into it */
    enum sy_code rc; /* the first failure */
};

/* Fills `store` and the form from the tree at the cursor. */
enum sy_code script_walk_bash(struct script_walk *w, struct sy_error *err);
enum sy_code script_walk_powershell(struct script_walk *w, struct sy_error *err);

/* It is not plain, for this reason (kept if it is the first). */
void script_not_plain(struct script_walk *w, TSNode n, const char *what);
enum node_kind script_kind(const struct script_walk *w, TSNode n);
/* Begins a word at the end of `text`; script_word_end adds it to the list. */
struct word_draft {
    size_t place;
    unsigned flags;
    bool has_open_brace;
    bool has_brace_list;
};
struct word_draft script_word_begin(struct script_walk *w);
void script_word_add(struct script_walk *w, const char *bytes, size_t n);
void script_word_end(struct script_walk *w, const struct word_draft *d, enum word_list list);

/* $NAME, ${NAME} or $1 and the like: computes nothing, changes nothing. */
bool script_is_parameter(const struct script_walk *w, TSNode n);

/* The value of the word at the cursor, which stays there. */
void script_read_word(struct script_walk *w, struct word_draft *d);

/* Appends, remembering the first failure in w->rc. */
void script_keep(struct script_walk *w, struct buf *b, const void *item, size_t size);
/* Between the last part and `start` stand nothing but blanks; if not, it is not plain. */
void script_check_gap(struct script_walk *w, TSNode n, bool needs_blank);

#endif
