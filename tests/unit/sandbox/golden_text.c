#include "golden_text.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/limits.h"

static void
update(const char *path, const struct buf *is)
{
    struct sy_error err = {0};

    if (getenv("CI") != NULL) {
        fail_msg("SHELLYARD_UPDATE_GOLDEN is for people, not for CI");
    }

    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || fd_write_all(fd, buf_view(is), is->len, &err) != SY_E_OK) {
        fail_msg("can't write %s", path);
    }
    fd_close(&fd);
}

void
golden_check(const char *dir, const char *name, const struct buf *is)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf golden = {.max = 1U << 22};
    struct sy_error err = {0};

    assert_int_equal(buf_addf(&path, "%s/%s", dir, name), SY_E_OK);
    if (getenv("SHELLYARD_UPDATE_GOLDEN") != NULL) {
        update(buf_view(&path), is);
        return;
    }
    if (fd_read_file(buf_view(&path), &golden, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    if (golden.len != is->len || memcmp(buf_view(&golden), buf_view(is), is->len) != 0) {
        fail_msg("%s (SHELLYARD_UPDATE_GOLDEN=1 writes it anew): now it is\n%s", name,
                 buf_view(is));
    }
}

static void
new_line(struct buf *out, size_t depth)
{
    assert_int_equal(buf_addf(out, "\n%*s", (int)(2 * depth), ""), SY_E_OK);
}

void
golden_lay_out(struct buf *out, const char *json, size_t len)
{
    bool is_in_string = false;
    size_t depth = 0;

    for (size_t i = 0; i < len; i++) {
        char c = json[i];

        if (is_in_string && c == '\\') {
            assert_int_equal(buf_add(out, json + i, 2), SY_E_OK);
            i++;
            continue;
        }
        if (!is_in_string && (c == '{' || c == '[') && (json[i + 1] == '}' || json[i + 1] == ']')) {
            assert_int_equal(buf_add(out, json + i, 2), SY_E_OK);
            i++;
            continue;
        }
        is_in_string = c == '"' ? !is_in_string : is_in_string;
        if (!is_in_string && (c == '}' || c == ']')) {
            depth--;
            new_line(out, depth);
        }
        assert_int_equal(buf_add_char(out, c), SY_E_OK);
        if (!is_in_string && (c == '{' || c == '[')) {
            depth++;
            new_line(out, depth);
        } else if (!is_in_string && c == ',') {
            new_line(out, depth);
        }
    }
    assert_int_equal(buf_add_char(out, '\n'), SY_E_OK);
}
