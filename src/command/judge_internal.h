#ifndef SY_COMMAND_JUDGE_INTERNAL_H
#define SY_COMMAND_JUDGE_INTERNAL_H

#include "command/judge.h"

/* Words with their number: a command, or the rest of one. */
struct words {
    const struct script_word *v;
    size_t n;
};

/* Without the first k words. */
struct words words_from(struct words w, size_t k);

/* What a program is called: the last part of its path; on Windows in small letters and
 * without .exe and its like. In ret (cut when too long, which no name in our tables is). */
#define PROGRAM_NAME_MAX 64
void judge_program_name(char ret[PROGRAM_NAME_MAX], const char *path, bool is_windows);

/* ASCII letters, in place. */
void judge_small_letters(char *s);

/* Fills *ret; `argument` may be NULL. The texts are cut, which is no failure. */
void verdict_set(struct verdict *ret, const char *rule, struct words command, const char *argument,
                 const char *why);

/* Is `word` one of the blank-separated words of `list`? */
bool judge_in_list(const char *list, const char *word);

/* Is it one of sh, bash, zsh, dash, ksh, fish, csh and the like? */
bool judge_is_shell(const char *name);

/* Where a script's commands may run, as far as its cd commands tell. */
struct places {
    struct strv dirs; /* the first is the world's cwd */
    size_t first;     /* those before it are not possible now */
    bool is_unknown;  /* anywhere else too */
};

#define PLACES_MAX 16
enum sy_code places_init(struct places *p, const char *cwd) SY_NODISCARD;
void places_fini(struct places *p);
/* Before a command with these flags: after cd and && only the new places are possible, until
 * something else than && follows. */
void places_next(struct places *p, unsigned flags);
/* Adds `name` as seen from `dir`, without dots. SY_E_LIMIT: it is too long, or one too many. */
enum sy_code places_join(struct strv *to, const char *dir, const char *name) SY_NODISCARD;
/* After the command `cd ...`. */
enum sy_code places_cd(struct places *p, const char *home, struct words cd) SY_NODISCARD;

/* argv as words that mean themselves. Freed with mem_free by the caller; NULL: no memory. */
struct script_word *words_of_argv(char *const *argv, size_t *ret_n);

#endif
