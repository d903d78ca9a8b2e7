"""The suites of bench.py on programs that run on terminals: round trips, capture, and how long
after its cause an answer comes (bench_pty.c)."""
import contextlib
import os
import shutil
import subprocess

SELF = os.path.dirname(os.path.abspath(__file__))
SEP = ":::"
SHELL = ["/bin/bash", "--norc", "--noprofile"]
CAPTURE_MIB = 32
PEER_MIB = 8

# Rows with a budget: how they are called in the answers of bench_pty.
TRIP_BUDGETS = {"in process": "trip.ratio", "through the daemon": "trip.daemon_ratio"}


def joined(variants):
    """Variants as words of a command line."""
    words = []
    for name, argv in variants:
        words += ([SEP] if words else []) + [name] + argv
    return words


@contextlib.contextmanager
def daemon(bench):
    """A daemon in the bench's own home; yields whether there is one."""
    start = subprocess.run([bench.shellyard, "serve", "--background"], env=bench.env, cwd=bench.scratch,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           timeout=60, text=True, check=False)
    if start.returncode != 0:
        bench.report.problem(f"serve --background: {start.stderr.strip()}")
    try:
        yield start.returncode == 0
    finally:
        subprocess.run([bench.shellyard, "serve", "--stop"], env=bench.env, cwd=bench.scratch, timeout=60,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def peers(bench, suite, program):
    """Variants of the peers that are here, for a program with its arguments; absent ones are said."""
    found = []
    tmux = shutil.which("tmux")
    command = [tmux, "-L", f"shellyard-bench-{os.getpid()}", "-f", "/dev/null", "-C", "new-session", "-x", "80",
               "-y", "24", *program] if tmux else None
    bench.add_peer(found, suite, "tmux, control mode", command and ["@tmux", *command])
    node_pty = bench.peers.script("node-pty", "node-pty/build/Release/pty.node")
    script = os.path.join(SELF, "pty_peer.mjs")
    module = os.path.join(bench.peers.dir, "node-pty", "node_modules", "node-pty")
    bench.add_peer(found, suite, "node-pty", node_pty and
                   ["@peer", bench.peers.node, script, "node-pty", module, *program])
    codex = bench.peers.codex_native() if bench.peers.node else None
    bench.add_peer(found, suite, "codex app-server, no sandbox", codex and
                   ["@peer", bench.peers.node, script, "codex", codex, *program])
    return found


def report(bench, suite, result, text, budget_of):
    """Rows of one answer; what one of ours lacks is a problem."""
    for v in result["variants"]:
        budget = budget_of(v["name"])
        if v["why"]:
            bench.report.row(suite, v["name"], None, "failed", None, v["why"])
            if budget is not None or v["name"].startswith("bare"):
                bench.report.problem(f"{suite}: {v['name']}: {v['why']}")
            continue
        bench.report.row(suite, v["name"], v["ratio"], text(v), budget)


def trip_text(v):
    us = v["us"]
    return f"{v['ratio']:.2f} x  ({us['median']:.0f} us, {us['p10']:.0f}-{us['p90']:.0f})"


def rate_text(v):
    return f"{v['ratio']:.2f} x  ({v['mib_s']['median']:.0f} MiB/s)"


def suite_trip(bench):
    """A line typed to a program on a terminal until its answer is there."""
    if not bench.has_tool("trip", "bench_pty") or not bench.has_program("trip"):
        return
    with daemon(bench) as is_up:
        for name, program in (("bash", SHELL), ("a program", [bench.tool("pty_program"), "answer"])):
            variants = [("bare loop", ["@bare"]), ("in process", ["@engine"])]
            if is_up:
                variants.append(("through the daemon", ["@mcp", bench.shellyard, "mcp"]))
            if name == "bash":
                variants += peers(bench, "trip", program)
            result = bench.run_json([bench.tool("bench_pty"), "trip", "-n", bench.rounds(200), "-p", program[0],
                                     "--"] + joined(variants))
            if result is None:
                continue
            bench.report.raw["trip-" + name] = result
            for v in result["variants"]:
                v["budget"] = TRIP_BUDGETS.get(v["name"]) if name == "bash" else None
                v["name"] += f", {name}"
            budgets = {v["name"]: v["budget"] for v in result["variants"]}
            report(bench, "trip", result, trip_text, budgets.get)


def suite_tty_capture(bench):
    """Output of a program on a terminal, its screen known."""
    if not bench.has_tool("tty_capture", "bench_pty"):
        return
    writer = bench.tool("pipe_writer")
    for mib, variants in ((CAPTURE_MIB, [("bare loop", ["@bare"]), ("in process, screen on", ["@engine"])]),
                          (PEER_MIB, [("bare loop, beside peers", ["@bare"])] +
                           peers(bench, "tty_capture", [writer, str(PEER_MIB), "64"]))):
        if len(variants) < 2:
            continue
        result = bench.run_json([bench.tool("bench_pty"), "capture", "-n", bench.rounds(7), "-m", str(mib), "-p",
                                 writer, "--"] + joined(variants))
        if result is None:
            continue
        bench.report.raw[f"tty_capture-{mib}"] = result
        report(bench, "tty_capture", result, rate_text,
               lambda name: "tty_capture.ratio" if name.startswith("in process") else None)


def suite_cause(bench):
    """From a program's last write to the answer that a client waits for."""
    if not bench.has_tool("cause", "bench_pty") or not bench.has_program("cause"):
        return
    with daemon(bench) as is_up:
        variants = [("by itself", [bench.shellyard, "mcp", "--no-daemon"])]
        if is_up:
            variants.append(("through the daemon", [bench.shellyard, "mcp"]))
        result = bench.run_json([bench.tool("bench_pty"), "cause", "-n", bench.rounds(50), "-p",
                                 bench.tool("pty_program"), "--"] + joined(variants))
    if result is None:
        return
    bench.report.raw["cause"] = result
    for server in result["servers"]:
        is_ours = not server["name"].startswith("bare")
        if server["why"]:
            bench.report.problem(f"cause: {server['name']}: {server['why']}")
        for c in server["causes"]:
            us = c["us"]
            if us["n"] == 0:
                continue
            # What the kernel takes to end a process is in the bare loop too.
            is_exit = c["cause"].startswith("exit")
            value = c["more_us"] if is_exit else us["median"]
            text = f"{us['median']:.0f} us" + (f", {value:+.0f} to a bare loop" if is_exit and is_ours else "")
            bench.report.row("cause", f"{server['name']}: {c['cause']}", value, text,
                             "cause.us" if is_ours else None, f"p10 {us['p10']:.0f}, p90 {us['p90']:.0f} us")
