"""The house (design: docs/internals/README.md): who may include whom, and names."""

import os
import re
import subprocess

from .common import CheckFailed, Finding, strip_c

# Room: the rooms that its row lists, besides base. What those may include, it
# may too (docs/adr/0004-rooms-and-transitive-includes.md).
ROOMS = {
    "base": (),
    "config": ("proxy",),
    "events": (),
    "store": ("events",),
    "audit": ("store", "events"),
    "output": ("events",),
    "terminal": (),
    "command": (),
    "proxy": ("events",),
    "sandbox": ("proxy",),
    "launcher": ("process",),
    "guard": ("sandbox",),
    "process": ("sandbox", "output"),
    "http": ("process",),
    "telemetry": ("config", "events", "store", "http"),
    "patch": ("command", "sandbox"),
    "approval": ("command", "guard", "sandbox", "store", "events"),
    "hook": ("approval", "process"),
    "orchestrator": ("approval", "hook", "guard", "process", "proxy", "patch", "audit", "output", "events"),
    "sessions": ("orchestrator", "terminal", "store"),
    "runs": ("orchestrator", "store"),
    "tools": ("orchestrator", "sessions", "runs", "command", "patch", "config", "http"),
    "protocol": ("tools", "events"),
    "transport": ("protocol", "events", "config"),
}
EVERYTHING = {"embed": {"cli"}, "cli": set()}  # all rooms but these

# Libraries that are kept behind one room.
BEHIND = {"jansson.h": ("src/base/json.c",), "yaml.h": ("src/base/yaml_walk", "src/cli/edit_yaml"),
          "sqlite3.h": ("src/store/",), "sodium/crypto_hash_sha256.h": ("src/approval/binding.c",),
          "tree_sitter/api.h": ("src/command/script",), "curl/curl.h": ("src/http/main.c",),
          "vterm.h": ("src/terminal/vt.c",), "pcre2.h": ("src/output/pattern.c",)}

