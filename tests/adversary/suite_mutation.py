#!/usr/bin/env python3
"""Takes each wall away in turn, and the acts that it holds must get through.

By `mutate`, from outside: nothing in the programs under test can be switched off.
Many acts are held by more than one wall. There, all others of them are taken away
first (`without`): the acts must still fail, which proves the wall by itself, and get
through once it is gone too. A wall that nobody misses fails the suite.
"""

import os
import sys
from dataclasses import dataclass, replace

from acts import landlock_lacks
from harness import Suite

BOTH = ("no-namespace", "full")
CALLS = ("userfaultfd", "memfd-secret", "personality", "adjtimex", "ptrace-me", "kcmp", "limit-other", "clone3",
         "unshare-user", "keyctl", "io-uring")
OUTSIDE = ("create-outside", "overwrite-outside", "truncate-outside", "unlink-outside", "mkdir-outside",
           "through-link", "host:made-outside", "host:changed-outside")
SECRETS = ("read-secret", "read-secret-by-link", "read-secret-by-proc", "read-secret-by-cwd")
SIGNALS = ("kill", "tgkill", "pidfd-signal")
INTERNET = ("tcp", "host:internet-heard")
METADATA = ("chmod-outside", "chown-outside", "times-outside", "attribute-outside")
PROTECTED = ("hook", "git-moved", "git-config-linked", "git-config", "git-config-replaced", "host:hook",
             "host:git-config")


@dataclass(frozen=True)
class Mutant:
    """A wall, what holds the same acts and is taken away before, and the acts."""

    wall: str
    tiers: tuple
    acts: tuple = ()
    without: tuple = ()
    users: tuple = ("root", "user")
    refuses: bool = False  # without it nothing runs: the kernel or we see that it is missing


MUTANTS = (
    Mutant("landlock", ("no-namespace",), OUTSIDE + SIGNALS + SECRETS + ("proc-write", "host:victim-gone")),
    Mutant("landlock", ("full",), ("signal-parent",)),
    Mutant("landlock", ("full",), OUTSIDE, without=("read-only",)),
    Mutant("landlock-read", ("no-namespace",), SECRETS),
    Mutant("seccomp", BOTH, CALLS),
    Mutant("seccomp", ("no-namespace",), ("udp", "host:internet-heard")),
    Mutant("seccomp", ("no-namespace",), INTERNET, without=("landlock", "broker")),
    Mutant("broker", ("no-namespace",), ("unix-outside", "host:named-heard")),
    Mutant("broker", ("no-namespace",), ("abstract", "host:abstract-heard"), without=("landlock",)),
    Mutant("broker", ("full",), ("unix-outside", "host:named-heard")),
    Mutant("read-only", ("full",), METADATA),
    Mutant("read-only", ("full",), OUTSIDE, without=("landlock",)),
    Mutant("at:/tmp", ("full",), ("see-tmp",)),
    Mutant("pid", ("full",), refuses=True),
    Mutant("net", ("full",), INTERNET, without=("seccomp", "broker", "landlock")),
    Mutant("net", ("full",), ("abstract", "host:abstract-heard"), without=("broker", "landlock")),
    Mutant("ipc", ("full",), ("attach-shared",)),
    # What is left on the host is taken away again where the engine sees it come, sooner or later than we look.
    Mutant("below:W", ("full",), tuple(act for act in PROTECTED if ":" not in act) + ("agent-directory",)),
    Mutant("below:home", ("full",), SECRETS),
    Mutant("capabilities", BOTH, ("capabilities", "chroot"), users=("root",)),
    Mutant("no-new-privs", BOTH, refuses=True),
    Mutant("no-new-privs", BOTH, ("new-privileges",), without=("capabilities",), users=("root",)),
    Mutant("no-new-privs", ("full",), ("new-privileges",), without=("capabilities",)),
    Mutant("descriptors", ("no-namespace",), ("descriptors",)),
    Mutant("limits", BOTH, ("core-dumps",)),
    Mutant("session", ("no-namespace",), ("terminal",)),
    Mutant("session", ("no-namespace",), ("type", "host:typed"), without=("seccomp",)),
    Mutant("seccomp", ("no-namespace",), ("type", "host:typed"), without=("session",)),
    Mutant("subreaper", ("no-namespace",), ("host:lingering",)),
    Mutant("quarantine", ("no-namespace",), ("host:hook", "host:git-config", "host:agent-directory", "host:envrc")),
)

