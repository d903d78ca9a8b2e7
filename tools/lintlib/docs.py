"""Documentation in step with the program: what a user can name must be explained."""

import ast
import json
import os
import re
import subprocess
import tempfile

from .common import CheckFailed, Finding, strip_c

ERRORS_PAGE = "docs/errors.md"
LIMITS_PAGE = "docs/limits.md"


def pages(tree):
    """{file: text} of the documentation."""
    return {n: tree.read(n) for n in tree.all_files
            if n.startswith("docs/") and not n.startswith("docs/adr/")
            and (n.endswith(".md") or n.startswith("docs/man/"))}


def mentions(text, word):
    """`word` as a whole: --json is not found in --json-lines."""
    plain = re.sub(r"\\f[BIRP]", "", text).replace("\\-", "-")  # what roff puts in between
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", plain) is not None


def rows_of(text):
    """{first cell, without backticks: all cells} of the tables of a page."""
    rows = {}
    for line in text.splitlines():
        cells = [c.strip().replace("`", "") for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.lstrip().startswith("|") and len(cells) > 1:
            rows[cells[0]] = cells
    return rows


def error_codes(text):
    """(name, text, JSON-RPC code, exit status) of every row of SY_CODES."""
    return [(n, t, int(r), int(s)) for n, t, r, s in
            re.findall(r'\bX\(\s*(SY_E_\w+),\s*"([^"]*)",\s*(-?\d+),\s*(\d+)\s*\)', text)]


def limits(text):
    """{LIMIT_X: value} of limits.h."""
    found = {}
    for name, value in re.findall(r"^#define (LIMIT_\w+)\s+(.+)$", strip_c(text), re.M):
        expression = re.sub(r"(?<=\d)[UuLl]+\b", "", value.strip())
        expression = re.sub(r"LIMIT_\w+", lambda m: str(found.get(m.group(0), 0)), expression)
        found[name] = arithmetic(ast.parse(expression, mode="eval").body)
    return found


def arithmetic(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = arithmetic(node.left), arithmetic(node.right)
        return {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(node.op)]
    raise CheckFailed(f"limits.h: {ast.dump(node)} is no plain arithmetic")


def config_keys(text):
    """section.member of struct config, which is the table of all keys."""
    body = re.search(r"struct config \{(.*?)\n\};", strip_c(text), re.S)
    keys = []
    for members, section in re.findall(r"struct \{(.*?)\}\s*(\w+);", body.group(1) if body else "", re.S):
        keys += [f"{section}.{name}" for name in re.findall(r"(\w+)\s*;", members)]
    return keys


def run_program(program, *arguments, text_in=None, **env):
    with tempfile.TemporaryDirectory() as home:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SHELLYARD_")}
        return subprocess.run([program, *arguments], input=text_in, capture_output=True, text=True,
                              errors="replace", timeout=60, check=False, cwd=home,
                              env={**kept, "HOME": home, "XDG_CONFIG_HOME": home, **env})


def cli_words(program):
    """[(verb, word, page)]: every verb and flag, as the program itself tells them."""
    top = run_program(program, "help", "--json")
    try:
        about = json.loads(top.stdout)
        found = [("", "--" + o["name"], "") for o in about["program_options"] + about["common_options"]]
        for verb in about["verbs"]:
            page = "docs/man/" + verb["page"]
            found.append(("", verb["name"], page))
            for option in verb["options"]:
                found.append((verb["name"], "--" + option["name"], page))
                if option.get("letter"):
                    found.append((verb["name"], "-" + option["letter"], page))
    except (ValueError, KeyError) as error:
        raise CheckFailed(f"`shellyard help --json` (status {top.returncode}) is not as expected: {error!r}") from error
    return found


def mcp_tools(program):
    """[(tool, [properties])] as the server lists them."""
    say = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                    "clientInfo": {"name": "lint", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
    ]
    done = run_program(program, "mcp", "-c", "tools.shell_type=all",
                       text_in="".join(json.dumps(m) + "\n" for m in say))
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("id") == 2 and "result" in message:
            return [(t["name"], sorted(t["inputSchema"].get("properties", {}))) for t in message["result"]["tools"]]
    raise CheckFailed(f"`shellyard mcp` gave no tool list (status {done.returncode}): {done.stderr.strip()[:300]}")


def check_errors_page(tree):
    found = []
    rows = rows_of(tree.read(ERRORS_PAGE)) if ERRORS_PAGE in tree.all_files else {}
    codes = error_codes(tree.read("src/base/err.h"))
    for name, _, rpc, status in codes:
        cells = rows.get(name)
        if cells is None:
            found.append(Finding(ERRORS_PAGE, 0, f"error code {name} of src/base/err.h is not explained"))
        elif str(rpc) not in cells or str(status) not in cells:
            found.append(Finding(ERRORS_PAGE, 0, f"{name}: the row must give JSON-RPC code {rpc} and exit status "
                                 f"{status}, as src/base/err.h has them"))
    known = {c[0] for c in codes}
    found += [Finding(ERRORS_PAGE, 0, f"{n} is in the page, not in src/base/err.h")
              for n in rows if n.startswith("SY_E_") and n not in known]
    return found


def check_limits_page(tree):
    found = []
    rows = rows_of(tree.read(LIMITS_PAGE)) if LIMITS_PAGE in tree.all_files else {}
    known = limits(tree.read("src/base/limits.h"))
    for name, value in known.items():
        cells = rows.get(name)
        if cells is None:
            found.append(Finding(LIMITS_PAGE, 0, f"{name} of src/base/limits.h is not explained"))
        elif not re.search(rf"(?<![\d,]){value:,}(?![\d,])|(?<![\d,]){value}(?![\d,])", cells[1]):
            found.append(Finding(LIMITS_PAGE, 0, f"{name}: the page must give its value {value:,}"))
    found += [Finding(LIMITS_PAGE, 0, f"{n} is in the page, not in src/base/limits.h")
              for n in rows if n.startswith("LIMIT_") and n not in known]
    return found


def check_docs(tree):
    """Error codes, limits, configuration keys, verbs, flags, tools and their parameters."""
    found = []
    text = "\n".join(pages(tree).values())
    if "src/base/err.h" in tree.all_files:
        found += check_errors_page(tree)
    if "src/base/limits.h" in tree.all_files:
        found += check_limits_page(tree)
    if "src/config/config.h" in tree.all_files:
        found += [Finding("docs", 0, f"configuration key {key} is not explained")
                  for key in config_keys(tree.read("src/config/config.h")) if not mentions(text, key)]
    program = os.path.join(tree.build, "shellyard")
    if not os.path.exists(program):
        found.append(Finding("docs", 0, f"{os.path.relpath(program, tree.root)} is not built, so flags and tools "
                             "can't be checked: run make first"))
        return found
    by_page = pages(tree)
    for verb, word, page in cli_words(program):
        # A flag belongs into the manual page of its verb, where there is one.
        if not mentions(by_page.get(page, text), word):
            found.append(Finding(page if page in by_page else "docs", 0,
                                 f"`shellyard {verb + ' ' if verb else ''}{word}` is not explained"))
    for name, properties in mcp_tools(program):
        if not mentions(text, name):
            found.append(Finding("docs", 0, f"tool {name} is not explained"))
        found += [Finding("docs", 0, f"parameter {p} of tool {name} is not explained")
                  for p in properties if not mentions(text, p)]
    return found


LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def check_links(tree):
    """Relative links between pages lead somewhere."""
    found = []
    for name in tree.matching(".md"):
        text = re.sub(r"```.*?```", lambda m: re.sub(r"[^\n]", " ", m.group(0)), tree.read(name), flags=re.S)
        for number, line in enumerate(text.splitlines(), 1):
            for target in LINK.findall(line):
                path = target.split("#")[0]
                if path and not re.match(r"[a-z]+:", path):
                    to = os.path.normpath(os.path.join(os.path.dirname(name), path))
                    if to not in tree.all_files and not any(f.startswith(to + "/") for f in tree.all_files):
                        found.append(Finding(name, number, f"link to {path}, which does not exist"))
    return found


CHECKS = {"docs": check_docs, "links": check_links}
