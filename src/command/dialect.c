/* What shells that are no bash read, as bash would have it. */
#include "command/dialect.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/dialect_internal.h"
#include "command/judge_internal.h"

#define TEXT_MAX ((size_t)LIMIT_SCRIPT * 4)

unsigned
dialect_of(const char *shell)
{
    static const struct {
        const char *names;
        unsigned dialects;
    } rows[] = {
        {"bash rbash",                                         DIALECT_BASH               },
        {"zsh rzsh",                                           DIALECT_BASH | DIALECT_ZSH },
        {"dash posh",                                          DIALECT_DASH               },
        {"sh ash ksh ksh93 mksh lksh pdksh oksh yash busybox", DIALECT_BASH | DIALECT_DASH},
        {"fish",                                               DIALECT_BASH | DIALECT_FISH},
        {"csh tcsh",                                           DIALECT_BASH | DIALECT_CSH },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (judge_in_list(rows[i].names, shell)) {
            return rows[i].dialects;
        }
    }
    return DIALECT_ALL;
}

static bool
starts(const struct dialect_walk *w, const char *what)
{
    size_t n = strlen(what);

    return w->len - w->at >= n && memcmp(w->text + w->at, what, n) == 0;
}

/* From the opening quote to behind the closing one. */
static size_t
quoted_length(const struct dialect_walk *w, size_t skip, bool has_escapes)
{
    size_t at = w->at + skip;

    while (at < w->len && w->text[at] != '\'') {
        at += has_escapes && w->text[at] == '\\' ? 2 : 1;
    }
    return (at < w->len ? at + 1 : w->len) - w->at;
}

static enum dialect_token
open_one(struct dialect_walk *w, char what)
{
    if (w->depth < DIALECT_DEPTH) {
        w->in[w->depth++] = what;
    }
    return TOKEN_OPEN;
}

static bool
is_in(const struct dialect_walk *w, char what)
{
    return w->depth > 0 && w->in[w->depth - 1] == what;
}

/* Between double quotes, or at the mark that opens something anywhere. */
static bool
next_nested(struct dialect_walk *w, enum dialect_token *ret, size_t *ret_len)
{
    const char c = w->text[w->at];

    *ret_len = 1;
    if (c == '`') {
        const bool closes = is_in(w, '`');

        w->depth -= closes ? 1 : 0;
        *ret = closes ? TOKEN_CLOSE : open_one(w, '`');
        return true;
    }
    if (starts(w, "$(")) {
        *ret_len = 2;
        *ret = open_one(w, '(');
        return true;
    }
    if (c == '"') {
        if (is_in(w, '"')) {
            w->depth--;
        } else {
            (void)open_one(w, '"');
        }
        *ret = TOKEN_QUOTED;
        return true;
    }
    if (c == '\\' && (w->has_escapes || !is_in(w, '"'))) {
        *ret_len = w->len - w->at > 1 ? 2 : 1;
        *ret = TOKEN_QUOTED;
        return true;
    }
    *ret = TOKEN_QUOTED;
    return is_in(w, '"');
}

#define WITHOUT_END_MAX 16U

/* At <<, what ends the document. Between (( it moves bits. */
static void
note_mark(struct dialect_walk *w)
{
    size_t at = w->at + 2;
    size_t n = 0;

    w->mark[0] = '\0';
    if (w->without_end > WITHOUT_END_MAX ||
        (w->depth > 1 && is_in(w, '(') && w->in[w->depth - 2] == '(')) {
        return;
    }
    w->strips_tabs = at < w->len && w->text[at] == '-';
    at += w->strips_tabs ? 1 : 0;
    while (at < w->len && (w->text[at] == ' ' || w->text[at] == '\t')) {
        at++;
    }
    for (; at < w->len && strchr(" \t\n;&|<>()", w->text[at]) == NULL; at++) {
        if (n + 1 >= sizeof(w->mark)) {
            n = 0;
            break;
        }
        if (strchr("'\"\\", w->text[at]) == NULL) {
            w->mark[n++] = w->text[at];
        }
    }
    w->mark[n] = '\0';
}

