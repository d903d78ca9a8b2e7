/* Scripts: their commands, as each shell reads them that may be the one. */
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/danger_internal.h"

/* Assigned at most so many times, and by no command that we do not follow: looking a variable
 * up takes time for each of them. */
#define VARIABLES_MAX 256U

/* Scripts inside scripts are read in several ways each. */
#define OTHERS_MAX 1000U

static bool
has_known_variables(const struct script *s)
{
    for (size_t i = 0; i < s->n_commands; i++) {
        if (judge_in_list("read unset eval source . export declare local readonly typeset mapfile "
                          "readarray getopts printf let",
                          s->commands[i].words[0].text)) {
            return false;
        }
    }
    return s->n_assigned <= VARIABLES_MAX;
}

static bool
is_same_word(const struct script_word *a, const struct script_word *b)
{
    return a->flags == b->flags && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool
is_same(const struct script_command *a, const struct script_command *b)
{
    bool ret = a->n == b->n && a->flags == b->flags;

    for (size_t i = 0; i < a->n && ret; i++) {
        ret = is_same_word(&a->words[i], &b->words[i]);
    }
    return ret;
}

/* Was this command of another reading in the first one, at its place from the beginning or the
 * end? Then all has been said about it. */
static bool
is_known(const struct script *s, size_t i, const struct script *first)
{
    const size_t from_end = s->n_commands - i;

    if (first == NULL) {
        return false;
    }
    return (i < first->n_commands && is_same(&s->commands[i], &first->commands[i])) ||
           (from_end <= first->n_commands &&
            is_same(&s->commands[i], &first->commands[first->n_commands - from_end]));
}

/* Scripts hold scripts, and programs start programs, to LIMIT_SCRIPT_LAYERS: hence the
 * recursion. NOLINTBEGIN(misc-no-recursion) */

/* The redirections of a script, but for those of its first reading. */
static void
judge_redirects(struct danger *d, const struct script *script, const struct script *first)
{
    for (size_t i = 0; i < script->n_redirects && d->rc == SY_E_OK; i++) {
        const struct script_redirect *r = &script->redirects[i];
        const bool was_there = first != NULL && i < first->n_redirects &&
                               is_same_word(&r->target, &first->redirects[i].target) &&
                               r->truncates == first->redirects[i].truncates;

        if (r->writes && !was_there) {
            danger_overwrite(d, (struct words){&r->target, 1}, &r->target, r->truncates);
        }
    }
}

static void
judge_commands(struct danger *d, const struct script *script, const struct script *first)
{
    const struct danger_in outer = d->in;

    d->in =
        (struct danger_in){.script = script, .has_known_variables = has_known_variables(script)};
    d->layers++;
    for (size_t i = 0; i < script->n_commands && d->rc == SY_E_OK; i++) {
        const struct script_command *c = &script->commands[i];
        const bool moves = judge_in_list("cd pushd", c->words[0].text);

        places_next(&d->places, c->flags);
        d->reads_pipe = (c->flags & COMMAND_READS_PIPE) != 0;
        d->before = d->reads_pipe && i > 0 ? &script->commands[i - 1] : NULL;
        d->in.at = i;
        if (moves || !is_known(script, i, first)) {
            danger_words(d, (struct words){c->words, c->n});
        }
    }
    places_next(&d->places, 0);
    judge_redirects(d, script, first);
    d->layers--;
    danger_download_free(d->in.downloads);
    d->in = outer;
    d->reads_pipe = false;
    d->before = NULL;
}

/* What of it can't be read may be read by the shell all the same, line by line or as the shell has
 * it. So whatever may begin a command in it does. */
static void
judge_pieces(struct danger *d, const char *text, size_t len)
{
    SY_AUTO(buf_fini) struct buf pieces = {.max = (size_t)LIMIT_SCRIPT * 4};
    struct script script = {0};
    enum sy_code rc = SY_E_OK;

    for (enum dialect_cut cut = DIALECT_CUT_FEW; cut <= DIALECT_CUT_MANY && rc == SY_E_OK; cut++) {
        struct sy_error ignored = {.code = SY_E_OK};

        rc = dialect_pieces(&pieces, text, len, cut);
        if (rc == SY_E_OK) {
            rc = script_read(d->world->reader, &script, SCRIPT_BASH, buf_view(&pieces), pieces.len,
                             &ignored);
        }
        if (rc == SY_E_OK && script.form != SCRIPT_UNREADABLE) {
            break;
        }
    }
    if (rc == SY_E_NOMEM) {
        d->rc = rc;
    } else if (rc == SY_E_OK) {
        d->depth++; /* none of them stands there by itself */
        judge_commands(d, &script, NULL);
        d->depth--;
    }
    script_fini(&script);
}

/* What the shell runs of a script though the grammar takes it for text. */
static void
judge_hidden(struct danger *d, struct words w, const char *text, size_t len,
             const struct script *first)
{
    SY_AUTO(buf_fini) struct buf hidden = {.max = (size_t)LIMIT_SCRIPT * 4};
    enum sy_code rc = dialect_add_hidden(&hidden, text, len, false);

    for (size_t i = 0; i < first->n_inputs && rc == SY_E_OK; i++) {
        const struct script_word *input = &first->inputs[i];

        if ((input->flags & WORD_BACKTICKS) != 0) {
            rc = dialect_add_hidden(&hidden, input->text, input->len, true);
        }
    }
    if (rc == SY_E_NOMEM) {
        d->rc = rc;
    } else if (rc != SY_E_OK) {
        danger_found(d, DANGER_UNKNOWN, "script.refused", w, NULL, "it is too intricate");
    } else if (hidden.len > 0) {
        d->layers++;
        d->depth++;
        danger_script(d, w, buf_view(&hidden), hidden.len);
        d->depth--;
        d->layers--;
    }
}

/* One reading: of bash's, or of another one's (`first` is bash's then). */
static void
judge_reading(struct danger *d, struct words w, const char *text, size_t len, struct script *script,
              const struct script *first)
{
    struct sy_error err = {.code = SY_E_OK};
    enum sy_code rc = script_read(d->world->reader, script, SCRIPT_BASH, text, len, &err);
    const bool is_line = d->world->typed != 0 && d->layers == 0 && first == NULL;

    if (rc == SY_E_NOMEM) {
        d->rc = rc;
        return;
    }
    if (rc != SY_E_OK) {
        danger_found(d, DANGER_UNKNOWN, "script.refused", w, NULL, err.msg);
    } else if (script->form == SCRIPT_UNREADABLE && first == NULL) {
        danger_found(d, DANGER_UNKNOWN, "script.unreadable", w, NULL, script->reason);
    }
    if (script->form != SCRIPT_UNREADABLE) {
        d->depth += first != NULL ? 1 : 0;
        judge_commands(d, script, first);
        d->depth -= first != NULL ? 1 : 0;
    } else if (rc == SY_E_OK && !is_line) { /* more of a line may come */
        judge_pieces(d, text, len);
    }
}

/* As others read it than bash, where they read it in another way. */
static void
judge_others(struct danger *d, struct words w, const char *text, size_t len,
             const struct script *first)
{
    const unsigned all = d->dialects != 0 ? d->dialects : DIALECT_ALL;
    SY_AUTO(buf_fini) struct buf before = {.max = (size_t)LIMIT_SCRIPT * 4};

    for (unsigned one = DIALECT_BASH; one <= DIALECT_CSH && d->rc == SY_E_OK; one <<= 1U) {
        SY_AUTO(buf_fini) struct buf other = {.max = before.max};
        struct script script = {0};
        bool differs = false;
        enum sy_code rc = (all & one) == 0 ? SY_E_OK
                                           : dialect_read(&other, &differs, text, len,
                                                          one | (all & ~DIALECT_ALL));

        if (rc == SY_E_NOMEM) {
            d->rc = rc;
            return;
        }
        if (rc != SY_E_OK || (differs && ++d->others > OTHERS_MAX)) {
            danger_found(d, DANGER_UNKNOWN, "script.refused", w, NULL,
                         "it is too intricate for what other shells make of it");
            return;
        }
        if (differs && (before.len != other.len ||
                        memcmp(buf_view(&before), buf_view(&other), other.len) != 0)) {
            judge_reading(d, w, buf_view(&other), other.len, &script, first);
            script_fini(&script);
            buf_fini(&before);
            before = other;
            other = (struct buf){.max = before.max};
        }
    }
}

void
danger_script(struct danger *d, struct words w, const char *text, size_t len)
{
    struct script script = {0};

    if (d->layers >= LIMIT_SCRIPT_LAYERS) {
        danger_found(d, DANGER_UNKNOWN, "script.layers", w, NULL,
                     "scripts inside scripts, too deep to look into");
        return;
    }
    judge_reading(d, w, text, len, &script, NULL);
    if (d->rc == SY_E_OK && len <= LIMIT_SCRIPT && memchr(text, '\0', len) == NULL) {
        judge_others(d, w, text, len, &script);
        judge_hidden(d, w, text, len, &script);
    }
    script_fini(&script);
}

/* NOLINTEND(misc-no-recursion) */
