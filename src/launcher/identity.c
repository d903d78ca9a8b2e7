#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "launcher/launcher_internal.h"

#define PASSWD_BYTES ((size_t)4 << 20)

/* A number that ends with a colon; *at goes behind it. */
static bool
take_number(const char **at, uint64_t *ret)
{
    char text[24];
    size_t n = strcspn(*at, ":\n");

    if ((*at)[n] != ':' || n >= sizeof(text)) {
        return false;
    }
    memcpy(text, *at, n);
    text[n] = '\0';
    *at += n + 1;
    return str_to_u64(ret, text, 0, UINT32_MAX);
}

/* The group that a line of passwd(5) gives this user. */
static bool
line_group(const char *line, uid_t uid, gid_t *ret)
{
    uint64_t user = 0;
    uint64_t group = 0;

    for (int skip = 0; skip < 2; skip++) {
        line += strcspn(line, ":\n");
        if (*line++ != ':') {
            return false;
        }
    }
    if (!take_number(&line, &user) || user != uid || !take_number(&line, &group)) {
        return false;
    }
    *ret = (gid_t)group;
    return true;
}

/* By the file: other sources of users need libraries that a static program has not. */
static bool
passwd_group(uid_t uid, gid_t *ret)
{
    SY_AUTO(buf_fini) struct buf text = {.max = PASSWD_BYTES};

    if (fd_read_file("/etc/passwd", &text, NULL) != SY_E_OK) {
        return false;
    }
    for (const char *line = buf_view(&text); line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (line_group(line, uid, ret)) {
            return true;
        }
    }
    return false;
}

bool
identity_find(struct identity *ret, const struct sandbox_policy *policy, bool is_root,
              struct failure *f)
{
    struct stat st;

    *ret = (struct identity){.changes = false};
    if (!is_root || policy->runs_as_self || !sandbox_mode_is_enforced(policy->mode)) {
        return true;
    }
    if (stat(policy->cwd, &st) != 0) {
        return failed(f, STAGE_IDENTITY, errno, policy->cwd);
    }
    if (st.st_uid == 0) {
        return true;
    }
    ret->changes = true;
    ret->uid = st.st_uid;
    ret->gid = st.st_gid;
    (void)passwd_group(st.st_uid, &ret->gid);
    return true;
}

bool
identity_become(const struct identity *who, struct failure *f)
{
    if (!who->changes) {
        return true;
    }
    /* No further groups: root's own among them would give more than the owner has. */
    if (setgroups(0, NULL) != 0 || setresgid(who->gid, who->gid, who->gid) != 0 ||
        setresuid(who->uid, who->uid, who->uid) != 0) {
        return failed(f, STAGE_IDENTITY, errno, NULL);
    }
    return true;
}
