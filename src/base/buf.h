#ifndef SY_BASE_BUF_H
#define SY_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * A growing byte string with a maximum given at birth:
 *
 *     SY_AUTO(buf_fini) struct buf line = {.max = LIMIT_RPC_FRAME};
 *
 * `data` is NULL or holds `len` bytes and a NUL after them. Adding beyond
 * `max` gives SY_E_LIMIT and adds nothing; out of memory gives SY_E_NOMEM and
 * keeps what was there.
 */
struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
};

/* Frees; leaves an empty buffer with the same maximum. Accepts zeroed. */
void buf_fini(struct buf *b);
/* Empties, keeps the memory. */
void buf_reset(struct buf *b);
/* Makes room for `more` bytes beyond len, within max. */
enum sy_code buf_reserve(struct buf *b, size_t more) SY_NODISCARD;
enum sy_code buf_add(struct buf *b, const void *bytes, size_t n) SY_NODISCARD;
enum sy_code buf_add_str(struct buf *b, const char *s) SY_NODISCARD;
enum sy_code buf_add_char(struct buf *b, char c) SY_NODISCARD;
enum sy_code buf_addf(struct buf *b, const char *fmt, ...) SY_NODISCARD SY_PRINTF(2, 3);
enum sy_code buf_addv(struct buf *b, const char *fmt, va_list ap) SY_NODISCARD SY_PRINTF(2, 0);
/* Removes the first n bytes. */
void buf_drop(struct buf *b, size_t n);
/* Moves the bytes out (NUL-terminated, freed with mem_free by the caller) and
 * leaves the buffer empty. NULL when memory is out. */
char *buf_take(struct buf *b);
/* The text, never NULL; valid until the next change. */
const char *buf_view(const struct buf *b);

/*
 * A list of strings that it owns, NULL-terminated so that it can be given to
 * execve: `v` is NULL while the list is empty and untouched (use strv_view).
 */
struct strv {
    char **v;
    size_t n;
    size_t cap;
    size_t max;
};

void strv_fini(struct strv *s);
enum sy_code strv_add(struct strv *s, const char *text) SY_NODISCARD;
enum sy_code strv_addn(struct strv *s, const char *text, size_t n) SY_NODISCARD;
enum sy_code strv_addf(struct strv *s, const char *fmt, ...) SY_NODISCARD SY_PRINTF(2, 3);
/* Takes the string; frees it when it fails. */
enum sy_code strv_add_take(struct strv *s, char *text) SY_NODISCARD;
enum sy_code strv_add_all(struct strv *s, char *const *list) SY_NODISCARD;
/* Removes (and frees) element i. */
void strv_remove(struct strv *s, size_t i);
bool strv_has(const struct strv *s, const char *text);
/* Appends a text that is not there yet. */
enum sy_code strv_add_once(struct strv *s, const char *text) SY_NODISCARD;
/* The same texts in the same order. */
bool strv_eq(const struct strv *a, const struct strv *b);
/* A NULL-terminated array, never NULL itself. */
char *const *strv_view(const struct strv *s);

/* Environment lists ("NAME=value"): the value of NAME or NULL; set replaces
 * or adds; add is for a name that the list has not; unset removes if present.
 * Names are compared exactly. */
const char *strv_env_get(const struct strv *s, const char *name);
/* The same of a list as execve takes it, which may be NULL. */
const char *strv_env_find(char *const *list, const char *name);
enum sy_code strv_env_set(struct strv *s, const char *name, const char *value) SY_NODISCARD;
enum sy_code strv_env_add(struct strv *s, const char *name, const char *value) SY_NODISCARD;
void strv_env_unset(struct strv *s, const char *name);

#endif
