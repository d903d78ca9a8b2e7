/* What doctor looks at on the machine itself. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/doctor_internal.h"
#include "command/command.h"
#include "process/listener.h"
#include "sandbox/sandbox.h"

static const char *
env_or(const char *name, const char *fallback)
{
    const char *value = strv_env_find(environ, name);

    return value != NULL ? value : fallback;
}

/* Yama's (Documentation/admin-guide/LSM/Yama.rst); 0: it is not there, or asks for nothing. */
static uint64_t
ptrace_scope(void)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 64};
    uint64_t scope = 0;

    if (fd_read_file("/proc/sys/kernel/yama/ptrace_scope", &text, NULL) != SY_E_OK ||
        text.len == 0) {
        return 0;
    }
    text.data[strcspn(text.data, "\n")] = '\0';
    return str_to_u64(&scope, text.data, 0, UINT32_MAX) ? scope : 0;
}

void
doctor_check_kernel(struct doctor *d)
{
    static const char none[] = "commands can connect to no Unix socket of their own, nor through "
                               "the proxy of network.allow";
    const bool is_full = d->tier != NULL && str_eq(d->tier, sandbox_tier_name(TIER_FULL));
    const uint64_t scope = ptrace_scope();

    if (!listener_can_ask()) {
        doctor_find(d, LEVEL_WARN, "unix_diag", "as root: modprobe unix_diag",
                    "the kernel can't tell whose a Unix socket is: while the network is off, "
                    "commands can connect to none of their own");
    }
    if (scope >= 3) {
        doctor_find(d, LEVEL_WARN, "yama",
                    "start the system with kernel.yama.ptrace_scope 2 or less",
                    "ptrace_scope is %u: %s", (unsigned)scope, none);
    } else if (scope == 2 && !is_full && geteuid() != 0) {
        doctor_find(d, LEVEL_WARN, "yama",
                    "as root: sysctl kernel.yama.ptrace_scope=1, or let user namespaces be made",
                    "ptrace_scope is 2: without namespaces %s", none);
    }
}

void
doctor_check_path(struct doctor *d)
{
    const char *path = strv_env_find(environ, "PATH");
    int entries = 0;
    int odd = 0;

    if (path == NULL || path[0] == '\0') {
        doctor_find(d, LEVEL_WARN, "PATH", "set PATH where shellyard is started",
                    "PATH is not set");
        return;
    }
    for (const char *p = path;; p++) {
        size_t len = strcspn(p, ":");

        entries++;
        odd += p[0] != '/' ? 1 : 0;
        p += len;
        if (*p == '\0') {
            break;
        }
    }
    if (odd > 0) {
        doctor_find(d, LEVEL_WARN, "PATH", "use absolute directories only",
                    "%d of %d entries are empty or relative: a project could put programs there",
                    odd, entries);
        return;
    }
    doctor_find(d, LEVEL_OK, "PATH", NULL, "%d directories", entries);
}

void
doctor_check_tmpdir(struct doctor *d)
{
    const char *dir = env_or("TMPDIR", "/tmp");
    struct stat st;

    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || access(dir, W_OK | X_OK) != 0) {
        doctor_find(d, LEVEL_FAIL, "TMPDIR", "point TMPDIR to a directory that you can write to",
                    "'%s' is not a writable directory", dir);
        return;
    }
    doctor_find(d, LEVEL_OK, "TMPDIR", NULL, "%s", dir);
}

void
doctor_check_tool(struct doctor *d, const char *name)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

    if (command_resolve(&path, name, "/", env_or("PATH", ""), NULL) == SY_E_OK) {
        doctor_find(d, LEVEL_OK, name, NULL, "%s", buf_view(&path));
    } else {
        doctor_find(d, LEVEL_WARN, name, "install it if your agent shall use it",
                    "not found in PATH");
    }
}
