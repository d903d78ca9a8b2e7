"""Adds one shell type and one tool to a copy of the tree, as docs/extending.md says,
builds it and uses both: one new file and one table row must be all that it takes.
And a musl-gcc of another machine, as a cross build has it in its path, makes no front."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

EXTENSIONS = [
    ("src/command/shell_fish.c", "src/command/shells.def", "SHELL(fish)"),
    ("src/tools/tool_working_directory.c", "src/tools/tools.def", "TOOL(working_directory)"),
]


def examples(guide):
    """The C files that the guide prints, by the path in their first line."""
    found = {}
    for block in re.findall(r"```c\n(.*?)```", guide, re.S):
        first, rest = block.split("\n", 1)
        found[first.strip("/* ")] = rest
    return found


def copy_tree(root, copy):
    for name in ("meson.build", "meson_options.txt", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"):
        shutil.copy(os.path.join(root, name), copy)
    for name in ("src", "include", "docs", "libexec", "tools"):
        shutil.copytree(os.path.join(root, name), os.path.join(copy, name))
    os.symlink(os.path.join(root, "grammars"), os.path.join(copy, "grammars"))


def extend(root, copy):
    with open(os.path.join(root, "docs/extending.md"), encoding="utf-8") as f:
        files = examples(f.read())
    for path, table, row in EXTENSIONS:
        with open(os.path.join(copy, path), "w", encoding="utf-8") as f:
            f.write(files[path])
        with open(os.path.join(copy, table), "a", encoding="utf-8") as f:
            f.write(row + "\n")


def build(copy):
    out = os.path.join(copy, "build")
    for command in (
        ["meson", "setup", out, copy, "-Dstatic=false", "-Doptimization=0", "-Ddebug=false"],
        ["ninja", "-C", out, "shellyard"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"# {' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return os.path.join(out, "shellyard")


def fake_fish(directory):
    path = os.path.join(directory, "fish")
    with open(path, "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\necho "fish was given: $*"\n')
    os.chmod(path, 0o755)
    return path


def makes_no_front(copy):
    """With a musl-gcc for another machine in the path."""
    path = os.path.join(copy, "path")
    out = os.path.join(copy, "build-foreign")
    os.mkdir(path)
    with open(os.path.join(path, "musl-gcc"), "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho mips64-linux-gnu\n")
    os.chmod(f.name, 0o755)
    env = dict(os.environ, PATH=path + ":" + os.environ["PATH"])
    done = subprocess.run(["meson", "setup", out, copy], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"# meson setup\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    told = subprocess.run(["meson", "introspect", out, "--targets"], capture_output=True, text=True, check=True)
    kinds = [t["type"] for t in json.loads(told.stdout) if os.path.join(out, "shellyard") in t["filename"]]
    return kinds == ["executable"] and "musl-gcc makes programs for mips64-linux-gnu" in done.stdout


def proto(program, workspace, lines, *flags):
    done = subprocess.run(
        [program, "proto", *flags],
        cwd=workspace,
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def outputs(events):
    return {e["call_id"]: e["output"] for e in events if e["type"] == "function_call_output"}


def call(name, call_id, arguments):
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": json.dumps(arguments)}


def main():
    root = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as copy:
        copy_tree(root, copy)
        extend(root, copy)
        program = build(copy)
        workspace = os.path.join(copy, "workspace")
        os.mkdir(workspace)
        fish = fake_fish(copy)
        done = outputs(
            proto(
                program,
                workspace,
                [
                    call("working_directory", "tool", {}),
                    call("shell_command", "login", {"command": "echo hi", "login": True}),
                    call("shell_command", "plain", {"command": "echo hi", "login": False}),
                ],
                "-c",
                f"shell.path={fish}",
            )
        )
        wanted = {
            "tool": workspace + "\n",
            "login": "fish was given: -l -c echo hi\n",
            "plain": "fish was given: --no-config -c echo hi\n",
        }
        failures = 0
        for number, (call_id, text) in enumerate(wanted.items(), 1):
            good = done.get(call_id) == text
            failures += not good
            print(f"{'ok' if good else 'not ok'} {number} - {call_id}")
            if not good:
                print(f"# wanted {text!r}, got {done.get(call_id)!r}")
        good = makes_no_front(copy)
        failures += not good
        print(f"{'ok' if good else 'not ok'} {len(wanted) + 1} - foreign musl-gcc")
        print(f"1..{len(wanted) + 1}")
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
