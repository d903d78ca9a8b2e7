/*
 * The profile's text. A later rule beats an earlier one, so the order is: what
 * holds for all, then each root from the shortest path to the longest (a root
 * inside another is given what the outer one protects), then secrets.
 *
 * Operations that not every release has are asked for with `defined?`: an
 * unknown name would make the whole profile invalid.
 */
#include "sandbox/macos/seatbelt_internal.h"

#include "sandbox/macos/seatbelt.h"

static const char base_text[] =
    "(version 1)\n"
    "(deny default)\n"
    "; Not part of the default on every release.\n"
    "(deny process-info*)\n"
    "(if (defined? 'nvram*) (deny nvram*))\n"
    "\n"
    "; Programs run and stay inside: children inherit the profile. Programs with the\n"
    "; setuid bit are refused (forbidden-exec-sugid is denied by default).\n"
    "(allow process-exec)\n"
    "(allow process-fork)\n"
    "(allow signal (target self) (target same-sandbox))\n"
    "(allow process-info* (target self) (target same-sandbox))\n"
    "\n"
    "; Reading and mapping programs is free; secrets are taken out at the end.\n"
    "(allow file-read*)\n"
    "(if (defined? 'file-map-executable) (allow file-map-executable))\n"
    "\n"
    "; Data sinks and sources, and the descriptors that the command was given.\n"
    "(allow file-write-data\n"
    "  (literal \"/dev/null\")\n"
    "  (literal \"/dev/zero\")\n"
    "  (literal \"/dev/random\")\n"
    "  (literal \"/dev/urandom\")\n"
    "  (literal \"/dev/tty\")\n"
    "  (subpath \"/dev/fd\"))\n"
    "(allow file-ioctl\n"
    "  (literal \"/dev/null\")\n"
    "  (literal \"/dev/tty\")\n"
    "  (literal \"/dev/dtracehelper\"))\n"
    "\n"
    "; Terminals: new ones, and those that this sandbox opened.\n"
    "(allow pseudo-tty)\n"
    "(allow file-write-data file-ioctl (literal \"/dev/ptmx\"))\n"
    "(allow file-write-data file-ioctl\n"
    "  (require-all\n"
    "    (regex #\"^/dev/ttys[0-9]+$\")\n"
    "    (extension \"com.apple.sandbox.pty\")))\n"
    "(allow file-ioctl (regex #\"^/dev/ttys[0-9]+$\"))\n"
    "\n"
    "; What the machine is; not what runs on it (kern.proc is left out).\n"
    "(allow sysctl-read\n"
    "  (sysctl-name-prefix \"hw.\")\n"
    "  (sysctl-name-prefix \"machdep.cpu.\")\n"
    "  (sysctl-name \"kern.argmax\")\n"
    "  (sysctl-name \"kern.boottime\")\n"
    "  (sysctl-name \"kern.hostname\")\n"
    "  (sysctl-name \"kern.maxfilesperproc\")\n"
    "  (sysctl-name \"kern.ngroups\")\n"
    "  (sysctl-name \"kern.osproductversion\")\n"
    "  (sysctl-name \"kern.osrelease\")\n"
    "  (sysctl-name \"kern.ostype\")\n"
    "  (sysctl-name \"kern.osvariant_status\")\n"
    "  (sysctl-name \"kern.osversion\")\n"
    "  (sysctl-name \"kern.secure_kernel\")\n"
    "  (sysctl-name \"kern.usrstack64\")\n"
    "  (sysctl-name \"kern.version\")\n"
    "  (sysctl-name \"sysctl.proc_cputype\")\n"
    "  (sysctl-name \"vm.loadavg\"))\n"
    "\n"
    "; Names of users, notifications, preferences. No keychain, no launch services, no\n"
    "; launchd jobs, no Apple events: what would act for the command outside.\n"
    "(allow mach-lookup\n"
    "  (global-name \"com.apple.bsd.dirhelper\")\n"
    "  (global-name \"com.apple.cfprefsd.agent\")\n"
    "  (global-name \"com.apple.cfprefsd.daemon\")\n"
    "  (global-name \"com.apple.system.notification_center\")\n"
    "  (global-name \"com.apple.system.opendirectoryd.libinfo\")\n"
    "  (global-name \"com.apple.system.opendirectoryd.membership\"))\n"
    "(allow user-preference-read)\n"
    "(allow ipc-posix-shm-read*\n"
    "  (ipc-posix-name \"apple.shm.notification_center\")\n"
    "  (ipc-posix-name-prefix \"apple.cfprefs.\"))\n";

