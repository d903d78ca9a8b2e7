"""A small world for commands to attack: a workspace with a repository, what is
outside of it, secrets, listeners, another process; and running commands in it.
"""

import array
import ctypes
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import termios
import threading
import time

SECONDS = 60
SPARE_USER = 65534  # nobody: as whom root tries everything again

# Files that a hostile act would make, below the world's directory.
HOSTILE = ("O/made", "O/dir", "O/link", "O/fifo", "O/moved", "O/made-by-link", "O/made-by-proc",
           "W/taken", "W/linked", "W/device")
KEPT = ("O/removable", "O/empty", "O/movable", "W/movable", "home/.ssh/id", "O/private/key")


# Variables that no command should get, whoever set them.
SECRET_VARIABLES = {"AWS_SECRET_ACCESS_KEY": "secret", "GITHUB_TOKEN": "secret", "BASH_ENV": "/nonexistent",
                    "LD_AUDIT": ""}


class Party:
    """Who runs commands: the one that runs the tests or, if that is root, an ordinary user."""

    def __init__(self, name, uid, gid):
        self.name = name
        self.uid = uid
        self.gid = gid
        self.changes = uid != os.getuid()

    def popen_args(self):
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.changes else {}


def parties():
    if os.getuid() != 0:
        return [Party("user", os.getuid(), os.getgid())]
    return [Party("root", 0, 0), Party("user", SPARE_USER, SPARE_USER)]


class Programs:
    """The programs under test, where an ordinary user can run them whoever owns the build."""

    def __init__(self, shellyard, tools):
        self.dir = tempfile.mkdtemp(prefix="adversary-bin-", dir="/var/tmp")
        os.chmod(self.dir, 0o755)
        self.shellyard = self._copy(shellyard, "shellyard")
        build = os.path.dirname(os.path.abspath(shellyard))
        os.makedirs(os.path.join(self.dir, "libexec/shellyard"))
        for name in ("shellyard", "shellyard-launch"):
            path = os.path.join(build, "libexec/shellyard", name)
            if os.path.exists(path):
                self._copy(path, "libexec/shellyard/" + name)
        self.probe = self._copy(tools["probe"], "probe_syscalls")
        self.mutate = self._copy(tools["mutate"], "mutate")

    def _copy(self, path, name):
        to = os.path.join(self.dir, name)
        shutil.copyfile(path, to)
        os.chmod(to, 0o755)
        return to

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def listen(family, kind, address):
    """A listening socket, or None where this machine has no such address."""
    try:
        s = socket.socket(family, kind)
        s.bind(address)
        if kind == socket.SOCK_STREAM:
            s.listen(16)
        return s
    except OSError:
        return None


def processes_with(*wanted):
    """Those that have all of these words on their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if all(word.encode() in words for word in wanted):
                found.append(int(name))
    return found


def remove(path):
    """Whatever it is; what can't be is left."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)


