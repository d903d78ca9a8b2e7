"""Runs the example program of docs/examples and looks at what it did."""

import os
import subprocess
import sys
import tempfile


def run(program, workspace, *argv):
    return subprocess.run([program, *argv], cwd=workspace, capture_output=True, text=True, timeout=30)


def main():
    program = os.path.abspath(sys.argv[1])
    failures = 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as workspace:
        cases = [
            (["sh", "-c", "echo hi; exit 3"], 3, "hi\n", "[exit code 3, 3 bytes"),
            (["sh", "-c", "echo x > /var/tmp/outside-of-example"], 2, "", "ermission denied"),
            (["no-such-program"], 127, "", "command not found: no-such-program"),
        ]
        for number, (argv, code, out, err) in enumerate(cases, 1):
            done = run(program, workspace, *argv)
            good = (done.returncode != 0 if code == 2 else done.returncode == code)
            good = good and done.stdout == out and err in done.stderr
            failures += not good
            print(f"{'ok' if good else 'not ok'} {number} - {' '.join(argv)}")
            if not good:
                print(f"# {done.returncode} {done.stdout!r} {done.stderr!r}")
    print(f"1..{len(cases)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
