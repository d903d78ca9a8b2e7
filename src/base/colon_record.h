#ifndef SY_BASE_COLON_RECORD_H
#define SY_BASE_COLON_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines of fields with colons between them, as of passwd(5) and group(5). Pure. */
struct colon_text {
    const char *s;
    size_t n;
};

/*
 * Cuts the next line off *rest and fills its first `max` fields, those that it lacks as empty.
 * Returns how many it has, which may be more; 0: there are no more lines.
 */
size_t colon_record_next(struct colon_text *rest, struct colon_text *fields, size_t max);

/* Is it that number, in decimal digits? */
bool colon_text_is(struct colon_text text, uint32_t wanted);

#endif