static const char write_text[] =
    "\n"
    "; Semaphores and shared memory of the usual runtimes (Python, OpenMP).\n"
    "(allow ipc-posix-sem)\n"
    "(allow ipc-posix-shm*\n"
    "  (ipc-posix-name-regex #\"^/?psm_[0-9a-f]+$\")\n"
    "  (ipc-posix-name-regex #\"^/__KMP_REGISTERED_LIB_[0-9]+$\"))\n";

static const char unix_text[] = "\n"
                                "; Unix sockets may be made; with whom they speak is said below.\n"
                                "(allow system-socket (socket-domain AF_UNIX))\n";

static const char network_text[] =
    "\n"
    "; The network, name resolution and certificates. Other programs' Unix sockets\n"
    "; stay out of reach.\n"
    "(allow network-outbound (remote ip))\n"
    "(allow network-inbound (local ip))\n"
    "(allow network-bind (local ip))\n"
    "(allow network-outbound\n"
    "  (remote unix-socket (path-literal \"/private/var/run/mDNSResponder\")))\n"
    "(allow system-socket\n"
    "  (socket-domain AF_ROUTE)\n"
    "  (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))\n"
    "(allow sysctl-read (sysctl-name-prefix \"net.routetable\"))\n"
    "(allow mach-lookup\n"
    "  (global-name \"com.apple.SystemConfiguration.DNSConfiguration\")\n"
    "  (global-name \"com.apple.SystemConfiguration.configd\")\n"
    "  (global-name \"com.apple.networkd\")\n"
    "  (global-name \"com.apple.trustd.agent\"))\n";

static enum sy_code
add_network(struct buf *out, const struct seatbelt_shape *s)
{
    if (s->has_network) {
        return buf_add_str(out, network_text);
    }
    if (s->proxy_port == 0) {
        return SY_E_OK;
    }
    return buf_addf(out,
                    "\n"
                    "; One way out: the proxy, which decides about each request.\n"
                    "(allow network-outbound (remote ip \"localhost:%u\"))\n",
                    (unsigned)s->proxy_port);
}

/* Twice where a path is known, by path and by expression: the expression holds
 * at each depth, and neither way has to be trusted alone. */
static enum sy_code
add_protected(struct buf *out, const struct seatbelt_shape *s, size_t i)
{
    enum sy_code rc = buf_add_str(out, "(deny file-write*");

    for (size_t j = 0; rc == SY_E_OK && j < s->roots[i].n_excluded; j++) {
        rc = buf_addf(out,
                      "\n  (literal (param \"WRITABLE_ROOT_%zu_EXCLUDED_%zu\"))"
                      "\n  (subpath (param \"WRITABLE_ROOT_%zu_EXCLUDED_%zu\"))",
                      i, j, i, j);
    }
    if (rc == SY_E_OK) {
        /* A hard link would be another name for the same file. */
        rc = buf_addf(out,
                      "\n  (regex (string-append (param \"WRITABLE_ROOT_%zu_REGEX\")"
                      " (param \"PROTECTED_REGEX\"))))\n"
                      "(if (defined? 'file-link) (deny file-link\n"
                      "  (regex (string-append (param \"WRITABLE_ROOT_%zu_REGEX\")"
                      " (param \"PROTECTED_REGEX\")))))\n",
                      i, i);
    }
    return rc;
}

