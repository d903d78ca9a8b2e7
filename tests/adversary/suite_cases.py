#!/usr/bin/env python3
"""Situations that other sandboxes got wrong, each by name, in each tier and as each user."""

import os
import subprocess
import sys
import threading
import time

from harness import Suite

TIERS = ("no-namespace", "full")


def said(run):
    """All that was told about a command."""
    return (run.answer or {}).get("aggregated_output", "") + run.out + run.err


def denials(run):
    return (run.answer or {}).get("denials", [])


def wait_for(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.005)


def start(world, settings, script, **more):
    """A command on a thread; join() gives its Run."""

    class Task(threading.Thread):
        run_result = None

        def run(self):
            self.run_result = world.exec(settings, ["sh", "-c", script], **more)

        def result(self):
            self.join()
            return self.run_result

    task = Task()
    task.start()
    return task


def replaced_file(world, tier):
    """A root that is one file, and that somebody replaces by rename while a command runs: the
    grant is for the file that was there. Whatever is told, no byte goes astray."""
    wrong = []
    target = world.path("notes/one")
    for name, text in (("notes/one", "old\n"), ("notes/two", "new\n")):
        with open(world.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(world.path(name), 0o666)
    settings = {"sandbox.tier": tier, "sandbox.writable_roots": f"[{target}]"}
    script = (f"echo first >> {target}; touch started; while [ ! -e go ]; do sleep 0.01; done;"
              f"echo second >> {target} || echo refused")
    task = start(world, settings, script)
    wait_for(lambda: os.path.exists(world.path("W/started")), "the command runs")
    os.rename(world.path("notes/two"), target)
    with open(world.path("W/go"), "w", encoding="utf-8"):
        pass
    run = task.result()
    with open(target, encoding="utf-8") as f:
        text = f.read()
    was_refused = "refused" in said(run)
    if run.tier != tier or was_refused == ("second" in text):
        wrong.append(f"the second write was neither made nor refused: {text!r} {run.brief()}")
    again = world.exec(settings, ["sh", "-c", f"echo third >> {target}"])
    with open(target, encoding="utf-8") as f:
        text = f.read()
    return wrong if again.status == 0 and "third" in text else [*wrong, f"the next command can't write: {again.brief()}"]


def bad_paths(world, tier):
    """One path that can't be used leaves no wall out."""
    wrong = []
    os.symlink("loop", world.path("O/loop"))
    script = f"touch {world.path('O/made')}; cat {world.path('home/.ssh/id')}; echo ran"
    cases = {
        "a root that is not there": ({"sandbox.writable_roots": "[/nonexistent-root]"}, False),
        "a root that is a loop of links": ({"sandbox.writable_roots": f"[{world.path('O/loop')}]"}, False),
        "a root of 5,000 characters": ({"sandbox.writable_roots": f"[/{'x' * 5000}]"}, False),
        "a pattern of what is not there": ({"sandbox.deny_read": f"[{world.path('home')}/gone]"}, True),
        "a pattern that is a loop": ({"sandbox.deny_read": f"[{world.path('O/loop')}]"}, None),
        "a pattern of 5,000 characters": ({"sandbox.deny_read": f"[/{'x' * 5000}]"}, None),
    }
    for name, (settings, must_run) in cases.items():
        run = world.exec({"sandbox.tier": tier, **settings}, ["sh", "-c", script])
        has_run = "ran" in (run.answer or {}).get("stdout", "")
        if os.path.exists(world.path("O/made")) or "secret" in (run.answer or {}).get("stdout", ""):
            wrong.append(f"{name}: a wall is missing: {run.brief()}")
        if must_run is not None and has_run != must_run:
            wrong.append(f"{name}: {'ran' if has_run else 'did not run'}: {run.brief()}")
        if not has_run and len(run.out + run.err) < 20:
            wrong.append(f"{name}: refused without a word")
    return wrong


def not_our_denial(world, tier):
    """What plain permissions refuse is not called a denial, and no grant is suggested for it."""
    wrong = []
    with open(world.path("W/closed"), "w", encoding="utf-8") as f:
        f.write("x")
    if world.party.changes:
        os.chown(world.path("W/closed"), world.party.uid, world.party.gid)
    os.chmod(world.path("W/closed"), 0)
    run = world.exec({"sandbox.tier": tier}, ["sh", "-c", "cat closed; cat /etc/nonexistent; exit 1"])
    wrong += [f"told as a denial: {d}" for d in denials(run)]
    ours = world.exec({"sandbox.tier": tier}, ["sh", "-c", f"echo x > {world.path('O/victim')}"])
    if not [d for d in denials(ours) if d["object"] == world.path("O/victim")]:
        wrong.append(f"our own denial is not told: {ours.brief()}")
    return wrong


def words_of_a_denial(world, tier):
    """Words alone are none."""
    words = "bash: /x/y: Permission denied; Operation not permitted; Read-only file system; seccomp; sandbox"
    run = world.exec({"sandbox.tier": tier}, ["sh", "-c", f"echo '{words}' >&2; exit 1"])
    return [f"told as a denial: {d}" for d in denials(run)] + ([] if run.status == 1 else [run.brief()])


def queue_blocks_nobody(world, tier):
    """A command that waits in open(2) of a queue; others run meanwhile."""
    settings = {"sandbox.tier": tier, "sandbox.report": "full"}
    task = start(world, settings, "mkfifo f; touch started; cat f")
    wait_for(lambda: os.path.exists(world.path("W/started")), "the reader waits")
    for _ in range(5):
        run = world.exec({"sandbox.tier": tier}, ["true"])
        if run.status != 0:
            return [f"another command: {run.brief()}"]
    writer = world.exec(settings, ["sh", "-c", "echo hi > f"])
    run = task.result()
    return [] if writer.status == 0 and run.answer["stdout"] == "hi\n" else [run.brief(), writer.brief()]


SPAWN = """
import subprocess, threading
codes = []
def go():
    for _ in range(50):
        codes.append(subprocess.run(["true"]).returncode)
threads = [threading.Thread(target=go) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(codes.count(0), len(codes))
"""


def threads_that_spawn(world, tier):
    """Eight threads that start processes at once, with every call that is observed."""
    run = world.exec({"sandbox.tier": tier, "sandbox.report": "full"}, ["/usr/bin/python3", "-c", SPAWN])
    wrong = [] if run.answer and run.answer["stdout"] == "400 400\n" else [run.brief()]
    return wrong + [f"told as a denial: {d}" for d in denials(run)]


CONTROL = "git init, without protection"


def missing_repository(world, tier):
    """Where there is no repository, none appears whose hooks a person would run."""
    wrong = []
    ways = {
        CONTROL: "git init -q .",
        "git init": "git init -q .",
        "mkdir": "mkdir -p .git/hooks && echo 'ref: refs/heads/x' > .git/HEAD",
        "a moved directory": "mkdir -p g/hooks && mv g .git",
        "a link": "mkdir -p g/hooks && ln -s g .git",
    }
    for name, make in ways.items():
        world.reset()
        subprocess.run(["rm", "-rf", world.path("W/.git")], check=True)
        canary = world.path("notes/canary")
        hook = f"mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch {canary}\\n' > .git/hooks/post-index-change;"
        script = f"{make}; {hook} chmod 755 .git/hooks/post-index-change; git config core.fsmonitor 'touch {canary}'; true"
        settings = {"sandbox.tier": tier, "sandbox.protect": "false" if name == CONTROL else "true"}
        run = world.exec(settings, ["sh", "-c", script])
        subprocess.run(["git", "status"], cwd=world.path("W"), check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=world.environment(), **world.party.popen_args())
        if os.path.exists(canary) != (name == CONTROL):
            wrong.append(f"{name}: the person's git ran what the command left, or did not: {run.brief()}")
        if os.path.exists(canary):
            os.unlink(canary)
    return wrong


LEADS_ELSEWHERE = """
rm -rf .git; git init -q . ; mkdir -p .git/my scripts; printf '#!/bin/sh\\n' > scripts/pc; chmod 755 scripts/pc
ln -s ../../scripts/pc .git/my/post-commit; git config core.hooksPath .git/my; git config include.path more
git config -f .git/more include.path ../two; touch two; mv .git store; ln -s store .git; touch env; ln -s env .envrc
"""


def what_leads_elsewhere(world, tier):
    """Where a repository's protected names lead to other files, a command leaves nothing in those either."""
    wrong = []
    as_person = {"shell": True, "cwd": world.path("W"), "check": False, "env": world.environment(),
                 "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **world.party.popen_args()}
    canaries = [world.path(f"notes/canary-{name}") for name in ("include", "chain", "hook", "direnv")]
    for is_protected in (False, True):
        world.reset()
        subprocess.run(LEADS_ELSEWHERE, **as_person)
        script = (f"git config -f store/more core.fsmonitor 'touch {canaries[0]}';"
                  f"git config -f two core.sshCommand 'touch {canaries[1]}';"
                  f"echo touch {canaries[2]} >> scripts/pc; echo touch {canaries[3]} >> env; true")
        run = world.exec({"sandbox.tier": tier, "sandbox.protect": "true" if is_protected else "false"}, ["sh", "-c", script])
        subprocess.run("git status; git -c user.name=n -c user.email=e@x.invalid commit --allow-empty -m x;"
                       "git ls-remote ssh://nobody@localhost/x; . ./.envrc", **as_person)
        for canary in canaries:
            if os.path.exists(canary) == is_protected:
                wrong.append(f"{os.path.basename(canary)}: {'ran' if is_protected else 'the control did not run'}: {run.brief()}")
            if os.path.exists(canary):
                os.unlink(canary)
    return wrong


def place_of_a_call(world, tier):
    """Where a command starts widens nothing: the way there is the workspace's."""
    wrong = []
    os.symlink("/etc", world.path("W/to-etc"))
    for place in ("..", "../O", "/", "to-etc"):
        run = world.exec({"sandbox.tier": tier},
                         ["sh", "-c", f"cd {place} && (echo x > made; echo x > {world.path('O/made')}; echo ran)"])
        if os.path.exists(world.path("O/made")) or os.path.exists(world.path("made")) or "ran" not in said(run):
            wrong.append(f"{place}: {run.brief()}")
    return wrong


WIDE = {"sandbox.mode": "danger-full-access"}


def directory_of_a_call(world, tier):
    """The working directory that a call names is where its command starts, and no root: the policy is
    what it was, whatever the name of the parameter and whichever way the path takes."""
    wrong = []
    os.symlink("/etc", world.path("W/to-etc"))
    os.symlink(world.path("O"), world.path("W/away"))
    here = os.path.realpath
    places = {
        "/": "/",
        world.path("home"): world.path("home"),
        world.path("O"): world.path("O"),
        "..": world.base,
        "../O": world.path("O"),
        "to-etc": "/etc",
        world.path("W/away"): world.path("O"),
        world.path("W/to-outside/../O"): world.path("O"),
    }
    for parameter in ("workdir", "cwd"):
        for place, real in places.items():
            script = (f"pwd -P; echo x > made; echo x > {world.path('O/made')}; unlink {world.path('O/removable')};"
                      f"cat {world.path('home/.ssh/id')}; echo x > {world.path('W/inside')}")
            run = world.mcp({"sandbox.tier": tier}, ["sh", "-c", script], **{parameter: place})
            text = (run.answer or {}).get("stdout", "")
            # Two pipes have no order between them: what went to the other may come first.
            if run.tier != tier or here(real) not in text.split("\n"):
                wrong.append(f"{parameter} {place}: did not start there: {run.brief()}")
            if "secret" in text or os.path.exists(os.path.join(real, "made")) or os.path.exists(world.path("O/made")):
                wrong.append(f"{parameter} {place}: the policy is wider: {run.brief()}")
            if not os.path.exists(world.path("O/removable")) or not os.path.exists(world.path("W/inside")):
                wrong.append(f"{parameter} {place}: outside was changed, or inside could not be: {run.brief()}")
            else:
                os.unlink(world.path("W/inside"))
    control = world.mcp(WIDE, ["sh", "-c", "echo x > made"], workdir=world.path("O"))
    return wrong if os.path.exists(world.path("O/made")) else [*wrong, f"the control did nothing: {control.brief()}"]


def await_lingering(world, wanted, seconds):
    """Who lingers, once there is somebody (or nobody, as is wanted), or the time is over."""
    end = time.monotonic() + seconds
    while bool(world.lingering()) != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return world.lingering()


def lingering_after(world):
    """Who lingers still, once all had the time to end."""
    return await_lingering(world, False, 2)


def daemons_end(world, tier):
    """Forty that left session and parent and listen to no signal are gone with a timeout."""
    words = " ".join(f"'{word}'" for word in world.probe_words(["daemon"]))
    script = f"for i in $(seq 40); do {words} > /dev/null & done; wait; touch made; exec sleep 1000"
    run = world.run([world.programs.shellyard, "exec", "--json", "-t", "8s", "-c", f"sandbox.tier={tier}", "--", "sh",
                     "-c", script])
    wrong = [] if run.answer and run.answer["timed_out"] and os.path.exists(world.path("W/made")) else [run.brief()]
    left = lingering_after(world)
    return wrong + ([f"{len(left)} daemons live on"] if left else [])


# Writes queries to its terminal and says what came back as if it were typed. The cursor is asked for last: once
# that answer is there, all before it are.
ASK = """
import os, re, select, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, sys.argv[1].encode().decode("unicode_escape").encode("latin1") + b"\x1b[6n")
got = b""
while not re.search(rb"\x1b\\[\\d+;\\d+R", got) and select.select([0], [], [], 20)[0]:
    got += os.read(0, 4096)
termios.tcsetattr(0, termios.TCSANOW, before)
print("\\nGOT", got.hex())
"""


def reports_type_nothing(world, tier):
    """What a program writes never comes back as if somebody had typed it: titles, answerback, clipboard,
    names that are unknown. The cursor's place is the control: that is answered."""
    wrong = []
    evil = "touch hacked"
    queries = {
        "title": f"\\x1b]0;{evil}\\x07\\x1b[21t",
        "icon": f"\\x1b]1;{evil}\\x07\\x1b[20t",
        "pushed title": f"\\x1b]2;{evil}\\x07\\x1b[22t\\x1b[23t\\x1b[21t",
        "answerback": f"\\x1bP{evil}\\x1b\\\\\\x05",
        "clipboard": "\\x1b]52;c;dG91Y2ggaGFja2Vk\\x07\\x1b]52;c;?\\x07",
        "setting": f"\\x1bP$q{evil}\\x1b\\\\",
        "capability": "\\x1bP+q746f756368206861636b6564\\x1b\\\\",
        "colour": f"\\x1b]4;1;{evil}\\x07\\x1b]4;1;?\\x07",
    }
    run = world.pty({"sandbox.tier": tier}, ["/usr/bin/python3", "-c", ASK, "".join(queries.values())])
    output = (run.answer or {}).get("stdout", "")
    found = [line.split()[1] for line in output.splitlines() if line.startswith("GOT ")]
    got = bytes.fromhex(found[0]) if found else b""
    if run.tier != tier or not got.endswith(b"R"):
        return [f"the cursor's place was not answered: {got!r} {run.brief()}"]
    for text in (b"touch", b"hacked", b"dG91", b"746f756368"):
        wrong += [f"{text} came back: {got!r}"] if text in got else []
    return wrong + ([f"a line was ended for us: {got!r}"] if b"\n" in got or b"\r" in got else [])


HOLD = """
import os, signal, sys
r, w = os.pipe()
if os.fork() == 0:
    for s in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGCONT):
        signal.signal(s, signal.SIG_IGN)
    if sys.argv[1] == "setsid":
        os.setsid()
        if os.fork():
            os._exit(0)
    os.write(w, b"x")
    os.set_inheritable(0, True)
    os.execv(sys.argv[2], ["probe", "--linger", sys.argv[3]])
os.read(r, 1)
print("HELD")
"""


def terminal_holders_end(world, tier):
    """Who holds a session's terminal open, in it or in a session of its own, and listens to no signal,
    is gone with it."""
    wrong = []
    for way in ("stay", "setsid"):
        words = ["/usr/bin/python3", "-c", HOLD, way, world.programs.probe, world.mark]
        run = world.pty({"sandbox.tier": tier}, words)
        if run.tier != tier or "HELD" not in said(run):
            wrong.append(f"{way}: nothing was held: {run.brief()}")
        wrong += [f"{way}: it lives on"] if lingering_after(world) else []
        world.end_lingering()
    with world.start(["/usr/bin/python3", "-c", HOLD, "setsid", world.programs.probe, world.mark]) as control:
        control.stdout.readline()
        wrong += [] if await_lingering(world, True, 5) else ["the control left nobody behind"]
        world.end_lingering()
        control.communicate()
    return wrong


CASES = {
    "a file that is replaced while a command may write it": replaced_file,
    "one bad path disables no wall": bad_paths,
    "what plain permissions refuse is no denial of ours": not_our_denial,
    "words in the output are no denial": words_of_a_denial,
    "a reader that waits for a queue holds nobody else up": queue_blocks_nobody,
    "threads that start processes at once": threads_that_spawn,
    "a repository that was not there gives a person's git nothing to run": missing_repository,
    "what protected names lead to gives a person nothing to run": what_leads_elsewhere,
    "where a command goes widens nothing": place_of_a_call,
    "the working directory of a call widens nothing": directory_of_a_call,
    "daemons end with a timeout": daemons_end,
    "what is written to a terminal never comes back as typed": reports_type_nothing,
    "who holds a session's terminal ends with it": terminal_holders_end,
}


def main():
    suite = Suite("cases")

    def as_party(world):
        os.chmod(world.path("notes"), 0o777)
        for title, body in CASES.items():
            for tier in TIERS:

                def check(body=body, tier=tier):
                    world.reset()
                    return body(world, tier)

                suite.check(f"{title} ({tier}, {world.party.name})", check)
                suite.row(title, tier, world.party.name, "FAILED" if suite.last_failed else "held")

    suite.each_party(as_party)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
