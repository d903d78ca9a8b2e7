#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/place.h"
#include "base/utf8.h"

bool
place_is_deceptive(uint32_t c)
{
    return c < 0x20U || (c >= 0x7FU && c < 0xA0U) || c == 0xADU || c == 0x61CU ||
           (c >= 0x200BU && c <= 0x200FU) || (c >= 0x2028U && c <= 0x202EU) ||
           (c >= 0x2060U && c <= 0x206FU) || c == 0xFEFFU || c >= 0xE0000U;
}

/* Copies into dst, of which `size` bytes and a NUL can be used; returns how
 * much of the text was copied. */
static size_t
copy_visible(char *dst, size_t size, const char *text, size_t len)
{
    size_t used = 0;
    size_t i = 0;

    while (i < len) {
        uint32_t c = 0;
        size_t n = utf8_decode(&c, text + i, len - i);
        bool is_bad = n == 0 || place_is_deceptive(c);
        size_t step = is_bad ? 1 : n;

        if (used + step > size) {
            break;
        }
        if (is_bad) {
            dst[used] = '?';
        } else {
            memcpy(dst + used, text + i, n);
        }
        used += step;
        i += n > 0 ? n : 1;
    }
    dst[used] = '\0';
    return i;
}

const char *
place_visible(struct place_shown *shown, const char *text, size_t len)
{
    static const char dots[] = "...";
    size_t room = sizeof(shown->text) - sizeof(dots);

    if (copy_visible(shown->text, room, text, len) < len) {
        memcpy(shown->text + strlen(shown->text), dots, sizeof(dots));
    }
    return shown->text;
}

const char *
place_visible_path(struct place_shown_path *shown, const char *path)
{
    static const char dots[] = "...";
    size_t room = sizeof(shown->text) - sizeof(dots);
    size_t len = strlen(path);

    if (len <= room) {
        (void)copy_visible(shown->text, room, path, len);
        return shown->text;
    }

    const char *end = path + len - room;

    /* Not in the middle of a character. */
    while (((unsigned char)*end & 0xC0U) == 0x80U) {
        end++;
    }
    memcpy(shown->text, dots, sizeof(dots) - 1);
    (void)copy_visible(shown->text + sizeof(dots) - 1, room, end, strlen(end));
    return shown->text;
}

enum sy_code
place_error(struct sy_error *err, const struct place *at, const char *fmt, ...)
{
    char sentence[SY_ERR_MSG_MAX];
    struct place_shown_path path;
    const char *prefix = at->prefix != NULL ? at->prefix : "";
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    (void)place_visible_path(&path, at->name);
    return at->line > 0 ? sy_err_set(err, SY_E_CONFIG, "%s%s:%zu:%zu: %s", prefix, path.text,
                                     at->line, at->column, sentence)
                        : sy_err_set(err, SY_E_CONFIG, "%s%s: %s", prefix, path.text, sentence);
}

struct place
place_of_byte(const struct place_text *in, size_t offset)
{
    struct place at = {.prefix = in->prefix, .name = in->name, .line = 1, .column = 1};

    for (size_t i = 0; i < offset && i < in->len; i++) {
        if (in->text[i] == '\n') {
            at.line++;
            at.column = 1;
        } else if (((unsigned char)in->text[i] & 0xC0U) != 0x80U) {
            at.column++;
        }
    }
    if (in->is_one_line) {
        at.line = 0;
    }
    return at;
}

enum sy_code
place_check_utf8(const struct place_text *in, struct sy_error *err)
{
    size_t good = utf8_valid_prefix(in->text, in->len);

    if (good == in->len) {
        return SY_E_OK;
    }

    struct place at = place_of_byte(in, good);

    return place_error(err, &at, "invalid UTF-8 (byte 0x%02x)",
                       (unsigned)(unsigned char)in->text[good]);
}
