#include "command/script.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "command/script_internal.h"
#include "command/script_memory.h"

/* Scripts of up to so many bytes share one parser and its memory. */
#define SMALL_SCRIPT ((size_t)16 * 1024)
#define SMALL_MEMORY ((size_t)32 * 1024 * 1024)

/* When so much was used, blocks of one parse lie all over it, which costs more time than
 * making the parser anew. */
#define MIXED_MEMORY ((size_t)65536)

/* Bytes of memory per byte of script: a long pipe takes 700, common scripts 40. */
#define MEMORY_PER_BYTE ((size_t)2048)

/* A parser and the memory that it lives in. */
struct script_parser {
    struct script_memory *memory;
    TSParser *parser;
    /* What was parsed last: each of a command's judges reads the same script. */
    TSTree *tree; /* NULL: that text is wrong */
    char *text;   /* NULL: nothing was */
    size_t len;
};

struct source {
    const char *text;
    size_t len;
};

/* Why the parser ended early. */
enum stop_reason {
    STOP_NONE,
    STOP_WRONG,     /* a wrong script is refused anyhow, and mending it is what takes long */
    STOP_INTRICATE, /* it takes too much of memory, */
    STOP_LATE,      /* or of time */
};

struct script_reader {
    struct script_parser small[2]; /* by language; made when first used */
    uint8_t *kinds;                /* enum node_kind of each symbol of bash's grammar */
    char *refused;                 /* what took too much last; NULL: nothing did */
    size_t refused_len;
    enum stop_reason reason; /* for that */
};

static const TSLanguage *
grammar(enum script_language language)
{
    return language == SCRIPT_POWERSHELL ? tree_sitter_powershell() : tree_sitter_bash();
}

static void
parser_fini(struct script_parser *p)
{
    /* All that tree-sitter has is in this memory. */
    script_memory_free(p->memory);
    mem_free(p->text);
    *p = (struct script_parser){0};
}

static bool
has_parsed(const struct script_parser *p, const char *text, size_t len)
{
    return p->text != NULL && p->len == len && memcmp(p->text, text, len) == 0;
}

/* NULL: it has none, being wrong. */
static enum sy_code
keep_tree(struct script_parser *p, TSTree *tree, const struct source *from)
{
    p->text = mem_alloc(from->len + 1);
    if (p->text == NULL) {
        if (tree != NULL) {
            ts_tree_delete(tree);
        }
        return SY_E_NOMEM;
    }
    memcpy(p->text, from->text, from->len);
    p->len = from->len;
    p->tree = tree;
    return SY_E_OK;
}

/* `is_whole`: all of the parser's memory is given up, the tree's with it. */
static void
drop_tree(struct script_parser *p, bool is_whole)
{
    if (p->tree != NULL && !is_whole) {
        ts_tree_delete(p->tree);
    }
    mem_free(p->text);
    p->tree = NULL;
    p->text = NULL;
    p->len = 0;
}

/* A new parser in memory that holds nothing else. */
static void
parser_start(struct script_parser *p, enum script_language language)
{
    drop_tree(p, true);
    script_memory_reset(p->memory);
    script_memory_use(p->memory);
    p->parser = ts_parser_new();

    bool has_language = ts_parser_set_language(p->parser, grammar(language));

    script_memory_use(NULL);
    SY_ASSERT(has_language); /* a grammar that the runtime does not know was built in */
}

static enum sy_code
parser_init(struct script_parser *ret, enum script_language language, size_t size)
{
    ret->memory = script_memory_new(size);
    if (ret->memory == NULL) {
        return SY_E_NOMEM;
    }
    parser_start(ret, language);
    return SY_E_OK;
}

static enum node_kind
kind_of_name(const char *name)
{
    static const struct {
        const char *name;
        enum node_kind kind;
    } table[] = {
#define NODE(name, kind) {name, kind},
#include "command/script_nodes.def"
#undef NODE
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].name, name) == 0) {
            return table[i].kind;
        }
    }
    return NODE_OTHER;
}

static uint8_t *
make_kinds(void)
{
    const TSLanguage *bash = tree_sitter_bash();
    uint32_t n = ts_language_symbol_count(bash);
    uint8_t *kinds = mem_alloc_zero(n, 1);

    for (uint32_t i = 0; kinds != NULL && i < n; i++) {
        const char *name = ts_language_symbol_name(bash, (TSSymbol)i);

        kinds[i] = (uint8_t)(name != NULL ? kind_of_name(name) : NODE_OTHER);
    }
    return kinds;
}

