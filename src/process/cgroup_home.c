/* Where control groups can be made: mounts, our own group, and a try. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/cgroup_internal.h"

#define FILE_MAX ((size_t)1 << 20)

/* A line of mountinfo (proc(5)) that is a hierarchy; borrowed from its text. */
struct mount_line {
    const char *root;
    const char *point;
    const char *type;
    const char *options; /* of the file system */
};

/* Cuts the next word out of *at; "" at the end. */
static char *
next_word(char **at)
{
    char *word = *at;
    size_t n = strcspn(word, " ");

    *at = word + n;
    if (word[n] != '\0') {
        word[n] = '\0';
        *at = word + n + 1;
    }
    return word;
}

static bool
parse_mount(struct mount_line *ret, char *line)
{
    char *tail = strstr(line, " - ");

    if (tail == NULL) {
        return false;
    }
    *tail = '\0';
    tail += 3;
    for (int i = 0; i < 3; i++) {
        (void)next_word(&line);
    }
    ret->root = next_word(&line);
    ret->point = next_word(&line);
    ret->type = next_word(&tail);
    (void)next_word(&tail);
    ret->options = next_word(&tail);
    /* Escaped characters stand in no mount point that anybody makes. */
    return ret->point[0] == '/' && strchr(ret->point, '\\') == NULL;
}

/* Is `word` one of those that commas part? */
static bool
has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *s = list; s != NULL; s = strchr(s, ',')) {
        s += *s == ',' ? 1 : 0;
        if (strncmp(s, word, n) == 0 && (s[n] == '\0' || s[n] == ',')) {
            return true;
        }
    }
    return false;
}

/* Our path in the hierarchy with that controller ("" is v2's), out of the
 * lines "number:controllers:path" of `own`; NULL if there is none. */
static char *
own_path(const char *own, const char *controller)
{
    for (const char *line = own; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        SY_AUTO(mem_free_charp) char *copy = mem_strndup(line, n);
        char *names = copy != NULL ? strchr(copy, ':') : NULL;
        char *path = names != NULL ? strchr(names + 1, ':') : NULL;

        if (path != NULL) {
            *path++ = '\0';
            if (controller[0] == '\0' ? names[1] == '\0' : has_word(names + 1, controller)) {
                return mem_strdup(path);
            }
        }
        line += n + (line[n] == '\n' ? 1 : 0);
    }
    return NULL;
}

/* The directory of our path under a mount that shows the hierarchy from `root`. */
static enum sy_code
dir_of(struct buf *ret, const struct mount_line *m, const char *path)
{
    size_t n = str_eq(m->root, "/") ? 0 : strlen(m->root);

    buf_reset(ret);
    /* Seen from another namespace: the mount's own directory may still be ours. */
    if (strncmp(path, m->root, n) != 0 || strstr(path, "..") != NULL) {
        return buf_add_str(ret, m->point);
    }
    path += n;
    return buf_addf(ret, "%s%s", m->point, str_eq(path, "/") ? "" : path);
}

static void
place_fini(struct cgroup_place *p)
{
    fd_close(&p->dir_fd);
    mem_free(p->path);
    p->path = NULL;
}

/* Takes the place into the home if a try succeeds. */
static enum sy_code
try_place(struct cgroup_home *home, struct cgroup_place *p, const char *path, struct sy_error *err)
{
    p->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->dir_fd < 0) {
        return sy_err_sys(err, errno, "opening '%s'", path);
    }
    p->path = mem_strdup(path);
    if (p->path == NULL) {
        fd_close(&p->dir_fd);
        return sy_err_nomem(err);
    }

    enum sy_code rc = cgroup_place_try(p, err);

    if (rc != SY_E_OK) {
        place_fini(p);
        return rc;
    }
    cgroup_place_clear(p);
    home->places[home->n++] = *p;
    return SY_E_OK;
}

/* Which controllers do the children of this directory have? */
static bool
read_controllers(struct cgroup_place *p, const char *dir)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};

    if (buf_addf(&path, "%s/cgroup.subtree_control", dir) != SY_E_OK ||
        fd_read_file(buf_view(&path), &text, NULL) != SY_E_OK || text.len == 0) {
        return false;
    }
    for (char *s = text.data; *s != '\0'; s++) {
        if (*s == ' ' || *s == '\n') {
            *s = ',';
        }
    }
    p->holds[RESOURCE_MEMORY] = has_word(text.data, "memory");
    p->holds[RESOURCE_PROCESSES] = has_word(text.data, "pids");
    return p->holds[RESOURCE_MEMORY] || p->holds[RESOURCE_PROCESSES];
}

/*
 * v2: a group with processes has no children with controllers, so ours come
 * beside us: into the nearest directory above whose children have them and
 * which is ours to write.
 */
