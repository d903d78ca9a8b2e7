/*
 * One record of the kernel's audit log, its type in the first byte: whatever comes, what is
 * understood is whole.
 */
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "sandbox/audit_record.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct audit_record r;

    if (size == 0) {
        return 0;
    }

    /* Of exactly its size, that a byte beyond is found. */
    char *text = mem_alloc(size);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    memset(&r, 0xA5, sizeof(r));
    audit_record_parse(&r, data[0] % 2 == 0 ? AUDIT_RECORD_ACCESS : AUDIT_RECORD_DOMAIN, text,
                       size - 1);
    switch (r.kind) {
    case AUDIT_REFUSED:
        CHECK(data[0] % 2 == 0);
        CHECK(r.object[0] == '/');
        CHECK(memchr(r.object, '\0', sizeof(r.object)) != NULL);
        CHECK(r.operation < OPERATION_COUNT);
        break;
    case AUDIT_DOMAIN_OF:
        CHECK(data[0] % 2 == 1);
        CHECK(r.pid > 0);
        break;
    case AUDIT_DOMAIN_FREED:
        CHECK(data[0] % 2 == 1);
        break;
    case AUDIT_OTHER:
        break;
    }
    mem_free(text);
    return 0;
}
