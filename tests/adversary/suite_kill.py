#!/usr/bin/env python3
"""What is left when many commands have run, and when somebody of those who run them is
killed at any moment: no process, no mount, no placeholder, no zombie."""

import json
import os
import random
import signal
import subprocess
import sys
import time

from harness import Suite

TIERS = ("no-namespace", "full")
RUNS = 100  # in each tier
KILLS = 20
CALLS = 1000


def tree_of(world):
    """All names of the workspace, and of the place for what is found in it."""
    return sorted(os.path.join(folder, name) for folder, dirs, files in os.walk(world.path("W"))
                  for name in (*dirs, *files))


def stat_of(pid):
    """(name, state, parent) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            head, _, tail = f.read().rpartition(")")
    except OSError:
        return None
    return head.partition("(")[2], tail.split()[0], int(tail.split()[1])


def below(pid):
    """All processes that come of this one, as {pid: (name, state, parent)}."""
    every = {int(n): stat_of(n) for n in os.listdir("/proc") if n.isdigit()}
    found = {}
    grown = True
    while grown:
        grown = False
        for number, stat in every.items():
            if stat and number not in found and (stat[2] == pid or stat[2] in found):
                found[number] = stat
                grown = True
    return found


def is_alive(pid):
    stat = stat_of(pid)
    return stat is not None and stat[1] not in "ZX"


def mounts(world):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line for line in f if world.base in line]


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def start(world, words):
    return subprocess.Popen(words, cwd=world.path("W"), env=world.environment(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                            **world.party.popen_args())


def many_runs(world, tier):
    """Placeholders stand while a command runs, and are gone with it."""
    before = tree_of(world)
    seen = world.exec({"sandbox.tier": tier}, ["ls", "-A"])
    wrong = []
    if tier == "full" and ".claude" not in seen.answer["stdout"]:
        wrong.append(f"no placeholder was there: {seen.answer['stdout']}")
    for _ in range(RUNS):
        run = world.exec({"sandbox.tier": tier}, ["true"])
        if run.status != 0:
            return [*wrong, run.brief()]
    after = tree_of(world)
    wrong += [f"left: {name}" for name in after if name not in before]
    wrong += [f"gone: {name}" for name in before if name not in after]
    return wrong + [f"mounted: {line}" for line in mounts(world)]


def killed(world, tier, whom):
    """Kills one of those processes at a random moment of its life, many times."""
    before = tree_of(world)
    wrong = []
    hit = 0
    dice = random.Random(f"{tier} {whom}")
    rounds = 0
    # On a busy machine it may be long until there is one: later rounds begin when there is.
    while rounds < KILLS or (hit < KILLS // 6 and rounds < 2 * KILLS):
        rounds += 1
        engine = start(world, world.exec_words({"sandbox.tier": tier}, [world.programs.probe, "--linger", world.mark]))
        family = {}
        if rounds > KILLS:
            wait_for(lambda: any(stat[0] == whom for stat in below(engine.pid).values()), 20)
        pause = dice.uniform(0, 0.1 if rounds <= KILLS else 0.01)
        end = time.monotonic() + pause
        while time.monotonic() < end:
            family.update(below(engine.pid))
        family.update(below(engine.pid))
        victims = [engine.pid] if whom == "engine" else [p for p, stat in family.items() if stat[0] == whom]
        for pid in victims[:1]:
            try:
                os.kill(pid, signal.SIGKILL)
                hit += 1
            except ProcessLookupError:
                pass
        family.update(below(engine.pid))
        if whom != "engine":
            # Its command may go on; then the engine is asked to end it.
            engine.terminate()
        try:
            engine.wait(20)
        except subprocess.TimeoutExpired:
            engine.kill()
            wrong.append(f"{whom} was killed, and the engine did not end")
        if not wait_for(lambda: not world.lingering() and not any(map(is_alive, family)), 4):
            wrong.append(f"{whom} was killed after {pause * 1000:.1f} ms, left: "
                         f"{[(p, stat_of(p)) for p in family if is_alive(p)]} {world.lingering()}")
            world.end_lingering()
    if hit < KILLS // 6:
        wrong.append(f"only {hit} times was a {whom} there to be killed")
    # The next engine clears away what one that was killed could not.
    run = world.exec({"sandbox.tier": tier}, ["true"])
    wrong += [] if run.status == 0 else [run.brief()]
    after = tree_of(world)
    wrong += [f"left: {name}" for name in after if name not in before]
    wrong += [f"gone: {name}" for name in before if name not in after]
    return wrong + [f"mounted: {line}" for line in mounts(world)]


class Server:
    """The program as an MCP server, as far as running commands goes."""

    def __init__(self, world, settings):
        words = [world.programs.shellyard, "mcp"]
        for key, value in settings.items():
            words += ["-c", f"{key}={value}"]
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(words, cwd=world.path("W"), env=world.environment(), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        **world.party.popen_args())
        self.id = 0
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                    "clientInfo": {"name": "suite", "version": "1"}})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.id += 1
        self._send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise EOFError(f"the server ended with {self.process.wait()}")
            message = json.loads(line)
            if message.get("id") == self.id:
                return message["result"]

    def run(self, command):
        return self.request("tools/call", {"name": "shell_command",
                                           "arguments": {"command": command, "login": False}})

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(20)


def zombies(pid):
    return [p for p, stat in below(pid).items() if stat[1] == "Z"]


def many_calls(world, tier):
    """An engine that lives long: after many commands it has no zombie and no more descriptors."""
    server = Server(world, {"sandbox.tier": tier})
    wrong = []

    def descriptors():
        found = []
        for fd in os.listdir(f"/proc/{server.process.pid}/fd"):
            try:
                found.append(os.readlink(f"/proc/{server.process.pid}/fd/{fd}"))
            except FileNotFoundError:
                pass
        return sorted(found)

    def watched_in_vain():
        """What an epoll watches whose descriptor is closed: somebody else has the file too."""
        base = f"/proc/{server.process.pid}"
        numbers = {int(name) for name in os.listdir(f"{base}/fd")}
        watched = set()
        for number in numbers:
            try:
                with open(f"{base}/fdinfo/{number}", encoding="utf-8") as f:
                    watched |= {int(line.split()[1]) for line in f if line.startswith("tfd:")}
            except FileNotFoundError:
                pass
        return watched - numbers

    def counts():
        return len(descriptors()), len(below(server.process.pid))

    # Rules and grants are read from the store at once, what is counted is written after some seconds
    # (LIMIT_METRICS_KEEP_MS): each opens it, and keeps it open.
    def stays_the_same():
        first = counts()
        until = time.monotonic() + 7
        while time.monotonic() < until:
            server.run("true")
        return counts() == first

    if not wait_for(stays_the_same, 60):
        wrong.append(f"never two times the same: {counts()}")
    before = counts()
    had = descriptors()
    for n in range(CALLS if tier == "no-namespace" else CALLS // 4):
        answer = server.run(":")
        if answer.get("isError"):
            wrong.append(f"call {n} failed: {answer}")
            break
    if not wait_for(lambda: not zombies(server.process.pid), 2):
        wrong.append(f"zombies: {zombies(server.process.pid)}")
    if not wait_for(lambda: all(now <= then + 1 for now, then in zip(counts(), before)), 2):
        more = descriptors()
        for one in had:
            if one in more:
                more.remove(one)
        wrong.append(f"descriptors and processes: {before} before, {counts()} after; new: {more}")
    if watched_in_vain():
        wrong.append(f"still watched, though closed: {watched_in_vain()}")
    server.close()
    return wrong


def main():
    suite = Suite("kill")

    def as_party(world):
        who = world.party.name
        cases = [(f"{RUNS} commands leave nothing", many_runs, ()),
                 ("many commands of one engine leave no zombie", many_calls, ()),
                 ("an engine that is killed leaves nothing", killed, ("engine",)),
                 ("a keeper that is killed leaves nothing", killed, ("sy-keeper",))]
        for tier in TIERS:
            more = [("a template that is killed leaves nothing", killed, ("sy-template",)),
                    ("a launcher that is killed leaves nothing", killed, ("sy-launch",))]
            for title, body, args in cases + (more if tier == "full" else []):

                def check(body=body, tier=tier, args=args):
                    world.reset()
                    return body(world, tier, *args)

                suite.check(f"{title} ({tier}, {who})", check)
                suite.row(title, tier, who, "FAILED" if suite.last_failed else "held")

    suite.each_party(as_party)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