# Outside they fail too, but otherwise: that they change is the control.
DIFFER = ("clone3", "keyctl", "io-uring", "signal-parent")
# Of a session these are otherwise: it has a terminal of its own.
SESSION_OWN = ("terminal", "type", "host:typed")
TRIED = sorted({act for mutant in MUTANTS for act in mutant.acts if ":" not in act} |
               {"write-inside", "daemon", "signal-by-owner", "type", "envrc"})


class Bench:
    """Runs under mutations, each once."""

    def __init__(self, suite, world):
        self.suite = suite
        self.world = world
        self.seen = {}
        os.makedirs(world.path("hits"), exist_ok=True)
        os.chmod(world.path("hits"), 0o777)

    def run(self, tier, layers, way="exec"):
        key = (tier, tuple(sorted(layers)), way)
        if key not in self.seen:
            self.seen[key] = self._run(tier, layers, way)
        return self.seen[key]

    def _run(self, tier, layers, way):
        world = self.world
        world.reset()
        hits = world.path(f"hits/{way}-" + "-".join(layers).replace("/", "_"))
        words = ",".join(layer.replace(":W", ":" + world.path("W")).replace(":home", ":" + world.path("home"))
                         for layer in layers)
        wrap = [self.suite.programs.mutate, hits, words, os.path.basename(self.suite.programs.probe)]
        run = getattr(world, way)({"sandbox.tier": tier}, world.probe_words(TRIED), wrap=wrap if layers else ())
        run.outcomes.update(world.facts())
        run.missed = []
        if layers:
            with open(hits, encoding="utf-8") as lines:
                run.missed = [line.split()[0] for line in lines if line.endswith(" 0\n")]
        return run


def judge(bench, mutant, tier, outside):
    """What is wrong with one mutant."""
    before = bench.run(tier, mutant.without)
    after = bench.run(tier, (*mutant.without, mutant.wall))
    wrong = [f"'{layer}' was never met: nothing was taken away" for layer in after.missed]
    if mutant.refuses:
        if after.status == 0 or "write-inside" in after.outcomes:
            wrong.append(f"it ran all the same: {after.brief()}")
        return wrong
    if after.outcomes.get("write-inside") != 0:
        return [*wrong, f"the command did not run: {after.brief()}"]
    for act in mutant.acts:
        if outside.get(act) != 0 and act not in DIFFER:
            continue  # this kernel refuses it anyway: no control
        if before.outcomes.get(act) == 0:
            wrong.append(f"{act} got through before '{mutant.wall}' was taken away")
        if after.outcomes.get(act) == before.outcomes.get(act):
            wrong.append(f"{act} does not notice ({after.outcomes.get(act)})")
    if not any(outside.get(act) == 0 or act in DIFFER for act in mutant.acts):
        wrong.append("no act of it has a control here")
    return wrong


def parted(mutant, abi):
    """The mutant as far as this kernel has that wall, and as far as it has none; None where nothing is left."""
    lacks = landlock_lacks(abi) if mutant.wall == "landlock" else set()
    parts = [tuple(act for act in mutant.acts if (act in lacks) == is_lacking) for is_lacking in (False, True)]
    return [replace(mutant, acts=acts) if acts or (mutant.refuses and not i) else None for i, acts in enumerate(parts)]


def judge_lacking(bench, mutant, tier):
    """Where the kernel has no such wall its acts come to the same with Landlock and without."""
    before = bench.run(tier, mutant.without)
    after = bench.run(tier, (*mutant.without, mutant.wall))
    return [f"{act}: {before.outcomes.get(act)} with Landlock, {after.outcomes.get(act)} without" for act in mutant.acts
            if act not in before.outcomes or before.outcomes[act] != after.outcomes.get(act)]