# What the names of a room's non-static symbols begin with, besides "<room>_", the
# unit's name (headtail.c: headtail_push), the room's headers (call_internal.h:
# call_spawn) and its types (struct joiner: joiner_push).
PREFIXES = {
    "base": ("sy_", "mem_", "buf_", "strv_", "size_", "fd_", "json_", "js_", "jw_", "log_", "str_",
             "path_", "place_", "utf8_", "clock_", "kv_"),
    "events": ("event_",),
    "command": ("argv_",),
    "proxy": ("address_", "allow_", "conn_", "dial_", "host_", "relay_", "socks_", "tls_hello_"),
    "sandbox": ("sbx_", "feature_", "seccomp_", "landlock_"),
    "launcher": ("yard_", "tree_", "identity_", "mount_", "network_", "protect_", "template_", "failed", "receive_with_fds",
                 "send_with_fd", "send_report", "main"),
    "guard": ("node_", "ident_", "placeholders_"),
    "process": ("env_", "proc_"),
    "orchestrator": ("orch_", "turn_", "exec_", "loop_"),
    "tools": ("tool_", "turn_from_config", "session_options_from_config"),
    "protocol": ("mcp_", "jsonl_", "proto_", "rpc_", "out_"),
    "transport": ("stdio_", "http_"),
    "embed": ("sy_",),
    "cli": ("verb_", "main"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def allowed_rooms(room):
    """All rooms that `room` may include, itself and base among them."""
    if room in EVERYTHING:
        return (set(ROOMS) | set(EVERYTHING)) - EVERYTHING[room]
    seen = set()
    todo = [room, "base"]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += ROOMS[one]
    return seen


def check_include(name, room, number, quoted, angled):
    if angled:
        places = BEHIND.get(angled)
        if places and not name.startswith(places):
            return Finding(name, number, f"<{angled}> is behind {', '.join(places)} only")
        return None
    parts = quoted.split("/")
    other = parts[0]
    if ".." in parts:
        return Finding(name, number, f'"{quoted}": no ".." in includes, write "<room>/<file>"')
    if other == "shellyard":
        if room in ("embed", "cli"):
            return None
        return Finding(name, number, f"room {room} may not include the public header {quoted}: only embed may")
    if other not in ROOMS and other not in EVERYTHING:
        if len(parts) == 1 and not quoted.endswith((".c", ".h")):
            return None  # a generated table
        return Finding(name, number, f'"{quoted}" names no room: write "<room>/<file>"')
    if other not in allowed_rooms(room):
        return Finding(name, number, f"room {room} may not include room {other} (tools/lintlib/rooms.py)")
    if other != room and quoted.endswith("_internal.h"):
        return Finding(name, number, f"{quoted} belongs to room {other} alone: use its door {other}/{other}.h")
    return None


def check_includes(tree):
    found = []
    for name in tree.matching(".c", ".h", ".def", under=("src/",)):
        parts = name.split("/")
        if len(parts) < 3:
            found.append(Finding(name, 0, "source outside every room: put it into src/<room>/"))
            continue
        room = parts[1]
        if room not in ROOMS and room not in EVERYTHING:
            found.append(Finding(name, 0, f"unknown room {room}: rooms are listed in tools/lintlib/rooms.py"))
            continue
        for number, line in enumerate(strip_c(tree.read(name), keep_includes=True).splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                finding = check_include(name, room, number, match.group(1), match.group(2))
                if finding:
                    found.append(finding)
    return found


def symbols_of(path, *options):
    """Names of an archive's or a library's global, defined symbols, by member."""
    done = subprocess.run(["nm", "-A", "-g", "--defined-only", *options, path],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CheckFailed(f"nm {path}: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        where, _, rest = line.rpartition(": " if ": " in line else ":")
        fields = rest.split()
        if fields:
            yield os.path.basename(where.split(":")[-1] or where), fields[-1]


def room_prefixes(tree, room):
    """thing_ for each header of the room and each struct and enum that its files define."""
    names = set()
    for name in tree.all_files:
        if name.startswith(f"src/{room}/") and name.endswith(".h"):
            names.add(re.sub(r"(_internal)?\.h$", "", os.path.basename(name)))
        if name.startswith(f"src/{room}/") and name.endswith((".c", ".h")):
            names.update(re.findall(r"\b(?:struct|enum) (\w+) *(?:\{|;)", strip_c(tree.read(name))))
    return tuple(n + "_" for n in names)


def unit_prefixes(member):
    """headtail.c.o: headtail and headtail_x; linux_walk.c.o (of linux/walk.c): also walk_x."""
    words = member.split(".")[0].split("_")
    return tuple("_".join(words[i:]) + "_" for i in range(len(words)))


def check_symbols(tree):
    """No room's library gives away a name that does not tell where it belongs."""
    found = []
    seen = 0
    for room in [*ROOMS, *EVERYTHING]:
        folder = os.path.join(tree.build, "src", room)
        if not os.path.isdir(folder):
            continue
        listed = (room + "_", *PREFIXES.get(room, ()))
        types = room_prefixes(tree, room)
        for library in sorted(os.listdir(folder)):
            if library.endswith(".a"):
                seen += 1
                for member, symbol in symbols_of(os.path.join(folder, library)):
                    if not (symbol + "_").startswith((*listed, *types, *unit_prefixes(member))):
                        found.append(Finding(f"src/{room} ({member})", 0,
                                             f"symbol {symbol} should be static, or begin with its unit, a type or header of the room, "
                                             f"or one of {' '.join(listed)}"))
    for folder, _, files in os.walk(tree.build):
        for library in files:
            is_ours = re.match(r"libshellyard\.so[.\d]*$", library)
            if is_ours and os.path.exists(os.path.join(folder, library)):  # no link to what is not built
                seen += 1
                for _, symbol in symbols_of(os.path.join(folder, library), "-D"):
                    if not symbol.startswith("sy_"):
                        found.append(Finding(library, 0, f"exports {symbol}: only sy_* is public"))
    if not seen:
        raise CheckFailed("nothing is built; run make first")
    return found


CHECKS = {"includes": check_includes, "symbols": check_symbols}
