/*
 * Programs that come from the network and are run before anybody has read them. What they hold is
 * as little known as a script that can't be read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "command/danger_internal.h"

static bool
is_downloader(const struct danger *d, const struct script_command *c)
{
    char name[PROGRAM_NAME_MAX];
    struct words w = danger_unwrap(d, (struct words){c->words, c->n});

    judge_program_name(name, w.v[0].text, d->world->is_windows);
    return judge_in_list("curl wget wget2 fetch aria2c axel http https xh curlie GET lwp-request "
                         "lwp-download lynx links elinks w3m ftp tftp ssh nc ncat netcat socat",
                         name);
}

/* What is known of a command of the script. All is found in one pass, and asked for in little time:
 * a script may have as many commands as its length has room for. */
#define BRINGS       1U /* it takes from the network */
#define PIPE_BRINGS  2U /* so does it, or a command before it in its pipeline */
#define INNER_BRINGS 4U /* it is nested, and so does it or one of the nested ones that follow */

struct downloads {
    size_t n;         /* of hashes */
    uint64_t *hashes; /* names of files that are brought, sorted */
    uint8_t of_command[];
};

/* Fowler, Noll and Vo, 1a. Two names with one hash cost a question too many. */
static uint64_t
hash_of(const char *s, size_t len)
{
    uint64_t h = 0xCBF29CE484222325U;

    for (size_t i = 0; i < len; i++) {
        h = (h ^ (unsigned char)s[i]) * 0x100000001B3U;
    }
    return h;
}

/* Of the last part of a path, an address, or `--output=PATH`. */
static uint64_t
hash_of_file(const char *text, size_t len)
{
    size_t from = len;

    while (from > 0 && strchr("/=", text[from - 1]) == NULL) {
        from--;
    }
    return hash_of(text + from, len - from);
}

static int
by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

/* What curl -O and wget make of an address has no `?query`. */
static void
add_file(struct downloads *l, const struct script_word *word)
{
    size_t cut = strcspn(word->text, "?#");

    l->hashes[l->n++] = hash_of_file(word->text, word->len);
    if (cut < word->len) {
        l->hashes[l->n++] = hash_of_file(word->text, cut);
    }
}

static bool
add_files(struct downloads *l, const struct script *s)
{
    size_t words = s->n_redirects;

    for (size_t i = 0; i < s->n_commands; i++) {
        words += (l->of_command[i] & BRINGS) != 0 ? s->commands[i].n : 0;
    }
    l->hashes = mem_alloc_zero(words * 2, sizeof(*l->hashes));
    if (l->hashes == NULL) {
        return false;
    }
    for (size_t i = 0; i < s->n_redirects; i++) {
        if (s->redirects[i].writes) {
            add_file(l, &s->redirects[i].target);
        }
    }
    for (size_t i = 0; i < s->n_commands; i++) {
        for (size_t k = 1; (l->of_command[i] & BRINGS) != 0 && k < s->commands[i].n; k++) {
            add_file(l, &s->commands[i].words[k]);
        }
    }
    qsort(l->hashes, l->n, sizeof(*l->hashes), by_value);
    return true;
}

/* What is nested belongs to the command around it, which stands before. */
static void
spread(struct downloads *l, const struct script *s)
{
    uint8_t *of = l->of_command;

    for (size_t i = 0; i < s->n_commands; i++) {
        bool goes_on = (s->commands[i].flags & (COMMAND_NESTED | COMMAND_READS_PIPE)) != 0;

        if ((of[i] & BRINGS) != 0 || (goes_on && i > 0 && (of[i - 1] & PIPE_BRINGS) != 0)) {
            of[i] |= PIPE_BRINGS;
        }
    }
    for (size_t i = s->n_commands; i-- > 0;) {
        bool follows = i + 1 < s->n_commands && (of[i + 1] & INNER_BRINGS) != 0;

        if ((s->commands[i].flags & COMMAND_NESTED) != 0 && ((of[i] & BRINGS) != 0 || follows)) {
            of[i] |= INNER_BRINGS;
        }
    }
}

static struct downloads *
find(const struct danger *d, enum sy_code *ret_rc)
{
    const struct script *s = d->in.script;
    struct downloads *l = NULL;

    for (size_t i = 0; i < s->n_commands; i++) {
        if (!is_downloader(d, &s->commands[i])) {
            continue;
        }
        if (l == NULL) {
            l = mem_alloc_zero(1, sizeof(*l) + s->n_commands);
        }
        if (l == NULL) {
            *ret_rc = SY_E_NOMEM;
            return NULL;
        }
        l->of_command[i] = BRINGS;
    }
    if (l == NULL) {
        return NULL;
    }
    if (!add_files(l, s)) {
        *ret_rc = SY_E_NOMEM;
        mem_free(l);
        return NULL;
    }
    spread(l, s);
    return l;
}

