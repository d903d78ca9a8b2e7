#ifndef SY_CLI_PASS_H
#define SY_CLI_PASS_H

#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "transport/hello.h"

/*
 * `mcp` and `proto` as clients of a daemon: this process hands its standard input and output over
 * and waits for the end. The small program in front has it too. (pass.c)
 */

/* The options of both verbs. */
extern const struct cli_option cli_pass_options[];

enum cli_pass {
    PASS_DONE,  /* served by the daemon, or failed on the way; *ret_status is what to end with */
    PASS_ALONE, /* no daemon is up */
    PASS_OWN,   /* the daemon is not for us; that was told */
};

/* `words` as they follow the verb, `program` is the file of the full program, `stdio` are standard
 * input and output, wherever they are. */
enum cli_pass cli_pass(int *ret_status, const char *protocol, char *const *words,
                       const struct stat *program, const int stdio[2]);

/* What all clients of the daemon do. (pass_client.c) */
struct pass_client {
    int fd;
    size_t n; /* of a line that is not whole yet */
    char line[HELLO_ANSWER_MAX];
};

/*
 * Connects and says hello for `protocol`, with two descriptors (`fds`) or none (NULL).
 * SY_E_NOTFOUND: no daemon is up; SY_E_LIMIT: environment and arguments are too large for it.
 */
enum sy_code pass_open(struct pass_client *ret, const char *protocol, char *const *words,
                       const struct stat *program, const int *fds,
                       struct sy_error *err) SY_NODISCARD;
/* The daemon's next line. SY_E_SYS: it has ended (`sys` is EPIPE), or says nothing until the
 * deadline. */
enum sy_code pass_read(struct hello_answer *ret, struct pass_client *c, uint64_t deadline_ns,
                       struct sy_error *err) SY_NODISCARD;
/* The line, if it has come. SY_E_LIMIT: not yet. */
enum sy_code pass_try_read(struct hello_answer *ret, struct pass_client *c,
                           struct sy_error *err) SY_NODISCARD;
void pass_close(struct pass_client *c);
/* When an answer is late. */
uint64_t pass_deadline_ns(void);

/* Input and output that can't be handed over: files and terminals. (pass_pump.c) */
struct pass_pumps {
    int in_from; /* -1: none, or over */
    int in_to;
    int out_from;
    int out_to;
    size_t in_at; /* of `bytes`: read, and not yet written */
    size_t in_n;
    char *bytes;
    struct sy_error why; /* what could not be read or written: the talk is to end */
};

#define PASS_PUMPS_NONE                                                                            \
    {                                                                                              \
        .in_from = -1, .in_to = -1, .out_from = -1, .out_to = -1                                   \
    }

/* What to hand over for `stdio`: themselves, or pipes that are pumped from and to them. ret_far has
 * descriptors to be closed, -1 for those that are handed over themselves. */
enum sy_code pass_pumps_open(struct pass_pumps *ret, int ret_fds[2], int ret_far[2],
                             const int stdio[2], struct sy_error *err) SY_NODISCARD;
/* Two entries for poll(2), and what to do afterwards. */

void pass_pumps_want(const struct pass_pumps *p, struct pollfd ret[2]);
void pass_pumps_step(struct pass_pumps *p, const struct pollfd got[2]);
/* The daemon has ended its side: what it wrote still goes out. */
void pass_pumps_finish(struct pass_pumps *p);

#endif
