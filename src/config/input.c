#include "base/utf8.h"
#include "config/config_internal.h"

struct config_place
config_place_of_byte(const struct config_input *in, size_t offset)
{
    struct config_place at = {.source = in->source, .name = in->name, .line = 1, .column = 1};

    for (size_t i = 0; i < offset && i < in->len; i++) {
        if (in->text[i] == '\n') {
            at.line++;
            at.column = 1;
        } else if (((unsigned char)in->text[i] & 0xC0U) != 0x80U) {
            at.column++;
        }
    }
    return at;
}

enum sy_code
config_check_utf8(const struct config_input *in, struct sy_error *err)
{
    size_t good = utf8_valid_prefix(in->text, in->len);

    if (good == in->len) {
        return SY_E_OK;
    }

    struct config_place at = config_place_of_byte(in, good);

    return config_error(err, &at, "invalid UTF-8 (byte 0x%02x)",
                        (unsigned)(unsigned char)in->text[good]);
}