void
danger_download_free(struct downloads *l)
{
    if (l != NULL) {
        mem_free(l->hashes);
        mem_free(l);
    }
}

/* At the first command that may run what is brought. False: nothing is. */
static bool
look(struct danger *d)
{
    if (!d->in.has_looked) {
        d->in.has_looked = true;
        d->in.downloads = find(d, &d->rc);
    }
    return d->in.downloads != NULL;
}

static bool
pipe_brings(const struct danger *d)
{
    return d->reads_pipe && d->in.at > 0 &&
           (d->in.downloads->of_command[d->in.at - 1] & PIPE_BRINGS) != 0;
}

/* In a substitution among its words or as its input. */
static bool
substitution_brings(const struct danger *d)
{
    return d->in.at + 1 < d->in.script->n_commands &&
           (d->in.downloads->of_command[d->in.at + 1] & INNER_BRINGS) != 0;
}

/* Was a file of this name brought by the script? */
static bool
was_brought(const struct danger *d, const char *path)
{
    size_t len = strlen(path);
    uint64_t h = hash_of_file(path, len);

    return len > 0 && path[len - 1] != '/' &&
           bsearch(&h, d->in.downloads->hashes, d->in.downloads->n, sizeof(h), by_value) != NULL;
}

static bool
is_interpreter(const char *name)
{
    char plain[PROGRAM_NAME_MAX];
    size_t len = strlen(name);

    while (len > 0 && strchr("0123456789.", name[len - 1]) != NULL) {
        len--;
    }
    memcpy(plain, name, len);
    plain[len] = '\0';
    return judge_is_shell(name) ||
           judge_in_list("python pypy perl ruby node nodejs deno bun php lua "
                         "Rscript osascript",
                         plain);
}

static bool
is_bundle(const char *word)
{
    return (word[0] == '-' || word[0] == '+') && word[1] != '\0' && word[1] != '-';
}

/* Where an interpreter has its program from. */
static bool
interpreter_runs_it(const struct danger *d, const char *name, struct words w)
{
    bool is_shell = judge_is_shell(name);
    char letter = is_shell || str_starts(name, "py") ? 'c' : 'e';
    size_t i = 1;

    for (; i < w.n && w.v[i].text[0] != '\0' && strchr("-+", w.v[i].text[0]) != NULL &&
           w.v[i].text[1] != '\0';
         i++) {
        const char *word = w.v[i].text;

        if (is_bundle(word) && strchr(word, letter) != NULL && i + 1 < w.n) {
            return (w.v[i + 1].flags & WORD_DYNAMIC) != 0;
        }
        if (is_shell && is_bundle(word) && strchr(word, 's') != NULL) {
            i = w.n;
            break;
        }
        i += is_shell && strchr("oO", word[strlen(word) - 1]) != NULL ? 1 : 0;
    }
    if (i >= w.n || judge_in_list("- /dev/stdin", w.v[i].text)) {
        return pipe_brings(d) || substitution_brings(d);
    }
    return (w.v[i].flags & WORD_DYNAMIC_START) != 0 ? substitution_brings(d)
                                                    : was_brought(d, w.v[i].text);
}

static bool
has_computed(struct words w)
{
    for (size_t i = 1; i < w.n; i++) {
        if ((w.v[i].flags & WORD_DYNAMIC) != 0) {
            return true;
        }
    }
    return false;
}

void
danger_download_found(struct danger *d, struct words w)
{
    danger_found(d, DANGER_UNKNOWN, "download.run", w, NULL,
                 "it runs what comes from the network, which nobody has read");
}

void
danger_download(struct danger *d, const char *name, struct words w)
{
    bool runs = false;

    if (d->in.script == NULL) {
        return;
    }
    /* Most commands run nothing, and are found to by little. */
    if (strchr(w.v[0].text, '/') != NULL && !is_interpreter(name)) {
        runs = look(d) && was_brought(d, w.v[0].text);
    } else if (strchr("pnrdbzmfaklsRoe.", name[0]) == NULL) {
        return;
    } else if (is_interpreter(name)) {
        runs = look(d) && interpreter_runs_it(d, name, w);
    } else if (str_eq(name, "eval")) {
        runs = look(d) && has_computed(w);
    } else if (judge_in_list(". source", name) && w.n > 1) {
        runs = look(d) && ((w.v[1].flags & WORD_DYNAMIC_START) != 0 ? substitution_brings(d)
                                                                    : was_brought(d, w.v[1].text));
    }
    if (runs) {
        danger_download_found(d, w);
    }
}
