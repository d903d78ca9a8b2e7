#ifndef SY_CLI_EXEC_STREAM_H
#define SY_CLI_EXEC_STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "output/output.h"

/*
 * The command's bytes on their way to standard output and standard error,
 * without ever blocking: what a slow reader does not take waits here (bounded:
 * the owner stops stepping the call meanwhile), so that timeouts and signals
 * work while the reader sleeps.
 */
struct exec_stream {
    struct buf pending[STREAM_COUNT];
    size_t sent[STREAM_COUNT];  /* of the pending bytes; dropped together at the end */
    bool is_file[STREAM_COUNT]; /* regular: writing never waits for a reader */
    int own_fd[STREAM_COUNT];   /* the same pipe or terminal opened anew, not blocking; -1 */
    bool has_tried[STREAM_COUNT];
    int failed; /* errno of a failed write (EPIPE: reader gone), 0 if none */
};

void exec_stream_init(struct exec_stream *s);
void exec_stream_fini(struct exec_stream *s);
/* An output_raw_fn; arg is the struct exec_stream. */
enum sy_code exec_stream_raw(void *arg, enum output_stream stream, const char *bytes, size_t n);
/* Does something wait for a reader? */
bool exec_stream_is_pending(const struct exec_stream *s);
/* What to wait for, while pending; returns how many. */
size_t exec_stream_watches(const struct exec_stream *s, struct pollfd out[STREAM_COUNT]);
/* Writes what can be written now. */
void exec_stream_flush(struct exec_stream *s);

#endif
