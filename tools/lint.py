#!/usr/bin/env python3
"""Checks the tree: tools/lint.py [options] [CHECK...]

Without CHECK: all of them. --list tells their names. Prints one line a finding
(file:line: what is wrong and what would be right), then one line a check.
"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import check_banned  # noqa: E402
from lintlib import compilers, docs, rooms, text  # noqa: E402
from lintlib.common import CheckFailed, Finding, Tree  # noqa: E402

CHECKS = {}
for module in (text, rooms, docs, compilers, check_banned):
    CHECKS.update(module.CHECKS)


def changed_files(root, *options):
    """Paths that git tells to differ, new files included unless --cached."""
    names = set()
    commands = [["git", "diff", "--name-only", "-z", "--diff-filter=ACMR", *options]]
    if "--cached" not in options:
        commands.append(["git", "ls-files", "-z", "--others", "--exclude-standard"])
    for command in commands:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        names |= {n for n in done.stdout.split("\0") if n}
    return names


def run_check(name, tree):
    try:
        return CHECKS[name](tree)
    except CheckFailed as failed:
        return [Finding(name, 0, str(failed))]


def main():
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    parser.add_argument("--list", action="store_true", help="names of the checks")
    parser.add_argument("--build", default="build", help="build directory (compile_commands.json, program)")
    parser.add_argument("--root", default=top, help=argparse.SUPPRESS)
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="REF",
                        help="only files that differ from REF (HEAD)")
    parser.add_argument("--staged", action="store_true", help="only what the next commit changes")
    parser.add_argument("--fix", action="store_true", help="mend what the check can mend (format)")
    parser.add_argument("--counts", default=os.environ.get("TESTS_COUNTS_FILE", ""),
                        help="append one line of JSON here")
    args = parser.parse_args()

    if args.list:
        print("\n".join(sorted(CHECKS)))
        return 0
    for name in args.checks:
        if name not in CHECKS:
            parser.error(f"unknown check '{name}'; known: {' '.join(sorted(CHECKS))}")
    only = None
    if args.staged:
        only = changed_files(args.root, "--cached")
    elif args.changed:
        only = changed_files(args.root, args.changed)

    tree = Tree(args.root, args.build, only, args.fix)
    failed = 0
    summary = []
    names = args.checks or list(CHECKS)
    for name in names:
        start = time.monotonic()
        found = run_check(name, tree)
        errors = sum(not f.is_warning for f in found)
        for finding in sorted(found, key=lambda f: (f.path, f.line)):
            print(f"{finding} [{name}]")
        failed += errors > 0
        warnings = len(found) - errors
        summary.append(f"lint {name:<9} {'ok' if errors == 0 else str(errors) + ' findings'}"
                       f"{f', {warnings} warnings' if warnings else ''} ({time.monotonic() - start:.1f} s)")
    print("\n".join(summary))
    if args.counts:
        with open(args.counts, "a", encoding="utf-8") as out:
            out.write(json.dumps({"passed": len(names) - failed, "failed": failed}) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
