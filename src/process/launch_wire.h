#ifndef SY_PROCESS_LAUNCH_WIRE_H
#define SY_PROCESS_LAUNCH_WIRE_H

#include <stdint.h>

/*
 * What engine and shellyard-launch say to each other, over sockets of
 * SOCK_SEQPACKET that came into being as pairs: nobody else can speak on them.
 * Both are of one build; the version is for the case that an installation was
 * replaced under a running engine.
 *
 *   control channel, engine to launcher: struct launch_request
 *     LAUNCH_TEMPLATE: the policy (a file, sandbox/document.h), the template's
 *     end of its channel, a pidfd of the engine
 *
 *   template channel, engine to template: struct launch_order
 *     LAUNCH_KEEPER: standard output and error, the keeper's end of its channel;
 *     fourth, if it is not to be /dev/null, standard input
 *     LAUNCH_TERMINAL: the keeper's end of its channel alone; all three are a terminal, which is
 *     made inside
 *     LAUNCH_MARKS: a file of marks, see below
 *     LAUNCH_HOLD: a descriptor to keep, so that its last close(2) is not the engine's
 *   and back: struct launch_report, first whether it is ready, with the top of
 *     its file tree (O_PATH), a socket for
 *     sock_diag(7) of its network and, if the policy has an allow list, the two TCP sockets for the
 *     engine's proxy, bound in its network namespace; then one for each LAUNCH_MARKS, with
 *     an inotify(7) whose n-th watch tells that the n-th hidden thing was opened, if there is any
 * and that can be had
 *
 *   keeper channel: process/keeper.h; the template adds KEEPER_BORN, and a keeper with a terminal
 *     begins with KEEPER_TERMINAL
 *
 * The end of a channel is the end of who listens on it, keepers excepted: they
 * end with their own.
 */
#define LAUNCH_VERSION 6

enum launch_request_kind { LAUNCH_TEMPLATE = 1 };

struct launch_request {
    int32_t version;
    int32_t kind;
};

#define LAUNCH_TEMPLATE_FDS 3

enum launch_order_kind { LAUNCH_KEEPER = 1, LAUNCH_MARKS, LAUNCH_TERMINAL, LAUNCH_HOLD };

struct launch_order {
    int32_t kind;
};

#define LAUNCH_KEEPER_FDS 4

/* Of a first report, in their order; the last two may be missing. */
enum { LAUNCH_TOP_FD, LAUNCH_DIAG_FD, LAUNCH_HTTP_FD, LAUNCH_SOCKS_FD, LAUNCH_REPORT_FDS };

/* Where the proxy is for commands, on 127.0.0.1 of their network. */
#define LAUNCH_HTTP_PORT  3128
#define LAUNCH_SOCKS_PORT 1080

struct launch_report {
    int32_t version;
    int32_t stage; /* enum sandbox_stage; STAGE_NONE: it is ready */
    int32_t sys;
    char detail[236]; /* what it was about, or "" */
};

/*
 * Marks: one after the other, each a letter, the absolute path and a NUL, as many as the file has.
 */
#define LAUNCH_MARK_READ_ONLY 'r' /* bound on itself, read-only */
#define LAUNCH_MARK_PIN       'p' /* bound on itself: can't be renamed or removed */
#define LAUNCH_MARK_HIDE      'h' /* an empty file or directory lies over it */
/* The same, and a directory keeps the names in it, each of something empty: their opening is told
 * under the directory's watch, by name. */
#define LAUNCH_MARK_HIDE_NAMED 'n'

#endif
