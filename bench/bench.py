#!/usr/bin/env python3
"""Runs the bench (docs/bench.md): our numbers beside those of the peers that are installed.

Prints a table with each budget and whether it was met, writes build/bench/results.json. What takes
part but can't run, and what is not installed, is named. Timings never fail the run; a program of
ours that gives a wrong answer does.
"""
import argparse
import contextlib
import glob
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

import ptys

SELF = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(SELF)

# What, first target, far target, and which way is better. Ratios unless the row says otherwise.
BUDGETS = {
    "oneshot.ratio": (2.0, 1.6, "max"),
    "oneshot.rss_kb": (2048, 2048, "max"),
    "spawn.ratio": (1.10, 1.03, "max"),
    "spawn.full_ratio": (1.8, 1.5, "max"),
    "capture.mib_s": (1024, 1024, "min"),
    "start.ratio": (2.0, 1.2, "max"),
    "memory.hwm_kb": (4096, 2048, "max"),
    "call.us": (100, 50, "max"),
    "tools_list.bytes": (12000, 8192, "max"),
    "terminals.ratio": (1.3, 1.1, "max"),
    "terminals.kb": (16, 4, "max"),
    "terminals.fds": (2, 2, "max"),
    "trip.ratio": (1.5, 1.15, "max"),
    "trip.daemon_ratio": (3.0, 2.0, "max"),
    "tty_capture.ratio": (0.8, 0.95, "min"),
    "cause.us": (1000, 1000, "max"),
}

# What BASE is called in each set of one-shot rounds.
BASE_ROWS = {"oneshot": "BASE", "oneshot-namespaces": "BASE, beside namespaces",
             "oneshot-slow": "BASE, caches cold"}


class Report:
    """Rows of the table and the raw results behind them."""

    def __init__(self):
        self.rows = []
        self.raw = {}
        self.problems = []
        self.absent = []

    def row(self, suite, name, value, text, budget=None, note=""):
        """budget: a key of BUDGETS if this row is one of ours that has one."""
        target, state = "", ""
        if budget is not None and value is not None:
            first, far, way = BUDGETS[budget]
            is_met = value <= first if way == "max" else value >= first
            is_far = value <= far if way == "max" else value >= far
            sign = "<=" if way == "max" else ">="
            target = f"{sign} {first:g}" + ("" if far == first else f" (far {far:g})")
            state = "missed" if not is_met else "met" if far == first or not is_far else "met, far"
        self.rows.append({"suite": suite, "name": name, "value": value, "text": text,
                          "budget": target, "state": state, "note": note})

    def skip(self, suite, name, why):
        self.rows.append({"suite": suite, "name": name, "value": None, "text": "absent",
                          "budget": "", "state": "", "note": why})
        self.absent.append(f"{suite}: {name}: {why}")

    def problem(self, text):
        self.problems.append(text)


class Peers:
    """Where bench/peers.sh puts the programs that we compare with."""

    def __init__(self):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.dir = os.environ.get("SHELLYARD_BENCH_PEERS") or os.path.join(
            cache, "shellyard-bench-peers")
        self.node = shutil.which("node")

    def script(self, folder, path):
        """[node, file] of an npm package, or None."""
        full = os.path.join(self.dir, folder, "node_modules", path)
        return [self.node, full] if self.node and os.path.exists(full) else None

    def bwrap(self, cwd, command):
        path = shutil.which("bwrap")
        if path is None:
            return None
        return [path, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                "--bind", cwd, cwd, "--unshare-all", "--die-with-parent", "--", *command]

    def unshare(self):
        """Namespaces of its own and nothing else: what those alone cost."""
        path = shutil.which("unshare")
        words = [path, "-m", "-p", "-n", "-i", "-f", "--mount-proc"]
        return path and words + ([] if os.geteuid() == 0 else ["-r"])

    def codex_native(self):
        pattern = os.path.join(self.dir, "codex", "node_modules", "@openai", "codex-*", "vendor",
                               "*", "bin", "codex")
        found = sorted(glob.glob(pattern))
        return found[0] if found else None

    def codex_sandbox(self, env):
        """The spelling of `codex sandbox` has changed from version to version: the first that
        runs /bin/true."""
        native = self.codex_native()
        if native is None:
            return None
        for words in (["sandbox", "-P", ":workspace", "--"],
                      ["sandbox", "linux", "--full-auto", "--"], ["sandbox", "linux", "--"],
                      ["debug", "landlock", "--full-auto"]):
            argv = [native] + words + ["/bin/true"]
            if runs(argv, env):
                return argv
        return None

    def srt(self, settings):
        argv = self.script("srt", "@anthropic-ai/sandbox-runtime/dist/cli.js")
        return argv + ["--settings", settings, "/bin/true"] if argv else None

    def desktop_commander(self):
        argv = self.script("desktop-commander",
                           "@wonderwhy-er/desktop-commander/dist/index.js")
        return argv + ["--no-onboarding"] if argv else None