/* At the end of a line: the document that begins behind it, with its mark. */
static void
find_document(struct dialect_walk *w)
{
    const size_t n = strlen(w->mark);
    size_t at = w->at + 1;

    while (n > 0 && at < w->len) {
        const char *end = memchr(w->text + at, '\n', w->len - at);
        const size_t next = end != NULL ? (size_t)(end - w->text) : w->len;

        while (w->strips_tabs && at < next && w->text[at] == '\t') {
            at++;
        }
        if (next - at == n && memcmp(w->text + at, w->mark, n) == 0) {
            w->document = next - w->at - 1;
            break;
        }
        at = next + 1;
    }
    w->without_end += n > 0 && w->document == 0 ? 1 : 0;
    w->mark[0] = '\0';
}

static enum dialect_token
next_bare(struct dialect_walk *w, size_t *ret_len)
{
    const char c = w->text[w->at];

    *ret_len = 1;
    if (c == '\'' || (w->has_ansi_c && starts(w, "$'"))) {
        *ret_len = quoted_length(w, c == '$' ? 2 : 1, c == '$');
        return TOKEN_QUOTED;
    }
    if (c == '#' && w->has_comments && !w->is_word) {
        const char *end = memchr(w->text + w->at, '\n', w->len - w->at);

        *ret_len = end != NULL ? (size_t)(end - w->text) - w->at : w->len - w->at;
        return TOKEN_COMMENT;
    }
    if (starts(w, "<<")) {
        *ret_len = starts(w, "<<<") ? 3 : 2;
        if (*ret_len == 2) {
            note_mark(w);
        }
        return TOKEN_PLAIN;
    }
    if (c == '\n') {
        find_document(w);
        return TOKEN_END;
    }
    if (starts(w, "<(") || starts(w, ">(")) {
        *ret_len = 2;
        return open_one(w, '(');
    }
    if (c == '(') {
        return open_one(w, '(');
    }
    if (c == ')') {
        w->depth -= is_in(w, '(') ? 1 : 0;
        return TOKEN_CLOSE;
    }
    if (c == ' ' || c == '\t') {
        return TOKEN_BLANK;
    }
    return strchr(";&|", c) != NULL && c != '\0' ? TOKEN_END : TOKEN_PLAIN;
}

enum dialect_token
dialect_next(struct dialect_walk *w, size_t *ret_len)
{
    enum dialect_token ret = TOKEN_PLAIN;

    if (w->document > 0) {
        *ret_len = w->document;
        w->document = 0;
        w->is_word = false;
        return TOKEN_COMMENT;
    }
    if (!next_nested(w, &ret, ret_len)) {
        ret = next_bare(w, ret_len);
    }
    w->is_word =
        ret == TOKEN_PLAIN || ret == TOKEN_QUOTED || (ret == TOKEN_CLOSE && w->text[w->at] == '`');
    return ret;
}

/* A mark that means something else, and what bash has for it. */
struct mark {
    const char *mark, *ours;
    const char *next; /* none of these behind it */
    size_t n;         /* how much of it is replaced */
    unsigned dialects;
    bool at_start; /* of a word */
    bool at_command;
};

