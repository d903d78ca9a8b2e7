#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/launcher_internal.h"

/* The group that passwd(5) gives the user. By the file: other sources need libraries
 * that a static program has not. */
static bool
passwd_group(uid_t uid, gid_t *ret)
{
    FILE *file = fopen("/etc/passwd", "re");
    bool is_found = false;

    if (file == NULL) {
        return false;
    }
    for (const struct passwd *p = fgetpwent(file); p != NULL && !is_found; p = fgetpwent(file)) {
        if (p->pw_uid == uid) {
            *ret = p->pw_gid;
            is_found = true;
        }
    }
    (void)fclose(file);
    return is_found;
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
