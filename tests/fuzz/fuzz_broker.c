/*
 * The broker's parsers. The first byte of an input chooses one: the address
 * that a command gives to connect(2), a dump of sock_diag(7) cut into two
 * datagrams, or one of three texts of /proc. Each gets the rest in a block of
 * exactly its size, so that a look beyond it is found.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "process/broker_parse.h"

/* A copy of exactly n bytes, and a NUL behind them if it is a text. */
static char *
copy(const uint8_t *bytes, size_t n, bool is_text)
{
    char *out = mem_alloc(n + (is_text || n == 0 ? 1 : 0));

    CHECK(out != NULL);
    if (n > 0) {
        memcpy(out, bytes, n);
    }
    if (is_text) {
        out[n] = '\0';
    }
    return out;
}

static void
fuzz_address(const uint8_t *bytes, size_t n)
{
    char *input = copy(bytes, n, false);
    struct broker_address a = broker_address_parse(input, n);

    switch (a.kind) {
    case ADDRESS_NAMED:
    case ADDRESS_ABSTRACT:
        /* The name ends where the address does, and begins as its kind says. */
        CHECK(a.name > input && a.name_length > 0);
        CHECK(a.name + a.name_length == input + n);
        CHECK((a.name[0] == '\0') == (a.kind == ADDRESS_ABSTRACT));
        break;
    case ADDRESS_INET:
        CHECK(n >= 16 && a.name == NULL);
        CHECK(a.is_local || (!a.is_loopback && !a.is_any));
        CHECK(!a.is_loopback || (!a.is_v6 && !a.is_any));
        break;
    case ADDRESS_NETLINK:
    case ADDRESS_NONE:
        CHECK(n >= 2 && a.name == NULL);
        break;
    case ADDRESS_REFUSED:
        CHECK(a.sys > 0);
        break;
    }
    mem_free(input);
}

/* First the key, then where the rest is cut. */
static void
fuzz_dump(const uint8_t *bytes, size_t n)
{
    struct {
        uint32_t ino;
        uint32_t dev;
        uint8_t by_name;
        uint8_t cut;
    } head;
    const size_t head_size = 10;

    if (n < head_size) {
        return;
    }
    memcpy(&head.ino, bytes, sizeof(head.ino));
    memcpy(&head.dev, bytes + 4, sizeof(head.dev));
    head.by_name = bytes[8];
    head.cut = bytes[9];

    size_t left = n - head_size;
    size_t first = left * head.cut / UINT8_MAX;
    char name[4];
    char *parts[2] = {copy(bytes + head_size, first, false),
                      copy(bytes + head_size + first, left - first, false)};

    memcpy(name, &head.ino, sizeof(name));

    struct listener_key key = {.ino = head.ino, .dev = head.dev};

    if ((head.by_name & 1U) != 0) {
        key.name = name;
        key.name_length = sizeof(name);
    }

    struct diag_search s = {.key = &key, .sequence = 1};

    diag_search_take(&s, parts[0], first);

    struct diag_search before = s;

    diag_search_take(&s, parts[1], left - first);
    CHECK(!(s.is_complete && s.is_broken));
    CHECK(s.n_found <= n / 16 && s.n_found >= before.n_found);
    if (before.is_complete || before.is_broken) {
        /* Nothing that comes later counts. */
        CHECK(s.n_found == before.n_found && s.is_complete == before.is_complete);
    }
    mem_free(parts[0]);
    mem_free(parts[1]);
}

static void
fuzz_status(const uint8_t *bytes, size_t n)
{
    char *text = copy(bytes, n, true);

    CHECK(proc_status_number(text, "Tgid:") >= 0);
    CHECK(proc_status_number(text, "PPid:") >= 0);
    mem_free(text);
}

static void
fuzz_mounts(const uint8_t *bytes, size_t n)
{
    char *text = copy(bytes, n, true);
    uint32_t device = 0;

    for (uint64_t id = 0; id < 40; id++) {
        (void)proc_mount_device(text, id, &device);
    }
    mem_free(text);
}

static void
fuzz_children(const uint8_t *bytes, size_t n)
{
    char *text = copy(bytes, n, true);
    pid_t few[3] = {0};
    pid_t many[256] = {0};
    size_t n_few = proc_children(text, few, 3);
    size_t n_many = proc_children(text, many, 256);

    CHECK(n_few <= 3 && n_many <= 256 && n_few == (n_many < 3 ? n_many : 3));
    for (size_t i = 0; i < n_many; i++) {
        CHECK(many[i] > 0 && (i >= 3 || many[i] == few[i]));
    }
    mem_free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const uint8_t *, size_t) = {
        fuzz_address, fuzz_dump, fuzz_status, fuzz_mounts, fuzz_children,
    };

    if (size > 0) {
        parsers[data[0] % (sizeof(parsers) / sizeof(parsers[0]))](data + 1, size - 1);
    }
    return 0;
}
