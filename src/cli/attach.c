#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/attach_tty.h"
#include "cli/pass.h"
#include "cli/verbs.h"
#include "sessions/attach_frame.h"
#include "terminal/key.h"

/* `attach`: a person joins a live session. */

#define KEY_DEFAULT "C-\\"
#define KEY_MAX     16U
/* How long the rest of the key that leaves may be on its way, once it has begun: a person does not
 * notice that an Escape, with which most begin, is passed on so much later. */
#define KEY_REST_NS 50000000ULL

static const int watched[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

struct joined {
    struct pass_client *client;
    const char *id;
    bool is_read_only;
    char key[KEY_MAX]; /* what the key that leaves sends */
    size_t key_n;
    char held[KEY_MAX]; /* typed, and perhaps its beginning */
    size_t held_n;
    uint64_t held_ns; /* when it began */
    int signals_fd;
    int out_fd;
    struct buf in;     /* from the daemon */
    struct buf to;     /* for it */
    struct buf screen; /* for the terminal, from screen_at on */
    size_t screen_at;
    bool is_over;
    int status;
    char note[SY_ERR_MSG_MAX];     /* the last one that came */
    char sentence[SY_ERR_MSG_MAX]; /* how it ended; "": this side left */
};

static void
leave(struct joined *j, int status, const char *sentence)
{
    if (!j->is_over) {
        j->is_over = true;
        j->status = status;
        (void)snprintf(j->sentence, sizeof(j->sentence), "%s", sentence);
    }
}

static void
fail(struct joined *j, enum sy_code code, const char *sentence)
{
    leave(j, sy_code_status(code), sentence);
}

/* As much as the daemon takes now. */
static void
send_frames(struct joined *j)
{
    while (j->to.len > 0) {
        ssize_t n = send(j->client->fd, j->to.data, j->to.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            buf_drop(&j->to, (size_t)n);
        } else if (errno != EINTR) {
            return; /* its end is read */
        }
    }
}

static void
send_size(struct joined *j)
{
    unsigned rows = 0;
    unsigned cols = 0;

    attach_tty_size(&rows, &cols);
    if (attach_frame_write_size(&j->to, rows, cols) != SY_E_OK) {
        fail(j, SY_E_LIMIT, "the daemon takes no more");
    }
}

static void
on_signal(struct joined *j)
{
    struct signalfd_siginfo info;

    if (read(j->signals_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return;
    }
    switch ((int)info.ssi_signo) {
    case SIGWINCH:
        send_size(j);
        break;
    case SIGCONT:
        attach_tty_again();
        send_size(j);
        break;
    case SIGTSTP: /* the session's keys are not ours */
        break;
    default:
        leave(j, 128 + (int)info.ssi_signo, "");
        break;
    }
}

/* Where the key that leaves stands in what was typed; `n`: nowhere. */
static size_t
find_key(const struct joined *j, const char *bytes, size_t n)
{
    const char *at = memmem(bytes, n, j->key, j->key_n);

    return at != NULL ? (size_t)(at - bytes) : n;
}

/* How much of the end of what was typed may be the beginning of that key. */
static size_t
count_held(const struct joined *j, const char *bytes, size_t n)
{
    size_t ret = n < j->key_n - 1 ? n : j->key_n - 1;

    while (ret > 0 && memcmp(bytes + n - ret, j->key, ret) != 0) {
        ret--;
    }
    return ret;
}

static void
send_keys(struct joined *j, const char *bytes, size_t n)
{
    if (n > 0 && !j->is_read_only &&
        attach_frame_write(&j->to, ATTACH_INPUT, bytes, n) != SY_E_OK) {
        fail(j, SY_E_LIMIT, "the daemon takes no more");
    }
}

/* The rest of the key did not come: it was another one. */
static void
let_go(struct joined *j)
{
    if (j->held_n > 0 && clock_mono_ns() >= j->held_ns + KEY_REST_NS) {
        send_keys(j, j->held, j->held_n);
        j->held_n = 0;
    }
}

static int
poll_ms(const struct joined *j)
{
    uint64_t now = clock_mono_ns();

    if (j->held_n == 0) {
        return -1;
    }
    return now < j->held_ns + KEY_REST_NS ? (int)((j->held_ns + KEY_REST_NS - now) / 1000000) + 1
                                          : 0;
}

static void
read_keys(struct joined *j)
{
    char bytes[KEY_MAX + 4096];
    size_t had = j->held_n;

    memcpy(bytes, j->held, had);

    ssize_t n = read(STDIN_FILENO, bytes + had, sizeof(bytes) - had);

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (n <= 0) {
        leave(j, 128 + SIGHUP, "");
        return;
    }

    size_t all = had + (size_t)n;
    size_t end = find_key(j, bytes, all);

    j->held_n = end == all ? count_held(j, bytes, all) : 0;
    j->held_ns = clock_mono_ns();
    memcpy(j->held, bytes + all - j->held_n, j->held_n);
    send_keys(j, bytes, end - j->held_n);
    if (end < all) {
        if (attach_frame_write(&j->to, ATTACH_DETACH, "", 0) == SY_E_OK) {
            send_frames(j);
        }
        leave(j, 0, "");
    }
}

static void
take_frame(struct joined *j, const struct attach_frame *f)
{
    char text[SY_ERR_MSG_MAX];
    int n = (int)f->n;

    switch (f->kind) {
    case ATTACH_OUTPUT:
        if (buf_add(&j->screen, f->bytes, f->n) != SY_E_OK) {
            fail(j, SY_E_NOMEM, sy_code_text(SY_E_NOMEM));
        }
        break;
    case ATTACH_NOTE:
        (void)snprintf(j->note, sizeof(j->note), "%.*s", n, f->bytes);
        break;
    case ATTACH_END:
        (void)snprintf(text, sizeof(text), "%.*s", n - 1, f->bytes + 1);
        leave(j, (unsigned char)f->bytes[0], text);
        break;
    case ATTACH_INPUT:
    case ATTACH_SIZE:
    case ATTACH_DETACH:
        break; /* attach_frame_read does not give them */
    }
}

static void
take_frames(struct joined *j)
{
    enum attach_frame_state state = ATTACH_FRAME_WHOLE;
    struct attach_frame f;
    struct sy_error err = {0};

    while (!j->is_over && state == ATTACH_FRAME_WHOLE) {
        state = attach_frame_read(&f, buf_view(&j->in), j->in.len, false, &err);
        if (state == ATTACH_FRAME_WHOLE) {
            take_frame(j, &f);
            buf_drop(&j->in, ATTACH_FRAME_HEAD + f.n);
        }
    }
    if (state == ATTACH_FRAME_BAD) {
        fail(j, SY_E_PARSE, err.msg);
    }
}

static void
read_daemon(struct joined *j)
{
    char bytes[16384];
    ssize_t n = recv(j->client->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (n <= 0) {
        fail(j, SY_E_SYS, "the daemon, or its host for the session, has ended without a word");
        return;
    }
    if (buf_add(&j->in, bytes, (size_t)n) != SY_E_OK) {
        fail(j, SY_E_NOMEM, sy_code_text(SY_E_NOMEM));
        return;
    }
    take_frames(j);
}

static void
show(struct joined *j)
{
    while (j->screen_at < j->screen.len) {
        ssize_t n = write(j->out_fd, j->screen.data + j->screen_at, j->screen.len - j->screen_at);

        if (n > 0) {
            j->screen_at += (size_t)n;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            leave(j, 128 + SIGHUP, "");
            return;
        }
    }
    buf_reset(&j->screen);
    j->screen_at = 0;
}

/* What the terminal has not taken holds the daemon's output up, and nothing else. */
static void
run(struct joined *j)
{
    take_frames(j);
    while (!j->is_over) {
        bool has_screen = j->screen.len > 0;
        struct pollfd fds[4] = {
            {.fd = j->client->fd,                                 .events = has_screen ? 0 : POLLIN},
            {.fd = j->to.len < j->to.max / 2 ? STDIN_FILENO : -1, .events = POLLIN                 },
            {.fd = j->signals_fd,                                 .events = POLLIN                 },
            {.fd = has_screen ? j->out_fd : -1,                   .events = POLLOUT                },
        };

        fds[0].events |= j->to.len > 0 ? POLLOUT : 0;
        if (poll(fds, 4, poll_ms(j)) < 0) {
            continue; /* EINTR; nothing else can happen to these */
        }
        if (fds[2].revents != 0) {
            on_signal(j);
        }
        if (fds[1].revents != 0 && !j->is_over) {
            read_keys(j);
        } else {
            let_go(j);
        }
        send_frames(j);
        if (fds[3].revents != 0) {
            show(j);
        }
        if (fds[0].revents != 0 && j->screen.len == 0 && !j->is_over) {
            read_daemon(j);
            show(j);
        }
    }
}

static int
watch_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) {
        (void)sigaddset(&set, watched[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
tell_end(const struct joined *j)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLI_TEXT};
    bool has_left = j->sentence[0] == '\0';
    enum sy_code rc = SY_E_OK;

    if (j->note[0] != '\0') {
        cli_note("%s", j->note);
    }
    if (j->status != 0 && !has_left) {
        cli_note("%s", j->sentence);
        return j->status;
    }
    rc = has_left ? buf_addf(&out, "[detached from %s]\n", j->id)
                  : buf_addf(&out, "[%s]\n", j->sentence);
    return rc == SY_E_OK ? cli_out(&out, j->status) : j->status;
}

/* Connects, up to the daemon's word. */
static enum sy_code
join(struct pass_client *c, struct joined *j, struct sy_error *err)
{
    struct hello_answer answer = {0};
    struct stat program;
    char id[LIMIT_SESSION_ID + 32];
    char mode[] = "rw";
    char rows[16];
    char cols[16];
    char *words[] = {id, mode, rows, cols, NULL};
    unsigned size[2];

    if (stat("/proc/self/exe", &program) != 0) {
        return sy_err_sys(err, errno, "looking at this program's file");
    }
    attach_tty_size(&size[0], &size[1]);
    (void)snprintf(id, sizeof(id), "%s", j->id);
    (void)snprintf(rows, sizeof(rows), "%u", size[0]);
    (void)snprintf(cols, sizeof(cols), "%u", size[1]);
    mode[1] = j->is_read_only ? 'o' : 'w';

    enum sy_code rc = pass_open(c, "attach", words, &program, NULL, err);

    if (rc == SY_E_OK) {
        rc = pass_read(&answer, c, pass_deadline_ns(), err);
        if (rc == SY_E_OK && answer.kind != HELLO_OK) {
            rc = sy_err_set(err,
                            answer.number == (unsigned)sy_code_status(SY_E_ARG) ? SY_E_ARG
                            : answer.number == (unsigned)sy_code_status(SY_E_NOTFOUND)
                                ? SY_E_NOTFOUND
                                : SY_E_DENIED,
                            "%s", answer.sentence);
        }
        if (rc != SY_E_OK) {
            pass_close(c);
        }
    }
    return rc;
}

static enum sy_code
read_key(struct joined *j, const char *name, struct sy_error *err)
{
    static const struct key_modes modes = {.app_cursor = false};
    SY_AUTO(buf_fini) struct buf bytes = {.max = KEY_MAX};
    enum sy_code rc = key_encode(&bytes, name, &modes, err);

    if (rc != SY_E_OK) {
        sy_err_wrap(err, "--detach-key");
        return rc;
    }
    if ((unsigned char)bytes.data[0] >= 0x20 && bytes.data[0] != 0x7F) {
        return sy_err_set(err, SY_E_ARG,
                          "--detach-key %.40s: a character could not be typed any more; name one "
                          "with C- or a key such as F12",
                          name);
    }
    memcpy(j->key, bytes.data, bytes.len);
    j->key_n = bytes.len;
    return SY_E_OK;
}

static int
attach_main(const struct cli_args *args)
{
    struct pass_client client = {.fd = -1};
    const char *key = cli_get(args, "detach-key");
    struct joined j = {
        .client = &client,
        .id = args->operands[0],
        .is_read_only = cli_get(args, "read-only") != NULL,
        .in = {.max = (size_t)ATTACH_FRAME_HEAD + LIMIT_ATTACH_FRAME + 16384},
        .to = {.max = (size_t)4 * LIMIT_ATTACH_FRAME},
        .screen = {.max = (size_t)2 * LIMIT_ATTACH_QUEUE},
    };
    struct sy_error err = {0};
    enum sy_code rc = read_key(&j, key != NULL ? key : KEY_DEFAULT, &err);

    rc = rc == SY_E_OK ? attach_tty_check(&err) : rc;
    rc = rc == SY_E_OK ? join(&client, &j, &err) : rc;
    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }
    j.signals_fd = watch_signals();
    rc = buf_add(&j.in, client.line, client.n);
    rc = rc == SY_E_OK ? attach_tty_open(&j.out_fd, &err) : sy_err_nomem(&err);
    if (rc == SY_E_OK) {
        run(&j);
        attach_tty_close();
    }
    pass_close(&client);
    fd_close(&j.signals_fd);
    buf_fini(&j.in);
    buf_fini(&j.to);
    buf_fini(&j.screen);
    return rc == SY_E_OK ? tell_end(&j) : cli_fail(&err);
}

static const struct cli_option options[] = {
    {'r', "read-only",  NULL,  NULL, "only watch: what is typed is not taken"},
    {0,   "detach-key", "KEY", NULL, "the key that leaves, C-\\ by default"  },
    CLI_OPTION_END,
};

const struct cli_verb verb_attach = {
    .name = "attach",
    .summary = "Join a live terminal session of an agent",
    .operands = "ID",
    .text = "ID is what the agent was given, or cN/ID where several clients of the daemon have one "
            "of that\nname. The session's terminal gets the size of yours, or of the smallest that "
            "has joined.\nCtrl-\\ leaves; the session goes on.\n",
    .examples = "  shellyard attach 1234\n  shellyard attach --read-only c2/build\n",
    .page = "shellyard-attach.1",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = attach_main,
};
