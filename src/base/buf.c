#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void
buf_fini(struct buf *b)
{
    mem_free(b->data);
    b->data = NULL;
    b->len = 0;
    b->cap = 0;
}

void
buf_reset(struct buf *b)
{
    b->len = 0;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

enum sy_code
buf_reserve(struct buf *b, size_t more)
{
    size_t need = 0;

    if (!size_add(&need, b->len, more) || need > b->max) {
        return SY_E_LIMIT;
    }
    if (need < b->cap) {
        return SY_E_OK;
    }

    /* Doubling, at least 64, never beyond the maximum and its NUL. */
    size_t cap = b->cap > 0 ? b->cap : 64;

    while (cap <= need) {
        if (!size_mul(&cap, cap, 2)) {
            cap = need + 1;
        }
    }
    if (cap > b->max) {
        cap = b->max + 1;
    }

    char *grown = mem_realloc(b->data, cap);

    if (grown == NULL) {
        return SY_E_NOMEM;
    }
    b->data = grown;
    b->cap = cap;
    b->data[b->len] = '\0';
    return SY_E_OK;
}

enum sy_code
buf_add(struct buf *b, const void *bytes, size_t n)
{
    enum sy_code rc = buf_reserve(b, n);

    if (rc != SY_E_OK || n == 0) {
        return rc;
    }
    memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return SY_E_OK;
}

enum sy_code
buf_add_str(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

enum sy_code
buf_add_char(struct buf *b, char c)
{
    return buf_add(b, &c, 1);
}

enum sy_code
buf_addv(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);

    int n = vsnprintf(NULL, 0, fmt, again);

    va_end(again);
    if (n < 0) {
        return SY_E_INTERNAL;
    }

    enum sy_code rc = buf_reserve(b, (size_t)n);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap) != n) {
        b->data[b->len] = '\0';
        return SY_E_INTERNAL;
    }
    b->len += (size_t)n;
    return SY_E_OK;
}

enum sy_code
buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);

    enum sy_code rc = buf_addv(b, fmt, ap);

    va_end(ap);
    return rc;
}

void
buf_drop(struct buf *b, size_t n)
{
    SY_ASSERT(n <= b->len);
    if (n == 0) {
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

char *
buf_take(struct buf *b)
{
    if (b->data == NULL && buf_reserve(b, 0) != SY_E_OK) {
        return NULL;
    }

    char *data = b->data;

    b->data = NULL;
    b->len = 0;
    b->cap = 0;
    return data;
}

const char *
buf_view(const struct buf *b)
{
    return b->data != NULL ? b->data : "";
}

void
strv_fini(struct strv *s)
{
    for (size_t i = 0; i < s->n; i++) {
        mem_free(s->v[i]);
    }
    mem_free(s->v);
    s->v = NULL;
    s->n = 0;
    s->cap = 0;
}

enum sy_code
strv_add_take(struct strv *s, char *text)
{
    if (text == NULL) {
        return SY_E_NOMEM;
    }
    if (s->n >= s->max) {
        mem_free(text);
        return SY_E_LIMIT;
    }
    if (s->n + 1 >= s->cap) {
        size_t cap = s->cap > 0 ? s->cap * 2 : 8;
        char **grown = mem_realloc(s->v, cap * sizeof(char *));

        if (grown == NULL) {
            mem_free(text);
            return SY_E_NOMEM;
        }
        s->v = grown;
        s->cap = cap;
    }
    s->v[s->n++] = text;
    s->v[s->n] = NULL;
    return SY_E_OK;
}

enum sy_code
strv_addn(struct strv *s, const char *text, size_t n)
{
    return strv_add_take(s, mem_strndup(text, n));
}

enum sy_code
strv_add(struct strv *s, const char *text)
{
    return strv_add_take(s, mem_strdup(text));
}

enum sy_code
strv_addf(struct strv *s, const char *fmt, ...)
{
    SY_AUTO(buf_fini) struct buf b = {.max = (size_t)-1 / 2};
    va_list ap;

    va_start(ap, fmt);

    enum sy_code rc = buf_addv(&b, fmt, ap);

    va_end(ap);
    return rc != SY_E_OK ? rc : strv_add_take(s, buf_take(&b));
}

enum sy_code
strv_add_all(struct strv *s, char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        enum sy_code rc = strv_add(s, *list);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

void
strv_remove(struct strv *s, size_t i)
{
    SY_ASSERT(i < s->n);
    mem_free(s->v[i]);
    memmove(&s->v[i], &s->v[i + 1], (s->n - i) * sizeof(char *));
    s->n--;
}

bool
strv_eq(const struct strv *a, const struct strv *b)
{
    if (a->n != b->n) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->v[i], b->v[i]) != 0) {
            return false;
        }
    }
    return true;
}

bool
strv_has(const struct strv *s, const char *text)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->v[i], text) == 0) {
            return true;
        }
    }
    return false;
}

enum sy_code
strv_add_once(struct strv *s, const char *text)
{
    return strv_has(s, text) ? SY_E_OK : strv_add(s, text);
}

char *const *
strv_view(const struct strv *s)
{
    static char *const none[] = {NULL};

    return s->v != NULL ? s->v : none;
}

static size_t
env_index(const struct strv *s, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < s->n; i++) {
        /* The first letter by itself: most entries go without a call. */
        if (s->v[i][0] == name[0] && strncmp(s->v[i], name, len) == 0 && s->v[i][len] == '=') {
            return i;
        }
    }
    return s->n;
}

const char *
strv_env_find(char *const *list, const char *name)
{
    size_t n = strlen(name);

    for (; list != NULL && *list != NULL; list++) {
        /* Most differ at once: dozens of names are looked for before a command. */
        if ((*list)[0] == name[0] && strncmp(*list, name, n) == 0 && (*list)[n] == '=') {
            return *list + n + 1;
        }
    }
    return NULL;
}

const char *
strv_env_get(const struct strv *s, const char *name)
{
    return strv_env_find(strv_view(s), name);
}

/* By hand: an environment has dozens of these for each command, and printf
 * would take most of the time of making it. */
static char *
env_entry(const char *name, const char *value)
{
    size_t n = strlen(name);
    size_t m = strlen(value);
    char *entry = mem_alloc(n + m + 2);

    if (entry != NULL) {
        memcpy(entry, name, n + 1);
        entry[n] = '=';
        memcpy(entry + n + 1, value, m + 1);
    }
    return entry;
}

enum sy_code
strv_env_add(struct strv *s, const char *name, const char *value)
{
    return strv_add_take(s, env_entry(name, value));
}

enum sy_code
strv_env_set(struct strv *s, const char *name, const char *value)
{
    size_t i = env_index(s, name);
    char *entry = env_entry(name, value);

    if (i == s->n) {
        return strv_add_take(s, entry);
    }
    if (entry == NULL) {
        return SY_E_NOMEM;
    }
    mem_free(s->v[i]);
    s->v[i] = entry;
    return SY_E_OK;
}

void
strv_env_unset(struct strv *s, const char *name)
{
    size_t i = env_index(s, name);

    if (i < s->n) {
        strv_remove(s, i);
    }
}
