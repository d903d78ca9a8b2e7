#include "sandbox/linux/landlock.h"

#include "sandbox/linux/raw_syscall.h"

/* The same on every architecture (calls from 403 on are). */
enum { NR_CREATE_RULESET = 444, NR_ADD_RULE = 445, NR_RESTRICT_SELF = 446 };
enum { CREATE_VERSION = 1 << 0, CREATE_ERRATA = 1 << 1 };
enum { RULE_PATH_BENEATH = 1 };
/* ABI 7 */
enum { RESTRICT_LOG_NEW_EXEC_ON = 1 << 1, RESTRICT_LOG_SUBDOMAINS_OFF = 1 << 2 };

struct path_beneath {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

#define RIGHT_ROW(id, bit, abi, name) {1ULL << (bit), abi, name},
static const struct landlock_right fs_rights[] = {LANDLOCK_FS_RIGHTS(RIGHT_ROW)};
static const struct landlock_right net_rights[] = {LANDLOCK_NET_RIGHTS(RIGHT_ROW)};
static const struct landlock_right scopes[] = {LANDLOCK_SCOPES(RIGHT_ROW)};
#undef RIGHT_ROW

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const struct landlock_right *
landlock_rights(enum landlock_set set, size_t *ret_n)
{
    switch (set) {
    case LANDLOCK_SET_FS:
        *ret_n = COUNT(fs_rights);
        return fs_rights;
    case LANDLOCK_SET_NET:
        *ret_n = COUNT(net_rights);
        return net_rights;
    case LANDLOCK_SET_SCOPE:
        break;
    }
    *ret_n = COUNT(scopes);
    return scopes;
}

uint64_t
landlock_known(enum landlock_set set, int abi)
{
    size_t n;
    const struct landlock_right *rights = landlock_rights(set, &n);
    uint64_t known = 0;

    for (size_t i = 0; i < n; i++) {
        if (rights[i].abi <= abi) {
            known |= rights[i].bit;
        }
    }
    return known;
}

uint64_t
landlock_file_rights(void)
{
    return LL_FS_READS | LL_FS_WRITE_FILE | LL_FS_TRUNCATE | LL_FS_IOCTL_DEV | LL_FS_RESOLVE_UNIX;
}

long
landlock_abi(void)
{
    return sy_raw3(NR_CREATE_RULESET, 0, 0, CREATE_VERSION);
}

long
landlock_errata(void)
{
    return sy_raw3(NR_CREATE_RULESET, 0, 0, CREATE_ERRATA);
}

long
landlock_create(const struct landlock_ruleset *attr)
{
    /* A kernel that knows fewer members wants the others to be zero, which
     * they are: nothing is handled beyond its ABI. */
    return sy_raw3(NR_CREATE_RULESET, sy_raw_ptr(attr), (long)sizeof(*attr), 0);
}

long
landlock_allow_beneath(int ruleset_fd, int path_fd, uint64_t access)
{
    const struct path_beneath rule = {.allowed_access = access, .parent_fd = path_fd};

    return sy_raw4(NR_ADD_RULE, ruleset_fd, RULE_PATH_BENEATH, sy_raw_ptr(&rule), 0);
}

RAW_CODE long
landlock_restrict_logged(int ruleset_fd)
{
    return sy_raw2(NR_RESTRICT_SELF, ruleset_fd,
                   RESTRICT_LOG_NEW_EXEC_ON | RESTRICT_LOG_SUBDOMAINS_OFF);
}

RAW_CODE long
landlock_restrict(int ruleset_fd)
{
    return sy_raw2(NR_RESTRICT_SELF, ruleset_fd, 0);
}
