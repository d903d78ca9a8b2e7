/*
 * The configuration reader: an input is read as the system file and as the
 * user's file, each line of it as a flag and as a variable. What is accepted
 * must merge, show, and pass its own requirements.
 */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/config_internal.h"
#include "fuzz_check.h"

/* Lines of an input that are tried as flags. */
#define LINES_MAX 4U

/* An error has a sentence that is whole text and names where it was found; its
 * layer may be half filled and is thrown away. */
static void
check_result(struct config_layer *layer, enum sy_code rc, const struct sy_error *err,
             const char *where)
{
    if (rc == SY_E_OK) {
        return;
    }
    config_layer_fini(layer);
    CHECK(rc == SY_E_CONFIG);
    CHECK(err->code == rc);
    CHECK(str_starts(err->msg, where));
    CHECK(utf8_is_valid(err->msg, strlen(err->msg)));
    for (const char *s = err->msg; *s != '\0'; s++) {
        CHECK((unsigned char)*s >= 0x20U && *s != 0x7F);
    }
}

static enum sy_code
read_file(struct config_layer *layer, enum config_source source, const char *text, size_t len)
{
    struct sy_error err = {0};
    struct config_input in = {
        .source = source, .name = "file.yaml", .text = text, .len = len, .home = "/home/u"};
    enum sy_code rc = config_walk_file(layer, &in, &err);

    check_result(layer, rc, &err, "file.yaml:");
    return rc;
}

static void
check_shown(const struct config *c)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 64 * (size_t)LIMIT_CONFIG_FILE};
    SY_AUTO(buf_fini) struct buf json = {.max = 64 * (size_t)LIMIT_CONFIG_FILE};
    struct json_doc doc = {0};
    size_t lines = 0;

    CHECK(config_show(c, &text, false) == SY_E_OK);
    CHECK(utf8_is_valid(text.data, text.len));
    for (size_t i = 0; i < text.len; i++) {
        lines += text.data[i] == '\n' ? 1U : 0U;
    }
    CHECK(lines == CONFIG_KEYS);
    CHECK(config_show(c, &json, true) == SY_E_OK);
    CHECK(json_parse(&doc, json.data, json.len, NULL) == SY_E_OK);
    CHECK(js_count(doc.root) == CONFIG_KEYS);
    json_doc_fini(&doc);
}

/* Merges and shows; the layers are empty then. */
static void
merge(struct config_layers *layers)
{
    struct sy_error err = {0};
    struct config c = {.impl = mem_alloc_zero(1, sizeof(struct config_impl))};

    CHECK(c.impl != NULL);
    c.impl->system_path = mem_strdup("/etc/system.yaml");
    c.impl->user_path = mem_strdup("/home/user.yaml");
    CHECK(c.impl->system_path != NULL && c.impl->user_path != NULL);

    enum sy_code rc = config_merge(&c, layers, &err);

    CHECK(rc == SY_E_OK || rc == SY_E_CONFIG);
    if (rc == SY_E_OK) {
        check_shown(&c);
    }
    config_fini(&c);
    for (size_t i = 0; i < CONFIG_SOURCES; i++) {
        config_layer_fini(&layers->of[i]);
    }
}

/* The layer of a file against itself as the user's: nothing is wider than
 * itself, except a link below a root, which this does not make. */
static void
merge_with_itself(const char *text, size_t len)
{
    struct config_layers layers = {0};

    if (read_file(&layers.of[CONFIG_FROM_SYSTEM], CONFIG_FROM_SYSTEM, text, len) == SY_E_OK) {
        (void)read_file(&layers.of[CONFIG_FROM_USER], CONFIG_FROM_USER, text, len);
    }
    if (config_layer_value(&layers.of[CONFIG_FROM_SYSTEM], 0) != NULL) {
        struct sy_error err = {0};

        CHECK(config_layer_require(&layers.of[CONFIG_FROM_SYSTEM], 0, 1, &err) == SY_E_OK);
    }
    merge(&layers);
}

static void
read_line(char *line)
{
    SY_AUTO(buf_fini) struct buf entry = {.max = 2 * (size_t)LIMIT_CONFIG_FILE};
    char *const flags[] = {line, NULL};
    struct config_layers layers = {0};
    struct sy_error err = {0};
    enum sy_code rc = config_read_flags(&layers.of[CONFIG_FROM_FLAG], flags, "/home/u", &err);

    check_result(&layers.of[CONFIG_FROM_FLAG], rc, &err, "-c ");
    CHECK(buf_addf(&entry, "SHELLYARD_%s", line) == SY_E_OK);

    char *const variables[] = {entry.data, NULL};

    rc = config_read_environment(&layers.of[CONFIG_FROM_ENVIRONMENT], variables, NULL, &err);
    check_result(&layers.of[CONFIG_FROM_ENVIRONMENT], rc, &err, "SHELLYARD_");
    merge(&layers);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > LIMIT_CONFIG_FILE) {
        return 0;
    }

    size_t live = mem_live();
    char *text = mem_alloc(size + 1);
    size_t from = 0;

    CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    merge_with_itself(text, size);
    for (size_t n = 0; n < LINES_MAX && from < size; n++) {
        size_t len = strcspn(text + from, "\n");

        text[from + len] = '\0';
        read_line(text + from);
        from += len + 1;
    }
    mem_free(text);
    CHECK(mem_live() == live);
    return 0;
}
