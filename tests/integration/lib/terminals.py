"""What a command gets of terminals: of one that it makes, and of one that is somebody else's."""
import fcntl
import json
import os
import pty
import struct
import sys

TIOCGPTN = 0x80045430


def opens(path, flags):
    """0, or the errno; what is read there is said too."""
    try:
        fd = os.open(path, flags | os.O_NONBLOCK)
    except OSError as e:
        return e.errno
    # Where /dev is the sandbox's own, the same name may be another terminal.
    device = os.fstat(fd).st_dev
    os.close(fd)
    return 0 if len(sys.argv) < 3 or device == int(sys.argv[2]) else "another"


def number_of(master):
    return struct.unpack("I", fcntl.ioctl(master, TIOCGPTN, b"\0\0\0\0"))[0]


def of_child(master):
    """A child that has the terminal no more, but comes of somebody who has."""
    name = f"/dev/pts/{number_of(master)}"
    pid = os.fork()
    if pid == 0:
        os.close(master)
        os._exit(0 if os.isatty(os.open(name, os.O_RDWR | os.O_NOCTTY)) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_new_session():
    pid, fd = pty.fork()
    if pid == 0:
        os._exit(os.waitstatus_to_exitcode(os.system("stty size; echo typed >/dev/tty")))
    text = b""
    # A read looks for text, then for the end: what came in between is for the one after.
    for _ in range(2):
        try:
            while piece := os.read(fd, 1000):
                text += piece
        except OSError:
            pass
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return text.decode() if status == 0 else f"exit status {status}: {text}"


found = {}
made, other_end = pty.openpty()
os.write(other_end, b"through")
found["made"] = os.read(made, 7).decode()
found["by name"] = opens(f"/dev/pts/{number_of(made)}", os.O_RDWR | os.O_NOCTTY) in (0, "another")
found["of child"] = of_child(made)
found["session"] = in_new_session()
if len(sys.argv) > 1:
    found["others"] = [opens(sys.argv[1], flags) for flags in (
        os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_NOCTTY, os.O_RDWR | os.O_NOCTTY)]
print(json.dumps(found))
