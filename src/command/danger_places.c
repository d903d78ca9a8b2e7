/* Where the commands of an argument list may run: for whoever reads a name without a directory in
 * what they wrote. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/danger.h"
#include "command/danger_internal.h"

struct walker {
    struct places places; /* by cd */
    struct strv asides;   /* where single commands were told to be */
    const char *home;
    enum sy_code rc;
};

static bool
is_literal(struct script_word w)
{
    return (w.flags & ~(unsigned)WORD_QUOTED) == 0;
}

/* For this command alone: what follows is where it was. */
static enum sy_code
step_aside(struct walker *w, struct script_word dir)
{
    const struct strv *from = &w->places.dirs;
    enum sy_code rc = SY_E_OK;

    if (!is_literal(dir) || dir.text[0] == '\0') {
        return SY_E_OK;
    }
    rc = places_join(&w->asides, from->v[from->n - 1], dir.text);
    return rc == SY_E_LIMIT ? SY_E_OK : rc;
}

/* git, make, ninja, tar, cargo: -C; env --chdir, make --directory, npm --prefix. */
static enum sy_code
add_options(struct walker *w, const struct script_word *words, size_t n)
{
    static const char *const options[] = {"-C", "--directory", "--chdir", "--prefix", "--cwd"};
    enum sy_code rc = SY_E_OK;

    for (size_t i = 1; i < n && rc == SY_E_OK; i++) {
        for (size_t o = 0; o < sizeof(options) / sizeof(options[0]) && rc == SY_E_OK; o++) {
            size_t len = strlen(options[o]);
            struct script_word word = words[i];

            if (str_eq(word.text, options[o]) && i + 1 < n) {
                rc = step_aside(w, words[i + 1]);
            } else if (len > 2 && strncmp(word.text, options[o], len) == 0 &&
                       word.text[len] == '=') {
                word.text += len + 1;
                rc = step_aside(w, word);
            }
        }
    }
    return rc;
}

static void
on_seen(void *arg, unsigned depth, const struct script_word *words, size_t n)
{
    struct walker *w = arg;

    (void)depth;
    if (w->rc != SY_E_OK || n == 0) {
        return;
    }
    if (str_eq(words[0].text, "cd") || str_eq(words[0].text, "pushd")) {
        w->rc = places_cd(&w->places, w->home, (struct words){words, n});
    } else {
        w->rc = add_options(w, words, n);
    }
}

/* The last comes first; `but` is left out. */
static enum sy_code
add_backwards(struct strv *ret, const struct strv *dirs, const char *but)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = dirs->n; i > 0 && rc == SY_E_OK; i--) {
        if (!str_eq(dirs->v[i - 1], but)) {
            rc = strv_add_once(ret, dirs->v[i - 1]);
        }
    }
    return rc;
}

enum sy_code
danger_places(struct strv *ret, const struct judge_world *world, char *const *argv,
              struct sy_error *err)
{
    struct walker w = {.home = world->home, .asides = {.max = PLACES_MAX}};
    size_t n = 0;
    struct script_word *words = words_of_argv(argv, &n);

    w.rc = words != NULL ? places_init(&w.places, world->cwd) : SY_E_NOMEM;
    on_seen(&w, 0, words, n);
    if (w.rc == SY_E_OK) {
        w.rc = danger_walk(world, argv, on_seen, &w, err);
    }
    if (w.rc == SY_E_OK) {
        w.rc = add_backwards(ret, &w.asides, world->cwd);
    }
    if (w.rc == SY_E_OK) {
        w.rc = add_backwards(ret, &w.places.dirs, world->cwd);
    }
    strv_fini(&w.asides);
    places_fini(&w.places);
    mem_free(words);
    return w.rc == SY_E_NOMEM ? sy_err_nomem(err) : w.rc;
}