static enum sy_code
find_v2(struct cgroup_home *home, const struct mount_line *m, const char *path,
        struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    enum sy_code rc = dir_of(&dir, m, path);

    if (rc != SY_E_OK) {
        return rc;
    }

    size_t least = strlen(m->point);

    for (size_t n = dir.len; n >= least && home->n == 0 && rc != SY_E_NOMEM;) {
        struct cgroup_place p = {.dir_fd = -1, .means = MEANS_CGROUP_V2};

        dir.data[n] = '\0';
        if (read_controllers(&p, dir.data)) {
            rc = try_place(home, &p, dir.data, err);
        }
        while (n > 0 && dir.data[n - 1] != '/') {
            n--;
        }
        n = n > 0 ? n - 1 : 0;
        if (n == 0) {
            break;
        }
    }
    return rc;
}

static enum sy_code
find_v1(struct cgroup_home *home, const struct mount_line *m, const char *own, struct sy_error *err)
{
    struct cgroup_place p = {.dir_fd = -1, .means = MEANS_CGROUP_V1};
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};

    p.holds[RESOURCE_MEMORY] = has_word(m->options, "memory");
    p.holds[RESOURCE_PROCESSES] = has_word(m->options, "pids");
    if ((!p.holds[RESOURCE_MEMORY] && !p.holds[RESOURCE_PROCESSES]) || home->n == CGROUP_PLACES ||
        cgroup_home_means(home, p.holds[RESOURCE_MEMORY] ? RESOURCE_MEMORY : RESOURCE_PROCESSES) !=
            MEANS_ABSENT) {
        return SY_E_OK;
    }

    SY_AUTO(mem_free_charp)
    char *path = own_path(own, p.holds[RESOURCE_MEMORY] ? "memory" : "pids");

    if (path == NULL) {
        return SY_E_OK;
    }

    enum sy_code rc = dir_of(&dir, m, path);

    return rc == SY_E_OK ? try_place(home, &p, buf_view(&dir), err) : rc;
}

static enum sy_code
find(struct cgroup_home *home, const char *mounts, const char *own, struct sy_error *err)
{
    SY_AUTO(mem_free_charp) char *path = own_path(own, "");
    enum sy_code rc = SY_E_OK;

    for (const char *line = mounts; *line != '\0' && rc != SY_E_NOMEM;) {
        size_t n = strcspn(line, "\n");
        SY_AUTO(mem_free_charp) char *copy = mem_strndup(line, n);
        struct mount_line m;

        if (copy == NULL) {
            return sy_err_nomem(err);
        }
        if (parse_mount(&m, copy)) {
            if (str_eq(m.type, "cgroup2") && path != NULL && home->n == 0) {
                rc = find_v2(home, &m, path, err);
            } else if (str_eq(m.type, "cgroup")) {
                rc = find_v1(home, &m, own, err);
            }
        }
        line += n + (line[n] == '\n' ? 1 : 0);
    }
    return rc;
}

enum sy_code
cgroup_home_new(struct cgroup_home **ret, const char *mountinfo, const char *own,
                struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf mounts = {.max = FILE_MAX};
    SY_AUTO(buf_fini) struct buf groups = {.max = FILE_MAX};
    struct sy_error why = {0};
    enum sy_code rc =
        fd_read_file(mountinfo != NULL ? mountinfo : "/proc/self/mountinfo", &mounts, &why);

    if (rc == SY_E_OK) {
        rc = fd_read_file(own != NULL ? own : "/proc/self/cgroup", &groups, &why);
    }
    if (rc != SY_E_OK) {
        return sy_err_set(err, rc == SY_E_NOMEM ? rc : SY_E_NOTFOUND, "no control groups: %.180s",
                          why.msg);
    }

    struct cgroup_home *home = mem_alloc_zero(1, sizeof(*home));

    if (home == NULL) {
        return sy_err_nomem(err);
    }
    rc = find(home, buf_view(&mounts), buf_view(&groups), &why);
    if (home->n > 0 && rc != SY_E_NOMEM) {
        *ret = home;
        return SY_E_OK;
    }
    cgroup_home_free(home);
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_NOTFOUND, "no control groups: %.180s",
                      why.msg[0] != '\0' ? why.msg
                                         : "none with memory or pids is delegated to this user");
}

void
cgroup_home_free(struct cgroup_home *home)
{
    if (home == NULL) {
        return;
    }
    for (size_t i = 0; i < home->n; i++) {
        /* What could not be removed at its time: somebody killed was still on his way out. */
        cgroup_place_clear(&home->places[i]);
        place_fini(&home->places[i]);
    }
    mem_free(home);
}

enum resource_means
cgroup_home_means(const struct cgroup_home *home, enum resource r)
{
    for (size_t i = 0; home != NULL && i < home->n; i++) {
        if (home->places[i].holds[r]) {
            return home->places[i].means;
        }
    }
    return MEANS_ABSENT;
}