static const struct mark *
other_mark(const struct dialect_walk *w, unsigned dialect, bool is_start, bool is_command)
{
    static const struct mark rows[] = {
        {"$\"",  "",     "",            1, DIALECT_BASH,               false, false},
        {"$'",   "\\$",  "",            1, DIALECT_DASH | DIALECT_CSH, false, false},
        {"$[",   "\\$[", "",            2, DIALECT_DASH,               false, false},
        {"&>",   "& >",  "",            2, DIALECT_DASH,               false, false},
        {"((",   "( (",  "",            2, DIALECT_DASH,               true,  false},
        {"[[ ",  ": ",   "",            3, DIALECT_DASH,               true,  false},
        {"[[\t", ": ",   "",            3, DIALECT_DASH,               true,  false},
        {"&|",   "&\n",  "",            2, DIALECT_ZSH,                false, false},
        {"&!",   "&\n",  "",            2, DIALECT_ZSH,                false, false},
        {">!",   ">|",   "",            2, DIALECT_ZSH | DIALECT_CSH,  false, false},
        {"=",    "",     "=~ \t\n;&|)", 1, DIALECT_ZSH,                true,  false},
        {"{",    "{ ",   " \t\n;&|)}",  1, DIALECT_ZSH,                true,  true },
        {"#",    "\\#",  "",            1, DIALECT_BARE,               true,  false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct mark *m = &rows[i];
        const size_t behind = w->at + m->n;
        const bool fits = (m->dialects & dialect) != 0 && (is_start || !m->at_start) &&
                          (is_command || !m->at_command) && starts(w, m->mark);

        if (fits && (m->next[0] == '\0' || (behind < w->len && w->text[behind] != '\0' &&
                                            strchr(m->next, w->text[behind]) == NULL))) {
            return m;
        }
    }
    return NULL;
}

/* `{touch F}` of zsh is a group, `{a,b}` is none. */
static bool
is_group(const struct dialect_walk *w)
{
    size_t n = 1;

    while (w->at + n < w->len && strchr(" \t\n;,}", w->text[w->at + n]) == NULL) {
        n++;
    }
    return n > 1 && w->at + n < w->len && w->text[w->at + n] != ',' && w->text[w->at + n] != '}';
}

static enum sy_code
read_bourne(struct buf *ret, const char *text, size_t len, unsigned dialect)
{
    struct dialect_walk w = {
        .text = text,
        .len = len,
        .has_ansi_c = (dialect & (DIALECT_DASH | DIALECT_CSH)) == 0,
        .has_comments = (dialect & DIALECT_BARE) == 0,
        .has_escapes = (dialect & DIALECT_CSH) == 0,
    };
    bool is_command = true;
    enum sy_code rc = SY_E_OK;

    while (w.at < len && rc == SY_E_OK) {
        const bool is_start = !w.is_word;
        const bool was_quoted = is_in(&w, '"');
        const bool is_escape = was_quoted && !w.has_escapes && text[w.at] == '\\';
        size_t used = 1;
        enum dialect_token token = dialect_next(&w, &used);
        bool is_bare = !was_quoted && token != TOKEN_QUOTED && token != TOKEN_COMMENT;
        const struct mark *m = is_bare ? other_mark(&w, dialect, is_start, is_command) : NULL;

        if (m != NULL && m->mark[0] == '{' && !is_group(&w)) {
            m = NULL;
        }
        if (m != NULL && m->mark[0] == '(') {
            (void)open_one(&w, '('); /* the second of them */
        }
        used = m != NULL ? m->n : used;
        rc = m != NULL ? buf_add_str(ret, m->ours) : buf_add(ret, text + w.at, used);
        if (is_escape && rc == SY_E_OK) {
            rc = buf_add_char(ret, '\\');
        }
        is_command =
            token == TOKEN_END || token == TOKEN_OPEN || (token == TOKEN_BLANK && is_command);
        w.at += used;
    }
    return rc;
}

/* Can it mean something else at all? Most scripts have nothing of it. */
static bool
has_marks(const char *text, size_t len, unsigned dialect)
{
    static const struct {
        unsigned dialects;
        const char *bytes;
    } rows[] = {
        {DIALECT_BASH, "$"   },
        {DIALECT_DASH, "$&(["},
        {DIALECT_ZSH,  "&>={"},
        {DIALECT_CSH,  "$>\\"},
        {DIALECT_BARE, "#"   },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (const char *c = rows[i].bytes; (rows[i].dialects & dialect) != 0 && *c != '\0'; c++) {
            if (memchr(text, *c, len) != NULL) {
                return true;
            }
        }
    }
    return false;
}

static enum sy_code
read_marks(struct buf *ret, const char *text, size_t len, unsigned dialect)
{
    if ((dialect & DIALECT_FISH) != 0) {
        return dialect_read_fish(ret, text, len);
    }
    return has_marks(text, len, dialect) ? read_bourne(ret, text, len, dialect)
                                         : buf_add(ret, text, len);
}

static bool
is_same(const struct buf *b, const char *text, size_t len)
{
    return b->len == len && (len == 0 || memcmp(b->data, text, len) == 0);
}

enum sy_code
dialect_read(struct buf *ret, bool *ret_differs, const char *text, size_t len, unsigned dialect)
{
    SY_AUTO(buf_fini) struct buf marks = {.max = TEXT_MAX};
    const bool is_typed = (dialect & DIALECT_TYPED) != 0;
    enum sy_code rc = SY_E_OK;

    *ret_differs = false;
    if (is_typed && (dialect & (DIALECT_ZSH | DIALECT_CSH)) != 0) {
        dialect |= DIALECT_BARE;
    }
    buf_reset(ret);
    rc = read_marks(&marks, text, len, dialect);
    if (rc == SY_E_OK && (dialect & DIALECT_DASH) == 0 && memchr(text, '{', len) != NULL) {
        rc = dialect_add_braces(ret, buf_view(&marks), marks.len);
    } else if (rc == SY_E_OK) {
        rc = buf_add(ret, buf_view(&marks), marks.len);
    }
    *ret_differs = rc == SY_E_OK && !is_same(ret, text, len);
    return rc;
}

enum sy_code
dialect_differs(bool *ret, const char *text, size_t len, unsigned dialects)
{
    const unsigned flags = dialects & (DIALECT_BARE | DIALECT_TYPED);
    enum sy_code rc = SY_E_OK;

    *ret = false;
    for (unsigned one = DIALECT_DASH; one <= DIALECT_CSH && rc == SY_E_OK && !*ret; one <<= 1U) {
        SY_AUTO(buf_fini) struct buf marks = {.max = TEXT_MAX};

        if ((dialects & one) != 0) {
            rc = read_marks(&marks, text, len, one | flags);
            *ret = rc == SY_E_OK && !is_same(&marks, text, len);
        }
    }
    return rc;
}

/* What stands before a command that is none itself, in bash, zsh, fish or csh. */
static bool
is_keyword(const char *word, size_t n)
{
    static const char *const words[] = {
        "if",    "then",   "else", "elif", "fi",     "while",  "until",    "do",      "done",
        "for",   "select", "case", "esac", "in",     "time",   "!",        "foreach", "end",
        "begin", "and",    "or",   "not",  "always", "coproc", "function",
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (str_is(words[i], word, n)) {
            return true;
        }
    }
    return false;
}

static void
blank_keywords(char *text)
{
    for (char *line = text; *line != '\0';) {
        char *at = line + strspn(line, " \t");
        size_t n = strcspn(at, " \t\n");

        if (n > 0 && is_keyword(at, n)) {
            memset(at, ' ', n);
            line = at + n;
            continue;
        }
        line = at + strcspn(at, "\n");
        line += *line == '\n' ? 1 : 0;
    }
}

enum sy_code
dialect_pieces(struct buf *ret, const char *text, size_t len, enum dialect_cut cut)
{
    static const struct {
        const char *ends;
        const char *gone;
    } cuts[] = {
        [DIALECT_CUT_FEW] = {"\"'`(){};&|#$",          "\\"   },
        [DIALECT_CUT_MANY] = {"\"'`(){};&|#$<>[]=*?!~", "\\"   },
        [DIALECT_CUT_UNQUOTED] = {"`(){};&|#$<>",           "\\\"'"},
    };
    enum sy_code rc = SY_E_OK;

    buf_reset(ret);
    for (size_t i = 0; i < len && rc == SY_E_OK; i++) {
        const bool is_text = text[i] != '\0';

        if (!is_text || strchr(cuts[cut].gone, text[i]) == NULL) {
            const bool is_end = is_text && strchr(cuts[cut].ends, text[i]) != NULL;

            rc = buf_add(ret, is_end ? "\n" : text + i, 1);
        }
    }
    if (rc == SY_E_OK && ret->len > 0) {
        blank_keywords(ret->data);
    }
    return rc;
}