def runs(argv, env=None):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60, env=env, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = os.path.abspath(options.build)
        self.out = os.path.join(self.build, "bench")
        self.shellyard = os.path.join(self.build, "shellyard")
        launcher = os.path.join(self.build, "libexec", "shellyard", "shellyard-launch")
        self.launcher = launcher if os.access(launcher, os.X_OK) else None
        self.peers = Peers()
        self.report = Report()
        self.scratch = None
        self.env = None

    def rounds(self, usual):
        return str(self.options.rounds or usual)

    def tool(self, name):
        return os.path.join(self.out, name)

    def run_json(self, argv, limit_s=900):
        """A bench program's answer, or None with a problem noted."""
        name = os.path.basename(argv[0])
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=limit_s, env=self.env,
                                  cwd=self.scratch, text=True, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.report.problem(f"{name}: {error}")
            return None
        if done.returncode != 0:
            self.report.problem(f"{name}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
            return None
        return json.loads(done.stdout)

    # --- suites -----------------------------------------------------------------------------

    def suite_oneshot(self):
        """`true` in a sandbox, from a program that starts for it."""
        ours = []
        if self.has_program("oneshot"):
            ours.append([self.shellyard, "exec", "-s", "workspace-write", "--", "/bin/true"])
        quick = [("sh -c true", ["/bin/sh", "-c", "true"])]
        quick += [("shellyard exec workspace-write", argv) for argv in ours]
        self.oneshot_rounds("oneshot", quick, 40)
        spaces = []
        if ours and self.has_full_tier():
            full = [self.shellyard, "exec", "-s", "workspace-write", "-c", "sandbox.min_tier=full"]
            spaces += [("shellyard exec, full tier", [*full, "--", "/bin/true"]),
                       ("shellyard exec, full tier, allow list",
                        [*full, "-c", "network.allow=[example.com]", "--", "/bin/true"])]
        self.add_peer(spaces, "oneshot", "bwrap --unshare-all", self.peers.bwrap(self.scratch, ["/bin/true"]))
        if spaces:
            spaces += [("shellyard exec, beside namespaces", argv) for argv in ours]
            self.oneshot_rounds("oneshot-namespaces", spaces, 20)
        slow = []
        self.add_peer(slow, "oneshot", "codex sandbox", self.peers.codex_sandbox(self.env))
        self.add_peer(slow, "oneshot", "srt", self.peers.srt(self.srt_settings()))
        if slow:
            slow += [("shellyard exec, caches cold", argv) for argv in ours]
            self.oneshot_rounds("oneshot-slow", slow, 10)

    def oneshot_rounds(self, name, variants, usual):
        """Rounds of these variants, with a BASE of their own."""
        path = os.path.join(self.out, name + ".json")
        argv = [self.tool("bench_run"), "-n", self.rounds(usual), "-j", path, "--"] + ptys.joined(variants)
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=1800, env=self.env,
                           cwd=self.scratch, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            self.report.problem(f"bench_run: {error}")
            return
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        self.report.raw[name] = result
        for v in result["variants"]:
            self.oneshot_row(v, BASE_ROWS[name] if v["name"] == "BASE" else v["name"])

    def oneshot_row(self, v, name):
        is_ours = name.startswith("shellyard")
        is_judged = name == "shellyard exec workspace-write"
        note = f"cpu {v['cpu_ms']['median']:.1f} ms, {v['rss_kb']['median']:.0f} kB"
        if v["failures"]:
            note += f"; {v['failures']} of {v['wall_ms']['n']} runs FAILED"
            if is_ours:
                self.report.problem(f"oneshot: {name}: {v['failures']} runs failed")
        self.report.row("oneshot", name, v["ratio"], ratio_text(v),
                        "oneshot.ratio" if is_judged else None, note)
        if is_judged:
            kb = v["rss_kb"]["median"]
            self.report.row("oneshot", name + ", memory", kb, f"{kb:.0f} kB", "oneshot.rss_kb")

    def suite_spawn(self):
        """A sandboxed command started by an engine with a big heap."""
        if not self.has_tool("spawn", "bench_spawn"):
            return
        heap = "512"
        result = self.run_json([self.tool("bench_spawn"), "spawn", "-n", self.rounds(60),
                                "-m", heap] + (["-l", self.launcher] if self.launcher else []))
        if result is None:
            return
        self.report.raw["spawn"] = result
        for v in result["variants"]:
            budget = ("spawn.ratio" if "workspace-write" in v["name"] else
                      "spawn.full_ratio" if "full" in v["name"] else None)
            self.report.row("spawn", v["name"], v["ratio"], ratio_text(v), budget,
                            f"{heap} MB heap")

    def suite_capture(self):
        """Output of a command into the output chain."""
        if not self.has_tool("capture", "bench_spawn"):
            return
        result = self.run_json([self.tool("bench_spawn"), "capture", "-n", self.rounds(5),
                                "-m", "512", self.tool("pipe_writer")])
        if result is None:
            return
        self.report.raw["capture"] = result
        for v in result["variants"]:
            rate = v["mib_s"]["median"]
            is_ours = v["name"].startswith("engine, writes of 64")
            self.report.row("capture", v["name"], rate, f"{rate:.0f} MiB/s",
                            "capture.mib_s" if is_ours else None,
                            f"{v['ratio']:.2f} of the first row")
        growth = result["hwm_growth_kb"]
        self.report.row("capture", "engine, memory grown by 512 MiB of output", growth,
                        f"{growth} kB")

    def suite_start(self):
        """Start of an MCP server until `initialize` is answered."""
        variants = [("echo stub", [self.tool("echo_stub")])]
        if self.has_program("start"):
            variants.append(("shellyard mcp", [self.shellyard, "mcp"]))
        self.add_peer(variants, "start", "desktop-commander", self.peers.desktop_commander())
        result = self.run_json([self.tool("start_mcp"), "-n", self.rounds(12), "--"] +
                               ptys.joined(variants))
        if result is None:
            return
        self.report.raw["start"] = result
        for v in result["variants"]:
            is_ours = v["name"].startswith("shellyard")
            if v["failures"]:
                self.report.row("start", v["name"], None, "failed", None, v["why"])
                if is_ours:
                    self.report.problem(f"start: {v['name']}: {v['why']}")
                continue
            self.report.row("start", v["name"], v["ratio"], ratio_text(v),
                            "start.ratio" if is_ours else None)
            kb = v["hwm_kb"]["median"]
            self.report.row("memory", v["name"] + " after initialize", kb,
                            f"{kb:.0f} kB (now {v['rss_kb']['median']:.0f})",
                            "memory.hwm_kb" if is_ours else None, "VmHWM of the process tree")

    def suite_call(self):
        """Round trips of trivial calls, and the size of tools/list."""
        ping = ["@ping", '{"method":"ping"}']
        servers = [("echo stub", ping + [self.tool("echo_stub")])]
        if self.has_program("call"):
            servers.append(("shellyard", ping + [
                "@bad arguments", tool_call("shell", {"command": 3}),
                "@shell true", tool_call("shell", {"command": ["/bin/true"]}),
                self.shellyard, "mcp"]))
        commander = self.peers.desktop_commander()
        self.add_peer(servers, "call", "desktop-commander", commander and ping + [
            "@bad arguments", tool_call("start_process", {"command": 3}),
            "@start_process true", tool_call("start_process",
                                             {"command": "true", "timeout_ms": 5000}),
        ] + commander)
        result = self.run_json([self.tool("mcp_call"), "-n", self.rounds(200), "-w", "10", "--"] +
                               ptys.joined(servers))
        if result is None:
            return
        self.report.raw["call"] = result
        for server in result["servers"]:
            self.report_server(server)

    def report_server(self, server):
        is_ours = server["name"] == "shellyard"
        if server["why"]:
            self.report.row("call", server["name"], None, "failed", None, server["why"])
            if is_ours:
                self.report.problem(f"call: {server['why']}")
        for call in server["calls"]:
            us = call["wall_us"]
            if us["n"] == 0:
                continue
            # A call that starts a process is not trivial: it has no budget of its own.
            budget = "call.us" if is_ours and call["label"] != "shell true" else None
            note = f"p90 {us['p90']:.0f}, p99 {us['p99']:.0f} us"
            if call["errors"]:
                note += f"; {call['errors']} of {us['n']} answers were errors"
            if is_ours and call["errors"] != (us["n"] if call["label"] == "bad arguments" else 0):
                self.report.problem(f"call {call['label']}: {call['errors']} errors of {us['n']}:"
                                    f" {call['last']}")
            self.report.row("call", f"{server['name']}: {call['label']}", us["median"],
                            f"{us['median']:.0f} us", budget, note)
        if server["tools"]:
            size = server["tools_list_bytes"]
            self.report.row("tools_list", server["name"], size, f"{size} bytes",
                            "tools_list.bytes" if is_ours else None, f"{server['tools']} tools")
        self.report.row("memory", server["name"] + " after all calls", server["end_hwm_kb"],
                        f"{server['end_hwm_kb']} kB (now {server['end_rss_kb']})", None,
                        "VmHWM of the process tree")

    def suite_terminals(self):
        """Many terminals made at once, and what an idle one costs."""
        if not self.has_program("terminals"):
            return
        tiers = ["no-namespace"] + (["full"] if self.launcher and self.has_full_tier() else [])
        for tier in tiers:
            beside = self.terminals_beside() if tier == "full" and not self.options.no_peers else {}
            result = self.run_json([sys.executable, os.path.join(SELF, "terminals.py"), "-n", self.rounds(3),
                                    "-s", str(self.options.terminals), "--beside", json.dumps(beside), tier,
                                    self.shellyard])
            if result is None:
                continue
            for name, ratio in result["beside"].items():
                self.report.row("terminals", f"{result['sessions']} bash by {name}", ratio, f"{ratio:.2f} x", None,
                                "beside as many bare bash")
            self.report.raw["terminals-" + tier] = result
            name = f"{result['sessions']} terminals ready, {tier} tier"
            self.report.row("terminals", name, result["ratio"],
                            f"{result['ratio']:.2f} x  ({result['ours_ms']:.0f} ms, bare {result['bare_ms']:.0f})",
                            "terminals.ratio", "beside as many bare bash")
            self.report.row("terminals", f"idle terminal, memory, {tier} tier", result["kb_per_session"],
                            f"{result['kb_per_session']:.1f} kB", "terminals.kb", "the server's own")
            self.report.row("terminals", f"idle terminal, descriptors, {tier} tier", result["fds_per_session"],
                            f"{result['fds_per_session']:.2f}", "terminals.fds", "the server's own")

    def terminals_beside(self):
        """{name: words before bash}, of those that run here."""
        found = {"bwrap --unshare-all": self.peers.bwrap(self.scratch, []),
                 "unshare (namespaces alone)": self.peers.unshare()}
        for name, argv in list(found.items()):
            if argv is None or not runs(argv + ["/bin/true"], None):
                self.report.skip("terminals", name, "is not installed, or can't run here")
                del found[name]
        return found

    suite_trip = ptys.suite_trip
    suite_tty_capture = ptys.suite_tty_capture
    suite_cause = ptys.suite_cause

    # --- helpers ----------------------------------------------------------------------------

    def has_program(self, suite):
        if os.access(self.shellyard, os.X_OK):
            return True
        self.report.skip(suite, "shellyard", f"{self.shellyard} is not built")
        return False

    def has_tool(self, suite, name):
        if os.access(self.tool(name), os.X_OK):
            return True
        self.report.skip(suite, name, f"{self.tool(name)} is not built")
        return False

    def has_full_tier(self):
        done = subprocess.run([self.shellyard, "sandbox", "check", "--json"], env=self.env, cwd=self.scratch,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False)
        try:
            return bool(json.loads(done.stdout).get("full_tier"))
        except ValueError:
            return False

    def add_peer(self, variants, suite, name, argv):
        if self.options.no_peers:
            return
        if argv is None:
            self.report.skip(suite, name, "not installed, or does not run here (make bench-peers)")
        else:
            variants.append((name, argv))

    def srt_settings(self):
        path = os.path.join(self.scratch, "srt.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"network": {"allowedDomains": [], "deniedDomains": []},
                       "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}, file)
        return path

    @contextlib.contextmanager
    def workplace(self):
        """A home and a workspace of their own: no configuration of this user, and nothing that
        a peer writes, is part of a measurement."""
        with tempfile.TemporaryDirectory(prefix="shellyard-bench-", dir="/var/tmp") as top:
            self.scratch = os.path.join(top, "workspace")
            home = os.path.join(top, "home")
            codex = os.path.join(top, "codex")
            for path in (self.scratch, home, codex):
                os.mkdir(path)
            keep = {k: v for k, v in os.environ.items()
                    if k in ("PATH", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME")}
            self.env = dict(keep, HOME=home, CODEX_HOME=codex)
            yield

    def build_programs(self):
        if self.options.no_build:
            return
        subprocess.run(["ninja", "-C", self.build], check=True, stdout=subprocess.DEVNULL)

    def run(self, names):
        os.makedirs(self.out, exist_ok=True)
        with self.workplace():
            for name in names:
                if not self.options.json:
                    print(f"bench: {name}: {SUITES[name].__doc__.strip()}", file=sys.stderr)
                SUITES[name](self)
        result = {"machine": machine(), "rows": self.report.rows, "absent": self.report.absent,
                  "problems": self.report.problems, "raw": self.report.raw}
        path = os.path.join(self.out, "results.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        if self.options.json:
            json.dump(result, sys.stdout, indent=1)
            print()
        else:
            print_table(result)
            print(f"\nwritten: {path}")
        return 1 if self.report.problems else 0


SUITES = {
    "oneshot": Bench.suite_oneshot,
    "spawn": Bench.suite_spawn,
    "capture": Bench.suite_capture,
    "start": Bench.suite_start,
    "call": Bench.suite_call,
    "terminals": Bench.suite_terminals,
    "trip": Bench.suite_trip,
    "tty_capture": Bench.suite_tty_capture,
    "cause": Bench.suite_cause,
}


def tool_call(name, arguments):
    return json.dumps({"method": "tools/call", "params": {"name": name, "arguments": arguments}},
                      separators=(",", ":"))


def ratio_text(v):
    ms = v["wall_ms"]
    return f"{v['ratio']:.2f} x  ({ms['median']:.2f} ms, {ms['p10']:.2f}-{ms['p90']:.2f})"


def machine():
    model = ""
    with contextlib.suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    model = line.split(":", 1)[1].strip()
                    break
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "load": os.getloadavg()[0], "root": os.geteuid() == 0}


def print_table(result):
    m = result["machine"]
    print(f"{m['cpus']} x {m['cpu'] or 'unknown CPU'}, Linux {m['kernel']}, load {m['load']:.1f}"
          f"{', root' if m['root'] else ''}")
    print("ratio: median of the per-round ratio to the first row of the suite; (p10-p90)\n")
    head = ("suite", "what", "measured", "budget", "", "note")
    lines = [head] + [(r["suite"], r["name"], r["text"], r["budget"], r["state"], r["note"])
                      for r in sorted(result["rows"], key=suite_order)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    last = None
    for line in lines:
        if last is not None and line[0] != last:
            print()
        last = line[0]
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    for text in result["problems"]:
        print(f"PROBLEM: {text}")


def suite_order(row):
    order = list(SUITES) + ["memory", "tools_list"]
    return order.index(row["suite"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"), help="build directory")
    parser.add_argument("--only", action="append", choices=list(SUITES), metavar="SUITE",
                        help="one of " + ", ".join(SUITES) + "; may be given several times")
    parser.add_argument("--rounds", type=int, help="rounds of each suite (its own number if absent)")
    parser.add_argument("--terminals", type=int, default=512, metavar="N", help="terminals of the suite terminals")
    parser.add_argument("--json", action="store_true", help="JSON on standard output, no table")
    parser.add_argument("--no-peers", action="store_true", help="our own numbers only")
    parser.add_argument("--no-build", action="store_true", help="take the programs as they are")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: at least 1")
    if not 1 <= options.terminals <= 2048:
        parser.error("--terminals: from 1 to 2048")
    bench = Bench(options)
    bench.build_programs()
    return bench.run(options.only or list(SUITES))


if __name__ == "__main__":
    sys.exit(main())
