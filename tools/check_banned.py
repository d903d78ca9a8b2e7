#!/usr/bin/env python3
"""Finds calls that this project does not make, each with what to use instead.

    tools/check_banned.py [FILE...]      (default: all C files of the tree)

Comments and strings don't count. Where one is right for once, the line or
the one before says so: `/* lint: allow open */`. tools/lint.py runs this as its check "banned".
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from lintlib.common import Finding, Tree, strip_c  # noqa: E402

# Never, anywhere.
BANNED = {
    "strcpy": "buf_add_str, or memcpy with a checked length",
    "stpcpy": "buf_add_str, or memcpy with a checked length",
    "strncpy": "memcpy with a checked length; strncpy neither ends the string nor tells",
    "strcat": "buf_add_str",
    "strncat": "buf_add",
    "sprintf": "buf_addf or snprintf",
    "vsprintf": "buf_addv or vsnprintf",
    "gets": "fd_read_all with a maximum",
    "strtok": "strchr or strcspn in a loop",
    "strtok_r": "strchr or strcspn in a loop",
    "atoi": "str_to_i64",
    "atol": "str_to_i64",
    "atoll": "str_to_i64",
    "atof": "a whole number with its unit in the name",
    "system": "the process room",
    "popen": "the process room",
    "tmpnam": "mkostemp with O_CLOEXEC",
    "tempnam": "mkostemp with O_CLOEXEC",
    "mktemp": "mkostemp with O_CLOEXEC",
    "rand": "getrandom",
    "srand": "getrandom",
    "random": "getrandom",
    "alloca": "a fixed array or mem_alloc",
    "setjmp": "return codes",
    "longjmp": "return codes",
    "signal": "sigaction",
    "gethostbyname": "getaddrinfo",
    "strerror": "sy_errno_text",
    "localtime": "localtime_r",
    "gmtime": "gmtime_r",
    "ctime": "strftime",
    "asctime": "strftime",
    "usleep": "poll with a deadline on the event that is waited for",
}

# What is no part of the program may use standard C for its own ends.
STANDALONE = ("tests/", "bench/", "docs/", "tools/", "src/sandbox/linux/seccomp_gen.c")

HEAP = "mem_* of base/mem.h"
BASE = ("src/base/", *STANDALONE)
PRINTING = ("src/cli/", "src/transport/stdio.c", *STANDALONE)
# Only in the places given (prefixes of paths).
PLACES = {
    "malloc": (BASE, HEAP),
    "calloc": (BASE, HEAP),
    "realloc": (BASE, HEAP),
    "free": (BASE, HEAP),
    "strdup": (BASE, HEAP),
    "strndup": (BASE, HEAP),
    "asprintf": (STANDALONE, "buf_addf"),
    "strtol": (STANDALONE, "str_to_i64"),
    "strtoll": (STANDALONE, "str_to_i64"),
    "strtoul": (STANDALONE, "str_to_u64"),
    "strtoull": (STANDALONE, "str_to_u64"),
    "close": (BASE, "fd_close"),
    "fopen": (BASE, "open with O_CLOEXEC and SY_FD"),
    "pipe": (BASE, "fd_pipe"),
    "printf": (PRINTING, "buf_addf; standard output belongs to the protocol"),
    "vprintf": (PRINTING, "buf_addv; standard output belongs to the protocol"),
    "puts": (PRINTING, "buf_add_str; standard output belongs to the protocol"),
    "putchar": (PRINTING, "buf_add_char"),
    "stdout": (PRINTING, "LOG; standard output belongs to the protocol"),
}
WORDS = {"stdout"}  # banned as a word, not as a call

CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")
WORD = re.compile(r"\b(" + "|".join(WORDS) + r")\b")
ALLOW = re.compile(r"lint: allow (\w+)")
OPEN = re.compile(r"(?<![\w.>])open(?:at)?\s*\(")
INCLUDE = re.compile(r"^\s*#\s*include\b")


def check_text(path, text):
    """Findings of one C file."""
    found = []
    as_written = text.splitlines()
    for number, line in enumerate(strip_c(text).splitlines(), 1):
        if INCLUDE.match(line):
            continue
        allowed = ALLOW.findall("\n".join(as_written[max(0, number - 2):number]))
        names = [n for n in CALL.findall(line) + WORD.findall(line) if n not in allowed]
        is_open = OPEN.search(line) and "open" not in allowed and path.startswith("src/")
        if is_open and "O_CLOEXEC" not in statement(as_written, number):
            found.append(Finding(path, number, "open without O_CLOEXEC: descriptors are close-on-exec from birth"))
        for name in names:
            if name in BANNED:
                found.append(Finding(path, number, f"{name} is banned: use {BANNED[name]}"))
            elif name in PLACES:
                places, instead = PLACES[name]
                if not path.startswith(places):
                    found.append(Finding(path, number, f"{name} is banned outside {places[0]}: use {instead}"))
    return found


def statement(lines, number):
    """The statement that begins on a line."""
    return "\n".join(lines[number - 1:number + 5]).split(";")[0]


def check(tree):
    found = []
    for name in tree.matching(".c", ".h"):
        found += check_text(name, tree.read(name))
    return found


CHECKS = {"banned": check}


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    only = [os.path.relpath(os.path.abspath(f), root) for f in sys.argv[1:]] or None
    found = check(Tree(root, only=only))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
