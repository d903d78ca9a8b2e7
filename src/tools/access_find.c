#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "base/utf8.h"
#include "proxy/allow.h"
#include "sandbox/linux/walk.h"
#include "tools/access_call.h"

void
access_found_fini(struct access_found *f)
{
    access_fini(&f->access);
    buf_fini(&f->asked);
    *f = (struct access_found){0};
}

static enum sy_code
take_path(struct access_found *ret, const struct walk *walk, const char *path, struct sy_error *err)
{
    struct file_id id = {0};
    const char *found = buf_view(&walk->path);

    if (!utf8_is_valid(found, strlen(found))) {
        return sy_err_set(err, SY_E_DENIED, "its name is no UTF-8: it can't be shown to a person");
    }
    ret->access.object = mem_strdup(found);
    if (ret->access.object == NULL || buf_add_str(&ret->asked, path) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (file_id_of_path(&id, found) == 0) {
        ret->dev = id.dev;
        ret->ino = id.ino;
    }
    return SY_E_OK;
}

/* Only what is there can be granted; in place of a file that is to be made, its directory is. */
static enum sy_code
find_for_write(struct access_found *ret, const char *path, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    struct place_shown_path shown;
    struct stat st;
    enum sy_code rc = walk_run(&walk, path, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (walk.missing_errno == ENOENT) {
        char *slash = strrchr(walk.path.data, '/');

        if (slash != NULL && (size_t)(slash - walk.path.data) <= walk.existing_len) {
            walk.path.len = (size_t)(slash - walk.path.data) + (slash == walk.path.data ? 1 : 0);
            walk.path.data[walk.path.len] = '\0';
            walk.missing_errno = 0;
        }
    }
    if (walk.missing_errno != 0 || stat(buf_view(&walk.path), &st) != 0) {
        return sy_err_set(err, SY_E_DENIED,
                          "%s can't be found, nor the directory it would be in: name one that is "
                          "there",
                          place_visible_path(&shown, path));
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
        return sy_err_set(err, SY_E_DENIED, "%s is neither a directory nor a file",
                          place_visible_path(&shown, path));
    }
    return take_path(ret, &walk, path, err);
}

static enum sy_code
find_for_read(struct access_found *ret, const char *path, bool is_program, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    struct place_shown_path shown;
    struct stat st;
    enum sy_code rc = walk_run(&walk, path, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (walk.missing_errno != 0 || stat(buf_view(&walk.path), &st) != 0) {
        return sy_err_set(err, SY_E_DENIED, "%s is not there", place_visible_path(&shown, path));
    }
    if (is_program && (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)) {
        return sy_err_set(err, SY_E_DENIED, "%s is no program", place_visible_path(&shown, path));
    }
    return take_path(ret, &walk, path, err);
}

static enum sy_code
find_program(struct access_found *ret, const char *name, const char *path_list,
             struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

    while (path_list != NULL && *path_list != '\0') {
        char dir[LIMIT_PATH];
        size_t n = strcspn(path_list, ":");
        struct stat st;

        if (n < sizeof(dir) && path_list[0] == '/') {
            memcpy(dir, path_list, n);
            dir[n] = '\0';

            enum sy_code rc = path_join(&path, dir, name);

            if (rc == SY_E_NOMEM) {
                return sy_err_nomem(err); /* not the one of another directory */
            }
            if (rc == SY_E_OK && stat(buf_view(&path), &st) == 0 && S_ISREG(st.st_mode) &&
                (st.st_mode & 0111) != 0) {
                return find_for_read(ret, buf_view(&path), true, err);
            }
        }
        path_list += n;
        path_list += *path_list == ':' ? 1 : 0;
    }
    return sy_err_set(err, SY_E_DENIED, "the program '%.80s' is not in PATH", name);
}

static bool
is_local_name(const struct host *h)
{
    return h->kind == HOST_NAME &&
           (str_eq(h->text, "localhost") || str_ends(h->text, ".localhost"));
}

/* One host, with the ports of the web or the one that is named: the entry of an allow list. */
static enum sy_code
find_host(struct access_found *ret, const char *object, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf entry = {.max = HOST_AUTHORITY_MAX + sizeof(ALLOW_LOCAL_MARK)};
    char authority[HOST_AUTHORITY_MAX];
    size_t n = 0;
    bool is_local = allow_entry_is_local(object, &n);
    struct host h;
    uint16_t port = 0;
    bool has_port = false;
    struct sy_error why = {0};

    if (strchr(object, '*') != NULL || str_starts(object, "unix:")) {
        return sy_err_set(err, SY_E_DENIED,
                          "only one host can be asked for, with a port or without, e.g. "
                          "example.com:8080");
    }
    if (host_parse_authority(&h, &port, &has_port, object, n, &why) != SY_E_OK) {
        return sy_err_set(err, SY_E_DENIED, "%s", why.msg);
    }
    host_authority(&h, has_port ? port : 0, authority);
    if (buf_addf(&entry, "%s%s", authority,
                 is_local || is_local_name(&h) ? ALLOW_LOCAL_MARK : "") != SY_E_OK) {
        return sy_err_nomem(err);
    }
    ret->access.object = buf_take(&entry);
    if (ret->access.object == NULL || buf_add_str(&ret->asked, object) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return SY_E_OK;
}

enum sy_code
access_find(struct access_found *ret, enum access_kind kind, const char *object,
            const char *path_list, struct sy_error *err)
{
    struct access_found f = {
        .access = {.kind = kind, .lifts = {.max = LIMIT_DENY_ROUNDS}},
        .asked = {.max = (size_t)LIMIT_PATH * 2           },
    };
    enum sy_code rc = SY_E_OK;

    if (kind != ACCESS_CONNECT && object[0] != '/' &&
        (kind != ACCESS_RUN || strchr(object, '/') != NULL)) {
        return sy_err_set(err, SY_E_DENIED, "'object' must be an absolute path");
    }
    switch (kind) {
    case ACCESS_WRITE:
        rc = find_for_write(&f, object, err);
        break;
    case ACCESS_READ:
        rc = find_for_read(&f, object, false, err);
        break;
    case ACCESS_RUN:
        rc = object[0] == '/' ? find_for_read(&f, object, true, err)
                              : find_program(&f, object, path_list, err);
        break;
    case ACCESS_CONNECT:
        rc = find_host(&f, object, err);
        break;
    }
    if (rc != SY_E_OK) {
        access_found_fini(&f);
        return rc;
    }
    *ret = f;
    return SY_E_OK;
}

bool
access_find_is_same(const struct access_found *f)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    struct file_id id = {0};

    if (f->access.kind == ACCESS_CONNECT) {
        return true;
    }
    return walk_run(&walk, f->access.object, NULL) == SY_E_OK && walk.missing_errno == 0 &&
           str_eq(buf_view(&walk.path), f->access.object) &&
           file_id_of_path(&id, f->access.object) == 0 && id.dev == f->dev && id.ino == f->ino;
}
