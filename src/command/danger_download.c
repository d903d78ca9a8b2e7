/*
 * Programs that come from the network and are run before anybody has read them. What they hold is
 * as little known as a script that can't be read.
 */
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

void
danger_download_look(struct danger *d)
{
    const struct script *s = d->script;

    d->brings = NULL;
    for (size_t i = 0; i < s->n_commands && d->rc == SY_E_OK; i++) {
        if (!is_downloader(d, &s->commands[i])) {
            continue;
        }
        if (d->brings == NULL) {
            d->brings = mem_alloc_zero(s->n_commands, sizeof(*d->brings));
        }
        if (d->brings == NULL) {
            d->rc = SY_E_NOMEM;
        } else {
            d->brings[i] = true;
        }
    }
}

/* Somewhere before it in its pipeline. What is nested belongs to the command around it. */
static bool
pipe_brings(const struct danger *d)
{
    size_t i = d->at;
    bool goes_on = d->reads_pipe;

    while (goes_on && i > 0) {
        i--;
        if (d->brings[i]) {
            return true;
        }
        goes_on = (d->script->commands[i].flags & (COMMAND_NESTED | COMMAND_READS_PIPE)) != 0;
    }
    return false;
}

/* In a substitution among its words or as its input: such commands follow theirs. */
static bool
substitution_brings(const struct danger *d)
{
    const struct script *s = d->script;

    for (size_t i = d->at + 1; i < s->n_commands && (s->commands[i].flags & COMMAND_NESTED) != 0;
         i++) {
        if (d->brings[i]) {
            return true;
        }
    }
    return false;
}

/* The file that an address or a path names: what curl -O and wget make of it. */
static bool
names_file(const struct script_word *word, const char *file)
{
    const char *begin = word->text;
    size_t len = strcspn(begin, "?#");
    size_t n = strlen(file);

    if (len < n || strncmp(begin + len - n, file, n) != 0) {
        return false;
    }
    return len == n || strchr("/=", begin[len - n - 1]) != NULL;
}

/* Was a file of this name brought by the script? */
static bool
was_brought(const struct danger *d, const char *path)
{
    const struct script *s = d->script;
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;

    if (file[0] == '\0') {
        return false;
    }
    for (size_t i = 0; i < s->n_redirects; i++) {
        if (s->redirects[i].writes && names_file(&s->redirects[i].target, file)) {
            return true;
        }
    }
    for (size_t i = 0; i < s->n_commands; i++) {
        const struct script_command *c = &s->commands[i];

        for (size_t k = 1; d->brings[i] && k < c->n; k++) {
            if (names_file(&c->words[k], file)) {
                return true;
            }
        }
    }
    return false;
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
runs_it(const struct danger *d, const char *name, struct words w)
{
    if (is_interpreter(name)) {
        return interpreter_runs_it(d, name, w);
    }
    if (str_eq(name, "eval")) {
        for (size_t i = 1; i < w.n; i++) {
            if ((w.v[i].flags & WORD_DYNAMIC) != 0) {
                return true;
            }
        }
        return false;
    }
    if (judge_in_list(". source", name) && w.n > 1) {
        return (w.v[1].flags & WORD_DYNAMIC_START) != 0 ? substitution_brings(d)
                                                        : was_brought(d, w.v[1].text);
    }
    return strchr(w.v[0].text, '/') != NULL && was_brought(d, w.v[0].text);
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
    if (d->brings != NULL && runs_it(d, name, w)) {
        danger_download_found(d, w);
    }
}
