#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "command/judge_internal.h"

struct words
words_from(struct words w, size_t k)
{
    size_t skip = k < w.n ? k : w.n;

    return (struct words){w.v + skip, w.n - skip};
}

void
judge_small_letters(char *s)
{
    for (; *s != '\0'; s++) {
        if (*s >= 'A' && *s <= 'Z') {
            *s = (char)(*s | 0x20);
        }
    }
}

void
judge_program_name(char ret[PROGRAM_NAME_MAX], const char *path, bool is_windows)
{
    static const char *const endings[] = {".exe", ".cmd", ".bat", ".com"};
    const char *name = strrchr(path, '/');
    size_t n = 0;

    name = name != NULL ? name + 1 : path;
    if (is_windows && strrchr(name, '\\') != NULL) {
        name = strrchr(name, '\\') + 1;
    }
    for (; name[n] != '\0' && n < PROGRAM_NAME_MAX - 1; n++) {
        ret[n] = name[n];
    }
    ret[n] = '\0';
    if (is_windows) {
        judge_small_letters(ret);
    }
    for (size_t i = 0; is_windows && i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (n > 4 && str_ends(ret, endings[i])) {
            ret[n - 4] = '\0';
            return;
        }
    }
}

/* As much of `bytes` as fits, made visible; an allocation that fails leaves less. */
static void
set_visible(char *ret, size_t size, const char *bytes, size_t len)
{
    SY_AUTO(buf_fini) struct buf b = {.max = size * 4};

    ret[0] = '\0';
    if (str_add_visible(&b, bytes, len, size - 8) == SY_E_OK && b.len < size) {
        memcpy(ret, buf_view(&b), b.len + 1);
    }
}

void
verdict_set(struct verdict *ret, const char *rule, struct words command, const char *argument,
            const char *why)
{
    char joined[sizeof(ret->command)];
    size_t n = 0;
    size_t max = sizeof(joined) - 1;

    for (size_t i = 0; i < command.n && n < max; i++) {
        size_t len = command.v[i].len < max - n ? command.v[i].len : max - n;

        if (i > 0) {
            joined[n++] = ' ';
            len = len < max - n ? len : max - n;
        }
        memcpy(joined + n, command.v[i].text, len);
        n += len;
    }
    ret->rule = rule;
    set_visible(ret->command, sizeof(ret->command), joined, n);
    ret->argument[0] = '\0';
    if (argument != NULL) {
        size_t len = strlen(argument);

        set_visible(ret->argument, sizeof(ret->argument), argument,
                    len < sizeof(ret->argument) ? len : sizeof(ret->argument));
    }

    size_t why_len = strlen(why);

    why_len = why_len < sizeof(ret->why) ? why_len : sizeof(ret->why) - 1;
    memcpy(ret->why, why, why_len);
    ret->why[why_len] = '\0';
}

bool
judge_in_list(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *s = list; len > 0 && (s = strstr(s, word)) != NULL; s += len) {
        bool begins = s == list || s[-1] == ' ';

        if (begins && (s[len] == ' ' || s[len] == '\0')) {
            return strchr(word, ' ') == NULL;
        }
    }
    return false;
}

bool
judge_is_shell(const char *name)
{
    return judge_in_list("sh bash zsh dash ksh ash mksh fish rbash csh tcsh yash posh rzsh ksh93",
                         name);
}

enum sy_code
places_init(struct places *p, const char *cwd)
{
    *p = (struct places){.dirs = {.max = PLACES_MAX}};
    return strv_add(&p->dirs, cwd);
}

void
places_fini(struct places *p)
{
    strv_fini(&p->dirs);
}

void
places_next(struct places *p, unsigned flags)
{
    if ((flags & (COMMAND_AFTER_AND | COMMAND_READS_PIPE)) == 0) {
        p->first = 0;
    }
}

enum sy_code
places_join(struct strv *to, const char *dir, const char *name)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = (size_t)64 * 1024};
    SY_AUTO(buf_fini) struct buf plain = {.max = (size_t)64 * 1024};
    enum sy_code rc = path_join(&joined, dir, name);

    if (rc == SY_E_OK) {
        rc = path_normalize(&plain, buf_view(&joined));
    }
    return rc == SY_E_OK ? strv_add(to, buf_view(&plain)) : rc;
}

/* dir as seen from each place. */
static enum sy_code
add_each(struct places *p, const char *dir)
{
    size_t n = p->dirs.n;
    size_t begin = p->first;

    p->first = n;
    for (size_t i = begin; i < n; i++) {
        enum sy_code rc = places_join(&p->dirs, p->dirs.v[i], dir);

        if (rc == SY_E_LIMIT) {
            p->is_unknown = true;
            p->first = 0;
            return SY_E_OK;
        }
        if (rc != SY_E_OK || dir[0] == '/') {
            return rc;
        }
    }
    return SY_E_OK;
}

enum sy_code
places_cd(struct places *p, const char *home, struct words cd)
{
    struct words rest = words_from(cd, 1);

    while (rest.n > 0 && judge_in_list("-L -P -e -- -LP -PL", rest.v[0].text)) {
        rest = words_from(rest, 1);
    }
    if (rest.n == 0 || (rest.n == 1 && (rest.v[0].flags & WORD_TILDE) != 0)) {
        const char *below = rest.n == 0 ? "~" : rest.v[0].text;

        if (home == NULL || (below[1] != '\0' && below[1] != '/')) {
            p->is_unknown = true;
            return SY_E_OK;
        }
        enum sy_code rc = add_each(p, home);

        return rc != SY_E_OK || below[1] == '\0' || below[2] == '\0' ? rc : add_each(p, below + 2);
    }
    if (rest.n > 1 || (rest.v[0].flags & ~(unsigned)WORD_QUOTED) != 0 || rest.v[0].text[0] == '-' ||
        rest.v[0].text[0] == '+') {
        p->is_unknown = true;
        return SY_E_OK;
    }
    return add_each(p, rest.v[0].text);
}

struct script_word *
words_of_argv(char *const *argv, size_t *ret_n)
{
    size_t n = 0;

    while (argv[n] != NULL) {
        n++;
    }

    struct script_word *words = mem_alloc_zero(n + 1, sizeof(*words));

    for (size_t i = 0; words != NULL && i < n; i++) {
        words[i] = (struct script_word){argv[i], (uint32_t)strlen(argv[i]), WORD_QUOTED};
    }
    *ret_n = n;
    return words;
}
