#include "base/yaml_text.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/place.h"
#include "base/utf8.h"

enum sy_code
yaml_text_quote(struct buf *b, const char *s)
{
    size_t len = strlen(s);
    enum sy_code rc = buf_add_char(b, '"');

    for (size_t i = 0; i < len && rc == SY_E_OK;) {
        uint32_t c = 0;
        size_t n = utf8_decode(&c, s + i, len - i);

        if (n == 0) {
            rc = buf_addf(b, "\\x%02x", (unsigned)(unsigned char)s[i]);
            n = 1;
        } else if (c == '"' || c == '\\') {
            rc = buf_addf(b, "\\%c", (char)c);
        } else if (place_is_deceptive(c) && c < 0x100U) {
            rc = buf_addf(b, "\\x%02" PRIx32, c);
        } else if (place_is_deceptive(c)) {
            rc = buf_addf(b, c < 0x10000U ? "\\u%04" PRIX32 : "\\U%08" PRIX32, c);
        } else {
            rc = buf_add(b, s + i, n);
        }
        i += n;
    }
    return rc != SY_E_OK ? rc : buf_add_char(b, '"');
}