struct script_reader *
script_reader_new(void)
{
    struct script_reader *r = mem_alloc_zero(1, sizeof(*r));

    if (r == NULL) {
        return NULL;
    }
    r->kinds = make_kinds();
    if (r->kinds == NULL) {
        mem_free(r);
        return NULL;
    }
    return r;
}

void
script_reader_free(struct script_reader *r)
{
    if (r == NULL) {
        return;
    }
    parser_fini(&r->small[SCRIPT_BASH]);
    parser_fini(&r->small[SCRIPT_POWERSHELL]);
    mem_free(r->kinds);
    mem_free(r->refused);
    mem_free(r);
}

static void
store_reset(struct script_store *s)
{
    buf_reset(&s->text);
    buf_reset(&s->commands);
    buf_reset(&s->firsts);
    buf_reset(&s->redirects);
    for (size_t i = 0; i < LIST_COUNT; i++) {
        buf_reset(&s->words[i]);
        buf_reset(&s->places[i]);
    }
}

static struct script_store *
store_new(void)
{
    /* Of a script of LIMIT_SCRIPT bytes: each may be a word, a word has 40 bytes here. */
    const size_t max = (size_t)LIMIT_SCRIPT * 64;
    struct script_store *s = mem_alloc_zero(1, sizeof(*s));

    if (s == NULL) {
        return NULL;
    }
    s->text.max = max;
    s->commands.max = max;
    s->firsts.max = max;
    s->redirects.max = max;
    for (size_t i = 0; i < LIST_COUNT; i++) {
        s->words[i].max = max;
        s->places[i].max = max;
    }
    return s;
}

void
script_fini(struct script *s)
{
    struct script_store *store = s->store;

    if (store != NULL) {
        buf_fini(&store->text);
        buf_fini(&store->commands);
        buf_fini(&store->firsts);
        buf_fini(&store->redirects);
        for (size_t i = 0; i < LIST_COUNT; i++) {
            buf_fini(&store->words[i]);
            buf_fini(&store->places[i]);
        }
        mem_free(store);
    }
    *s = (struct script){0};
}

/* The words of a list, now that the text stays where it is. */
static struct script_word *
settle(struct script_store *s, enum word_list list)
{
    struct script_word *words = (struct script_word *)(void *)s->words[list].data;
    const size_t *places = (const size_t *)(const void *)s->places[list].data;
    size_t n = s->words[list].len / sizeof(*words);

    for (size_t i = 0; i < n; i++) {
        words[i].text = s->text.data + places[i];
    }
    return words;
}

static void
publish(struct script *out, struct script_store *s)
{
    struct script_word *words = settle(s, LIST_WORDS);
    struct script_word *targets = settle(s, LIST_TARGETS);
    struct script_command *commands = (struct script_command *)(void *)s->commands.data;
    struct script_redirect *redirects = (struct script_redirect *)(void *)s->redirects.data;
    const size_t *firsts = (const size_t *)(const void *)s->firsts.data;

    out->n_commands = s->commands.len / sizeof(*commands);
    for (size_t i = 0; i < out->n_commands; i++) {
        commands[i].words = words + firsts[i];
    }
    out->n_redirects = s->redirects.len / sizeof(*redirects);
    for (size_t i = 0; i < out->n_redirects; i++) {
        redirects[i].target = targets[i];
    }
    out->commands = commands;
    out->redirects = redirects;
    out->inputs = settle(s, LIST_INPUTS);
    out->n_inputs = s->words[LIST_INPUTS].len / sizeof(struct script_word);
    out->assigned = settle(s, LIST_ASSIGNED);
    out->n_assigned = s->words[LIST_ASSIGNED].len / sizeof(struct script_word);
}

static void
forget(struct script *out, const char *reason)
{
    struct script_store *store = out->store;

    if (store != NULL) {
        store_reset(store);
    }
    *out = (struct script){.form = SCRIPT_UNREADABLE, .store = store};
    snprintf(out->reason, sizeof(out->reason), "%s", reason);
}

