#!/usr/bin/env python3
"""Runs every test suite of the tree and counts single tests.

Suites: the C tests (meson, cmocka), the tests of the lint itself (unittest) and
the integration tests (Node's test runner). A skip counts as a failure when
SHELLYARD_TESTS_MUST_RUN=1. Exit status 0 only if something ran and nothing failed.
"""

import argparse
import dataclasses
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUITE_SECONDS = 1500
NODE_FILES_AT_ONCE = max(2, os.cpu_count() or 1)
BESIDE_PROGRAM = ("libexec", "tests/adversary", "tests/integration")

SANITIZER_ENV = {
    "asan": {
        "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    },
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}


@dataclasses.dataclass
class Count:
    """What one suite did."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


def count_tap(text):
    """Counts the points of a flat TAP stream (cmocka's)."""
    count = Count()
    for line in text.splitlines():
        match = re.match(r"(ok|not ok) \d+(?: -)? ?(.*)", line)
        if not match:
            continue
        verdict, name = match.groups()
        if "# skip" in name.lower():
            count.skipped += 1
            count.failures.append(("skipped", name))
        elif verdict == "ok":
            count.passed += 1
        else:
            count.failed += 1
            count.failures.append(("failed", name))
    return count


def count_meson_entry(entry):
    """One program of meson's log: its TAP points, or itself as one test."""
    name, result = entry["name"], entry["result"]
    points = count_tap(entry.get("stdout", "") or "")
    count = Count(points.passed, points.failed, points.skipped)
    count.failures = [(kind, f"{name}: {what}") for kind, what in points.failures]
    if result == "SKIP":
        count.skipped += 1
        count.failures.append(("skipped", name))
    elif result in ("OK", "EXPECTEDFAIL"):
        if points.passed + points.failed + points.skipped == 0:
            count.passed += 1
    elif points.failed == 0:
        count.failed += 1
        count.failures.append(("failed", f"{name}: {result} (status {entry.get('returncode')})"))
    return count


def show_failed_program(entry):
    print(f"--- {entry['name']}: {entry['result']}")
    for stream in ("stdout", "stderr"):
        lines = [line for line in (entry.get(stream) or "").splitlines() if not line.startswith("ok ")]
        if lines:
            print("\n".join(lines[-60:]))


def run_meson(args, env):
    """The C tests. Returns a Count, or None when none matches --only."""
    listed = subprocess.run(["meson", "test", "-C", args.build, "--no-rebuild", "--list"],
                            capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        print(listed.stdout, listed.stderr)
        return Count(failed=1, failures=[("failed", "meson test --list")])
    names = [line.split(" / ")[-1].strip() for line in listed.stdout.splitlines()
             if line.strip() and not line.startswith(("ninja:", "No tests"))]
    command = ["meson", "test", "-C", args.build, "--no-rebuild"]
    if args.only:
        names = [name for name in names if args.only in name]
        command += names
    if not names:
        return None
    if args.sanitizer:
        command += ["--timeout-multiplier", "5"]
    log = os.path.join(args.build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    status = subprocess.run(command, check=False, timeout=SUITE_SECONDS,
                            env={**env, "CMOCKA_MESSAGE_OUTPUT": "TAP"}).returncode
    count = Count()
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                entry = json.loads(line)
                one = count_meson_entry(entry)
                if one.failed:
                    show_failed_program(entry)
                count.add(one)
    if status != 0 and count.failed == 0:
        count.failed += 1
        count.failures.append(("failed", f"meson test ended with status {status}"))
    return count


def run_unittest(args, env):
    """The tests of the lint."""
    folder = os.path.join(TOP, "tests", "lint")
    if not os.path.isdir(folder) or (args.only and args.only not in "lint"):
        return None
    done = subprocess.run([sys.executable, "-m", "unittest", "discover", "-s", folder, "-v"],
                          capture_output=True, text=True, check=False, cwd=TOP, env=env,
                          timeout=SUITE_SECONDS)
    text = done.stderr
    ran = re.search(r"^Ran (\d+) tests?", text, re.M)
    total = int(ran.group(1)) if ran else 0
    parts = dict(re.findall(r"(failures|errors|skipped)=(\d+)", text.splitlines()[-1] if text else ""))
    count = Count(skipped=int(parts.get("skipped", 0)),
                  failed=int(parts.get("failures", 0)) + int(parts.get("errors", 0)))
    count.passed = max(0, total - count.skipped - count.failed)
    for name, what in re.findall(r"^(\S+ \(\S+\))(?:\n.*)? \.\.\. (FAIL|ERROR|skipped.*)$", text, re.M):
        count.failures.append(("skipped" if what.startswith("skipped") else "failed", name))
    if done.returncode != 0:
        print(done.stdout, text)
        if count.failed == 0:
            count.failed += 1
            count.failures.append(("failed", f"unittest ended with status {done.returncode}"))
    return count


def show_failed_points(text):
    """The `not ok` blocks of Node's TAP, without what contains them."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if re.match(r"\s*not ok ", line) and "subtestsFailed" not in "\n".join(lines[i:i + 12]):
            for inner in lines[i:i + 60]:
                print(inner)
                if inner.strip() == "...":
                    break


def run_node(args, env):
    """The integration tests, each file a process of its own."""
    files = sorted(glob.glob(os.path.join(TOP, "tests", "integration", "*.test.mjs")))
    if args.only:
        files = [f for f in files if args.only in os.path.basename(f)]
    program = os.path.abspath(os.path.join(args.build, "shellyard"))
    if not files:
        return None
    if not os.path.exists(program):
        return Count(failed=1, failures=[("failed", f"integration tests need {program}")])
    with tempfile.TemporaryDirectory(prefix="shellyard-tests-", dir="/var/tmp") as public:
        return run_node_with(within_reach(program, public), files, args, env)


def within_reach(program, public):
    """The program, or a copy in `public`: tests as root run it as other users too, who enter no closed
    directory on the way to it, such as /root. What tests find beside it goes along."""
    above = os.path.dirname(os.path.realpath(program))
    dirs = [above[:i] for i in range(1, len(above) + 1) if i == len(above) or above[i] == "/"]
    if os.geteuid() != 0 or all(os.stat(d).st_mode & 0o001 for d in dirs):
        return program
    for name in BESIDE_PROGRAM:
        shutil.copytree(os.path.join(above, name), os.path.join(public, name), ignore=shutil.ignore_patterns("*.p"))
    copied = shutil.copy2(program, public)
    subprocess.run(["chmod", "-R", "a+rX", public], check=True)  # whatever the umask was
    return copied


def run_node_with(program, files, args, env):
    env = {**env, "SHELLYARD": program, "TESTS_BUILD": os.path.abspath(args.build)}
    # What changes the whole machine for its time runs while nothing else does.
    alone = [[f] for f in files if f.endswith(".alone.test.mjs")]
    others = [f for f in files if [f] not in alone]
    count = Count()
    open(os.path.join(args.build, "integration.tap"), "w", encoding="utf-8").close()
    for some in alone + ([others] if others else []):
        count.add(run_node_files(some, args, env))
    return count


def run_node_files(files, args, env):
    node = os.path.join(TOP, "tools", "node.sh")
    # Its own choice leaves a processor free, though most of a test's time is waiting. 18.19 knows the option.
    at_once = f"--test-concurrency={NODE_FILES_AT_ONCE}"
    knows = subprocess.run([node, at_once, "-e", "0"], capture_output=True, check=False).returncode == 0
    done = subprocess.run([node, "--test", "--test-reporter=tap", *([at_once] if knows else []), *files],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, cwd=os.path.join(TOP, "tests", "integration"), env=env,
                          timeout=SUITE_SECONDS)
    with open(os.path.join(args.build, "integration.tap"), "a", encoding="utf-8") as log:
        log.write(done.stdout)
    number = {key: int(value) for key, value in re.findall(r"^# (\w+) (\d+)$", done.stdout, re.M)}
    count = Count(number.get("pass", 0), number.get("fail", 0) + number.get("cancelled", 0),
                  number.get("skipped", 0) + number.get("todo", 0))
    for verdict, name in re.findall(r"^\s*(not ok|ok) \d+ - (.*)$", done.stdout, re.M):
        if re.search(r"# (SKIP|TODO)", name):
            count.failures.append(("skipped", name))
        elif verdict == "not ok":
            count.failures.append(("failed", name))
    if done.returncode != 0:
        show_failed_points(done.stdout)
        if count.failed == 0:
            print(done.stdout[-4000:])
            count.failed += 1
            count.failures.append(("failed", f"node --test ended with status {done.returncode}"))
    return count


def run_suite(run, args, env):
    try:
        return run(args, env)
    except subprocess.TimeoutExpired as late:
        return Count(failed=1, failures=[("failed", f"no end after {SUITE_SECONDS} s: {late.cmd[0]}")])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build directory")
    parser.add_argument("--only", default="", help="part of a test's name")
    parser.add_argument("--sanitizer", choices=sorted(SANITIZER_ENV), help="the build has it")
    parser.add_argument("--counts", default=os.environ.get("TESTS_COUNTS_FILE", ""),
                        help="append one line of JSON here")
    args = parser.parse_args()
    must_run = os.environ.get("SHELLYARD_TESTS_MUST_RUN") == "1"

    env = dict(os.environ)
    # Ours alone: tests run the lint on planted faults, which would count there.
    env.pop("TESTS_COUNTS_FILE", None)
    suites = [("C tests", run_meson), ("lint tests", run_unittest), ("integration", run_node)]
    if args.sanitizer:
        # Tests of speed and memory read this: instrumented code is neither.
        env.update(SANITIZER_ENV[args.sanitizer], TESTS_SANITIZER=args.sanitizer)
        suites.remove(("lint tests", run_unittest))
        if args.sanitizer == "tsan":
            suites.remove(("integration", run_node))

    total = Count()
    rows = []
    for title, run in suites:
        count = run_suite(run, args, env)
        if count is not None:
            rows.append((title, count))
            total.add(count)

    print()
    for kind, name in total.failures:
        print(f"{kind}: {name}")
    for title, count in [*rows, ("all", total)]:
        print(f"{title:<12} {count.passed:>5} passed {count.failed:>4} failed {count.skipped:>4} skipped")
    if must_run and total.skipped:
        print("SHELLYARD_TESTS_MUST_RUN=1: a skip is a failure")
        total.failed += total.skipped
    if total.passed + total.failed + total.skipped == 0:
        print(f"no test {'matches ' + args.only if args.only else 'ran'}")
        total.failed = 1
    if args.counts:
        with open(args.counts, "a", encoding="utf-8") as out:
            out.write(json.dumps({"passed": total.passed, "failed": total.failed,
                                  "names": [name for _, name in total.failures]}) + "\n")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
