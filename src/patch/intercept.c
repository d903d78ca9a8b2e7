/* Calls of apply_patch that are written as commands. */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/script.h"
#include "patch/patch_internal.h"

const char patch_bare_advice[] =
    "patch detected without explicit call to apply_patch. Rerun as [\"apply_patch\", \"<patch>\"], "
    "or call the tool apply_patch";

struct span {
    const char *s;
    size_t n;
};

static bool
is_name(const char *word)
{
    return str_eq(word, "apply_patch") || str_eq(word, "applypatch");
}

/* The first line of a script: the commands, and the word that ends the here-document. */
struct frame {
    struct span head;
    struct span word;
    bool strips_tabs; /* <<- */
    const char *body;
};

static const char *
skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* 'X', "X" or X; NULL: none of these. */
static const char *
take_word(struct span *ret, const char *s)
{
    const char *const stops = *s == '\''  ? "'\n"
                              : *s == '"' ? "\"\n\\$`"
                                          : " \t\r\n'\"\\$`;&|<>()#";
    bool is_quoted = *s == '\'' || *s == '"';
    char quote = *s;

    s += is_quoted ? 1 : 0;
    *ret = (struct span){s, strcspn(s, stops)};
    s += ret->n;
    if (ret->n == 0 || (is_quoted && *s != quote)) {
        return NULL;
    }
    return s + (is_quoted ? 1 : 0);
}

static bool
take_frame(struct frame *ret, const char *script)
{
    const char *at = NULL;

    while (patch_is_blank(*script)) {
        script++;
    }
    at = script + strcspn(script, "<\n");
    if (at[0] != '<' || at[1] != '<' || at[2] == '<') {
        return false;
    }
    ret->head = (struct span){script, (size_t)(at - script)};
    at += 2;
    ret->strips_tabs = *at == '-';
    at = take_word(&ret->word, skip_blanks(at + (ret->strips_tabs ? 1 : 0)));
    if (at == NULL) {
        return false;
    }
    at = skip_blanks(at);
    at += *at == '\r' ? 1 : 0;
    ret->body = at + 1;
    return *at == '\n';
}

/* One line without its end; *next is behind it. */
static struct span
take_line(const char *s, const char **next)
{
    size_t n = strcspn(s, "\n");

    *next = s + n + (s[n] == '\n' ? 1 : 0);
    return (struct span){s, n > 0 && s[n - 1] == '\r' ? n - 1 : n};
}

/* Up to the line that ends it, after which nothing may stand. False: there is none, or more. */
static bool
take_body(struct buf *ret, const struct frame *f, enum sy_code *rc)
{
    const char *at = f->body;

    while (*at != '\0' && *rc == SY_E_OK) {
        const char *next = NULL;
        struct span line = take_line(at, &next);
        size_t tabs = f->strips_tabs ? strspn(at, "\t") : 0;

        if (line.n == f->word.n + tabs && memcmp(at + tabs, f->word.s, f->word.n) == 0) {
            while (patch_is_blank(*next)) {
                next++;
            }
            return *next == '\0';
        }
        *rc = buf_add(ret, at + tabs, (size_t)(next - at) - tabs);
        at = next;
    }
    return false;
}

/* One word as it is, that the shell does not compute. */
static bool
is_literal(const struct script_word *w)
{
    return w->len > 0 && w->len == strlen(w->text) &&
           (w->flags &
            (WORD_DYNAMIC | WORD_SPLITS | WORD_GLOB | WORD_TILDE | WORD_BRACE | WORD_ANSI_C)) == 0;
}

static bool
calls_apply_patch(const struct script_command *c)
{
    return c->n == 1 && is_literal(&c->words[0]) && is_name(c->words[0].text);
}

static bool
changes_directory(const struct script_command *c)
{
    return c->n == 2 && c->flags == 0 && is_literal(&c->words[0]) && is_literal(&c->words[1]) &&
           str_eq(c->words[0].text, "cd") && c->words[1].text[0] != '-';
}

/* The commands in front of the here-document: apply_patch alone, or after a cd. */
static bool
is_call(const struct script *s, const struct script_word **ret_dir)
{
    *ret_dir = NULL;
    if (s->form != SCRIPT_PLAIN || s->n_redirects > 0 || s->n_inputs > 0 || s->n_assigned > 0) {
        return false;
    }
    if (s->n_commands == 1) {
        return calls_apply_patch(&s->commands[0]) && s->commands[0].flags == 0;
    }
    if (s->n_commands != 2 || !changes_directory(&s->commands[0]) ||
        !calls_apply_patch(&s->commands[1]) || s->commands[1].flags != COMMAND_AFTER_AND) {
        return false;
    }
    *ret_dir = &s->commands[0].words[1];
    return true;
}

static bool
ends_with(const struct span *s, const char *word)
{
    size_t n = strlen(word);

    return s->n >= n && memcmp(s->s + s->n - n, word, n) == 0;
}

/* Cheap, for most commands are none. A comment would hide the here-document, and an escaped end of
 * the line would, too. */
static bool
may_be_call(struct span head)
{
    while (head.n > 0 && patch_is_blank(head.s[head.n - 1])) {
        head.n--;
    }
    return (ends_with(&head, "apply_patch") || ends_with(&head, "applypatch")) &&
           memchr(head.s, '#', head.n) == NULL && memchr(head.s, '\\', head.n) == NULL;
}

