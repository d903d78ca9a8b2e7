"""Checks on plain text: white space, size, what must not be in a public repository."""

import re

from .common import Finding

MAX_FILE = 1024 * 1024
MAX_LINES = 600
MAX_FUNCTION = 80
CODE = (".c", ".h", ".py", ".mjs", ".sh", ".js", ".ts")
BINARY_PLACES = ("tests/fuzz/corpus/", "tests/fuzz/regressions/", "tests/data/", "docs/images/")
GENERATED = ("package-lock.json",)

# Assembled so that this file does not match itself.
SECRETS = {
    "an AWS access key": r"\bAKIA[0-9A-Z]{16}\b",
    "a GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{40,}",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "an API key": r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{24,}|\bAIza[A-Za-z0-9_-]{35}\b",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b|_authToken\s*=",
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "a JSON web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a password in an address": r"\b[a-z]+://[^/\s:@]+:[^/\s:@{$]+@[a-z]",
}
ALLOW_SECRET = "lint: allow secret"
ALLOW_PATH = "lint: allow path"
MACHINE = {
    "a path of one machine": r"(?<![\w.~$}*-])/(?:work|root)/",
    "the address of a package registry": r"\bregistry\.(?:npmjs\.org|yarnpkg\.com)|\"resolved\":|https?://[^\s\"]*/(?:npm|simple)/",
}


def is_text(data):
    return b"\0" not in data[:8192]


def text_lines(tree):
    """(file, line number, line) of all text files."""
    for name in tree.files:
        data = tree.read_bytes(name)
        if is_text(data) and not name.startswith(BINARY_PLACES):
            for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
                yield name, number, line


def check_text(tree):
    found = []
    for name, number, line in text_lines(tree):
        if line.rstrip("\r") != line:
            found.append(Finding(name, number, "carriage return at the end of the line"))
        if line.rstrip() != line.rstrip("\r") and not re.search(r"\.[1358]$", name):
            found.append(Finding(name, number, "trailing space"))
        if "\t" in line and not re.search(r"(^|/)(Makefile|.*\.mk|\.gitmodules)$", name):
            found.append(Finding(name, number, "tab: indent with spaces"))
    for name in tree.files:
        data = tree.read_bytes(name)
        if data and is_text(data) and not data.endswith(b"\n") and not name.startswith(BINARY_PLACES):
            found.append(Finding(name, data.count(b"\n") + 1, "no line end at the end of the file"))
    return found


def long_functions(name, text):
    """Functions by this project's format: `{` and `}` alone in the first column."""
    start = 0
    title = ""
    previous = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start, title = number, previous
        elif line.startswith("}") and start:
            if number - start - 1 > MAX_FUNCTION:
                yield Finding(name, start, f"{title.split('(')[0].strip()} has {number - start - 1} lines, "
                              f"more than {MAX_FUNCTION}: split it", is_warning=True)
            start = 0
        previous = line if "(" in line else previous


def check_size(tree):
    found = []
    for name in tree.files:
        data = tree.read_bytes(name)
        if len(data) > MAX_FILE:
            found.append(Finding(name, 0, f"{len(data)} bytes: nothing over 1 MiB is committed"))
        if not is_text(data) and not name.startswith(BINARY_PLACES):
            found.append(Finding(name, 0, "binary file: generate it in the build instead"))
        if name.endswith(CODE) and name not in GENERATED:
            lines = data.count(b"\n")
            if lines > MAX_LINES:
                found.append(Finding(name, 0, f"{lines} lines, more than {MAX_LINES}: does it still hold one "
                                     "thing?", is_warning=True))
        if name.endswith(".c"):
            found += long_functions(name, tree.read(name))
    return found


def search(tree, patterns, mark, advice):
    found = []
    compiled = {what: re.compile(pattern) for what, pattern in patterns.items()}
    for name, number, line in text_lines(tree):
        if mark in line or name == "tools/lintlib/text.py":
            continue
        for what, pattern in compiled.items():
            if pattern.search(line):
                found.append(Finding(name, number, f"looks like {what}: {advice} (or mark the line `{mark}`)"))
    return found


def check_secrets(tree):
    return search(tree, SECRETS, ALLOW_SECRET, "make it up at run time, out of parts")


def check_paths(tree):
    return search(tree, MACHINE, ALLOW_PATH, "the tree must work on any machine")


CHECKS = {"text": check_text, "size": check_size, "secrets": check_secrets, "paths": check_paths}
