#!/usr/bin/env python3
"""Every optional feature alone and in pairs: the walls hold, what a feature allows is
allowed, and ordinary work goes on (renames and links between directories of a root, threads
that start processes, a queue in the workspace). By turns with and without a terminal: each
feature is tried both ways, with others too, and what one user tries one way the other, where there
are two, tries the other way."""

import http.server
import itertools
import os
import sys
import threading

from acts import OWN_NETWORK, WALLS, WORK, held_walls, judge, judge_claims, without_newer
from harness import Suite

# The acts of these runs: few of each wall, all of ordinary work.
TRIED = ("create-outside", "overwrite-outside", "truncate-outside", "unlink-outside", "mkdir-outside",
         "rename-outwards", "link-inwards", "through-link", "through-proc", "read-secret", "read-secret-by-link",
         "read-secret-by-proc", "link-secret", "move-secret", "read-private", "read-own-state", "tcp", "udp", "abstract",
         "unix-outside", "kill", "pidfd-signal", "signal-by-owner", "see-victim", "ptrace", "unshare-user", "bpf", "tiocsti",
         "new-privileges", "capabilities", "descriptors", "core-dumps", "hook", "git-moved", "git-config-linked",
         "git-config", "git-config-replaced", "agent-directory", "envrc", "chmod-outside", "secret-variables")
FACTS = ("host:made-outside", "host:taken-away", "host:changed-outside", "host:internet-heard", "host:abstract-heard",
         "host:named-heard", "host:victim-gone", "host:hook", "host:git-config", "host:agent-directory",
         "host:envrc", "host:lingering", "host:typed")

# name: (kind, settings, acts that it lets through, acts that it stops besides)
FEATURES = {
    "network full": ("network", {"sandbox.network_access": "true"},
                     ("tcp", "udp", "unix-outside", "host:internet-heard", "host:named-heard"), ()),
    "network allow": ("network", {"network.allow": "[127.0.0.1:@PORT]"}, (), ()),
    "deny_read": ("deny", {"sandbox.deny_read": "[@O/private]"}, (), ("read-private",)),
    "allow_read all": ("deny", {"sandbox.allow_read": "[@home]"},
                       ("read-secret", "read-secret-by-link", "read-secret-by-proc"), ()),
    "protect off": ("protect", {"sandbox.protect": "false"},
                    ("hook", "git-moved", "git-config-linked", "git-config", "git-config-replaced", "agent-directory",
                     "envrc", "host:hook", "host:git-config", "host:agent-directory", "host:envrc"), ()),
    "unprotected_names": ("protect", {"sandbox.unprotected_names": "[.claude]"},
                          ("agent-directory", "host:agent-directory"), ()),
    "report full": ("report", {"sandbox.report": "full"}, (), ()),
    "limits": ("limits", {"limits.memory_bytes": "1G", "limits.processes": "256", "limits.open_files": "256",
                          "limits.file_bytes": "64M", "limits.cpu_seconds": "60", "limits.output_bytes": "1M"},
               (), ()),
    "tier full": ("tier", {"sandbox.tier": "full"}, (), ()),
    "min_tier full": ("tier", {"sandbox.min_tier": "full"}, (), ()),
    "tier no-namespace": ("tier", {"sandbox.tier": "no-namespace"}, (), ()),
    "run_as self": ("run_as", {"sandbox.run_as": "self"}, (), ()),
    "a further root": ("roots", {"sandbox.writable_roots": "[@notes]"}, (), ()),
}
DEFAULT_TIERS = {"exec": "no-namespace", "pty": "full"}


class Answering:
    """A web server on a port of its own, for what an allow list allows."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            self.send_response(200)
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"hello\n")

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def combinations():
    """Each feature, then each two that are not values of one key."""
    yield ()
    for name in FEATURES:
        yield (name,)
    for a, b in itertools.combinations(FEATURES, 2):
        if FEATURES[a][0] != FEATURES[b][0]:
            yield (a, b)


def settings_of(world, names, port):
    merged = {}
    for name in names:
        for key, value in FEATURES[name][1].items():
            merged[key] = (value.replace("@PORT", str(port)).replace("@O", world.path("O"))
                           .replace("@notes", world.path("notes")).replace("@home", world.path("home")))
    return merged


def fetches(world, names, port):
    """The command: what the proxy or the open network gives, then all acts."""
    wanted = [act for act in (*TRIED, *WORK) if act not in ("threads-spawn",) or len(names) < 2]
    probe = world.probe_words(wanted)
    if not any(name.startswith("network") for name in names):
        return probe
    return ["sh", "-c", f'curl -s -m 20 http://127.0.0.1:{port}/ > fetched; exec "$0" "$@"', *probe]


def judge_run(world, run, names, way):
    """What is wrong with a run under these features. Of itself `exec` has the lighter tier, and a session the other."""
    tiers = {name.split()[-1] for name in names if FEATURES[name][0] == "tier"} or {DEFAULT_TIERS[way]}
    tier = "full" if "full" in tiers else "no-namespace"
    if run.tier != tier:
        return [f"the tier is {run.tier}, not {tier}: {run.brief()}"]
    outcomes = {**run.outcomes, **world.facts()}
    opened = {act for name in names for act in FEATURES[name][2]}
    stopped = {act for name in names for act in FEATURES[name][3]}
    if not stopped:
        opened.add("read-private")
    own = OWN_NETWORK if tier == "full" else ()
    tried = {act for act in (*TRIED, *FACTS) if act not in opened and act not in own}
    held = {wall: [act for act in WALLS[wall] if act in tried] for wall in held_walls(tier)}
    # What this kernel has no wall for; whether that is told is asked below.
    judged = without_newer(tier, run.sandbox["landlock_abi"], outcomes, "network full" in names)
    wrong = [f"{act}: got through ({wall})" for wall, acts in held.items() for act in acts if judged.get(act, 0) == 0]
    wrong += [f"{act}: got through" for act in stopped if outcomes.get(act, 0) == 0]
    wrong += [line for line in judge(outcomes, (), sorted(opened))
              if not (line.startswith("threads-spawn: None") and len(names) == 2)]
    wrong += judge_claims(run.sandbox, {act: outcomes.get(act) for act in tried})
    if any(name.startswith("network") for name in names):
        with open(world.path("W/fetched"), encoding="utf-8") as f:
            wrong += [] if f.read() == "hello\n" else ["the web server was not reached"]
    if "report full" in names:
        objects = {d["object"] for d in run.answer.get("denials", []) if d.get("confidence") == "exact"}
        wrong += [] if world.path("O/made") in objects else [f"O/made is not among the denials: {sorted(objects)}"]
    return wrong


def main():
    suite = Suite("features")
    answering = Answering()

    def as_party(world):
        os.chmod(world.path("notes"), 0o777)
        for i, names in enumerate(combinations()):
            way = "pty" if (i % 2 == 0) == (world.party.name == "root") else "exec"
            title = f"{' and '.join(names) if names else 'defaults'}: walls hold, work goes on ({world.party.name}, by {way})"

            def body(names=names, way=way):
                world.reset()
                run = getattr(world, way)(settings_of(world, names, answering.port),
                                          fetches(world, names, answering.port))
                return judge_run(world, run, names, way)

            suite.check(title, body)
            suite.row(" + ".join(names) or "defaults", f"by setting, {way}", world.party.name,
                      "FAILED" if suite.last_failed else "held")

    suite.each_party(as_party)
    answering.close()
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
