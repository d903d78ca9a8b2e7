#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "fuzz_check.h"
#include "protocol/resource_uri.h"

/* Held: an address that is taken for one is written again as it came, byte by byte. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct resource_uri uri;
    char again[RESOURCE_URI_ROOM];

    if (resource_uri_parse(&uri, (const char *)data, size)) {
        resource_uri_text(again, uri.id, uri.part);
        SY_ASSERT(strlen(again) == size && memcmp(again, data, size) == 0);
    }
    return 0;
}
