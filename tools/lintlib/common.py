"""What every check works with: the files of the tree, findings, C without comments."""

import concurrent.futures
import dataclasses
import os
import re
import shutil
import subprocess

REFERENCE_LLVM = 14


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that is wrong, where, and what would be right."""

    path: str
    line: int
    text: str
    is_warning: bool = False

    def __str__(self):
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {'warning: ' if self.is_warning else ''}{self.text}"


class CheckFailed(Exception):
    """The check can't be made; the text tells what to do."""


class Tree:
    """The files that are checked. `only`: paths, or None for all."""

    def __init__(self, root, build="build", only=None, fix=False):
        self.root = root
        self.build = os.path.join(root, build)
        self.fix = fix
        self.all_files = sorted(list_files(root))
        self.files = [f for f in self.all_files if only is None or f in only]

    def path(self, name):
        return os.path.join(self.root, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def read_bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def matching(self, *suffixes, under=("",)):
        return [f for f in self.files if f.endswith(suffixes) and f.startswith(tuple(under))]

    def shebang(self, *words):
        """Files whose first line starts one of these interpreters."""
        found = []
        for name in self.files:
            first = self.read_bytes(name)[:80].split(b"\n")[0].decode("utf-8", "replace")
            if first.startswith("#!") and re.search(rf"\b({'|'.join(words)})\b", first):
                found.append(name)
        return found


def list_files(root):
    """Tracked and new files under git, everything else where there is no git."""
    if os.path.isdir(os.path.join(root, ".git")):
        done = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                              cwd=root, capture_output=True, check=True)
        names = [n for n in done.stdout.decode("utf-8", "surrogateescape").split("\0") if n]
    else:
        names = []
        for folder, dirs, files in os.walk(root):
            dirs[:] = [d for d in dirs if d not in (".git", "node_modules") and not d.startswith("build")]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return {n for n in names if os.path.isfile(os.path.join(root, n)) and not os.path.islink(os.path.join(root, n))}


def tool(name):
    """The reference version of an LLVM tool if it is here, else the default one."""
    for candidate in (f"{name}-{REFERENCE_LLVM}", name):
        if shutil.which(candidate):
            return candidate
    raise CheckFailed(f"{name} is not installed; run tools/setup.sh check")


def llvm_major(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"version (\d+)", done.stdout)
    return int(match.group(1)) if match else 0


def in_parallel(function, items, workers=None):
    """[function(item)], in order, on as many threads as there are processors."""
    with concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        return list(pool.map(function, items))


C_TOKEN = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.S)


def strip_c(text, keep_includes=False):
    """C with comments, strings and characters blanked; lines stay where they are."""

    def blank(match):
        token = match.group(0)
        if keep_includes and token.startswith('"'):
            return token
        if token.startswith(("/*", "//")):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]

    return C_TOKEN.sub(blank, text)