/* A parent that is moved away takes the protected name with it; one that is
 * made as a directory or link elsewhere and moved here brings its own. */
static enum sy_code
add_pins(struct buf *out, size_t i)
{
    return buf_addf(out,
                    "(deny file-write-unlink file-write-data\n"
                    "  (regex (string-append (param \"WRITABLE_ROOT_%zu_REGEX\")"
                    " (param \"PINNED_REGEX\"))))\n"
                    "(deny file-write-create\n"
                    "  (require-all\n"
                    "    (require-any (vnode-type DIRECTORY) (vnode-type SYMLINK))\n"
                    "    (regex (string-append (param \"WRITABLE_ROOT_%zu_REGEX\")"
                    " (param \"PINNED_REGEX\")))))\n",
                    i, i);
}

static enum sy_code
add_sockets(struct buf *out, size_t i)
{
    return buf_addf(out,
                    "(allow network-bind network-inbound\n"
                    "  (local unix-socket (subpath (param \"WRITABLE_ROOT_%zu\"))))\n"
                    "(allow network-outbound\n"
                    "  (remote unix-socket (subpath (param \"WRITABLE_ROOT_%zu\"))))\n",
                    i, i);
}

static enum sy_code
add_root(struct buf *out, const struct seatbelt_shape *s, size_t i)
{
    const struct seatbelt_root *root = &s->roots[i];
    enum sy_code rc = buf_add_char(out, '\n');

    if (rc == SY_E_OK && !root->is_granted) {
        rc = buf_addf(out, "(allow file-write* (subpath (param \"WRITABLE_ROOT_%zu\")))\n", i);
    }
    if (rc == SY_E_OK && root->has_sockets) {
        rc = add_sockets(out, i);
    }
    if (rc == SY_E_OK && s->has_names && !root->is_granted) {
        rc = add_protected(out, s, i);
    }
    return rc == SY_E_OK && s->has_pins && !root->is_granted ? add_pins(out, i) : rc;
}

static enum sy_code
add_secret(struct buf *out, const struct seatbelt_shape *s, size_t i)
{
    enum sy_code rc = buf_addf(out,
                               "(deny file*\n"
                               "  (literal (param \"DENY_READ_%zu\"))\n"
                               "  (subpath (param \"DENY_READ_%zu\")))\n"
                               "(deny network-outbound\n"
                               "  (remote unix-socket (subpath (param \"DENY_READ_%zu\"))))\n",
                               i, i, i);

    for (size_t j = 0; rc == SY_E_OK && j < s->n_parents[i]; j++) {
        rc = buf_addf(out,
                      "(deny file-write-unlink"
                      " (literal (param \"DENY_READ_%zu_PARENT_%zu\")))\n",
                      i, j);
    }
    return rc;
}

enum sy_code
seatbelt_profile_write(struct buf *out, const struct seatbelt_shape *s)
{
    enum sy_code rc = buf_add_str(out, base_text);

    if (rc == SY_E_OK && s->may_write) {
        rc = buf_add_str(out, write_text);
    }
    if (rc == SY_E_OK && (s->may_write || s->has_network)) {
        rc = buf_add_str(out, unix_text);
    }
    if (rc == SY_E_OK) {
        rc = add_network(out, s);
    }
    if (rc == SY_E_OK && s->n_roots > 0) {
        rc = buf_add_str(out, "\n; Writable roots, and what stays read-only inside them.\n");
    }
    for (size_t i = 0; rc == SY_E_OK && i < s->n_roots; i++) {
        rc = add_root(out, s, i);
    }
    if (rc == SY_E_OK && s->n_secrets > 0) {
        rc = buf_add_str(out, "\n; Secrets: neither read nor written, nor moved with a parent.\n");
    }
    for (size_t i = 0; rc == SY_E_OK && i < s->n_secrets; i++) {
        rc = add_secret(out, s, i);
    }
    return rc;
}
