#include "guard/judge.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/git_pointer.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/git_config.h"

/* Settings that could do harm, as texts. */
struct harm {
    struct strv list;
    struct git_config_place at;
};

static enum sy_code
on_setting(void *arg, const struct git_config_entry *e)
{
    struct harm *h = arg;
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GIT_CONFIG};

    if (git_config_is_harmless(e, &h->at)) {
        return SY_E_OK;
    }

    enum sy_code rc = git_config_text(&text, e);

    return rc == SY_E_OK ? strv_add(&h->list, buf_view(&text)) : rc;
}

static enum sy_code
read_content(const struct guard_file *f, int dir_fd, struct buf *ret, bool *ret_read)
{
    SY_FD fd = openat(dir_fd, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    enum sy_code rc = fd >= 0 ? fd_read_all(fd, ret, NULL) : SY_E_SYS;

    *ret_read = rc == SY_E_OK;
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

/* The first harmful setting that was not there before, its value cut off. */
static enum sy_code
say_first(const struct strv *now, const struct strv *before, bool *ret_harmful, struct buf *why)
{
    for (size_t i = 0; i < now->n; i++) {
        if (!strv_has(before, now->v[i])) {
            *ret_harmful = true;
            buf_reset(why);
            return str_add_visible(why, now->v[i], strcspn(now->v[i], "="), 80);
        }
    }
    *ret_harmful = false;
    return SY_E_OK;
}

static enum sy_code
judge_config(const struct guard *g, const struct guard_node *n, const struct guard_file *f,
             const struct buf *text, bool *ret_harmful, struct buf *why)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    struct harm now = {.list = {.max = LIMIT_GUARD_FILES}};
    struct harm before = {.list = {.max = LIMIT_GUARD_FILES}};
    enum sy_code rc = node_path(&dir, n);

    now.at = (struct git_config_place){.git_dir = buf_view(&dir), .roots = strv_view(&g->roots)};
    before.at = now.at;
    if (rc == SY_E_OK) {
        rc = git_config_read(buf_view(text), text->len, on_setting, &now, NULL);
    }
    if (rc == SY_E_OK && f->has_copy && f->was.ino != 0) {
        enum sy_code old = git_config_read(f->copy, f->copy_len, on_setting, &before, NULL);

        rc = old == SY_E_NOMEM ? old : SY_E_OK;
    }
    if (rc == SY_E_OK) {
        rc = say_first(&now.list, &before.list, ret_harmful, why);
    } else if (rc != SY_E_NOMEM) {
        *ret_harmful = true;
        rc = buf_add_str(why, "not to be read as git configuration");
    }
    strv_fini(&now.list);
    strv_fini(&before.list);
    return rc;
}

/* Attributes of a repository's own: any line that says something. */
static bool
says_nothing(const struct buf *text)
{
    bool is_start = true;
    bool is_comment = false;

    for (size_t i = 0; i < text->len; i++) {
        char c = text->data[i];

        if (c == '\n') {
            is_start = true;
            is_comment = false;
        } else if (is_start && c == '#') {
            is_comment = true;
        } else if (!is_comment && strchr(" \t\r", c) == NULL) {
            return false;
        }
        is_start = is_start && strchr(" \t\n", c) != NULL;
    }
    return true;
}

/* "gitdir: PATH" must lead to a git directory that is looked after as well. */
static enum sy_code
judge_pointer(const struct guard *g, const struct guard_node *n, struct buf *text,
              bool *ret_harmful)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf joined = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};

    const char *path = git_pointer_path(text->data, text->len);

    *ret_harmful = true;
    if (path == NULL) {
        return SY_E_OK;
    }

    enum sy_code rc = node_path(&dir, n);

    if (rc == SY_E_OK) {
        rc = path_join(&joined, buf_view(&dir), path);
    }
    if (rc == SY_E_OK) {
        rc = path_normalize(&plain, buf_view(&joined));
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_OK;
    }

    const struct guard_node *git = node_at(g, buf_view(&plain));

    *ret_harmful =
        git == NULL || git->is_gone || (git->kind != NODE_GIT && git->kind != NODE_WORKTREE);
    return SY_E_OK;
}

static enum sy_code
judge_content(const struct guard *g, const struct guard_node *n, const struct guard_file *f,
              struct buf *text, bool *ret_harmful, struct buf *why)
{
    if (f->rule == GUARD_GIT_ATTRIBUTES) {
        *ret_harmful = !says_nothing(text);
        return buf_add_str(why, "attributes outside of the work tree");
    }
    if (f->rule == GUARD_GIT_FILE) {
        enum sy_code rc = judge_pointer(g, n, text, ret_harmful);

        return rc == SY_E_OK ? buf_add_str(why, "names a git directory that is not known") : rc;
    }
    if (f->rule == GUARD_GIT_COMMONDIR) {
        text->len = git_pointer_cut(text->data, text->len);
        *ret_harmful = n->kind != NODE_WORKTREE || !str_eq(buf_view(text), "../..");
        return buf_add_str(why, "git would take its configuration from elsewhere");
    }
    return judge_config(g, n, f, text, ret_harmful, why);
}

enum sy_code
judge_file(const struct guard *g, const struct guard_node *n, const struct guard_file *f,
           int dir_fd, bool *ret_harmful, struct buf *why)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GIT_CONFIG};
    bool is_read = false;

    buf_reset(why);
    *ret_harmful = true;
    if (S_ISLNK(f->id.mode)) {
        return buf_add_str(why, "a symbolic link");
    }
    if (f->rule == GUARD_GIT_HOOKS || f->rule == GUARD_GIT_HOOKS_PATH) {
        *ret_harmful = !S_ISREG(f->id.mode) || (f->id.mode & 0111) != 0;
        return buf_add_str(why, "an executable hook");
    }
    if (!guard_name_is_git(f->rule) && f->rule != GUARD_GITCONFIG) {
        return buf_add_str(why, guard_name_what(f->rule));
    }

    enum sy_code rc = read_content(f, dir_fd, &text, &is_read);

    if (rc != SY_E_OK) {
        return rc;
    }
    return is_read ? judge_content(g, n, f, &text, ret_harmful, why)
                   : buf_add_str(why, "not to be read");
}

enum sy_code
judge_is_same(const struct guard_file *f, int dir_fd, bool *ret)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GUARD_COPY};
    bool is_read = false;

    *ret = false;
    if (!f->has_copy || f->id.mode != f->was.mode || f->id.uid != f->was.uid ||
        f->id.gid != f->was.gid || f->id.size != f->was.size) {
        return SY_E_OK;
    }
    if (S_ISLNK(f->id.mode)) {
        char target[LIMIT_PATH];
        ssize_t len = readlinkat(dir_fd, f->name, target, sizeof(target));

        *ret = len >= 0 && (size_t)len == f->copy_len && memcmp(target, f->copy, f->copy_len) == 0;
        return SY_E_OK;
    }

    enum sy_code rc = read_content(f, dir_fd, &text, &is_read);

    *ret = rc == SY_E_OK && is_read && text.len == f->copy_len &&
           memcmp(buf_view(&text), f->copy, f->copy_len) == 0;
    return rc;
}
