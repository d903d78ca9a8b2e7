"""What the acts of the probe must come to.

Each wall has acts that must fail while it stands, and that succeed, or fail otherwise,
where nothing stands. The names of walls are those that answers use for features.
"""

WALLS = {
    "fs_write": ("create-outside", "overwrite-outside", "unlink-outside", "mkdir-outside",
                 "rmdir-outside", "symlink-outside", "fifo-outside", "rename-outwards", "rename-inwards",
                 "link-inwards", "through-link", "through-proc", "proc-write", "host:made-outside",
                 "host:taken-away"),
    "fs_truncate": ("truncate-outside", "open-truncate-outside", "host:changed-outside"),
    "fs_metadata": ("chmod-outside", "chown-outside", "times-outside", "attribute-outside"),
    "network": ("tcp", "tcp6", "mptcp", "fast-open", "udp", "listen", "unix-datagram", "host:internet-heard"),
    "unix_abstract": ("abstract", "host:abstract-heard"),
    "unix_path": ("unix-outside", "host:named-heard"),
    "signal_scope": ("kill", "tgkill", "pidfd-signal", "host:victim-gone"),
    "seccomp": ("unshare-user", "clone-user", "clone3", "setns", "io-uring", "bpf", "perf", "userfaultfd", "keyctl",
                "add-key", "request-key", "ptrace", "ptrace-me", "read-memory", "kcmp", "take-descriptor",
                "limit-other", "tiocsti", "tiocsti-high", "tioclinux", "tiocsetd", "mount", "umount", "pivot-root",
                "open-tree", "move-mount", "fsopen", "fsconfig", "mount-setattr", "handle", "open-by-handle",
                "fanotify", "memfd-secret", "personality", "reboot", "init-module", "swapon", "acct", "quotactl",
                "clock-settime", "adjtimex", "raw", "packet", "vsock", "alg", "netlink-generic"),
    "no_new_privs": ("new-privileges", "setuid-program"),
    "capabilities": ("capabilities", "chroot", "device-inside"),
    "rlimits": ("core-dumps",),
    "fd_close": ("descriptors", "type", "terminal", "host:typed"),
    "tree_kill": ("signal-parent", "host:lingering"),
    "pid_namespace": ("see-victim",),
    "private_tmp": ("see-tmp",),
    "deny_read": ("read-secret", "read-secret-by-link", "read-secret-by-proc", "read-secret-by-cwd", "link-secret",
                  "move-secret"),
    # Those that no feature of an answer names.
    "own-state": ("read-own-state",),
    "processes": ("memory-of-victim", "environment-of-victim", "root-of-victim"),
    "variables": ("secret-variables",),
    "ipc": ("attach-shared",),
    "protected": ("hook", "git-moved", "git-config-linked", "git-config", "git-config-replaced"),
    "protected-agents": ("agent-directory",),
    "protected-envrc": ("envrc",),
    "protected-after": ("host:hook", "host:git-config"),
    "protected-agents-after": ("host:agent-directory",),
    "protected-envrc-after": ("host:envrc",),
    "private": ("read-private",),
    # Terminals of others; what is typed to the command's own.
    "terminals": ("other-terminal", "read-terminal", "host:forged"),
    "own-terminal": ("own-tiocsti", "own-tioclinux"),
}

# Acts on another session of the same server, tried where there is one: its shell, and its terminal. One of them
# got through if it reached exactly that terminal.
SESSION_WALLS = {
    "sessions": ("steal-by-proc", "steal-trace", "steal-descriptor", "steal-memory", "steal-signal", "steal-keys"),
    "session-terminals": ("steal-by-name", "steal-read", "steal-write", "host:stolen"),
}

WALL_OF = {act: wall for wall, acts in WALLS.items() for act in acts}

# Ordinary work, which no wall may stop.
WORK = ("clone-plain", "kill-child", "limit-self", "window-size", "personality-query", "nested-seccomp",
        "nested-landlock", "write-inside", "rename-inside", "link-inside", "move-directories", "fifo-inside",
        "threads-spawn", "read-outside", "write-null", "shared-memory", "netlink-route", "unix-inside",
        "socket-pair", "daemon")

# Tried, but nothing that can be told from its outcome alone.
UNJUDGED = ("unshare-mount", "unknown-call", "x32", "int80", "signal-by-owner")

# What a tier does not have (docs/sandbox.md, docs/threat-model.md).
ABSENT = {
    "no-namespace": ("fs_metadata", "pid_namespace", "private_tmp", "ipc", "protected", "protected-agents",
                     "protected-envrc"),
    "full": (),
}

