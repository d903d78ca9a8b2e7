"""What the suites share: arguments, points of TAP, and rows for the table."""

import argparse
import json
import os
import sys
import time
import traceback

from world import Programs, World, parties


class Suite:
    """One program of the suite. Points are sentences; a failed one says what is wrong."""

    def __init__(self, name):
        parser = argparse.ArgumentParser()
        parser.add_argument("--shellyard", required=True)
        parser.add_argument("--probe", required=True)
        parser.add_argument("--mutate", required=True)
        parser.add_argument("--mask", required=True)
        parser.add_argument("--results", required=True, help="directory for the rows of the table")
        parser.add_argument("--only", default="", help="part of a point's name")
        self.args = parser.parse_args()
        self.name = name
        self.rows = []
        self.points = 0
        self.failed = 0
        self.last_failed = False
        self.programs = Programs(self.args.shellyard, vars(self.args))

    def row(self, probe, tier, user, result, detail=""):
        """A line of the table: result is 'held', 'works', 'absent' or 'FAILED'."""
        self.rows.append({"suite": self.name, "probe": probe, "tier": tier, "user": user, "result": result,
                          "detail": detail})

    def rows_of(self, tier, user, outcomes, judged):
        """Rows for all acts of one run, where `judged` is what judge() found."""
        bad = {line.split(":")[0] if not line.startswith("host:") else ":".join(line.split(":")[:2])
               for line in judged}
        for act, outcome in outcomes.items():
            result = "FAILED" if act in bad else "works" if outcome == 0 else f"refused ({errno_name(outcome)})"
            self.row(act, tier, user, result)

    def point(self, title, wrong):
        """One point; `wrong` is a list of sentences, empty if all is well."""
        self.points += 1
        self.last_failed = bool(wrong)
        if not wrong:
            print(f"ok {self.points} - {title}", flush=True)
            return
        self.failed += 1
        print(f"not ok {self.points} - {title}", flush=True)
        for line in wrong[:40]:
            print(f"#   {line}", flush=True)

    def wants(self, title):
        return self.args.only in title

    def check(self, title, body):
        """A point whose body returns what is wrong, or raises."""
        if not self.wants(title):
            return
        start = time.monotonic()
        try:
            wrong = body() or []
        except Exception:  # pylint: disable=broad-except
            wrong = traceback.format_exc().splitlines()[-8:]
        self.point(title, wrong)
        if "ADVERSARY_TIMES" in os.environ:
            print(f"# {time.monotonic() - start:.2f} s", file=sys.stderr)

    def each_party(self, body):
        for party in parties():
            with World(self.programs, party) as world:
                body(world)

    def finish(self):
        self.programs.close()
        os.makedirs(self.args.results, exist_ok=True)
        path = os.path.join(self.args.results, f"{self.name}.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(self.rows, out, indent=0)
        if self.points == 0:
            print("# nothing was tried")
            return 1
        print(f"1..{self.points}")
        return 1 if self.failed else 0


def errno_name(number):
    if number >= 1000:
        return f"signal {number - 1000}"
    if number == 1:
        return "EPERM"
    import errno  # pylint: disable=import-outside-toplevel
    return errno.errorcode.get(number, str(number))
