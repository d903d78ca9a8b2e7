#include "cli/attach_tty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "terminal/paint.h"

/* For the handler of signals that mean an error of ours. */
static struct termios saved;
static volatile sig_atomic_t is_open;
static int out_fd = -1;

static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};

static void
give_back(void)
{
    static const char leave[] = PAINT_LEAVE;

    is_open = 0;
    if (write(STDOUT_FILENO, leave, sizeof(leave) - 1) < 0) {
        /* A terminal that is gone needs nothing. */
    }
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

/* Only what a handler may do; then the signal does what it does. */
static void
on_deadly(int number)
{
    if (is_open != 0) {
        give_back();
    }
    (void)raise(number);
}

static void
watch_deadly(void)
{
    struct sigaction action = {.sa_handler = on_deadly,
                               .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        (void)sigaction(deadly[i], &action, NULL);
    }
}

static void
set_raw(void)
{
    struct termios raw = saved;

    cfmakeraw(&raw);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

enum sy_code
attach_tty_check(struct sy_error *err)
{
    bool has_input = isatty(STDIN_FILENO) != 0;

    return has_input && isatty(STDOUT_FILENO) != 0
               ? SY_E_OK
               : sy_err_set(err, SY_E_ARG, "standard %s is no terminal: attach needs one",
                            has_input ? "output" : "input");
}

enum sy_code
attach_tty_open(int *ret_out, struct sy_error *err)
{
    if (tcgetattr(STDIN_FILENO, &saved) != 0) {
        return sy_err_sys(err, errno, "looking at the terminal");
    }
    /* Opened anew: what does not block would not block for our parent either. */
    out_fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (out_fd < 0) {
        out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    }
    if (out_fd < 0) {
        return sy_err_sys(err, errno, "opening the terminal");
    }
    watch_deadly();
    is_open = 1;
    set_raw();
    (void)!fd_write_all(out_fd, PAINT_ENTER, sizeof(PAINT_ENTER) - 1, NULL);
    *ret_out = out_fd;
    return SY_E_OK;
}

void
attach_tty_again(void)
{
    set_raw();
    (void)!fd_write_all(out_fd, PAINT_ENTER, sizeof(PAINT_ENTER) - 1, NULL);
}

void
attach_tty_close(void)
{
    if (is_open != 0) {
        give_back();
    }
    fd_close(&out_fd);
}

void
attach_tty_size(unsigned *ret_rows, unsigned *ret_cols)
{
    struct winsize size = {0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    /* A serial line and the like know no size. */
    *ret_rows = size.ws_row > 0 ? size.ws_row : LIMIT_TERMINAL_ROWS_DEFAULT;
    *ret_cols = size.ws_col > 0 ? size.ws_col : LIMIT_TERMINAL_COLS_DEFAULT;
}
