"""A person's terminal: runs a program on a PTY of its own.

    terminal.py ROWS COLUMNS COMMAND...

Standard input is what the person types, standard output what the program writes. Descriptor 3 takes
lines "size ROWS COLUMNS" and "signal NUMBER". At the end one line on descriptor 4: the exit status
(128 and the signal), and whether the terminal is set as it was ("kept" or "changed").
"""
import fcntl
import os
import select
import struct
import sys
import termios


def set_size(fd, rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def start(fd, argv):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
        for i in range(3):
            os.dup2(fd, i)
        os.closerange(3, 64)
        os.execv(argv[0], argv)
    return pid


def order(master, pid, line):
    word, *numbers = line.split()
    if word == "size":
        set_size(master, *map(int, numbers))
    else:
        os.kill(pid, int(numbers[0]))


def main():
    rows, cols, *argv = sys.argv[1:]
    master, slave = os.openpty()
    set_size(slave, int(rows), int(cols))
    born = termios.tcgetattr(slave)
    pid = start(slave, argv)
    exited = os.pidfd_open(pid)
    sources = [0, 3, master, exited]
    orders = b""
    while exited in sources:
        ready, _, _ = select.select(sources, [], [])
        if master in ready:
            os.write(1, os.read(master, 65536))
        elif exited in ready:
            sources.remove(exited)
        for fd in (0, 3):
            piece = os.read(fd, 65536) if fd in ready else None
            if piece == b"":
                sources.remove(fd)
            elif piece is not None and fd == 0:
                os.write(master, piece)
            elif piece is not None:
                *lines, orders = (orders + piece).split(b"\n")
                for line in lines:
                    order(master, pid, line.decode())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    same = termios.tcgetattr(slave) == born
    os.write(4, f"{status if status >= 0 else 128 - status} {'kept' if same else 'changed'}\n".encode())


main()
