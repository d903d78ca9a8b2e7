"""Checks that need a compiler or another tool: format, tidy, clang, headers, scripts."""

import json
import os
import re
import shlex
import subprocess
import tempfile

from .common import REFERENCE_LLVM, CheckFailed, Finding, in_parallel, llvm_major, tool

# Of the script parser that tools/setup.sh brings.
GRAMMAR_HEADERS = "grammars/node_modules/tree-sitter/vendor/tree-sitter/lib/include"

LINE = re.compile(r"^(\S.*?):(\d+):\d+: (?:fatal )?(warning|error): (.*)$")


def run(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)


def place(tree, path):
    """A path in a compiler's message: absolute, or as seen from the root or the build directory."""
    for folder in (tree.root, tree.build):
        real = os.path.realpath(os.path.join(folder, path))
        if os.path.exists(real):
            return os.path.relpath(real, os.path.realpath(tree.root))
    return path


def parse_lines(tree, output, is_warning=False):
    found = {}
    for line in output.splitlines():
        match = LINE.match(line)
        if match:
            finding = Finding(place(tree, match.group(1)), int(match.group(2)), match.group(4), is_warning)
            found[str(finding)] = finding
    return list(found.values())


def other_version(program, what):
    """Findings of another LLVM than the reference are shown, but bind nobody."""
    major = llvm_major(program)
    if major == REFERENCE_LLVM:
        return []
    return [Finding(what, 0, f"{program} is version {major}, the reference is {REFERENCE_LLVM}: findings are "
                    "only warnings", is_warning=True)]


def check_format(tree):
    program = tool("clang-format")
    names = tree.matching(".c", ".h")
    if not names:
        return []
    if tree.fix:
        run([program, "-i", *names], tree.root)
        return []
    note = other_version(program, "format")
    done = run([program, "--dry-run", "-Werror", *names], tree.root)
    found = {}
    for finding in parse_lines(tree, done.stdout + done.stderr, is_warning=bool(note)):
        found.setdefault(finding.path, finding)
    if done.returncode != 0 and not found:
        raise CheckFailed(f"clang-format: {done.stderr.strip()[:500]}")
    return note + [Finding(f.path, f.line, "not as clang-format has it: run make fmt", f.is_warning)
                   for f in found.values()]


def compile_commands(tree):
    """{file: its command} of the build, for the files that are checked."""
    path = os.path.join(tree.build, "compile_commands.json")
    if not os.path.exists(path):
        raise CheckFailed(f"{os.path.relpath(path, tree.root)} is missing: run make first")
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)
    commands = {}
    for entry in entries:
        name = os.path.relpath(os.path.realpath(os.path.join(entry["directory"], entry["file"])),
                               os.path.realpath(tree.root))
        if name in tree.files:
            commands[name] = entry
    return commands


def sources_for(tree, commands):
    """All compiled sources; when only some files are checked, those among them."""
    missing = [n for n in tree.matching(".c", under=("src/", "tests/unit/")) if n not in commands]
    return sorted(commands), [
        Finding(n, 0, "is compiled by no build: name it in its room's meson.build", is_warning=True) for n in missing]


def check_tidy(tree):
    program = tool("clang-tidy")
    names, found = sources_for(tree, compile_commands(tree))
    note = other_version(program, "tidy")

    def one(name):
        # One file a process: several in one call gave false findings.
        # The commands are gcc's: clang does not know all its warnings.
        done = run([program, "--quiet", "-p", tree.build, "--extra-arg=-Wno-unknown-warning-option",
                    "--extra-arg=-Wno-error", name], tree.root)
        lines = parse_lines(tree, done.stdout, is_warning=bool(note))
        if done.returncode != 0 and not lines:
            return [Finding(name, 0, f"clang-tidy failed: {(done.stderr or done.stdout).strip()[-300:]}")]
        return lines

    unique = {str(f): f for lines in in_parallel(one, names) for f in lines}
    return note + found + list(unique.values())


def flags_of(entry):
    """The preprocessor and language flags of a compile command."""
    words = shlex.split(entry["command"]) if "command" in entry else entry["arguments"]
    return [w for w in words if re.match(r"-(I|isystem|D|U|std=|W)", w) and not w.startswith("-Wl,")]


def check_clang(tree):
    """clang's own warnings, under the flags of the build (which uses gcc)."""
    clang = tool("clang")
    commands = compile_commands(tree)

    def one(name):
        entry = commands[name]
        done = run([clang, "-fsyntax-only", "-Werror", "-Wno-unknown-warning-option", *flags_of(entry),
                    tree.path(name)], entry["directory"])
        found = parse_lines(tree, done.stderr)
        return found or ([Finding(name, 0, done.stderr.strip()[-300:])] if done.returncode else [])

    unique = {str(f): f for lines in in_parallel(one, sorted(commands)) for f in lines}
    return list(unique.values())


def check_headers(tree):
    """Every header compiles alone, with both compilers."""
    headers = tree.matching(".h", under=("src/", "include/"))
    compilers = ["gcc", tool("clang")]
    jobs = [(compiler, header) for header in headers for compiler in compilers]

    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "alone.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("typedef int sy_not_empty;\n")

        def one(job):
            compiler, header = job
            feature = [] if header.startswith("include/") else ["-D_GNU_SOURCE"]
            done = run([compiler, "-std=c17", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                        *feature, "-Isrc", "-Iinclude", "-isystem", GRAMMAR_HEADERS, "-include", tree.path(header), source], tree.root)
            if done.returncode == 0:
                return []
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
            return [Finding(header, 0, f"does not compile alone with {compiler}: {first.strip()}")]

        return [f for found in in_parallel(one, jobs) for f in found]


def check_shell(tree):
    names = sorted(set(tree.matching(".sh")) | set(tree.shebang("sh", "bash", "dash")))
    if not names:
        return []
    done = run([tool("shellcheck"), "--format=gcc", *names], tree.root)
    found = [Finding(m.group(1), int(m.group(2)), m.group(3)) for m in
             re.finditer(r"^(.*?):(\d+):\d+: (.*)$", done.stdout, re.M)]
    if done.returncode != 0 and not found:
        raise CheckFailed(f"shellcheck: {(done.stderr or done.stdout).strip()[:500]}")
    return found


def check_python(tree):
    found = []
    for name in sorted(set(tree.matching(".py")) | set(tree.shebang("python3"))):
        try:
            compile(tree.read(name), name, "exec")
        except SyntaxError as error:
            found.append(Finding(name, error.lineno or 0, f"Python: {error.msg}"))
    return found


def check_node(tree):
    """JavaScript files parse."""
    node = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "node.sh")
    names = tree.matching(".mjs", ".js")

    def one(name):
        done = run([node, "--check", tree.path(name)], tree.root)
        if done.returncode == 0:
            return []
        line = re.search(r":(\d+)\n", done.stderr)
        what = re.search(r"^(\w*Error.*)$", done.stderr, re.M)
        return [Finding(name, int(line.group(1)) if line else 0,
                        what.group(1) if what else done.stderr.strip()[:200])]

    return [f for found in in_parallel(one, names) for f in found]


CHECKS = {"format": check_format, "tidy": check_tidy, "clang": check_clang, "headers": check_headers,
          "shell": check_shell, "python": check_python, "node": check_node}
