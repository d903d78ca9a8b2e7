#!/usr/bin/env python3
"""Sandboxes inside other sandboxes: bubblewrap, and Shellyard's own.

The inner one stands in the tier that it says, or refuses; what it calls enforced is
enforced; and the outer one's walls hold whatever the inner one was allowed.
"""

import itertools
import json
import shutil
import subprocess
import sys

from acts import WALLS, judge_claims, landlock_lacks, without_own_network
from harness import Suite

TRIED = ("create-outside", "overwrite-outside", "truncate-outside", "mkdir-outside", "rename-outwards",
         "link-inwards", "through-link", "through-proc", "read-secret", "read-secret-by-link", "tcp", "udp", "abstract",
         "unix-outside", "kill", "pidfd-signal", "signal-by-owner", "see-victim", "see-tmp", "ptrace", "unshare-user",
         "bpf", "new-privileges", "capabilities", "descriptors", "core-dumps", "chmod-outside", "write-inside",
         "rename-inside", "link-inside", "kill-child", "read-outside", "daemon")
WORK = ("write-inside", "rename-inside", "link-inside", "kill-child", "read-outside")

# What stands around. Walls are those of the outer sandbox by itself.
LIGHT = ("fs_write", "fs_truncate", "network", "unix_abstract", "unix_path", "signal_scope", "deny_read",
         "no_new_privs", "capabilities", "fd_close", "rlimits")
OUTERS = {
    "bubblewrap": ("bwrap", ["--dev-bind", "/", "/", "--proc", "/proc"], ()),
    "bubblewrap, read-only": ("bwrap", ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", "@W",
                                        "@W", "--unshare-pid", "--unshare-net", "--tmpfs", "/tmp"],
                              ("fs_write", "fs_truncate", "fs_metadata", "signal_scope", "pid_namespace")),
    "bubblewrap, all": ("bwrap", ["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all",
                                  "--cap-drop", "ALL", "--new-session"], ("signal_scope", "pid_namespace")),
    "exec, no-namespace": ("exec", {"sandbox.tier": "no-namespace"}, LIGHT),
    "exec, full": ("exec", {"sandbox.tier": "full"}, (*LIGHT, "fs_metadata", "pid_namespace", "private_tmp")),
}
INNERS = {
    "as it is": {},
    "tier full": {"sandbox.tier": "full"},
    "min_tier full": {"sandbox.min_tier": "full"},
    # An inner sandbox that grants all: what holds then is the outer one.
    "network on, outside writable": {"sandbox.network_access": "true", "sandbox.writable_roots": "[@O]",
                                     "sandbox.default_deny_read": "false"},
}
# Those that are tried with a terminal, too: what is chosen by itself, and what holds nothing.
BY_PTY = ("as it is", "network on, outside writable")


def wrap_of(world, outer):
    how, what, _ = OUTERS[outer]
    if how == "bwrap":
        return ["bwrap", *(word.replace("@W", world.path("W")) for word in what), "--"]
    return world.exec_words(what, [])


def inner_answer(outer, run):
    """The inner answer, which is the outer one's output where that is Shellyard too."""
    text = run.out
    if OUTERS[outer][0] == "exec":
        if run.answer is None or run.tier is None:
            return None
        text = run.answer["stdout"]
    try:
        return json.loads(text)
    except ValueError:
        return None


def tried(world, outer, settings, way):
    """The inner answer (None: there is none) and the run. By pty it is a session in bubblewrap, or `exec` typed to a
    session of Shellyard's own."""
    how, what, _ = OUTERS[outer]
    probe = world.probe_words(TRIED)
    if way == "exec":
        run = world.run([*wrap_of(world, outer), *world.exec_words(settings, probe)])
        return inner_answer(outer, run), run
    if how == "exec":
        run = world.pty(what, world.exec_words(settings, probe))
        return inner_answer(outer, run), run
    run = world.pty(settings, probe, wrap=wrap_of(world, outer))
    return run.answer, run


def judge(world, outer, inner, way):
    world.reset()
    settings = {key: value.replace("@O", world.path("O")) for key, value in INNERS[inner].items()}
    answer, run = tried(world, outer, settings, way)
    facts = world.facts()
    if answer is None:
        return [f"no answer: {run.brief()}"], "FAILED"
    outcomes = {name: int(value) for name, _, value in
                (line.partition(" ") for line in answer.get("stdout", "").splitlines()) if value.isdigit()}
    lacks = landlock_lacks(world.landlock_abi()) if outer == "exec, no-namespace" else ()
    wrong = [f"outer wall {wall}: {act} got through" for wall in OUTERS[outer][2] for act in WALLS[wall] if act not in lacks
             and {**without_own_network("full" if outer == "exec, full" else "", outcomes), **facts}.get(act) == 0]
    if answer["status"] == "failed":
        if not answer.get("error", {}).get("message"):
            wrong.append(f"refused without a word: {answer}")
        if outcomes:
            wrong.append("refused, and yet it ran")
        return wrong, "refused"
    tier = answer["sandbox"].get("tier")
    if "full" in inner and tier != "full":
        wrong.append(f"it was to be the full tier, and is {tier}")
    # What this one was told to grant is no hole in it.
    outcomes = without_own_network(tier, outcomes)
    granted = WALLS["fs_write"] + WALLS["fs_truncate"] + WALLS["fs_metadata"] if "sandbox.writable_roots" in settings else ()
    wrong += judge_claims(answer["sandbox"], {a: n for a, n in outcomes.items() if a not in granted})
    wrong += [f"{act}: {outcomes.get(act)}, should work" for act in WORK if outcomes.get(act) != 0]
    return wrong, f"{tier} tier"


def check_control(world):
    """bubblewrap has to run here at all, or nothing was tested."""
    if shutil.which("bwrap") is None:
        return ["there is no bwrap: tools/setup.sh check installs it"]
    run = world.run(["bwrap", "--dev-bind", "/", "/", "--unshare-user", "true"])
    wrong = [] if run.status == 0 else [f"bwrap can't be run here: {run.err}"]
    version = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)
    return wrong if version.returncode == 0 else [*wrong, version.stderr]


def main():
    suite = Suite("nesting")

    def as_party(world):
        who = world.party.name
        suite.check(f"bubblewrap runs here ({who})", lambda: check_control(world))
        for outer, inner, way in itertools.product(OUTERS, INNERS, ("exec", "pty")):
            if way == "pty" and inner not in BY_PTY:
                continue
            result = []

            def body(outer=outer, inner=inner, way=way, result=result):
                wrong, what = judge(world, outer, inner, way)
                result.append(what)
                return wrong

            suite.check(f"inside {outer}, {inner}, by {way}: nothing is claimed that does not hold ({who})", body)
            suite.row(f"{outer} > {inner}", f"nested by {way}", who,
                      "FAILED" if suite.last_failed else result[0] if result else "not tried")

    suite.each_party(as_party)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