struct stop {
    const struct script_memory *memory;
    uint64_t until_ns; /* of our thread's work */
    enum stop_reason reason;
};

/* Between steps of the parser: true ends it. */
static bool
must_stop(TSParseState *state)
{
    struct stop *stop = state->payload;

    if (script_memory_is_low(stop->memory)) {
        stop->reason = STOP_INTRICATE;
    } else if (state->has_error) {
        stop->reason = STOP_WRONG;
    } else if (clock_work_ns() > stop->until_ns) {
        stop->reason = STOP_LATE;
    }
    return stop->reason != STOP_NONE;
}

static const char *
source_read(void *payload, uint32_t at, TSPoint where, uint32_t *ret_len)
{
    const struct source *s = payload;

    (void)where;
    if (at >= s->len) {
        *ret_len = 0;
        return "";
    }
    *ret_len = (uint32_t)(s->len - at);
    return s->text + at;
}

static enum sy_code
walk(struct script_walk *w, TSTree *tree, enum script_language language, struct sy_error *err)
{
    TSNode root = ts_tree_root_node(tree);

    if (ts_node_has_error(root)) {
        forget(w->out, "its syntax is wrong, or of a kind that is not known here");
        return SY_E_OK;
    }

    TSTreeCursor cursor = ts_tree_cursor_new(root);
    enum sy_code rc = SY_E_OK;

    w->cursor = &cursor;
    rc = language == SCRIPT_POWERSHELL ? script_walk_powershell(w, err) : script_walk_bash(w, err);
    ts_tree_cursor_delete(&cursor);
    if (rc == SY_E_OK) {
        publish(w->out, w->store);
    } else {
        forget(w->out, rc == SY_E_LIMIT ? "it is nested too deeply" : "memory is out");
    }
    return rc;
}

/* One run of the parser. */
struct run {
    TSParser *parser;
    struct source source;
    struct stop stop;
    TSTree *tree; /* NULL: it was stopped */
};

static void
run_parser(void *arg)
{
    struct run *r = arg;
    const TSInput input = {&r->source, source_read, TSInputEncodingUTF8, NULL};
    const TSParseOptions options = {.payload = &r->stop, .progress_callback = must_stop};

    r->tree = ts_parser_parse_with_options(r->parser, NULL, input, options);
    if (r->tree == NULL) {
        ts_parser_reset(r->parser);
    }
}

/* The tree of a text, in the parser's memory; SY_E_LIMIT, with *ret_reason, where it takes too
 * much.
 */
static enum sy_code
grow(struct script_parser *p, enum script_language language, const struct source *from,
     enum stop_reason *ret_reason)
{
    struct run run = {
        .parser = p->parser,
        .source = *from,
        .stop = {.memory = p->memory,
                 .until_ns =
                     clock_work_ns() +
                     (LIMIT_SCRIPT_WORK_MS + from->len / LIMIT_SCRIPT_WORK_BYTES) * 1000000ULL},
    };

    script_memory_use(p->memory);
    drop_tree(p, false);
    script_memory_use(NULL);
    if (!script_memory_run(p->memory, run_parser, &run)) {
        parser_start(p, language);
        run.stop.reason = STOP_INTRICATE;
    }
    *ret_reason = run.stop.reason;
    if (run.stop.reason == STOP_INTRICATE || run.stop.reason == STOP_LATE) {
        return SY_E_LIMIT;
    }
    script_memory_use(p->memory);

    enum sy_code rc = keep_tree(p, run.tree, from);

    script_memory_use(NULL);
    return rc;
}

/* Each of a command's judges reads the same script: what took too much once is not tried again. */
static enum sy_code
refuse(struct script_reader *r, const struct source *from, enum stop_reason reason,
       struct script *out, struct sy_error *err)
{
    if (reason != STOP_NONE) {
        mem_free(r->refused);
        r->refused = mem_alloc(from->len + 1);
        r->refused_len = from->len;
        r->reason = reason;
        if (r->refused != NULL) {
            memcpy(r->refused, from->text, from->len);
        }
    }
    forget(out, "it is too intricate");
    return r->reason == STOP_LATE
               ? sy_err_set(err, SY_E_LIMIT,
                            "script is too intricate: reading its %zu bytes takes over %zu ms; "
                            "split it",
                            from->len, LIMIT_SCRIPT_WORK_MS + from->len / LIMIT_SCRIPT_WORK_BYTES)
               : sy_err_set(err, SY_E_LIMIT,
                            "script is too intricate: reading its %zu bytes takes over %u bytes of "
                            "memory; split it",
                            from->len, LIMIT_SCRIPT_MEMORY);
}

