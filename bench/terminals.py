#!/usr/bin/env python3
"""Terminals of a server: N made at once until each shell is at its prompt, beside as many bare
bash on terminals, and what an idle one costs the server. Prints JSON; exit 1 if one was refused.

    terminals.py -n ROUNDS -s SESSIONS [--beside '{"NAME": ["WORD", ...]}'] TIER SHELLYARD

--beside: as many bash that those words start, in rounds of their own: what is left of their
namespaces is taken down for seconds.
"""
import argparse
import json
import os
import pty
import resource
import select
import subprocess
import sys
import time

PROMPT = "ready> "
BASH = ["/bin/bash", "--norc", "--noprofile", "-i"]
AT_ONCE = 128  # calls that wait for their answers: a server takes 256
WARM = 16  # before anything is counted: what the first ones make stays


class Server:
    """An MCP server on pipes."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.last = 0
        self.answer_all([("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                         "clientInfo": {"name": "bench", "version": "1"}})])
        self._write({"method": "notifications/initialized"})

    def _write(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def answer_all(self, requests):
        """Sends them, AT_ONCE at a time; returns the results, in no order."""
        left = list(requests)
        wanted = set()
        results = []
        while left or wanted:
            while left and len(wanted) < AT_ONCE:
                method, params = left.pop()
                self.last += 1
                wanted.add(self.last)
                self._write({"id": self.last, "method": method, "params": params})
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server ended")
            message = json.loads(line)
            if message.get("id") in wanted:
                wanted.remove(message["id"])
                if "error" in message or message["result"].get("isError"):
                    raise RuntimeError(f"refused: {line[:400]}")
                results.append(message["result"].get("structuredContent", {}))
        return results

    def start(self, n):
        """n shells on terminals, each answered at its prompt with its screen."""
        arguments = {"cmd": BASH, "tty": True, "yield_time_ms": 30000, "pattern": PROMPT,
                     "view": "screen", "env": {"PS1": PROMPT}}
        call = {"name": "exec_command", "arguments": arguments}
        done = self.answer_all([("tools/call", call)] * n)
        if any(PROMPT.strip() not in d.get("output", "") for d in done):
            raise RuntimeError("a shell without a prompt")
        return [d["session_id"] for d in done]

    def stop(self, ids):
        self.answer_all([("tools/call", {"name": "kill_session", "arguments": {"session_id": i}}) for i in ids])

    def cost(self):
        """Kilobytes that are its own, and descriptors, once it is idle."""
        proc = f"/proc/{self.process.pid}"
        before = None
        # What a session was lent for a moment is given back (docs/internals/process.md).
        while before != (before := len(os.listdir(f"{proc}/fd"))):
            time.sleep(0.5)
        with open(f"{proc}/smaps_rollup", encoding="ascii") as file:
            kb = next(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:"))
        return kb, len(os.listdir(f"{proc}/fd"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def bare(n, wrapper=()):
    """n bash on terminals, started by those words, each until its prompt; seconds."""
    env = dict(os.environ, PS1=PROMPT, TERM="dumb")
    begun = time.monotonic()
    waiting = {}
    for _ in range(n):
        master, slave = pty.openpty()
        child = subprocess.Popen([*wrapper, *BASH], stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)
        waiting[master] = (child, bytearray())
    all_of_them = dict(waiting)
    poll = select.poll()
    for master in waiting:
        poll.register(master, select.POLLIN)
    while waiting:
        for master, _ in poll.poll():
            child, text = waiting.get(master, (None, None))
            if child is None:
                continue
            text += os.read(master, 4096)
            if PROMPT.encode() in text:
                poll.unregister(master)
                del waiting[master]
    seconds = time.monotonic() - begun
    for master, (child, _) in all_of_them.items():
        child.kill()
        os.close(master)
        child.wait()
    return seconds


def busy_seconds():
    """Of all processors since the machine began."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def settle():
    """Waits for what the kernel still does for those that have ended, five seconds at most."""
    for _ in range(25):
        before = busy_seconds()
        time.sleep(0.2)
        if busy_seconds() - before <= 0.02:
            return


def measure_beside(options):
    """{name: ratio to as many bare bash}"""
    ratios = {name: [] for name in options.beside}
    for _ in range(options.n):
        for name, words in options.beside.items():
            settle()
            floor = bare(options.s)
            settle()
            ratios[name].append(bare(options.s, words) / floor)
    return {name: middle(found) for name, found in ratios.items()}


def middle(values):
    return sorted(values)[len(values) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=3, help="rounds")
    parser.add_argument("-s", type=int, default=256, help="sessions")
    parser.add_argument("tier")
    parser.add_argument("shellyard")
    parser.add_argument("--beside", type=json.loads, default={}, metavar="JSON")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    server = Server([options.shellyard, "mcp", "-c", f"sandbox.tier={options.tier}",
                     "-c", f"sessions.max={options.s + WARM + 8}"])
    try:
        warm = server.start(WARM)
        ours, floor = [], []
        kb = fds = 0
        for i in range(options.n):
            floor.append(bare(options.s))
            before = server.cost()
            begun = time.monotonic()
            ids = server.start(options.s)
            ours.append(time.monotonic() - begun)
            after = server.cost()
            # Memory that the next round finds again is not counted anew; descriptors are those of
            # the last round, when the server has opened all that it has for itself.
            kb = (after[0] - before[0]) / options.s if i == 0 else kb
            fds = (after[1] - before[1]) / options.s
            server.stop(ids)
        server.stop(warm)
    except RuntimeError as error:
        print(f"terminals.py: {error}", file=sys.stderr)
        return 1
    finally:
        server.close()
    json.dump({"sessions": options.s, "tier": options.tier, "rounds": options.n,
               "ratio": middle([o / f for o, f in zip(ours, floor)]),
               "beside": measure_beside(options),
               "ours_ms": middle(ours) * 1000, "bare_ms": middle(floor) * 1000,
               "kb_per_session": kb, "fds_per_session": fds}, sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
