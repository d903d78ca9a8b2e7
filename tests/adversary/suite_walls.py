#!/usr/bin/env python3
"""All acts of the probe in each tier, as each user, by `exec` and as a call of an MCP
server, with and without a terminal, and outside of all of them."""

import errno
import itertools
import os
import sys

from acts import (SESSION_WALLS, WALLS, held_walls, judge, judge_claims, judge_outside, judge_session,
                  judge_session_outside, without_newer, without_own_network)
from harness import Suite
from world import Server

SETTINGS = {
    "no-namespace": {"sandbox.tier": "no-namespace"},
    "full": {"sandbox.tier": "full"},
}


def outside(suite, world):
    world.reset()
    run = world.run(world.probe_words())
    outcomes = {**run.outcomes, **world.facts()}
    wrong = judge_outside(outcomes)
    suite.rows_of("outside", world.party.name, outcomes, wrong)
    return wrong


def judge_claimed(run, tier, outcomes):
    """Nothing may be claimed that this kernel has no wall for, be it known to be so; but see without_newer()."""
    process_1 = without_newer("full", run.sandbox["landlock_abi"], outcomes)["signal-parent"]
    return judge_claims(run.sandbox, {**outcomes, "signal-parent": process_1 if tier == "full" else outcomes["signal-parent"]})


def judge_inside(run, tier, outcomes):
    if run.tier != tier:
        return [f"the tier is {run.tier}: {run.brief()}"]
    outcomes = without_own_network(tier, outcomes)
    judged = without_newer(tier, run.sandbox["landlock_abi"], outcomes)
    return judge(judged, held_walls(tier)) + judge_claimed(run, tier, outcomes)


def inside(suite, world, tier, way):
    world.reset()
    run = getattr(world, way)(SETTINGS[tier], world.probe_words())
    outcomes = {**run.outcomes, **world.facts()}
    wrong = judge_inside(run, tier, outcomes)
    suite.rows_of(f"{tier} by {way}", world.party.name, outcomes, wrong)
    return wrong


def as_if_older(suite, world, tier, network):
    """Where Landlock says that it is of ABI 2 (Linux 5.19 to 6.1): all other walls stand, and none is claimed that it has not."""
    world.reset()
    wrap = [suite.programs.mutate, world.path("notes/hits"), "abi:2", os.path.basename(suite.programs.probe)]
    run = world.exec({**SETTINGS[tier], "sandbox.network_access": network}, world.probe_words(), wrap=wrap)
    outcomes = {**run.outcomes, **world.facts()}
    if run.sandbox.get("landlock_abi") != 2 or outcomes.get("write-inside") != 0:
        return [f"it did not run so: {run.brief()}"]
    wrong = judge_inside(run, tier, outcomes) if network == "false" else judge_claimed(run, tier, outcomes)
    if network == "true" and "enforced" in (run.sandbox["features"][f] for f in ("network", "unix_abstract")):
        wrong.append(f"claimed with the network on: {run.sandbox['features']}")
    suite.rows_of(f"{tier}, ABI 2, network {network}", world.party.name, outcomes, wrong)
    return wrong


def stolen(server, session):
    """Does the other session's terminal show what was written by a thief?"""
    shown = server.call("write_stdin", session_id=session, view="screen", idle_ms=20, yield_time_ms=1000)
    return 0 if "stolen" in shown.get("output", "") else 1


def on_terminals(suite, world, tier):
    """In a session with a terminal, beside another one of the same server."""
    world.reset()
    with Server(world, SETTINGS[tier]) as server:
        session, words = world.open_session(server)
        run = server.pty([*world.probe_words(), *words])
        outcomes = {**run.outcomes, **world.facts(), "host:stolen": stolen(server, session)}
        free = world.run([*world.probe_words([act for acts in SESSION_WALLS.values() for act in acts]), *words])
        control = {**free.outcomes, "host:stolen": stolen(server, session)}
    wrong = judge_inside(run, tier, outcomes) + judge_session(tier, without_newer(tier, run.sandbox["landlock_abi"], outcomes))
    # It has a terminal of its own, in which it may write and nothing else: the acts on it met the
    # terminal and were refused by the filter, not for want of one.
    wrong = [line for line in wrong if not line.startswith("terminal: ") and ", and terminal got through" not in line]
    wrong += [] if outcomes.get("terminal") == 0 else ["terminal: its own can't be opened"]
    wrong += [f"{act}: {outcomes.get(act)}, not EPERM" for act in (*WALLS["own-terminal"], "type")
              if outcomes.get(act) != errno.EPERM]
    wrong += judge_session_outside(tier, control)
    suite.rows_of(f"{tier} by pty", world.party.name, outcomes, wrong)
    suite.rows_of(f"outside, beside {tier}", world.party.name, control, [])
    return wrong


def main():
    suite = Suite("walls")

    def as_party(world):
        who = world.party.name
        suite.check(f"outside, as {who}, all acts succeed that are refused inside", lambda: outside(suite, world))
        for tier, way in itertools.product(SETTINGS, ("exec", "mcp", "pty")):
            suite.check(f"in the {tier} tier, as {who}, by {way}, hostile acts fail and work goes on",
                        lambda tier=tier, way=way: on_terminals(suite, world, tier) if way == "pty"
                        else inside(suite, world, tier, way))
        for tier, network in itertools.product(SETTINGS, ("false", "true")):
            suite.check(f"in the {tier} tier, as {who}, with a Landlock of ABI 2 and network_access {network}, nothing is "
                        "claimed that does not hold", lambda tier=tier, network=network: as_if_older(suite, world, tier, network))

    suite.each_party(as_party)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