class Run:
    """What became of one command."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err
        self.answer = None
        self.outcomes = {}
        try:
            self.answer = json.loads(out)
        except ValueError:
            pass
        text = out if self.answer is None else self.answer.get("stdout", "")
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            if value.isdigit():
                self.outcomes[name] = int(value)

    @property
    def sandbox(self):
        return (self.answer or {}).get("sandbox", {})

    @property
    def tier(self):
        return self.sandbox.get("tier")

    def brief(self):
        return f"status {self.status}, {self.out[:300]!r} {self.err[:600]!r}"


class Server:
    """An MCP server of the world's party. Use as a context."""

    def __init__(self, world, settings, wrap=(), seconds=SECONDS):
        words = [*wrap, world.programs.shellyard, "mcp", *world.setting_words(settings)]
        self.process = world.start(words, stdin=subprocess.PIPE)
        self.clock = threading.Timer(seconds, self.process.kill)
        self.clock.start()
        self.asked = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        self._answer(self._send("initialize", hello))
        self._write({"method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()
        self.clock.cancel()

    def _write(self, message):
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answer tells

    def _send(self, method, params):
        self.asked += 1
        self._write({"id": self.asked, "method": method, "params": params})
        return self.asked

    def _answer(self, number):
        return next((m for m in map(json.loads, self.process.stdout) if m.get("id") == number), None)

    def call(self, tool, **arguments):
        """What the tool said; empty where it said nothing, with `error`."""
        answer = self._answer(self._send("tools/call", {"name": tool, "arguments": arguments}))
        if answer is None:
            return {"error": f"the server has ended: {self.process.stderr.read().decode('utf-8', 'replace')}"}
        return answer.get("result", {}).get("structuredContent", {"error": answer})

    def run(self, tool, **arguments):
        """A command's Run, whose server is not asked anything else."""
        result = self.call(tool, **arguments)
        text = json.dumps({**result, "stdout": result.get("output", "")})
        return Run(result.get("exit_code"), text, str(result.get("error", "")))

    def pty(self, command):
        return self.run("exec_command", cmd=command, tty=True, cols=500, timeout_ms=40000, yield_time_ms=30000)


class World:
    """One world for one party. Use as a context."""

    def __init__(self, programs, party):
        self.programs = programs
        self.party = party
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="adversary-", dir="/var/tmp"))
        os.chmod(self.base, 0o755)
        self.mark = "adversary-" + os.path.basename(self.base)
        self.shm = None
        self._make_tree()
        self._listen()
        self._start_victim()
        self._share_memory()
        self.master, self.terminal = pty.openpty()
        os.fchown(self.terminal, party.uid, -1)
        os.set_blocking(self.master, False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_lingering()
        self.victim.kill()
        self.victim.wait()
        self.victim.stdin.close()
        self.victim.stdout.close()
        for s in self.listeners.values():
            if s:
                s.close()
        os.close(self.master)
        os.close(self.terminal)
        if self.shm is not None:
            ctypes.CDLL(None).shmctl(self.shm, 0, None)
        os.unlink(self.tmp_mark)
        shutil.rmtree(self.base, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.base, name)

    def _write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(self.path(name), mode)

    def _make_tree(self):
        for name in ("W", "O", "O/empty", "O/private", "home", "home/.ssh",
                     "home/.local/state/shellyard", "tmp", "notes"):
            os.makedirs(self.path(name), exist_ok=True)
            os.chmod(self.path(name), 0o755)
        for name in ("O/victim", "O/removable", "O/movable", "W/movable"):
            self._write(name, "precious")
        self._write("home/.ssh/id", "secret")
        self._write("O/private/key", "secret")
        self._write("home/.local/state/shellyard/key", "secret")
        for name, to in (("W/to-outside", "../O"), ("W/to-secret", "../home/.ssh/id")):
            if not os.path.lexists(self.path(name)):
                os.symlink(to, self.path(name))
        if not os.path.exists(self.path("git-before")):
            subprocess.run(["git", "init", "-q", self.path("git-before")], check=True,
                           env={"PATH": os.environ["PATH"], "HOME": self.path("home")})
        shutil.copytree(self.path("git-before/.git"), self.path("W/.git"))
        self.tmp_mark = f"/tmp/{self.mark}"
        with open(self.tmp_mark, "w", encoding="utf-8"):
            pass
        os.chmod(self.tmp_mark, 0o644)
        if self.party.changes:
            subprocess.run(["chown", "-R", f"{self.party.uid}:{self.party.gid}", self.base], check=True)

    def reset(self):
        """As it was before the last run."""
        self.end_lingering()
        for name in ("W", "O"):
            for entry in os.listdir(self.path(name)):
                remove(os.path.join(self.path(name), entry))
        self._make_tree()
        if self.victim.poll() is not None:
            self.victim.stdin.close()
            self.victim.stdout.close()
            self._start_victim()
        for s in self.listeners.values():
            self._drain(s)
        termios.tcflush(self.terminal, termios.TCIOFLUSH)
        self._read_terminal()

    @staticmethod
    def _drain(s):
        while s and select.select([s], [], [], 0)[0]:
            if s.type == socket.SOCK_DGRAM:
                s.recv(100)
            else:
                s.accept()[0].close()

    def _listen(self):
        tcp = listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        self.listeners = {
            "tcp": tcp,
            "udp": listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", self.port)),
            "tcp6": listen(socket.AF_INET6, socket.SOCK_STREAM, ("::1", self.port)),
            "named": listen(socket.AF_UNIX, socket.SOCK_STREAM, self.path("O.sock")),
            "abstract": listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.mark),
        }
        os.chmod(self.path("O.sock"), 0o777)

    def _start_victim(self):
        self.victim = subprocess.Popen([self.programs.probe, "--victim"], stdin=subprocess.PIPE, bufsize=0,
                                       stdout=subprocess.PIPE, **self.party.popen_args())
        self.victim_address = self.victim.stdout.readline().decode().strip()

    def _is_victim_gone(self):
        """A signal that it was sent comes before its answer does."""
        try:
            self.victim.stdin.write(b"?")
            if self.victim.stdout.read(1) == b"?":
                return False
        except BrokenPipeError:
            pass
        self.victim.wait()
        return True

    def _share_memory(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.shm_key = 0x5A000000 + os.getpid() % 0xFFFF * 8 + self.port % 8
        got = libc.shmget(self.shm_key, 4096, 0o1000 | 0o666)
        self.shm = got if got >= 0 else None

    def probe_words(self, only=None, inside=None):
        words = [self.programs.probe, f"PROBE_INSIDE={inside or self.path('W')}", f"PROBE_OUTSIDE={self.path('O')}",
                 f"PROBE_HOME={self.path('home')}", f"PROBE_SETUID={self.programs.probe}",
                 f"PROBE_VICTIM={self.victim.pid}", f"PROBE_ADDRESS={self.victim_address}",
                 f"PROBE_PORT={self.port}", f"PROBE_ABSTRACT={self.mark}",
                 f"PROBE_SOCKET={self.path('O.sock')}", f"PROBE_TMP={self.tmp_mark}",
                 f"PROBE_SHM={self.shm_key}", f"PROBE_MARK={self.mark}",
                 f"PROBE_TERMINAL={os.ttyname(self.terminal)}",
                 f"PROBE_TERMINAL_DEVICE={os.fstat(self.terminal).st_dev}"]
        return words + ([f"PROBE_ONLY=,{','.join(only)},"] if only else [])

    def environment(self, **more):
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.path("home"), "LANG": "C.UTF-8",
                "TMPDIR": self.path("tmp"), **SECRET_VARIABLES, **more}

    def start(self, words, env=None, cwd=None, stdin=subprocess.DEVNULL):
        """Starts words as the party, in a session whose terminal is ours."""

        def session():
            os.setsid()
            try:
                fcntl.ioctl(self.terminal, termios.TIOCSCTTY, 0)
            except OSError:
                pass  # another run has it

        # Descriptors that are left open by mistake, a directory outside among them.
        outside = os.open(self.path("O"), os.O_RDONLY | os.O_DIRECTORY)
        leaked = (self.terminal, outside, *(s.fileno() for s in self.listeners.values() if s))
        try:
            return subprocess.Popen(words, cwd=cwd or self.path("W"), env=env or self.environment(), stdin=stdin,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=session,
                                    pass_fds=leaked, **self.party.popen_args())
        finally:
            os.close(outside)

    def run(self, words, seconds=SECONDS, **more):
        """Runs words to their end, as start() does it."""
        with self.start(words, **more) as process:
            try:
                out, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            return Run(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    @staticmethod
    def setting_words(settings):
        return [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]

    def exec_words(self, settings, command):
        words = [self.programs.shellyard, "exec", "--json", "-t", "40s", *self.setting_words(settings)]
        return [*words, "--", *command]

    def exec(self, settings, command, wrap=(), **more):
        """One command under shellyard exec."""
        return self.run([*wrap, *self.exec_words(settings, command)], **more)

    def mcp(self, settings, command, wrap=(), **arguments):
        """One command as a call of an MCP server, which ends after it; `arguments` go with the call."""
        with Server(self, settings, wrap) as server:
            return server.run("shell", command=command, timeout_ms=40000, **arguments)

    def pty(self, settings, command, wrap=()):
        """The same as a session with a terminal, which ends by itself."""
        with Server(self, settings, wrap) as server:
            return server.pty(command)

    def landlock_abi(self):
        """What this kernel has, as the program says it."""
        return self.run([self.programs.shellyard, "sandbox", "check", "--json"]).answer["landlock_abi"]

    def lingering(self):
        """Processes that an act left behind."""
        return processes_with("--linger", self.mark)

    def open_session(self, server):
        """Another session of this server, whose shell waits at its terminal: (its id, words for the probe)."""
        mark = f"{self.mark}-session"
        answer = server.call("exec_command", cmd=["sh", "-c", "echo ready; read -r x; exit 1", mark], tty=True,
                             pattern="ready", yield_time_ms=20000)
        shell = processes_with(mark)
        if answer.get("session_id") is None or len(shell) != 1:
            raise RuntimeError(f"no session: {answer}, {shell}")
        terminal = os.stat(f"/proc/{shell[0]}/fd/0")
        return answer["session_id"], [f"PROBE_SESSION={shell[0]}", f"PROBE_SESSION_DEVICE={terminal.st_dev}",
                                      f"PROBE_SESSION_NUMBER={terminal.st_rdev}",
                                      f"PROBE_SESSION_TERMINAL={os.readlink(f'/proc/{shell[0]}/fd/0')}"]

    def end_lingering(self):
        for pid in self.lingering():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _read_terminal(self):
        """What was written to the terminal of the session."""
        try:
            return os.read(self.master, 65536)
        except BlockingIOError:
            return b""

    def typed(self):
        """Bytes that wait to be read from the terminal of the session."""
        queued = array.array("i", [0])
        fcntl.ioctl(self.terminal, termios.FIONREAD, queued)
        return queued[0]

    def facts(self):
        """What the host looks like, as acts: 0 is what should not be."""

        def bad(condition):
            return 0 if condition else 1

        def read(name):
            try:
                with open(self.path(name), encoding="utf-8") as f:
                    return f.read()
            except OSError:
                return None

        end = time.monotonic() + 2
        while self.lingering() and time.monotonic() < end:
            time.sleep(0.005)
        heard = {name: bool(s and select.select([s], [], [], 0)[0]) for name, s in self.listeners.items()}
        return {
            "host:made-outside": bad(any(os.path.lexists(self.path(n)) for n in HOSTILE)),
            "host:taken-away": bad(not all(os.path.lexists(self.path(n)) for n in KEPT)),
            "host:changed-outside": bad(read("O/victim") != "precious"),
            "host:internet-heard": bad(heard["tcp"] or heard["tcp6"] or heard["udp"]),
            "host:named-heard": bad(heard["named"]),
            "host:abstract-heard": bad(heard["abstract"]),
            "host:victim-gone": bad(self._is_victim_gone()),
            "host:hook": bad(os.path.lexists(self.path("W/.git/hooks/post-checkout"))),
            "host:git-config": bad(read("W/.git/config") != read("git-before/.git/config")),
            "host:agent-directory": bad(os.path.exists(self.path("W/.claude/settings.json"))),
            "host:envrc": bad(read("W/.envrc") not in (None, "")),
            "host:lingering": bad(self.lingering()),
            "host:typed": bad(self.typed() > 0),
            "host:forged": bad(b"forged" in self._read_terminal()),
        }
