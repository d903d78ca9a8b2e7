#!/usr/bin/env python3
"""The table of the adversary suite: probe x tier x user.

    table.py RESULTS

Reads what the suites wrote there, writes table.json and table.md beside it, prints the
latter, and fails if anything in it failed or a suite wrote nothing.
"""

import glob
import json
import os
import sys


def load(folder):
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        if os.path.basename(path) != "table.json":
            with open(path, encoding="utf-8") as f:
                rows += json.load(f)
    return rows


def table_of(rows, suite):
    """Lines of one table: a probe a line, a column for each tier and user."""
    rows = [row for row in rows if row["suite"] == suite]
    columns = list(dict.fromkeys((row["tier"], row["user"]) for row in rows))
    cells = {}
    for row in rows:
        cells.setdefault(row["probe"], {})[row["tier"], row["user"]] = row["result"]
    yield f"## {suite}"
    yield ""
    yield "| probe | " + " | ".join(f"{tier}, {user}" for tier, user in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for probe, results in cells.items():
        yield f"| {probe} | " + " | ".join(results.get(column, "–") for column in columns) + " |"
    yield ""


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    rows = load(sys.argv[1])
    lines = ["# What the adversary suite found", ""]
    for suite in dict.fromkeys(row["suite"] for row in rows):
        lines += table_of(rows, suite)
    failed = sum(row["result"] == "FAILED" for row in rows)
    lines.append(f"{len(rows)} results, {failed} failed.")
    with open(os.path.join(sys.argv[1], "table.json"), "w", encoding="utf-8") as out:
        json.dump(rows, out, indent=0)
    with open(os.path.join(sys.argv[1], "table.md"), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