# With a terminal, several walls at once: each is tried alone above, and here that the path of sessions passes them at
# all. Of walls that hold the same acts only one is in a group.
BY_PTY = (
    ("no-namespace", ("landlock", "limits", "quarantine")),
    ("no-namespace", ("seccomp", "broker", "landlock-read")),
    ("full", ("read-only", "broker", "ipc", "below:home")),
    ("full", ("seccomp", "at:/tmp", "below:W", "limits")),
)


def acts_of(tier, wall, who):
    """What this wall holds alone."""
    return [act for mutant in MUTANTS if mutant.wall == wall and tier in mutant.tiers and who in mutant.users
            and not mutant.without for act in mutant.acts]


def judge_pty(bench, tier, group, outside, lacks):
    """What is wrong where these walls are taken away from a session with a terminal."""
    before = bench.run(tier, (), "pty")
    after = bench.run(tier, group, "pty")
    wrong = [f"'{layer}' was never met: nothing was taken away" for layer in after.missed]
    if before.tier != tier or after.outcomes.get("write-inside") != 0:
        return [*wrong, f"the command did not run: {before.tier}, {after.brief()}"]
    for wall in group:
        for act in acts_of(tier, wall, bench.world.party.name):
            if act in SESSION_OWN or (wall == "landlock" and act in lacks) or (outside.get(act) != 0 and act not in DIFFER):
                continue
            if wall == "below:W" and act.startswith("host:"):
                continue  # what got through is taken away again, sooner or later than we look
            if before.outcomes.get(act) == 0:
                wrong.append(f"{act} got through before '{wall}' was taken away")
            if after.outcomes.get(act) == before.outcomes.get(act):
                wrong.append(f"{act} does not notice that '{wall}' is gone ({after.outcomes.get(act)})")
    return wrong


def title_of(mutant, tier, who):
    alone = f", where it alone is left of itself and {', '.join(mutant.without)}" if mutant.without else ""
    what = "nothing runs" if mutant.refuses else f"{len(mutant.acts)} acts get through"
    return f"without {mutant.wall}{alone}: {what} ({tier}, {who})"


def main():
    suite = Suite("mutation")

    def as_party(world):
        who = world.party.name
        bench = Bench(suite, world)
        world.reset()
        run = world.run(world.probe_words(TRIED))
        outside = {**run.outcomes, **world.facts()}
        abi = world.landlock_abi()
        for mutant, lacking in (parted(mutant, abi) for mutant in MUTANTS):
            for tier in mutant.tiers if mutant and who in mutant.users else ():
                suite.check(title_of(mutant, tier, who),
                            lambda mutant=mutant, tier=tier: judge(bench, mutant, tier, outside))
                suite.row(f"without {'+'.join((*mutant.without, mutant.wall))}", tier, who,
                          "FAILED" if suite.last_failed else "noticed", ", ".join(mutant.acts))
            for tier in lacking.tiers if lacking and who in lacking.users else ():
                suite.check(f"Landlock of ABI {abi} is no wall for {', '.join(lacking.acts)}"
                            f"{', without ' + ', '.join(lacking.without) if lacking.without else ''} ({tier}, {who})",
                            lambda lacking=lacking, tier=tier: judge_lacking(bench, lacking, tier))
                suite.row(f"ABI {abi}, without {'+'.join((*lacking.without, lacking.wall))}", tier, who,
                          "FAILED" if suite.last_failed else "absent", ", ".join(lacking.acts))

        for tier, group in BY_PTY:
            if os.getuid() == 0 and (tier == "full") != (who == "root"):
                continue  # a tier as each of the two
            suite.check(f"without {', '.join(group)}: what each holds gets through with a terminal, too ({tier}, {who})",
                        lambda tier=tier, group=group: judge_pty(bench, tier, group, outside, landlock_lacks(abi)))
            suite.row(f"without {'+'.join(group)}", f"{tier}, pty", who, "FAILED" if suite.last_failed else "noticed")

    suite.each_party(as_party)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
