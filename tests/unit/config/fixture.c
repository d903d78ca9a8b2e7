#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

int
fixture_setup(void **state)
{
    struct fixture *f = mem_alloc_zero(1, sizeof(*f));
    char real[4096];

    if (f == NULL || realpath("/tmp", real) == NULL ||
        (size_t)snprintf(f->dir, sizeof(f->dir), "%s/sy-config-XXXXXX", real) >= sizeof(f->dir) ||
        mkdtemp(f->dir) == NULL) {
        mem_free(f);
        return -1;
    }
    (void)snprintf(f->system, sizeof(f->system), "%s/system.yaml", f->dir);
    (void)snprintf(f->user, sizeof(f->user), "%s/user.yaml", f->dir);
    (void)snprintf(f->home, sizeof(f->home), "%s/home", f->dir);
    *state = f;
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
fixture_teardown(void **state)
{
    struct fixture *f = *state;
    int rc = nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);

    mem_free(f);
    return rc;
}

void
fixture_write(const char *path, const char *bytes, size_t len)
{
    struct sy_error err = {0};
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, len, &err), SY_E_OK);
}

void
fixture_write_text(const char *path, const char *text)
{
    fixture_write(path, text, strlen(text));
}

void
fixture_path(char dst[256], const struct fixture *f, const char *name)
{
    assert_true((size_t)snprintf(dst, 256, "%s/%s", f->dir, name) < 256);
}

char *const *
fixture_list(const char *const *list)
{
    const void *words = list;

    return words;
}

enum sy_code
fixture_load(struct config *ret, const struct fixture *f, const struct given *given,
             struct sy_error *err)
{
    struct config_sources sources = {
        .system_path = f->system,
        .user_path = f->user,
        .workspace = given->workspace,
        .environ_list = fixture_list(given->env),
        .overrides = fixture_list(given->flags),
        .mode = given->mode,
    };

    if (given->system != NULL) {
        fixture_write_text(f->system, given->system);
    }
    if (given->user != NULL) {
        fixture_write_text(f->user, given->user);
    }
    return config_load(ret, &sources, err);
}

void
fixture_must_load(struct config *ret, const struct fixture *f, const struct given *given)
{
    struct sy_error err = {0};
    enum sy_code rc = fixture_load(ret, f, given, &err);

    if (rc != SY_E_OK) {
        fail_msg("%s: %s", sy_code_name(rc), err.msg);
    }
}

static void
fill_in(char *dst, size_t size, const struct fixture *f, const char *sentence)
{
    const struct {
        const char *word;
        const char *path;
    } words[] = {
        {"{user}",   f->user  },
        {"{system}", f->system},
        {"{dir}",    f->dir   }
    };
    size_t used = 0;

    while (*sentence != '\0' && used + 1 < size) {
        size_t i = 0;

        while (i < 3 && !str_starts(sentence, words[i].word)) {
            i++;
        }
        if (i == 3) {
            dst[used++] = *sentence++;
        } else {
            used += (size_t)snprintf(dst + used, size - used, "%s", words[i].path);
            sentence += strlen(words[i].word);
        }
    }
    assert_true(used < size);
    dst[used] = '\0';
}

void
fixture_must_fail(const struct fixture *f, const struct given *given, const char *sentence)
{
    struct config c = {0};
    struct sy_error err = {0};
    char want[1024];
    enum sy_code rc = fixture_load(&c, f, given, &err);

    fill_in(want, sizeof(want), f, sentence);
    if (rc == SY_E_OK) {
        config_fini(&c);
        fail_msg("loaded, but expected: %s", want);
    }
    assert_string_equal(err.msg, want);
    assert_int_equal(rc, SY_E_CONFIG);
    assert_int_equal(err.code, SY_E_CONFIG);
}