# In a network of its own a command may send to itself and listen: nobody hears it
# (host:internet-heard).
OWN_NETWORK = ("udp", "listen")

# Fails outside too: with another errno, without rights, or on this kernel.
MAY_FAIL_OUTSIDE = ("clone3", "setns", "io-uring", "bpf", "perf", "keyctl", "add-key", "request-key", "tioclinux",
                    "mount", "umount", "pivot-root", "open-tree", "move-mount", "fsopen", "fsconfig",
                    "mount-setattr", "open-by-handle", "reboot", "init-module", "swapon", "acct", "quotactl",
                    "clock-settime", "tcp6", "mptcp", "fast-open", "raw", "packet", "vsock", "alg", "chroot",
                    "device-inside", "setuid-program", "own-tiocsti", "own-tioclinux", "capabilities", "signal-parent", "userfaultfd", "handle",
                    "fanotify", "memfd-secret", "tiocsti", "tiocsti-high", "type", "host:typed", "core-dumps",
                    "unshare-user", "clone-user", "attribute-outside", "kcmp", "steal-keys")


def held_walls(tier):
    """Walls that stand in a sandbox of default settings."""
    return {wall for wall in WALLS if wall not in ABSENT.get(tier, ()) and wall != "private"}


def judge_session(tier, outcomes):
    """What is wrong with acts on another session."""
    return [f"{act}: {'got through' if act in outcomes else 'not tried'} ({wall})"
            for wall, acts in SESSION_WALLS.items() if wall not in ABSENT[tier] for act in acts
            if outcomes.get(act, 0) == 0]


def judge_session_outside(tier, outcomes):
    """Those are refused where nothing should refuse them. A terminal of the full tier has its name in there alone."""
    other = ("steal-by-name",) if tier == "full" else ()
    return [f"{act}: {outcomes.get(act)} outside" for acts in SESSION_WALLS.values() for act in acts
            if outcomes.get(act, -1) != 0 and act not in (*MAY_FAIL_OUTSIDE, *other)]


def without_own_network(tier, outcomes):
    """The outcomes less what means something else in a network of one's own."""
    return {act: 1 if tier == "full" and act in OWN_NETWORK else n for act, n in outcomes.items()}


def landlock_lacks(abi):
    """Acts that no Landlock of this ABI can refuse."""
    late = [(3, WALLS["fs_truncate"]), (6, (*WALLS["signal_scope"], "signal-parent", "steal-signal"))]
    return {act for least, acts in late if abi < least for act in acts}


def without_newer(tier, abi, outcomes, has_network=False):
    """The outcomes less what a Landlock older than `abi` can not refuse in that tier. The keeper of the full tier is
    process 1 there: what a command sends to it comes to nothing, so to be allowed to send is no way through."""
    free = landlock_lacks(abi) if tier == "no-namespace" else landlock_lacks(abi) & {"signal-parent"}
    if has_network and abi < 6:
        free |= set(WALLS["unix_abstract"])  # else those of others are out of reach by other means
    return {act: 1 if act in free and n == 0 else n for act, n in outcomes.items()}


def judge(outcomes, held, opened=()):
    """What is wrong: acts that got through a wall that stands, work that was stopped, and
    acts of `opened` walls, each of which some configuration lets through, that failed."""
    wrong = []
    for wall in sorted(held):
        for act in WALLS[wall]:
            if act not in outcomes:
                wrong.append(f"{act}: not tried")
            elif outcomes[act] == 0:
                wrong.append(f"{act}: got through ({wall})")
    for act in WORK:
        if outcomes.get(act, -1) != 0:
            wrong.append(f"{act}: {outcomes.get(act)}, should work")
    for act in opened:
        if outcomes.get(act, -1) != 0:
            wrong.append(f"{act}: {outcomes.get(act)}, though it is allowed")
    return wrong


def judge_outside(outcomes):
    """Acts that are refused where nothing should refuse them: no control of anything."""
    wrong = []
    for act in WALL_OF:
        if outcomes.get(act, -1) != 0 and act not in MAY_FAIL_OUTSIDE:
            wrong.append(f"{act}: {outcomes.get(act)} outside")
    return wrong + [f"{act}: {outcomes.get(act)} outside" for act in WORK if outcomes.get(act, -1) != 0]


def judge_claims(sandbox, outcomes):
    """Features that an answer calls enforced and that acts got through."""
    wrong = []
    for feature, state in sandbox.get("features", {}).items():
        for act in WALLS.get(feature, ()):
            if state == "enforced" and outcomes.get(act) == 0:
                wrong.append(f"{feature} is said to be enforced, and {act} got through")
    return wrong
