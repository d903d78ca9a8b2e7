#ifndef SY_COMMAND_DIALECT_INTERNAL_H
#define SY_COMMAND_DIALECT_INTERNAL_H

#include "command/dialect.h"

/* What stands at a place of a script. */
enum dialect_token {
    TOKEN_PLAIN, /* one byte of a word */
    TOKEN_QUOTED,
    TOKEN_BLANK,
    TOKEN_END,    /* of a command: ; & | newline */
    TOKEN_OPEN,   /* ( $( <( >( ` */
    TOKEN_CLOSE,  /* ) ` */
    TOKEN_COMMENT /* or a here-document: not looked into */
};

#define DIALECT_DEPTH 128U
#define DIALECT_MARK  64U

/* A walk over a script by what stands in it. */
struct dialect_walk {
    const char *text;
    size_t len;
    size_t at;
    bool has_ansi_c;   /* $'...' is one text */
    bool has_comments; /* behind # */
    bool has_escapes;  /* a backslash between double quotes */
    bool is_word;      /* the last token was part of a word, so that this one is none's beginning */
    unsigned depth;
    char in[DIALECT_DEPTH];  /* what is open: " ( ` */
    char mark[DIALECT_MARK]; /* of a here-document that begins in the next line; "": none */
    bool strips_tabs;        /* before its end */
    unsigned without_end;    /* how many had none, and so were none */
    size_t document;         /* length of the one that stands here */
};

/* The next token and its length, of which it is at least one byte. Only while at < len. */
enum dialect_token dialect_next(struct dialect_walk *w, size_t *ret_len);

/* Fish; the words that braces make. */
enum sy_code dialect_read_fish(struct buf *ret, const char *text, size_t len) SY_NODISCARD;
enum sy_code dialect_add_braces(struct buf *ret, const char *text, size_t len) SY_NODISCARD;

#endif