static enum sy_code
read_head(struct intercept *ret, const struct span *head, bool *ret_is_call)
{
    struct script_reader *reader = script_reader_new();
    const struct script_word *dir = NULL;
    struct script s = {0};
    enum sy_code rc = SY_E_NOMEM;

    if (reader != NULL) {
        rc = script_read(reader, &s, SCRIPT_BASH, head->s, head->n, NULL);
    }
    *ret_is_call = rc == SY_E_OK && is_call(&s, &dir);
    if (*ret_is_call && dir != NULL) {
        ret->workdir = mem_strndup(dir->text, dir->len);
        rc = ret->workdir != NULL ? rc : SY_E_NOMEM;
    }
    script_fini(&s);
    script_reader_free(reader);
    return rc == SY_E_NOMEM ? rc : SY_E_OK; /* what is no text is no call */
}

static enum sy_code
find_bare(struct intercept *ret, const char *text)
{
    struct patch p;
    enum sy_code rc = SY_E_OK;

    if (!patch_looks_like(text, strlen(text))) {
        return SY_E_OK;
    }
    rc = patch_read(&p, text, strlen(text), NULL);
    patch_fini(&p);
    ret->kind = rc == SY_E_OK ? INTERCEPT_BARE : INTERCEPT_NONE;
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

static enum sy_code
set_body(struct intercept *ret, struct buf *body)
{
    ret->len = body->len;
    ret->body = buf_take(body);
    if (ret->body == NULL) {
        return SY_E_NOMEM;
    }
    ret->kind = INTERCEPT_PATCH;
    return SY_E_OK;
}

enum sy_code
patch_intercept_script(struct intercept *ret, const char *script)
{
    SY_AUTO(buf_fini) struct buf body = {.max = LIMIT_RPC_FRAME};
    struct frame f;
    bool is_call = false;
    enum sy_code rc = SY_E_OK;

    *ret = (struct intercept){.kind = INTERCEPT_NONE};
    if (!take_frame(&f, script)) {
        return find_bare(ret, script);
    }
    if (may_be_call(f.head) && take_body(&body, &f, &rc) && rc == SY_E_OK) {
        rc = read_head(ret, &f.head, &is_call);
    }
    if (rc == SY_E_OK && is_call) {
        rc = set_body(ret, &body);
    }
    if (rc != SY_E_OK || ret->kind == INTERCEPT_NONE) {
        intercept_fini(ret);
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

/* The last component of a path of either kind, in small letters and without ".exe". */
static void
stem_of(char ret[16], const char *path)
{
    const char *name = path;
    size_t n = 0;

    for (const char *s = path; *s != '\0'; s++) {
        name = *s == '/' || *s == '\\' ? s + 1 : name;
    }
    for (; name[n] != '\0' && n < 15; n++) {
        ret[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] | 0x20 : name[n]);
    }
    ret[n] = '\0';
    if (name[n] != '\0') {
        ret[0] = '\0'; /* longer than any shell's */
    } else if (n > 4 && str_ends(ret, ".exe")) {
        ret[n - 4] = '\0';
    }
}

static bool
is_option(const char *word, const char *option)
{
    return str_glob_nocase(option, word);
}

/* The script of an argument list that is a shell's; NULL: it is another. */
static const char *
script_of(char *const *argv, size_t n)
{
    char stem[16];

    stem_of(stem, argv[0]);
    if (str_eq(stem, "bash") || str_eq(stem, "zsh") || str_eq(stem, "sh")) {
        return n == 3 && (str_eq(argv[1], "-lc") || str_eq(argv[1], "-c")) ? argv[2] : NULL;
    }
    if (str_eq(stem, "pwsh") || str_eq(stem, "powershell")) {
        size_t skip = n == 4 && is_option(argv[1], "-noprofile") ? 1 : 0;

        return n == 3 + skip && is_option(argv[1 + skip], "-command") ? argv[2 + skip] : NULL;
    }
    return str_eq(stem, "cmd") && n == 3 && is_option(argv[1], "/c") ? argv[2] : NULL;
}

enum sy_code
patch_intercept_argv(struct intercept *ret, char *const *argv)
{
    const char *script = NULL;
    size_t n = 0;

    *ret = (struct intercept){.kind = INTERCEPT_NONE};
    while (argv[n] != NULL) {
        n++;
    }
    if (n == 0) {
        return SY_E_OK;
    }
    if (n == 2 && is_name(argv[0])) {
        ret->len = strlen(argv[1]);
        ret->body = mem_strdup(argv[1]);
        ret->kind = ret->body != NULL ? INTERCEPT_PATCH : INTERCEPT_NONE;
        return ret->body != NULL ? SY_E_OK : SY_E_NOMEM;
    }
    script = script_of(argv, n);
    if (script != NULL) {
        return patch_intercept_script(ret, script);
    }
    return n == 1 ? find_bare(ret, argv[0]) : SY_E_OK;
}

void
intercept_fini(struct intercept *i)
{
    mem_free(i->body);
    mem_free(i->workdir);
    *i = (struct intercept){.kind = INTERCEPT_NONE};
}