static bool
was_refused(const struct script_reader *r, const struct source *from)
{
    return r->refused != NULL && r->refused_len == from->len &&
           memcmp(r->refused, from->text, from->len) == 0;
}

static enum sy_code
parse(struct script_reader *r, struct script_parser *p, struct script_walk *w,
      enum script_language language, struct sy_error *err)
{
    const struct source source = {w->text, w->len};
    enum stop_reason reason = STOP_NONE;
    enum sy_code rc =
        has_parsed(p, w->text, w->len) ? SY_E_OK : grow(p, language, &source, &reason);

    if (rc == SY_E_LIMIT) {
        return refuse(r, &source, reason, w->out, err);
    }
    script_memory_use(p->memory);
    if (rc != SY_E_OK) {
        forget(w->out, "memory is out");
    } else if (p->tree != NULL) {
        rc = walk(w, p->tree, language, err);
    } else {
        forget(w->out, "its syntax is wrong");
    }
    script_memory_use(NULL);
    return rc;
}

/* A parser for a script of `len` bytes: the shared one, or *temporary. */
static enum sy_code
parser_for(struct script_parser **ret, struct script_reader *r, struct script_parser *temporary,
           enum script_language language, const char *text, size_t len)
{
    struct script_parser *small = &r->small[language];
    enum sy_code rc = SY_E_OK;

    if (len > SMALL_SCRIPT) {
        size_t size = SMALL_MEMORY + len * MEMORY_PER_BYTE;

        size = size < (size_t)LIMIT_SCRIPT_MEMORY * 2 ? size : (size_t)LIMIT_SCRIPT_MEMORY * 2;
        *ret = temporary;
        return parser_init(temporary, language, size);
    }
    if (small->memory == NULL) {
        rc = parser_init(small, language, SMALL_MEMORY);
    } else if (small->memory->used > MIXED_MEMORY && !has_parsed(small, text, len)) {
        parser_start(small, language);
    }
    *ret = small;
    return rc;
}

static enum sy_code
check_text(const char *text, size_t len, struct script *out, struct sy_error *err)
{
    if (len > LIMIT_SCRIPT) {
        forget(out, "it is too long");
        return sy_err_set(err, SY_E_LIMIT, "script has %zu bytes: more than %u are not read", len,
                          LIMIT_SCRIPT);
    }

    const char *nul = memchr(text, '\0', len);
    size_t valid = utf8_valid_prefix(text, len);

    if (nul != NULL) {
        forget(out, "it is no text");
        return sy_err_set(err, SY_E_PARSE, "script has a NUL byte at byte %td: it is no text",
                          nul - text);
    }
    if (valid < len) {
        forget(out, "it is no text");
        return sy_err_set(err, SY_E_PARSE, "script is no UTF-8 text at byte %zu", valid);
    }
    return SY_E_OK;
}

enum sy_code
script_read(struct script_reader *r, struct script *ret, enum script_language language,
            const char *text, size_t len, struct sy_error *err)
{
    struct script_parser temporary = {0};
    struct script_parser *parser = NULL;

    if (ret->store == NULL) {
        ret->store = store_new();
        if (ret->store == NULL) {
            return sy_err_nomem(err);
        }
    }
    forget(ret, "");

    enum sy_code rc = check_text(text, len, ret, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (was_refused(r, &(struct source){text, len})) {
        return refuse(r, &(struct source){text, len}, STOP_NONE, ret, err);
    }
    rc = parser_for(&parser, r, &temporary, language, text, len);
    if (rc != SY_E_OK) {
        forget(ret, "memory is out");
        return sy_err_nomem(err);
    }

    struct script_walk w = {
        .text = text,
        .len = len,
        .out = ret,
        .store = ret->store,
        .kinds = r->kinds,
        .is_plain = true,
        .is_heredoc = true,
    };

    rc = parse(r, parser, &w, language, err);
    parser_fini(&temporary);
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}
