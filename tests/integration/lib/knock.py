"""Says hello to a daemon by hand, as a program of somebody else could.

    knock.py SOCKET ctl WORD...        asks like a verb
    knock.py SOCKET attach WORD...     asks to join a session
    knock.py SOCKET left WORD...       the same, from a process that has ended before it is looked at
    knock.py SOCKET host               takes itself for the next daemon of a host
    knock.py SOCKET raw                says what comes on standard input
    knock.py SOCKET hold BUILD [DIR]   hands over pipes that block, reads nothing, and waits for input's end;
                                       says that it is in DIR

Prints what comes back, or "failed: ERROR".
"""
import array
import fcntl
import os
import socket
import sys


def frame(*texts):
    body = b"".join(os.fsencode(text) + b"\0" for text in texts)
    return b"shellyard 1 %d\n" % len(body) + body


def read_all(sock):
    found = b""
    while True:
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            return found
        if not piece:
            return found
        found += piece


def hold(sock, build, directory):
    """Flags of a pipe are those of all who have that end: ours say that it blocks, again and again."""
    environment = [f"{k}={v}" for k, v in os.environ.items()]
    our_in, their_out = os.pipe()
    their_in, our_out = os.pipe()
    fds = array.array("i", [their_in, their_out])
    hello = frame("proto", build, directory, "2", "-c", "shell.path=/bin/bash", *environment)
    sock.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    print(sock.recv(4096).decode().strip(), flush=True)
    for line in sys.stdin:
        for fd in (their_in, their_out):
            fcntl.fcntl(fd, fcntl.F_SETFL, 0)
        os.write(our_out, line.encode())
        print("sent", flush=True)
    os.close(our_in)


def main():
    path, kind, *words = sys.argv[1:]
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if kind == "host" else socket.SOCK_STREAM)
    try:
        if kind == "host":
            sock.connect(path)
            print("it speaks" if sock.recv(65536) else "closed")
            return
        if kind == "left":
            # The connection is the child's, who is no more; we go on with it.
            child = os.fork()
            if child == 0:
                sock.connect(path)
                os._exit(0)
            os.waitpid(child, 0)
        else:
            sock.connect(path)
        if kind == "hold":
            hold(sock, words[0], words[1] if len(words) > 1 else os.getcwd())
            return
        if kind == "raw":
            said = sys.stdin.buffer.read()
        else:
            said = frame("attach" if kind == "attach" else "ctl", "any", "/", str(len(words)), *words)
        try:
            sock.sendall(said)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough, and has said so
        print(read_all(sock).decode().strip())
    except OSError as error:
        print(f"failed: {error}")


main()
