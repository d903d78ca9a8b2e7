#ifndef TESTS_TERMINAL_PTY_H
#define TESTS_TERMINAL_PTY_H

/* A pseudo terminal with both ends open. */
struct pty {
    int master;
    int slave;
    char name[64];
};

void pty_open(struct pty *p);
void pty_close(struct pty *p);
/* In a child: reads until it is killed. */
__attribute__((noreturn)) void child_reads(int fd);

#endif
