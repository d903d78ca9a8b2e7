#ifndef SY_PROXY_HTTP_INTERNAL_H
#define SY_PROXY_HTTP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* A header line of a head that proxy_http_parse has accepted, or is about to. */
struct http_field {
    const char *name;
    size_t name_len;
    const char *value; /* without white space around it */
    size_t value_len;
};

/* The field that begins at *at; *at moves behind it. false: no fields are left,
 * or (*ret_is_bad) the line is none. */
bool http_field_next(const char *data, size_t head_len, size_t *at, struct http_field *ret,
                     bool *ret_is_bad);
bool http_field_is(const struct http_field *f, const char *name);
bool http_is_token(char c);

#endif
